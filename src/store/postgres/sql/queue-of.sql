-- Returns the queue, and creates it on first use. Its job ids come from a sequence of its own. With a counter in the row, all producers
-- of the queue would wait for one another's commits. They would also wait for every open transaction in which a user adds a job.
-- Called by: add.sql, configure.sql, ensure-queue.sql, open-session.sql, schedule.sql, write-jobs.sql.
CREATE FUNCTION queue_of(_name text) RETURNS int LANGUAGE plpgsql AS $body$
DECLARE
  _queue int;
BEGIN
  LOOP
    SELECT queue INTO _queue FROM queues WHERE name = _name;
    IF FOUND THEN RETURN _queue; END IF;
    INSERT INTO queues (name) VALUES (_name) ON CONFLICT (name) DO NOTHING RETURNING queue INTO _queue;
    IF FOUND THEN
      PERFORM make_counter(_queue);
      RETURN _queue;
    END IF;
  END LOOP;
END
$body$;
