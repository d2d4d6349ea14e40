-- Returns whether a schedule of the queue owes a job, or the queue sends or gets a message that is not delivered. It reads the snapshot of its
-- caller, because it is STABLE.
-- Called by: claim-plain.sql, claim.sql, probe.sql, settle-children.sql, settle-groups.sql, settle-plain.sql, take.sql.
CREATE FUNCTION any_undone(_queue int, _name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $body$
BEGIN
  RETURN (SELECT version FROM schedules WHERE queue = _queue AND state = 'owing' ORDER BY version LIMIT 1) IS NOT NULL
    OR (SELECT number FROM outbox WHERE queue = _queue ORDER BY number LIMIT 1) IS NOT NULL
    OR (SELECT number FROM outbox WHERE to_queue = _name ORDER BY number LIMIT 1) IS NOT NULL;
END
$body$;
