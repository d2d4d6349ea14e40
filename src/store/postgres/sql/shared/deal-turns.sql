-- Deals out the turns. A turn of the jobs without a group does not count where no group may be served.
SELECT coalesce(sum(took), 0), coalesce(array_agg(took ORDER BY n) FILTER (WHERE n > 0), '{}'),
  coalesce(array_agg(CASE WHEN waits <= took THEN NULL WHEN took = 0 THEN turn ELSE _base + last END ORDER BY n) FILTER (WHERE n > 0), '{}'),
  coalesce(max(took) FILTER (WHERE n = 0), 0), coalesce(_base + max(counted) FILTER (WHERE n = 0), _plain_turn),
  coalesce(_base + greatest(max(last) FILTER (WHERE n > 0), max(counted) FILTER (WHERE n = 0)), _last)
INTO _dealt, _took, _turns, _plain, _plain_turn, _last
FROM (
  SELECT n, min(turn) AS turn, min(waits) AS waits, count(place) FILTER (WHERE place <= _room) AS took,
    max(place) FILTER (WHERE place <= _room) AS last,
    max(place) FILTER (WHERE place <= _room AND place - round < total) AS counted
  FROM (
    SELECT n, turn, waits, round, (SELECT sum(least(waits, cap)) FROM unnest(_waits, _caps) o(waits, cap)) AS total,
      CASE WHEN round IS NOT NULL THEN row_number() OVER (ORDER BY round, turn, key) END AS place
    FROM (
      SELECT n, key COLLATE "C" AS key, turn, waits, round
      FROM unnest(_keys, _begins, _waits, _caps) WITH ORDINALITY o(key, turn, waits, cap, n)
      LEFT JOIN LATERAL generate_series(1, least(waits, cap, _rounds)) round ON true
      UNION ALL
      SELECT 0, '', _plain_begins, 0, round FROM generate_series(1, least(_plain, _rounds)) round
    ) members
  ) places
  GROUP BY n
) dealt;
