-- The store's clock: epoch ms with fractions. Callers round the present down and expiries up, so that nothing expires early.
-- Called by: enter-call.sql, fold.sql, add.sql, change-jobs.sql, claim-plain.sql, lift-fences.sql, claim.sql, limit-queue.sql,
--   clear-jobs.sql, requeue.sql, probe.sql, shorten-suspected.sql, status.sql, lock-of.sql, sessions-of.sql, extend.sql, revoke.sql,
--   acquire.sql, let-go.sql, named-locks.sql, settle-plain.sql, open-session.sql, renew-one.sql, renew.sql, close-sessions.sql,
--   settle.sql, sweep.sql, rehearse-reap.sql.
CREATE FUNCTION clock_ms() RETURNS double precision LANGUAGE sql VOLATILE AS $body$
SELECT date_part('epoch', clock_timestamp()) * 1000
$body$;
