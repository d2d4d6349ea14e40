-- Locks the entry of a deduplication id. If there is none, it makes one that names no owner, and so does not count.
-- The entry is where two adds meet, and an add and the end of its owner. The end of an owner has locked the job before. So an add that
-- holds an entry never waits for a job.
-- Called by: deduplicate.sql, lock-entries.sql, own-again.sql.
CREATE FUNCTION lock_entry(_queue int, _id text) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  LOOP
    PERFORM FROM dedup WHERE queue = _queue AND id = _id FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO dedup (queue, id, job) VALUES (_queue, _id, '') ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
  END LOOP;
END
$body$;
