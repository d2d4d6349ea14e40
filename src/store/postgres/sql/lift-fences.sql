-- Lifts the fence sequence over the server's clock in µs, which no earlier fence can exceed. After a failover or from a restored
-- backup, the sequence may have lost its last numbers. It then runs in another server, so the first claim in each server lifts it.
-- Called by: acquire.sql, take.sql.
-- ADVISORY.fences = 1214673782
CREATE FUNCTION lift_fences(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _clock bigint := floor(clock_ms() * 1000);
BEGIN
  PERFORM pg_advisory_xact_lock(1214673782, 'fences'::regclass::oid::int);
  -- A second ahead, which no transaction can use up between the two calls.
  IF nextval('fences') < _clock THEN PERFORM setval('fences', _clock + 1000000); END IF;
  UPDATE queues SET fenced_on = pg_postmaster_start_time() WHERE queue = _queue;
END
$body$;
