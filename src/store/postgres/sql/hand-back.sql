-- Hands back jobs whose lock ends without an outcome of their owner: revoked (no stall), or lost (counts as a stall). The caller has locked
-- the jobs. They go to the front in the given order. _limits: how often each job may stall; null: does not count as a stall. _losses:
-- loss_of for each job. Cancelled jobs fail. _settled: a settle hands the jobs back.
-- Called by: carry-out.sql, close-sessions.sql, reap.sql, revoke-jobs.sql, sweep-ended.sql.
-- States: 3 active, 5 failed.
-- MARK.key = 1
-- MARK.child = 2
-- MARK.doomed = 64
-- MARK.letter = 128
-- MARK.cancelled = 256
CREATE FUNCTION hand_back(
  _queue int, _clock float8, _ids text[], _limits float8[], _losses text[] DEFAULT NULL, _settled boolean DEFAULT false,
  OUT stalled text[], OUT failed text[], OUT stalled_by text[], OUT failed_by text[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT h.*, j.at, j.fence FROM unnest(_ids, _limits, _losses) WITH ORDINALITY h(id, most, loss, n),
      LATERAL (SELECT ctid AS at, fence FROM jobs j WHERE j.queue = _queue AND j.id = h.id AND state + 0 = 3 OFFSET 0) j
  ), moved AS (
    UPDATE jobs j
    SET
      -- include: handed-back
    FROM held h WHERE j.ctid = h.at AND j.state + 0 = 3
    RETURNING h.n, h.loss, h.fence, j.id, j.state, j.priority, j.lock_key, j.state + 0 = 5 AND j.marks > 0 AS marked, j.extras,
      j.state + 0 = 5 AND j.marks & (2 | 64 | 128 | 256) > 0 AS kin, j.failed_reason,
      CASE WHEN j.marks & 1 > 0 THEN j.extras::json ->> 'g' END AS member
  )
  -- include: sum-handed-back
  IF _sum.jobs = 0 THEN RETURN; END IF;
  stalled := _sum.waiting;
  failed := _sum.failed;
  _change.active := -_sum.jobs;
  _change.events := _sum.jobs;
  IF _limits IS NOT NULL THEN
    _change.events := 2 * _sum.jobs;
    stalled_by := _sum.waiting_losses;
    failed_by := _sum.failed_losses;
    _change.body := event('stalled', _sum.ids, json_build_object('lostBy', losses_field(_sum.losses)));
  END IF;
  IF _sum.waiting IS NOT NULL THEN
    _change.waiting := _sum.plain;
    _change.prioritized := cardinality(_sum.waiting) - _sum.plain;
    _change.body := concat_ws(',', _change.body, event('waiting', _sum.waiting, '{"prev":"active"}'));
  END IF;
  IF _sum.failed IS NOT NULL THEN
    _change.failed := cardinality(_sum.failed);
    IF _settled THEN _change.finishes := cardinality(_sum.failed); END IF;
    _change.body := concat_ws(
      ',', _change.body,
      event(
        'failed', _sum.failed,
        json_build_object('failedReason', losses_field(_sum.reasons), 'lostBy', losses_field(_sum.failed_losses))
      )
    );
    IF _sum.kin IS NOT NULL THEN PERFORM send_ends(_queue, _sum.kin, NULL, _sum.fences); END IF;
    -- include: keep-failed
  END IF;
  _change := leave(_queue, _clock, _sum.keys, NULL, _sum.marked, _sum.extras, false, _change, _sum.groups, _sum.entered);
  -- include: note
END
$body$;
