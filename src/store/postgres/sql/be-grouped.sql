-- Makes a queue one with groups, the first time.
-- Called by: ensure-groups.sql, put-jobs.sql.
CREATE FUNCTION be_grouped(_queue int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM FROM queues WHERE queue = _queue AND NOT grouped;
  IF FOUND THEN
    UPDATE queues SET grouped = true WHERE queue = _queue;
    INSERT INTO groups (queue, key, turn, last_turn, place) VALUES (_queue, '', 0, 0, false) ON CONFLICT (queue, key) DO NOTHING;
  END IF;
END
$body$;
