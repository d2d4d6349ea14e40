-- Locks the groups of jobs for claims by id, in the order of their keys, and applies their notes. These claims hold the jobs already. A
-- deadlock is impossible, because a claim in turn waits for no job, and a change of limits takes groups before the queue.
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
  INSERT INTO groups (queue, key)
  SELECT _queue, o.key FROM unnest(_keys) WITH ORDINALITY o(key, n)
  WHERE NOT EXISTS (SELECT FROM groups g WHERE g.queue = _queue AND g.key = o.key) ORDER BY n ON CONFLICT (queue, key) DO NOTHING;
  PERFORM FROM (SELECT key FROM unnest(_keys) WITH ORDINALITY k(key, n) ORDER BY n OFFSET 0) o,
    LATERAL (SELECT FROM groups g WHERE g.queue = _queue AND g.key = o.key FOR UPDATE) g;
  PERFORM count_groups(_queue);
END
$body$;
