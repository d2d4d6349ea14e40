-- Makes queues ones that send or get messages, the first time. _names: further queues; those that do not exist are left out.
-- Called by: ensure-families.sql, link-family.sql, put-jobs.sql, put-letter.sql, send-back.sql.
CREATE FUNCTION relate(_queues int[], _names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one int;
BEGIN
  IF _names IS NOT NULL THEN _queues := _queues || ARRAY(SELECT queue FROM queues WHERE name = ANY (_names)); END IF;
  FOR _one IN SELECT DISTINCT queue FROM unnest(_queues) queue ORDER BY queue LOOP
    UPDATE queues SET scheduled = true WHERE queue = _one AND NOT scheduled;
  END LOOP;
END
$body$;
