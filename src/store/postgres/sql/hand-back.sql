-- Hands back jobs whose lock ends without an outcome of their owner: released or revoked (no stall), or lost (counts as a stall). The
-- caller has locked the jobs.
-- Moves jobs that the caller has locked back to waiting, in the given order. _limits: how often each job may stall; null: does not
-- count as a stall. _losses: loss_of for each job.
-- Called by: close-sessions.sql, reap.sql, revoke-jobs.sql, sweep-ended.sql.
-- States: 0 keyed, 1 waiting, 3 active, 5 failed.
-- STALLED_REASON = job stalled more than allowable limit
CREATE FUNCTION hand_back(
  _queue int, _clock float8, _ids text[], _limits float8[], _losses text[] DEFAULT NULL, OUT stalled text[],
  OUT failed text[], OUT stalled_by text[], OUT failed_by text[]
) RETURNS record LANGUAGE plpgsql AS $body$
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT h.*, j.at FROM unnest(_ids, _limits, _losses) WITH ORDINALITY h(id, most, loss, n),
      LATERAL (SELECT ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = h.id AND state + 0 = 3 OFFSET 0) j
  ), moved AS (
    UPDATE jobs j
    SET state = CASE WHEN stalled_counter >= h.most THEN 5 WHEN lock_key IS NULL THEN 1 ELSE 0 END,
      ord = CASE WHEN stalled_counter >= h.most THEN _base + h.n ELSE -(_base + cardinality(_ids) - h.n) END,
      stalled_counter = stalled_counter + CASE WHEN h.most IS NULL THEN 0 ELSE 1 END,
      lost_by = CASE WHEN h.most IS NULL THEN lost_by ELSE h.loss END,
      finished_on = CASE WHEN stalled_counter >= h.most THEN floor(_clock) END,
      failed_reason = CASE WHEN stalled_counter >= h.most THEN 'job stalled more than allowable limit' ELSE failed_reason END,
      session = NULL, fence = NULL, claim_seq = NULL, ends_at = NULL, timed = false
    FROM held h WHERE j.ctid = h.at AND j.state + 0 = 3 RETURNING h.n, h.loss, j.id, j.state, j.priority, j.lock_key
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE state + 0 <= 1 AND priority = 0) AS plain, array_agg(id) AS ids,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys, array_agg(id) FILTER (WHERE state + 0 <= 1) AS waiting,
    array_agg(id) FILTER (WHERE state = 5) AS failed, array_agg(loss) AS losses,
    array_agg(loss) FILTER (WHERE state + 0 <= 1) AS waiting_losses, array_agg(loss) FILTER (WHERE state = 5) AS failed_losses
  INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  IF _sum.keys IS NOT NULL THEN
    INSERT INTO freed_keys (queue, lock_key)
    SELECT _queue, key FROM (SELECT DISTINCT key FROM unnest(_sum.keys) key WHERE key IS NOT NULL) freed;
  END IF;
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
    _change.body := concat_ws(
      ',', _change.body,
      event(
        'failed', _sum.failed,
        json_build_object('failedReason', 'job stalled more than allowable limit', 'lostBy', losses_field(_sum.failed_losses))
      )
    );
    FOR _job IN
      SELECT j.* FROM unnest(_sum.failed) o(id),
        LATERAL (SELECT opts, ord, ctid AS at FROM jobs j WHERE j.queue = _queue AND j.id = o.id AND true OFFSET 0) j
      ORDER BY ord
    LOOP
      _keep := keep_on_fail(_job.opts);
      IF _keep.most = 0 THEN
        _change.failed := _change.failed - drop_jobs(_queue, ARRAY[_job.at]);
      ELSIF _keep.most IS NOT NULL OR _keep.age IS NOT NULL THEN
        _change.failed := _change.failed - retain(_queue, 5::smallint, _change.failed, _keep.most, _clock - _keep.age);
      END IF;
    END LOOP;
  END IF;
  -- include: note
END
$body$;
