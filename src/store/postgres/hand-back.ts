// Hands back jobs whose lock ends without an outcome of their owner: released or revoked (no stall), or lost (counts as a stall). The
// caller has locked the jobs.
import { STALLED_REASON } from '../contract/index.js';
import { NOTE } from './fold.js';
import { freeKeys, WAITS } from './key.js';
import { jobOf } from './lookup.js';
import { expression, step } from './sql-function.js';
import { IS_ACTIVE, STATE } from './tables.js';

const UNLOCKED = 'session = NULL, fence = NULL, claim_seq = NULL, ends_at = NULL, timed = false';

export const HAND_BACK_FUNCTIONS =
  // Returns LostBy, as JSON text, for a job that a session lost. Null if there is no session.
  expression(
    'loss_of(_session sessions, _found text DEFAULT NULL)',
    'text',
    'STABLE',
    `'{"host":' || to_json((_session).host) || ',"pid":' || (_session).pid || ',"worker":' || to_json((_session).name) || ',"found":"'
      || coalesce(_found, CASE WHEN (_session).suspected THEN 'process-gone' ELSE 'session-expired' END) || '"}'`,
  ) +
  // Returns the losses as a field of events: one text if all are the same, else an array.
  expression(
    'losses_field(_losses text[])',
    'json',
    'STABLE',
    'CASE WHEN _losses[1] = ALL (_losses) THEN to_json(_losses[1]) ELSE to_json(_losses) END',
  ) +
  // Moves jobs that the caller has locked back to waiting, in the given order. _limits: how often each job may stall; null: does not
  // count as a stall. _losses: loss_of for each job.
  step(
    `hand_back(_queue int, _clock float8, _ids text[], _limits float8[], _losses text[] DEFAULT NULL,
       OUT stalled text[], OUT failed text[], OUT stalled_by text[], OUT failed_by text[])`,
    'record',
    `
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
  _job record;
  _keep record;
BEGIN
  WITH held AS MATERIALIZED (
    SELECT h.*, j.at FROM unnest(_ids, _limits, _losses) WITH ORDINALITY h(id, most, loss, n),
      ${jobOf('h.id', 'ctid AS at', IS_ACTIVE)} j
  ), moved AS (
    UPDATE jobs j SET state = CASE WHEN stalled_counter >= h.most THEN ${STATE.failed} WHEN lock_key IS NULL THEN ${STATE.waiting} ELSE ${STATE.keyed} END,
      ord = CASE WHEN stalled_counter >= h.most THEN _base + h.n ELSE -(_base + cardinality(_ids) - h.n) END,
      stalled_counter = stalled_counter + CASE WHEN h.most IS NULL THEN 0 ELSE 1 END,
      lost_by = CASE WHEN h.most IS NULL THEN lost_by ELSE h.loss END,
      finished_on = CASE WHEN stalled_counter >= h.most THEN floor(_clock) END,
      failed_reason = CASE WHEN stalled_counter >= h.most THEN '${STALLED_REASON}' ELSE failed_reason END,
      ${UNLOCKED}
    FROM held h WHERE j.ctid = h.at AND j.${IS_ACTIVE}
    RETURNING h.n, h.loss, j.id, j.state, j.priority, j.lock_key
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE ${WAITS} AND priority = 0) AS plain, array_agg(id) AS ids,
    array_agg(lock_key) FILTER (WHERE lock_key IS NOT NULL) AS keys,
    array_agg(id) FILTER (WHERE ${WAITS}) AS waiting, array_agg(id) FILTER (WHERE state = ${STATE.failed}) AS failed, array_agg(loss) AS losses,
    array_agg(loss) FILTER (WHERE ${WAITS}) AS waiting_losses, array_agg(loss) FILTER (WHERE state = ${STATE.failed}) AS failed_losses
  INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  ${freeKeys('_sum.keys')}
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
    _change.body := concat_ws(',', _change.body, event('failed', _sum.failed,
      json_build_object('failedReason', '${STALLED_REASON}', 'lostBy', losses_field(_sum.failed_losses))));
    FOR _job IN SELECT j.* FROM unnest(_sum.failed) o(id), ${jobOf('o.id', 'opts, ord, ctid AS at')} j ORDER BY ord LOOP
      _keep := keep_on_fail(_job.opts);
      IF _keep.most = 0 THEN
        _change.failed := _change.failed - drop_jobs(_queue, ARRAY[_job.at]);
      ELSIF _keep.most IS NOT NULL OR _keep.age IS NOT NULL THEN
        _change.failed := _change.failed - retain(_queue, ${STATE.failed}::smallint, _change.failed, _keep.most, _clock - _keep.age);
      END IF;
    END LOOP;
  END IF;
  ${NOTE}
END`,
  ) +
  // Reads removeOnFail from the job's own options, for a failure that no worker reports. Options that cannot be parsed remove nothing.
  step(
    'keep_on_fail(_opts text, OUT most float8, OUT age float8)',
    'record',
    `
DECLARE
  _rule json;
BEGIN
  _rule := _opts::json -> 'removeOnFail';
  IF json_typeof(_rule) = 'boolean' THEN
    most := CASE WHEN _rule::text = 'true' THEN 0 END;
  ELSIF json_typeof(_rule) = 'number' THEN
    most := _rule::text;
  ELSIF json_typeof(_rule) = 'object' THEN
    IF json_typeof(_rule -> 'count') = 'number' THEN most := _rule ->> 'count'; END IF;
    IF json_typeof(_rule -> 'age') = 'number' THEN age := (_rule ->> 'age')::float8 * 1000; END IF;
  END IF;
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN;
END`,
  );
