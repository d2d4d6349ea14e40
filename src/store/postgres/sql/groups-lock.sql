-- Returns the number of the advisory lock of the rows of groups: a transaction that makes rows of groups holds it until its commit. A change of
-- limits changes the rows that it sees, so no row may be made meanwhile. Claims by id share the lock, and wait for one another's rows in
-- the order of the keys. Claims in turn and changes of limits hold it alone. A transaction takes it before the rows of groups. Claims in
-- turn hold the row of the queue by then, so they do not wait for it.
-- Called by: count-groups.sql, lock-groups-of.sql, lock-groups.sql.
CREATE FUNCTION groups_lock(_queue int) RETURNS bigint LANGUAGE sql STABLE AS $body$
SELECT hashtextextended('', (_queue::bigint << 32) # 'groups'::regclass::oid::bigint)
$body$;
