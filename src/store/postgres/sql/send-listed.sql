-- Sends the letters of some lists back, the oldest first. Other jobs of the lists stay.
-- Called by: dead-letter.ts.
CREATE FUNCTION send_listed(_name text, _lists text[], _age float8, _limit int, _to text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _ids text[] := '{}';
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _ids := _ids || send_back(_queue, select_listed(_queue, _list, _latest, _limit - cardinality(_ids), true, true), _to);
  END LOOP;
  RETURN to_json(_ids);
END
$body$;
