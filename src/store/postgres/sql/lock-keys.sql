-- Locks the keys whose lock is free at this moment. Returns them.
-- Called by: first-of-keys.sql, show-freed.sql.
CREATE FUNCTION lock_keys(_queue int, _keys text[]) RETURNS text[] LANGUAGE plpgsql AS $body$
BEGIN
  RETURN ARRAY(
    SELECT key FROM unnest(_keys) WITH ORDINALITY o(key, n) WHERE pg_try_advisory_xact_lock(key_lock(_queue, key)) ORDER BY n
  );
END
$body$;
