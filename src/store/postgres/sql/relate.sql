-- Makes queues ones that send or get messages, the first time. _letters: the names of queues for dead letters; those that do not exist are
-- left out.
-- Called by: ensure-families.sql, put-family.sql, put-jobs.sql, put-letter.sql.
CREATE FUNCTION relate(_queues int[], _letters text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
  _one int;
BEGIN
  IF _letters IS NOT NULL THEN _queues := _queues || ARRAY(SELECT queue FROM queues WHERE name = ANY (_letters)); END IF;
  FOR _one IN SELECT DISTINCT queue FROM unnest(_queues) queue ORDER BY queue LOOP
    UPDATE queues SET scheduled = true WHERE queue = _one AND NOT scheduled;
  END LOOP;
END
$body$;
