-- Removes locked rows with everything that belongs to them. Returns how many.
-- Called by: clear-lists.sql, hand-back.sql, remove-jobs.sql, retain.sql.
-- States: 1 waiting.
CREATE FUNCTION drop_jobs(_queue int, _rows tid[]) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _ids text[];
  _logged text[];
  _keys text[];
BEGIN
  WITH dropped AS (
    DELETE FROM jobs WHERE ctid = ANY (_rows) RETURNING id, log_next, CASE WHEN state + 0 <= 1 THEN lock_key END AS lock_key
  )
  SELECT array_agg(id), array_agg(id) FILTER (WHERE log_next > 0), array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL)
  INTO _ids, _logged, _keys FROM dropped;
  IF _keys IS NOT NULL THEN
    INSERT INTO freed_keys (queue, lock_key)
    SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(_keys) key WHERE key IS NOT NULL) freed;
  END IF;
  IF _logged IS NOT NULL THEN DELETE FROM logs WHERE queue = _queue AND job = ANY (_logged); END IF;
  RETURN coalesce(cardinality(_ids), 0);
END
$body$;
