-- Folds the journal. Once a minute it also finds schedules that lost their next job, and removes rows that are no longer needed: old callers, reaped sessions whose last lock has
-- ended, and revocations and places of lock waiters that were written or locked while their session was deleted.
-- Called by: sweep-upkeep.sql, sweep.sql.
-- States: 3 active.
-- PRUNE_EVERY_MS = 60000: how often a sweep prunes rows that are no longer needed, per schema.
-- PRUNED_AT_ONCE = 500
-- NOTES_LEFT = 1000: how many notes of groups a sweep leaves to the next claim. It applies notes only where no worker claims: a claim at the
-- same moment would pass over the groups that the sweep holds.
CREATE FUNCTION upkeep(_queue int, _now bigint) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
  PERFORM try_fold(_queue);
  IF (SELECT number FROM group_notes WHERE queue = _queue ORDER BY number OFFSET 1000 LIMIT 1) IS NOT NULL THEN
    PERFORM count_groups(_queue);
  END IF;
  IF NOT (SELECT pruned_at FROM holdfast_schema) <= _now - 60000 THEN RETURN; END IF;
  PERFORM FROM holdfast_schema FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN; END IF;
  IF prune_callers(_now) OR prune_entries(_now) THEN
    -- The next sweep goes on with them.
    UPDATE holdfast_schema SET pruned_at = _now - 60000;
    RETURN;
  END IF;
  UPDATE holdfast_schema SET pruned_at = _now;
  PERFORM find_late(_now);
  PERFORM tend_groups(_now);
  DELETE FROM sessions
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM sessions s
      WHERE reaped = 2 AND (
        SELECT fence FROM jobs j WHERE j.queue = s.queue AND j.state = 3 AND j.session = s.id ORDER BY fence LIMIT 1
      ) IS NULL LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
  DELETE FROM revocations
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM revocations v
      WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.queue = v.queue AND s.id = v.session) LIMIT 500
    )
  );
  DELETE FROM lock_places
  WHERE ctid = ANY (
    ARRAY(
      SELECT ctid FROM lock_places p
      WHERE kept_until < _now
        AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = p.queue AND s.id = p.session) LIMIT 500 FOR UPDATE SKIP LOCKED
    )
  );
END
$body$;
