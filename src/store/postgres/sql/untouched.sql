-- Guards against a wait that SKIP LOCKED does not skip. Transaction A has changed a row and commits just when verb B reads the row;
-- transaction C, next in line, has locked it by then. The server follows the row to its new version, and B waits there for C. B may hold
-- rows that C wants. So two verbs with a sound lock order deadlocked, once in 40 runs of a storm, on a machine with more work than cores.
-- Rows that another transaction is changing are therefore left out before the server tries to lock them.
-- `xmax` is the transaction that changed or locked the row last, as the lower half of its number. pg_xact_status needs the whole
-- number.
-- Called by: many.
CREATE FUNCTION untouched(_xmax xid) RETURNS boolean LANGUAGE sql VOLATILE AS $body$
SELECT _xmax = pg_current_xact_id()::xid OR pg_xact_status(
  (pg_current_xact_id()::text::bigint + age(pg_current_xact_id()::xid) - age(_xmax))::text::xid8
) IS DISTINCT FROM 'in progress'
$body$;
