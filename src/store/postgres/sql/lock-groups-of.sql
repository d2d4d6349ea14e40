-- Locks the groups of jobs for claims by id, in the order of their keys, and applies their notes. These claims hold the jobs already. A
-- deadlock is impossible: a claim in turn waits for no job, and a change of limits waits before it takes groups, and then the queue.
-- Called by: grant-by-id.sql.
-- MARK.key = 1
CREATE FUNCTION lock_groups_of(_queue int, _ids text[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _keys text[] := ARRAY(
    SELECT DISTINCT (j.extras::json ->> 'g') COLLATE "C" AS key FROM unnest(_ids) o(id),
      LATERAL (SELECT extras FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND marks & 1 > 0 OFFSET 0) j
    ORDER BY key
  );
BEGIN
  IF cardinality(_keys) = 0 THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(groups_lock(_queue));
  -- A row that is there is locked by this too: a sweep may remove it between two statements.
  INSERT INTO groups (queue, key)
  SELECT _queue, o.key FROM unnest(_keys) WITH ORDINALITY o(key, n) ORDER BY n
  ON CONFLICT (queue, key) DO UPDATE SET active = groups.active;
  PERFORM count_groups(_queue);
END
$body$;
