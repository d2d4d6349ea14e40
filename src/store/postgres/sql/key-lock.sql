-- Returns the number of the advisory lock of a key.
-- Called by: lock-keys-of.sql, lock-keys.sql.
CREATE FUNCTION key_lock(_queue int, _key text) RETURNS bigint LANGUAGE sql STABLE AS $body$
SELECT hashtextextended(_key, (_queue::bigint << 32) # 'jobs'::regclass::oid::bigint)
$body$;
