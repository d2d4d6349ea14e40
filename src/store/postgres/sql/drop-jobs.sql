-- Removes locked rows with everything that belongs to them. Returns how many. _removed: a caller removes them, so their entries go too; a
-- trim of finished jobs leaves these alone.
-- Called by: clear-lists.sql, deduplicate.sql, dismiss.sql, hand-back.sql, remove-jobs.sql, retain.sql.
-- States: 1 waiting.
CREATE FUNCTION drop_jobs(_queue int, _rows tid[], _removed boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _gone record;
BEGIN
  WITH dropped AS (
    DELETE FROM jobs WHERE ctid = ANY (_rows)
    RETURNING id, log_next, CASE WHEN state + 0 BETWEEN -1 AND 1 THEN lock_key END AS lock_key, _removed AND marks > 0 AS marked, extras
  )
  SELECT count(*) AS jobs, array_agg(id) FILTER (WHERE log_next > 0) AS logged,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE marked) AS marked,
    array_agg(extras) FILTER (WHERE marked) AS extras
  INTO _gone FROM dropped;
  PERFORM leave(_queue, NULL, _gone.keys, _gone.logged, _gone.marked, _gone.extras, true, NULL);
  RETURN _gone.jobs;
END
$body$;
