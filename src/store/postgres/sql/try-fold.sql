-- Folds the journal of a queue, if no other transaction holds the row of the queue.
-- Called by: many.
CREATE FUNCTION try_fold(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM fold(_queue); END IF;
END
$body$;
