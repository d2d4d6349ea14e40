-- Removes locked rows with everything that belongs to them. Returns how many. _removed: a caller removes them, so their entries go too; a
-- trim of finished jobs leaves these alone. Their parents get messages, and their own links go.
-- Called by: clear-lists.sql, deduplicate.sql, dismiss.sql, hand-back.sql, remove-jobs.sql, retain.sql,
--   send-ends.sql, send-back.sql.
-- States: 1 waiting.
-- MARK.child = 2
-- MARK.parent = 4
-- MARK.steps = 32
CREATE FUNCTION drop_jobs(_queue int, _rows tid[], _removed boolean DEFAULT false) RETURNS bigint LANGUAGE plpgsql AS $body$
DECLARE
  _gone record;
BEGIN
  WITH dropped AS (
    DELETE FROM jobs WHERE ctid = ANY (_rows)
    RETURNING id, log_next, CASE WHEN state + 0 BETWEEN -1 AND 1 THEN lock_key END AS lock_key, _removed AND marks > 0 AS marked, extras, marks,
      CASE WHEN marks & 2 > 0 THEN kin_of(id, extras, state, returnvalue, failed_reason) END AS kin
  )
  SELECT count(*) AS jobs, array_agg(id) FILTER (WHERE log_next > 0) AS logged,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE marked) AS marked,
    array_agg(extras) FILTER (WHERE marked) AS extras,
    json_agg(kin) FILTER (WHERE kin IS NOT NULL) AS kin, array_agg(id) FILTER (WHERE marks & 4 > 0) AS parents,
    array_agg(id) FILTER (WHERE marks & 32 > 0) AS stepped
  INTO _gone FROM dropped;
  PERFORM leave(_queue, NULL, _gone.keys, _gone.logged, _gone.marked, _gone.extras, true, NULL);
  IF _gone.kin IS NOT NULL THEN PERFORM send_to_parents(_queue, _gone.kin, true); END IF;
  IF _gone.parents IS NOT NULL THEN
    DELETE FROM links WHERE queue = _queue AND parent = ANY (_gone.parents);
    DELETE FROM families WHERE queue = _queue AND parent = ANY (_gone.parents);
  END IF;
  IF _gone.stepped IS NOT NULL THEN DELETE FROM steps WHERE queue = _queue AND job = ANY (_gone.stepped); END IF;
  RETURN _gone.jobs;
END
$body$;
