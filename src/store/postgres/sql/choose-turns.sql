-- Decides whose turn it is, for up to _room jobs: the rule of contract/groups.ts. Locks the rows of the groups that come first, but no job.
-- A member that was served comes last, so the turns go round: first each member once, by number and key, then each that has more, and so on.
-- _plain: how many jobs without a group may be taken, and then how many are. _dealt: how many jobs are taken in all. _keys, _took, _turns: the
-- groups, how many turns each has, and its number then; null: it is out of line. _begins: the numbers before. _plain_begins, _plain_turn: the
-- number of the jobs without a group, before and then. _last: the number of the last turn.
-- Called by: grant-groups.sql.
CREATE FUNCTION choose_turns(
  _queue int, _now bigint, _room int, INOUT _plain bigint, OUT _dealt int, OUT _keys text[], OUT _took int[], OUT _begins bigint[],
  OUT _turns bigint[], OUT _plain_begins bigint, OUT _plain_turn bigint, OUT _last bigint, OUT _soon boolean
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint;
  _noted boolean;
  _rested boolean;
  _locked record;
  _one record;
  _waits bigint[] := '{}';
  _caps bigint[] := '{}';
  _from bigint := 0;
  _rounds bigint;
  _groups int := 0;
  _jobs bigint := 0;
BEGIN
  _soon := false;
  SELECT turn, turn, last_turn, '{}', '{}', (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL, (
    SELECT rests_until FROM groups WHERE queue = _queue AND rests_until IS NOT NULL ORDER BY rests_until LIMIT 1
  ) <= _now
  INTO _plain_begins, _plain_turn, _last, _keys, _begins, _noted, _rested FROM groups WHERE queue = _queue AND key = '';
  IF _noted THEN _soon := count_groups(_queue, _room); END IF;
  IF _rested THEN
    -- include: end-rests
  END IF;
  LOOP
    -- include: next-groups
    EXIT WHEN _locked.many < _room OR _groups >= _room;
  END LOOP;
  -- After the locks: a claim that began earlier and locks later must not give lower numbers.
  _base := nextval('places');
  -- include: more-rounds
  -- include: deal-turns
END
$body$;
