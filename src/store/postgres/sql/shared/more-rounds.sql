-- Counts more waiting jobs where some groups have too few for their turns, so that other groups have more turns.
WHILE _rounds < _room AND _jobs + least(_plain, _rounds) < _room LOOP
  _rounds := CASE WHEN EXISTS (SELECT FROM unnest(_waits, _caps) o(waits, cap) WHERE waits > _rounds AND cap > _rounds) THEN 2 * _rounds
    ELSE _room END;
  SELECT array_agg(w.waits ORDER BY n), sum(least(w.waits, cap, _rounds)) INTO _waits, _jobs
  FROM unnest(_keys, _waits, _caps) WITH ORDINALITY o(key, waits, cap, n),
    LATERAL (SELECT CASE WHEN least(o.waits, o.cap) > 0 THEN group_waits(_queue, o.key, _rounds + 1) ELSE o.waits END AS waits) w;
  _jobs := coalesce(_jobs, 0);
END LOOP;
