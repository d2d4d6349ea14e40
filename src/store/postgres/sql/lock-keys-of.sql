-- Locks the keys of jobs for claims by id, which would otherwise be refused while another claim decides about the key. These claims
-- hold the jobs already. A deadlock is impossible, because a transaction that got a key without waiting waits for nothing.
-- Called by: grant-by-id.sql.
-- States: 2 delayed.
CREATE FUNCTION lock_keys_of(_queue int, _ids text[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM pg_advisory_xact_lock(lock)
  FROM (
    SELECT DISTINCT key_lock(_queue, j.lock_key) AS lock
    FROM unnest(_ids) o(id),
      LATERAL (
        SELECT lock_key FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND lock_key IS NOT NULL AND state <= 2 OFFSET 0
      ) j
    ORDER BY lock OFFSET 0
  ) keys;
END
$body$;
