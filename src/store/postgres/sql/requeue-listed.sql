-- Moves the unlocked jobs of some lists to waiting.
-- Called by: select.ts, requeue.sql.
CREATE FUNCTION requeue_listed(
  _name text, _list text, _age float8, _limit int, _reset_made boolean, _reset_started boolean
) RETURNS text LANGUAGE plpgsql
-- include: settings
AS $body$
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _ids text[];
BEGIN
  IF _queue IS NOT NULL THEN
    _ids := send_to_waiting(
      _queue, array_position('{waiting,delayed,active,completed,failed}'::text[], _list)::smallint,
      select_listed(
        _queue, _list, (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint, _limit, false
      ), _reset_made, _reset_started
    );
    IF _ids IS NOT NULL THEN
      -- include: fold-sometimes
    END IF;
  END IF;
  RETURN to_json(coalesce(_ids, '{}'));
END
$body$;
