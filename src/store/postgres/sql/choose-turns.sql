-- Decides whose turn it is, for up to _room jobs: the rule of contract/groups.ts. Locks the rows of the groups that come first, but no job.
-- _plain: how many jobs without a group may be taken. _order: for each turn the group, as its place in _keys, or 0 for a job without a
-- group. _took, _turns: the turns of each group, and its number then; null: it is out of line. _plain_turn, _last: the number of the jobs
-- without a group, and that of the last turn.
-- Called by: grant-groups.sql.
CREATE FUNCTION choose_turns(
  _queue int, _now bigint, _room int, INOUT _plain bigint, OUT _order int[], OUT _keys text[], OUT _took int[],
  OUT _turns bigint[], OUT _plain_turn bigint, OUT _last bigint, OUT _soon boolean
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _row queues;
  _batch text[];
  _one record;
  _all boolean := false;
  _g int;
  _waits bigint[] := '{}';
  _rooms int[] := '{}';
  _again int[] := '{}';
  _from bigint := 0;
  _next int := 1;
  _next_again int := 1;
  _most bigint;
BEGIN
  _soon := count_groups(_queue, _room);
  -- include: end-rests
  SELECT turn, last_turn, '{}'::int[], '{}'::text[], '{}'::int[], '{}'::bigint[]
  INTO _plain_turn, _last, _order, _keys, _took, _turns FROM groups WHERE queue = _queue AND key = '';
  WHILE cardinality(_order) < _room LOOP
    IF _next > cardinality(_keys) AND NOT _all THEN
      -- include: next-groups
      CONTINUE;
    END IF;
    _g := CASE WHEN _next <= cardinality(_keys) THEN _next ELSE _again[_next_again] END;
    IF _g = _next AND (_waits[_g] = 0 OR _rooms[_g] <= 0) THEN
      -- Without a job it goes out of line. Without room it stays there, and write_turns corrects its row.
      IF _waits[_g] = 0 THEN _turns[_g] := NULL; END IF;
      _next := _next + 1;
    ELSIF _plain > 0 AND (_g IS NULL OR _plain_turn <= _turns[_g]) THEN
      _order := _order || 0;
      _plain := _plain - 1;
      -- Where no group may be served, the turn does not count.
      IF _g IS NOT NULL THEN _plain_turn := _base + cardinality(_order); END IF;
      _last := greatest(_last, _plain_turn);
    ELSE
      EXIT WHEN _g IS NULL;
      -- include: take-turn
    END IF;
  END LOOP;
END
$body$;
