-- Returns whether this transaction has written a message that relay.sql delivers.
-- Called by: put-family.sql, put-unique.sql, relay.sql, settle.sql, sweep-reap.sql.
CREATE FUNCTION has_sent() RETURNS boolean LANGUAGE sql STABLE AS $body$
SELECT coalesce(current_setting('holdfast.sent', true) = '1', false)
$body$;
