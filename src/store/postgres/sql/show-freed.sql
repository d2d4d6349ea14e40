-- Makes the first jobs of freed keys visible to claims again. It runs under the key's lock, in a statement that begins after the lock
-- was taken: so it sees the changes of the previous lock owner. _soon: the claim should be retried soon.
-- Called by: grant-in-turn.sql.
-- States: -2 grouped, -1 behind, 0 keyed, 3 active.
-- KEYS_AT_ONCE = 200: how many keys one claim decides about: each needs an entry in the server's lock table.
CREATE FUNCTION show_freed(
  _queue int, OUT _soon boolean, _head_freed bigint DEFAULT 0, _head_keyed bigint DEFAULT 0
) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _freed record;
  _locked text[];
  _hidden record;
  _shown text[];
BEGIN
  SELECT array_agg(number) AS numbers, array_agg(lock_key) AS keys, count(*) AS many INTO _freed
  FROM (
    SELECT number, lock_key FROM freed_keys WHERE queue = _queue AND number >= _head_freed
    ORDER BY number LIMIT 200 FOR UPDATE SKIP LOCKED
  ) freed;
  _locked := lock_keys(_queue, ARRAY(SELECT DISTINCT key FROM unnest(_freed.keys) key));
  SELECT array_agg(j.id) AS ids, array_agg(o.key) AS keys INTO _hidden
  FROM unnest(_locked) o(key),
    LATERAL (
      SELECT * FROM (
        SELECT id, state FROM jobs
        WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
          AND priority = 0 AND ord < 0
        ORDER BY priority, ord LIMIT 1
      ) s
      UNION ALL
      SELECT * FROM (
        SELECT id, state FROM jobs
        WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state <= 0 AND state + 0 > -2
          AND (priority, ord) >= (0, _head_keyed)
        ORDER BY priority, ord LIMIT 1
      ) s LIMIT 1
    ) j
  WHERE j.state = -1
    AND NOT EXISTS (SELECT FROM jobs WHERE queue = _queue AND lock_key = o.key AND lock_key IS NOT NULL AND state = 3);
  WITH shown AS (
    UPDATE jobs SET state = 0
    WHERE ctid = ANY (
      ARRAY(
        SELECT j.at FROM unnest(_hidden.ids) o(id),
          LATERAL (
            SELECT ctid AS at FROM jobs
            WHERE queue = _queue AND id = o.id AND state + 0 = -1 AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
          ) j
      )
    )
    RETURNING lock_key
  )
  SELECT array_agg(lock_key) INTO _shown FROM shown;
  -- A key is not finished while another transaction has the row of its first job.
  _locked := ARRAY(SELECT key FROM unnest(_locked) key WHERE key <> ALL (coalesce(_hidden.keys, '{}')) OR key = ANY (_shown));
  -- The server may choose to read all rows of the queue for this, the dead ones too: none below the head.
  DELETE FROM freed_keys
  WHERE queue = _queue AND number >= _head_freed
    AND number = ANY (ARRAY(SELECT number FROM unnest(_freed.numbers, _freed.keys) o(number, key) WHERE key = ANY (_locked)));
  _soon := _freed.many = 200 OR EXISTS (SELECT FROM unnest(_freed.keys) key WHERE key <> ALL (_locked));
END
$body$;
