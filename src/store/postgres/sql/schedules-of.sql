-- Returns schedules by their ids, those that are owing (at most _limit), or a part of all by their slots; and the clock. If all
-- parameters but _name are null, it returns how many schedules there are.
-- Called by: schedule.ts.
CREATE FUNCTION schedules_of(
  _name text, _ids text[], _limit bigint, _start bigint, _end bigint, _asc boolean
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _count bigint := CASE WHEN _end >= 0 THEN greatest(0, _end - _start + 1) END;
  _found json;
  _all bigint;
BEGIN
  IF _ids IS NOT NULL THEN
    SELECT json_agg(schedule_record(s) ORDER BY n) INTO _found FROM unnest(_ids) WITH ORDINALITY o(id, n),
      LATERAL (SELECT * FROM schedules WHERE queue = _queue AND id = o.id OFFSET 0) s;
  ELSIF _limit IS NOT NULL THEN
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue AND state = 'owing' ORDER BY version LIMIT _limit) s;
  ELSIF _start IS NULL THEN
    _all := (SELECT count(*) FROM schedules WHERE queue = _queue);
  ELSIF _asc THEN
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue ORDER BY at, id LIMIT _count OFFSET _start) s;
  ELSE
    SELECT json_agg(schedule_record(s)) INTO _found
    FROM (SELECT * FROM schedules WHERE queue = _queue ORDER BY at DESC, id DESC LIMIT _count OFFSET _start) s;
  END IF;
  RETURN json_strip_nulls(
    json_build_object(
      'records', coalesce(_found, '[]'), 'count', _all, 'now', floor(clock_ms())::bigint
    )
  );
END
$body$;
