-- Makes running schedules owing whose slot passed long ago and whose next job is gone, has finished or, unless serial, runs: then something
-- else than a claim of this version took the job. It waits for no lock.
-- Called by: upkeep.sql.
-- States: 3 active, 4 completed, 5 failed.
-- LATE_MS = 60000
-- FOUND_AT_ONCE = 500
CREATE FUNCTION find_late(_now bigint) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one record;
BEGIN
  FOR _one IN
    SELECT s.* FROM schedules s
    LEFT JOIN LATERAL (SELECT state FROM jobs j WHERE j.queue = s.queue AND j.id = s.next_job AND true OFFSET 0) j ON true
    WHERE s.state = 'running' AND s.at < _now - 60000 AND (j.state IS NULL OR j.state + 0 IN (4, 5) OR j.state + 0 = 3 AND NOT s.serial)
    ORDER BY s.queue, s.at, s.id LIMIT 500
  LOOP
    PERFORM FROM jobs WHERE queue = _one.queue AND id = _one.next_job AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND AND EXISTS (SELECT FROM jobs WHERE queue = _one.queue AND id = _one.next_job);
    PERFORM FROM schedules
    WHERE queue = _one.queue AND id = _one.id AND version = _one.version AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED;
    IF FOUND THEN PERFORM owe(_one.queue, _one.id, _one.next_job); END IF;
  END LOOP;
END
$body$;
