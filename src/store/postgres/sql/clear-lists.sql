-- Removes the selected jobs, and records how many. Returns their ids. _children: also their children that have no other parent. _parent_too:
-- also the parents in the queue whose last pending children they are.
-- Called by: clear-jobs.sql, remove-listed.sql.
CREATE FUNCTION clear_lists(
  _queue int, _lists text[], _age float8, _limit int, _children boolean DEFAULT false, _parent_too boolean DEFAULT false
) RETURNS text[] LANGUAGE plpgsql AS $body$
DECLARE
  _latest bigint := (CASE WHEN _age IS NULL THEN 9000000000000000 ELSE floor(clock_ms() - _age) END)::bigint;
  _list text;
  _rows tid[];
  _parents tid[];
  _found text[];
  _ids text[] := '{}';
  _change journal := no_change(_queue);
BEGIN
  FOREACH _list IN ARRAY _lists LOOP
    EXIT WHEN _queue IS NULL OR cardinality(_ids) >= _limit;
    _rows := select_listed(_queue, _list, _latest, _limit - cardinality(_ids), true);
    _found := ARRAY(
      SELECT id FROM unnest(_rows) WITH ORDINALITY r(at, n), LATERAL (SELECT id FROM jobs WHERE ctid = at OFFSET 0) j ORDER BY n
    );
    CONTINUE WHEN cardinality(_found) = 0;
    IF _children THEN PERFORM send_to_children(_queue, _found); END IF;
    IF _parent_too THEN
      _parents := last_parents(_queue, _rows);
      _rows := _rows || _parents;
      _change.parents := coalesce(_change.parents, 0) - cardinality(_parents);
    END IF;
    PERFORM drop_jobs(_queue, _rows, true);
    _ids := _ids || _found;
    CASE _list
      WHEN 'waiting' THEN _change.waiting := -cardinality(_found);
      WHEN 'prioritized' THEN _change.prioritized := -cardinality(_found);
      WHEN 'delayed' THEN _change.delayed := -cardinality(_found);
      WHEN 'completed' THEN _change.completed := -cardinality(_found);
      WHEN 'failed' THEN _change.failed := -cardinality(_found);
      ELSE _change.parents := coalesce(_change.parents, 0) - cardinality(_found);
    END CASE;
  END LOOP;
  IF cardinality(_ids) > 0 THEN
    _change.events := 1;
    _change.body := event('cleaned', NULL, json_build_object('count', cardinality(_ids)));
    -- include: note
    -- include: fold-sometimes
  END IF;
  RETURN _ids;
END
$body$;
