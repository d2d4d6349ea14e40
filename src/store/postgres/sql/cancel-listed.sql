-- Cancels the jobs of some lists, the oldest of each list first. It passes over finished and cancelled jobs.
-- Called by: select.ts.
CREATE FUNCTION cancel_listed(_name text, _lists text[], _age float8, _limit int, _reason text) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _rows tid[];
  _found text[];
  _ids text[] := '{}';
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    CONTINUE WHEN _list IN ('completed', 'failed');
    _rows := CASE WHEN _list = 'active' THEN select_active(_queue, _latest, _limit - cardinality(_ids))
      ELSE select_listed(_queue, _list, _latest, _limit - cardinality(_ids), false) END;
    _found := ARRAY(
      SELECT id FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n
    );
    CONTINUE WHEN cardinality(_found) = 0;
    PERFORM cancel_open(_queue, _found, _reason);
    _ids := _ids || _found;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    -- include: fold-sometimes
  END IF;
  RETURN to_json(_ids);
END
$body$;
