-- Frees the places of jobs that left active in their groups (_freed: a key for each job). The rows of groups that another transaction holds, or
-- has just changed, get notes instead (count-groups.sql). Returns whether a group may have a place that had none.
-- A place that came free never takes a place away: the limit that this statement sees may have been replaced meanwhile.
-- Called by: carry-out.sql, settle-groups.sql.
CREATE FUNCTION free_places(_queue int, _freed text[]) RETURNS boolean LANGUAGE plpgsql AS $body$
DECLARE
  _shown boolean;
BEGIN
  WITH freed AS MATERIALIZED (
    SELECT key COLLATE "C" AS key, count(*)::int AS jobs FROM unnest(_freed) key GROUP BY 1
  ), held AS MATERIALIZED (
    SELECT f.*, g.at, g.place FROM freed f,
      LATERAL (
        SELECT ctid AS at, place FROM groups g
        WHERE g.queue = _queue AND g.key = f.key AND (xmax = 0 OR untouched(xmax)) FOR UPDATE SKIP LOCKED
      ) g
  ), written AS (
    UPDATE groups g
    SET active = g.active - held.jobs,
      place = g.place OR group_place(
        g.paused, g.active - held.jobs, g.max_active, (SELECT group_max FROM queues WHERE queue = _queue)
      )
    FROM held WHERE g.ctid = held.at RETURNING held.key, held.place
  ), noted AS (
    INSERT INTO group_notes (queue, key, freed, entered)
    SELECT _queue, key, jobs, false FROM freed WHERE key <> ALL (ARRAY(SELECT key FROM written)) RETURNING false AS place
  )
  SELECT NOT bool_and(place) INTO _shown FROM (SELECT place FROM written UNION ALL SELECT place FROM noted) done;
  RETURN _shown;
END
$body$;
