-- Sets how many minutes of metrics a queue keeps. Null: it stops counting, and forgets its counts. The caller holds the lock of the
-- queue's row, and then writes the number there. The journal is folded first, under the setting of before.
-- Called by: configure.sql, forget.sql.
CREATE FUNCTION keep_metrics(_queue int, _points int) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM fold(_queue);
  IF _points IS NULL THEN
    DELETE FROM metrics WHERE queue = _queue;
  ELSE
    PERFORM trim_metrics(_queue, _points);
  END IF;
END
$body$;
