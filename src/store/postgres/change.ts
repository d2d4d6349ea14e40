// Changes jobs by their ids: retry, promote, change delay or priority, remove, revoke. Only a revoke moves an active job.
import { type ChangeStatus, replyById } from '../change-reply.js';
import type { Change, ChangeReply } from '../contract/index.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import { freeKeys, TO_WAITING, WAITS } from './key.js';
import { jobOf, lockJobs } from './lookup.js';
import type { Server } from './server.js';
import { step, verb } from './sql-function.js';
import { STATE } from './tables.js';

const stateName = (state: string) =>
  `(ARRAY['waiting', 'delayed', 'active', 'completed', 'failed'])[greatest(${state}, ${STATE.waiting})]`;

export const CHANGE_FUNCTIONS =
  // Moves locked rows of one state to waiting, in their order. Returns their ids, null if there are none. A finished job becomes a job that has not run: its attempts, stack trace
  // and logs stay. A delayed job keeps the reason of its last failure.
  step(
    'send_to_waiting(_queue int, _state smallint, _rows tid[], _reset_made boolean, _reset_started boolean)',
    'text[]',
    `
DECLARE
  _base bigint := nextval('places');
  _change journal := no_change(_queue);
  _sum record;
BEGIN
  WITH moved AS (
    UPDATE jobs j SET ${TO_WAITING}, ord = _base + r.n, delay = 0, due_at = NULL, session = NULL, fence = NULL, finished_on = NULL,
      returnvalue = NULL, processed_on = CASE WHEN _state >= 4 THEN NULL ELSE processed_on END,
      failed_reason = CASE WHEN _state >= 4 THEN NULL ELSE failed_reason END,
      attempts_made = CASE WHEN _reset_made THEN 0 ELSE attempts_made END,
      attempts_started = CASE WHEN _reset_started THEN 0 ELSE attempts_started END
    FROM unnest(_rows) WITH ORDINALITY r(at, n) WHERE j.ctid = r.at RETURNING r.n, j.id, j.priority
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain, array_agg(id) AS ids INTO _sum FROM (SELECT * FROM moved ORDER BY n) m;
  IF _sum.jobs > 0 THEN
    _change.waiting := _sum.plain;
    _change.prioritized := _sum.jobs - _sum.plain;
    CASE _state
      WHEN ${STATE.delayed} THEN _change.delayed := -_sum.jobs;
      WHEN ${STATE.completed} THEN _change.completed := -_sum.jobs;
      ELSE _change.failed := -_sum.jobs;
    END CASE;
    _change.events := _sum.jobs;
    _change.body := event('waiting', _sum.ids, json_build_object('prev', ${stateName('_state')}));
    ${NOTE}
  END IF;
  RETURN _sum.ids;
END`,
  ) +
  verb(
    'change_jobs(_name text, _kinds text[], _ids text[], _froms smallint[], _numbers float8[], _flags boolean[], _others boolean[])',
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _base bigint := nextval('places');
  _statuses text[] := '{}';
  _status text;
  _one record;
  _job record;
  _moved text[];
  _change journal;
BEGIN
  ${lockJobs('_ids')};
  FOR _one IN
    SELECT * FROM unnest(_kinds, _ids, _froms, _numbers, _flags, _others) WITH ORDINALITY c(kind, id, from_state, number, flag, other, n)
  LOOP
    SELECT ctid AS at, state, priority, lock_key INTO _job FROM jobs WHERE queue = _queue AND id = _one.id;
    _status := CASE WHEN NOT FOUND THEN 'missing' WHEN _job.state <> _one.from_state THEN 'state' ELSE 'done' END;
    _statuses := _statuses || _status;
    CONTINUE WHEN _status <> 'done';
    CASE _one.kind
      WHEN 'retry' THEN
        PERFORM send_to_waiting(_queue, _job.state, ARRAY[_job.at], _one.flag, _one.other);
      WHEN 'promote' THEN PERFORM send_to_waiting(_queue, _job.state, ARRAY[_job.at], false, false);
      WHEN 'delay' THEN
        UPDATE jobs SET delay = _one.number, due_at = ceil(_clock + _one.number), ord = _base + _one.n WHERE queue = _queue AND id = _one.id;
        _change := no_change(_queue);
        _change.events := 1;
        _change.body := event('delayed', ARRAY[_one.id], json_build_object('delay', ceil(_clock + _one.number)::bigint));
        ${NOTE}
      ELSE
        -- A job that does not wait keeps the priority for when it does.
        UPDATE jobs SET priority = _one.number,
          ord = CASE WHEN NOT ${WAITS} THEN ord WHEN _one.flag THEN -(_base + _one.n) ELSE _base + _one.n END
        WHERE queue = _queue AND id = _one.id;
        IF _job.${WAITS} AND _job.lock_key IS NOT NULL THEN _moved := _moved || _job.lock_key::text; END IF;
        IF _job.${WAITS} AND (_job.priority = 0) <> (_one.number = 0) THEN
          INSERT INTO journal (queue, waiting, prioritized)
          VALUES (_queue, CASE WHEN _one.number = 0 THEN 1 ELSE -1 END, CASE WHEN _one.number = 0 THEN -1 ELSE 1 END);
        END IF;
    END CASE;
  END LOOP;
  -- Another one of the key may come first now.
  ${freeKeys('_moved')}
  RETURN to_json(_statuses);
END`,
  ) +
  verb(
    'remove_jobs(_name text, _ids text[])',
    'text',
    `
DECLARE
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _change journal := no_change(_queue);
  _reply text;
  _gone record;
BEGIN
  ${lockJobs('_ids')};
  SELECT json_agg(CASE WHEN j.id IS NULL OR o.nth > 1 AND j.state <> ${STATE.active} THEN 'missing'
    WHEN j.state = ${STATE.active} THEN 'locked' ELSE 'done' END ORDER BY o.n)
  INTO _reply FROM (SELECT id, n, row_number() OVER (PARTITION BY id ORDER BY n) AS nth FROM unnest(_ids) WITH ORDINALITY u(id, n)) o
  LEFT JOIN ${jobOf('o.id')} j ON true;
  SELECT array_agg(at) AS rows, array_agg(id) AS ids, array_agg(${stateName('state')}) AS states,
    count(*) FILTER (WHERE ${WAITS} AND priority = 0) AS waiting,
    count(*) FILTER (WHERE ${WAITS} AND priority > 0) AS prioritized,
    count(*) FILTER (WHERE state = ${STATE.delayed}) AS delayed, count(*) FILTER (WHERE state = ${STATE.completed}) AS completed,
    count(*) FILTER (WHERE state = ${STATE.failed}) AS failed
  INTO _gone FROM (
    SELECT j.* FROM (SELECT id, min(n) AS n FROM unnest(_ids) WITH ORDINALITY u(id, n) GROUP BY id) o,
      ${jobOf('o.id', 'ctid AS at, id, state, priority', `state <> ${STATE.active}`)} j
    ORDER BY o.n
  ) j;
  IF _gone.rows IS NOT NULL THEN
    _change.waiting := -_gone.waiting;
    _change.prioritized := -_gone.prioritized;
    _change.delayed := -_gone.delayed;
    _change.completed := -_gone.completed;
    _change.failed := -_gone.failed;
    _change.events := cardinality(_gone.ids);
    _change.body := event('removed', _gone.ids, json_build_object('prev', _gone.states));
    PERFORM drop_jobs(_queue, _gone.rows);
    ${NOTE}
    ${FOLD_SOMETIMES}
  END IF;
  RETURN _reply;
END`,
  );

export async function changeById(server: Server, queue: string, jobIds: string[], change: Change): Promise<ChangeReply> {
  return replyById(jobIds, await statusesOf(server, queue, jobIds, change));
}

function statusesOf(server: Server, queue: string, jobIds: string[], change: Change): Promise<ChangeStatus[]> {
  if (change.kind === 'remove') return server.call('remove_jobs', [queue, jobIds]);
  if (change.kind === 'revoke') return server.call('revoke_jobs', [queue, jobIds, change.reason]);
  const each = <T>(value: T): T[] => jobIds.map(() => value);
  return server.call('change_jobs', [
    queue,
    each(change.kind),
    jobIds,
    each(stateBefore(change)),
    each(numberOf(change)),
    each(change.kind === 'retry' ? change.resetAttemptsMade : change.kind === 'priority' && change.lifo),
    each(change.kind === 'retry' && change.resetAttemptsStarted),
  ]);
}

/** Returns the state that the job must be in. Null: any. */
function stateBefore(change: Change): number | null {
  if (change.kind === 'retry') return STATE[change.from];
  return change.kind === 'priority' ? null : STATE.delayed;
}

function numberOf(change: Change): number | null {
  if (change.kind === 'delay') return change.delayMs;
  return change.kind === 'priority' ? change.priority : null;
}
