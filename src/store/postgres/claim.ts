// Claims jobs: a session asks for the next jobs, or for jobs by id, and gets them with their locks in one atomic step. A repeated claim
// (same session and number) must return the same jobs and never more. Plain claims take the fast path (plain-claim.ts).
import { REPLY_BYTES } from '../budget.js';
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import { ADVISORY } from './advisory.js';
import { remember } from './callers.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import { FIRST_DUE } from './grant.js';
import { ALL_INLINE, CLAIMED_ARRAYS, type JobArrays, toClaimed, WAITING_SIZE } from './job-row.js';
import { journalOf } from './journal-rows.js';
import { ANY_BEHIND_ALIVE, ANY_KEYED_ALIVE } from './key.js';
import { fillClaimed, INLINE_BYTES } from './large-values.js';
import { claimPlain } from './plain-claim.js';
import type { Server } from './server.js';
import { expression, step, verb } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';

/** When to retry if other transactions held what might have been claimed, in ms. */
const SOON_MS = 5;

const ALIVE = `queue = _queue AND id = _session AND ${IS_OPEN} AND expires_at > _now`;

/** Locks the session against closing and reaping, but not against renewal. */
export const LOCK_SESSION = `PERFORM FROM sessions WHERE ${ALIVE} AND NOT suspected FOR KEY SHARE;
  _alive := FOUND;
  IF NOT _alive THEN _alive := clear_suspicion(_queue, _session, _now); END IF;`;

/** One in ten claims that find too little also searches the ranges that seemed dead: a row may have been committed there late. */
const LOOK_AT_ALL = '(random() < 0.1 AND EXISTS (SELECT FROM dead_ranges WHERE queue = _queue))';

const FRONT = 'priority = 0 AND ord < 0';
const rowOf = (rows: string) =>
  `(SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND ${rows} ORDER BY priority, ord LIMIT 1)`;
const anyPlain = (head: string) =>
  [FRONT, `priority = 0 AND ord >= ${head}`, 'priority > 0'].map((rows) => `${rowOf(rows)} IS NOT NULL`).join(' OR ');

export const CLAIM_FUNCTIONS =
  expression(
    'claim_reply(_jobs text, _alive boolean, _paused boolean, _limited bigint, _due bigint, _now bigint, _drained boolean, _more boolean DEFAULT false)',
    'text',
    'STABLE',
    `'{"jobs":[' || coalesce(_jobs, '') || '],"alive":' || _alive || ',"paused":' || _paused || ',"limited":' || _limited
      || ',"next":' || coalesce(least(CASE WHEN NOT _paused AND _limited > 0 THEN _limited END, CASE WHEN _due > _now THEN _due - _now WHEN _due <= _now THEN 0 END)::text, 'null')
      || ',"drained":' || _drained || ',"more":' || coalesce(_more, false) || '}'`,
  ) +
  // Returns the ms until claims are possible again; 0 if they are. `_max`: the limit of the claim or, for a read from outside, the limit
  // that the workers use.
  expression(
    'limited_ms(_row queues, _max double precision, _now bigint)',
    'bigint',
    'IMMUTABLE',
    `greatest(0, _row.limited_until - _now,
       CASE WHEN _row.window_ends > _now AND _row.window_used >= _max THEN _row.window_ends - _now ELSE 0 END)`,
  ) +
  // Lifts the fence sequence over the server's clock in µs, which no earlier fence can exceed. After a failover or from a restored
  // backup, the sequence may have lost its last numbers. It then runs in another server, so the first claim in each server lifts it.
  step(
    'lift_fences(_queue int)',
    'void',
    `
DECLARE
  _clock bigint := floor(clock_ms() * 1000);
BEGIN
  PERFORM pg_advisory_xact_lock(${ADVISORY.fences}, 'fences'::regclass::oid::int);
  -- A second ahead, which no transaction can use up between the two calls.
  IF nextval('fences') < _clock THEN PERFORM setval('fences', _clock + 1000000); END IF;
  UPDATE queues SET fenced_on = pg_postmaster_start_time() WHERE queue = _queue;
END`,
  ) +
  // Runs after the caller was entered and the session locked: _alive says whether the session lives, _last is its last call.
  step(
    `take(_queue int, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8, _window float8, _clock float8,
       _alive boolean, _last bigint, INOUT _change journal, OUT _taken int, OUT _reply text, _inline int DEFAULT ${ALL_INLINE})`,
    'record',
    `
DECLARE
  _now bigint := floor(_clock);
  _look record;
  _row queues;
  _room int := 0;
  _got record;
  _jobs text;
  _due bigint;
  _left bigint;
  _soon boolean := false;
  _more boolean := false;
BEGIN
  _taken := 0;
  SELECT q AS row, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0) AS waiting, q.delayed + coalesce(j.delayed, 0) AS delayed,
    q.prioritized + coalesce(j.prioritized, 0) + _change.prioritized <= 0 AND ${rowOf(FRONT)} IS NULL AS in_line, ${ANY_KEYED_ALIVE} AS keyed
  INTO _look FROM queues q, LATERAL (
    SELECT sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed FROM ${journalOf('q')}
  ) j WHERE q.queue = _queue;
  _row := _look.row;
  _left := _look.waiting + _change.waiting + _change.prioritized;
  IF _look.delayed + _change.delayed > 0 THEN _due := ${FIRST_DUE}; END IF;
  IF _alive AND _seq <= _last THEN
    -- Carried out already, or a straggler that its caller gave up on: it may see what it got and never get more.
    SELECT ${CLAIMED_ARRAYS}, coalesce(_left > 0 AND sum(size) > ${REPLY_BYTES / 2}, false) INTO _jobs, _more FROM (
      SELECT *, ${WAITING_SIZE} AS size FROM jobs WHERE queue = _queue AND state = ${STATE.active} AND session = _session AND claim_seq = _seq ORDER BY fence
    ) j;
  ELSIF _alive AND (_ids IS NOT NULL OR NOT _row.paused) AND (_left > 0 OR _due <= _now) THEN
    IF _row.fenced_on IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
    IF _ids IS NULL AND (_max IS NOT NULL OR _row.window_ends > _now OR _row.max_active IS NOT NULL) THEN
      SELECT * INTO _row FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
    END IF;
    IF _row.window_ends <= _now THEN _row.window_used := 0; END IF;
    IF _ids IS NOT NULL THEN
      _got := grant_by_id(_queue, _session, _seq, _ids, _count, _by, _timed, _clock, _change, _inline);
      _taken := _got._taken;
      _change := _got._change;
      _jobs := _got._jobs;
      _more := _got._cut;
      _left := _look.waiting + _change.waiting + _change.prioritized;
      IF _due <= _now THEN _due := ${FIRST_DUE}; END IF;
    ELSIF _row.limited_until <= _now THEN
      _room := greatest(0, least(_count, coalesce(_max - _row.window_used, _count)));
    END IF;
  END IF;
  IF _alive AND _seq > _last AND _ids IS NULL AND _count > 0 AND _due <= _now THEN
    -- Whether there is room or not: a due job that stayed delayed would look claimable by time alone.
    _change := promote_due(_queue, _now, _change);
    _due := ${FIRST_DUE};
    _look.keyed := ${ANY_KEYED_ALIVE};
    _look.in_line := false;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    IF _row.max_active IS NOT NULL THEN
      -- All claims of the queue wait here for one another, so that each counts what the others have taken.
      _room := least(_room, room_under_cap(_queue, _session, _row.max_active, (SELECT active FROM counts_of(_queue)) + _change.active, _now));
    END IF;
    _left := _look.waiting + _change.waiting + _change.prioritized;
  END IF;
  IF _room > 0 THEN
    IF _look.keyed THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, _inline);
      _soon := _got._soon;
    ELSE
      _got := grant_locks(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _look.in_line, _change, NULL, _inline);
    END IF;
    _taken := _got._taken;
    _left := _look.waiting + (_got._change).waiting + (_got._change).prioritized;
    _more := _got._cut;
    IF _taken < _room AND _left > 0 AND NOT _more THEN
      -- Something lies below the head, because its transaction committed late; or was changed while it was being locked.
      _got := grant_locks(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, false, _got._change, _got._jobs, _inline, _got._bytes, true);
      _more := _got._cut;
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
    END IF;
    _change := _got._change;
    _jobs := _got._jobs;
    IF _taken < _room AND _left > 0 AND NOT _more AND ${LOOK_AT_ALL} THEN
      _got := grant_in_turn(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, _change, _inline, true);
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
      _change := _got._change;
      _jobs := concat_ws(',', _jobs, _got._jobs);
      _more := _got._cut;
    END IF;
    IF _soon AND _taken < _room THEN _due := least(_due, _now + ${SOON_MS}); END IF;
  END IF;
  IF _taken > 0 AND (_max IS NOT NULL OR _row.window_ends > _now) THEN
    -- The window opens with the first claim in it, not with the first look.
    UPDATE queues SET window_ends = CASE WHEN window_ends > _now THEN window_ends ELSE ceil(_clock + _window) END,
      window_used = CASE WHEN window_ends > _now THEN window_used ELSE 0 END + _taken, window_max = coalesce(_max, window_max)
    WHERE queue = _queue RETURNING * INTO _row;
  END IF;
  _reply := claim_reply(_jobs, _alive, _row.paused, limited_ms(_row, _max, _now), _due, _now, _left <= 0 AND coalesce(_due > _now, true), _more);
END`,
  ) +
  // If there is nothing to write, it replies without a lock: a look at an empty queue costs no transaction number and no fsync.
  verb(
    `claim(_name text, _session text, _seq bigint, _count int, _ids text[], _by text, _timed float8, _max float8, _window float8, _remember boolean, _inline int DEFAULT ${ALL_INLINE})`,
    'text',
    `
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _look record;
  _row queues;
  _limited bigint;
  _any boolean;
  _open boolean;
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
BEGIN
  IF _queue IS NULL THEN RETURN claim_reply(NULL, false, false, 0, NULL, _now, true); END IF;
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  SELECT q AS row, EXISTS (SELECT FROM sessions WHERE ${ALIVE}) AS alive,
    coalesce((SELECT seq FROM callers WHERE queue = _queue AND id = _session), 0) AS last,
    q.waiting + q.prioritized + coalesce((SELECT sum(waiting + prioritized) FROM ${journalOf('q')}), 0) > 0 AS waiting,
    CASE WHEN q.max_active IS NOT NULL
      THEN q.active + coalesce((SELECT sum(active) FROM ${journalOf('q')}), 0) >= q.max_active ELSE false END AS full,
    ${FIRST_DUE} AS due, ${ANY_BEHIND_ALIVE} AS behind
  INTO _look FROM queues q WHERE queue = _queue;
  _row := _look.row;
  _limited := limited_ms(_row, _max, _now);
  _any := _look.waiting OR coalesce(_look.due <= _now, false);
  IF _ids IS NOT NULL THEN
    _open := cardinality(_ids) > 0 AND _any;
  ELSIF _look.due <= _now THEN
    _open := true;
  ELSIF _row.paused OR _limited > 0 THEN
    _open := false;
  ELSE
    _open := _any AND NOT _look.full;
    -- Where jobs wait for their keys, there may be nothing else.
    IF _open AND _look.behind THEN _open := ${ANY_KEYED_ALIVE} OR ${anyPlain('_row.head_waiting')} OR ${LOOK_AT_ALL}; END IF;
  END IF;
  IF NOT _look.alive OR _seq > _look.last AND NOT _remember AND (_count = 0 OR NOT _open) THEN
    RETURN claim_reply(NULL, _look.alive, _row.paused, _limited, _look.due, _now, NOT _any);
  END IF;
  _last := enter_call(_queue, _session);
  ${LOCK_SESSION}
  _got := take(_queue, _session, _seq, _count, _ids, _by, _timed, _max, _window, _clock, _alive, _last, no_change(_queue), _inline);
  _change := _got._change;
  IF _alive AND _seq > _last AND (_got._taken > 0 OR _remember) THEN ${remember('_session', '_seq', 'NULL')}; END IF;
  ${NOTE}
  ${FOLD_SOMETIMES}
  RETURN _got._reply;
END`,
  );

export interface ClaimedRow {
  /** One part for each grant of the claim. */
  jobs: JobArrays[];
  alive: boolean;
  paused: boolean;
  limited: number;
  next: number | null;
  drained: boolean;
  more: boolean;
}

/** The arguments of a claim, as both verbs that carry one out take them. */
export function claimArguments(request: ClaimRequest | undefined): (string | number | string[] | null)[] {
  if (request === undefined) return [null, null, null, null, null, null, null, null];
  const { session, seq, count, jobIds = null, by = null, timedMs = null, limit } = request;
  return [session, seq, Math.min(count, 2 ** 31 - 1), jobIds, by, timedMs, limit?.max ?? null, limit?.durationMs ?? null];
}

export function toClaimReply(row: ClaimedRow, { session, by }: ClaimRequest): ClaimReply {
  const { jobs, alive, paused, limited, next, drained, more } = row;
  const reply: ClaimReply = { jobs: jobs.flatMap((part) => toClaimed(part, session, by)), sessionAlive: alive, paused, drained };
  if (limited > 0) reply.limitedMs = limited;
  if (next !== null) reply.nextInMs = next;
  if (more) reply.more = true;
  return reply;
}

export async function claim(server: Server, queue: string, request: ClaimRequest, remember: boolean): Promise<ClaimReply> {
  const plain = remember ? undefined : await claimPlain<ClaimedRow>(server, queue, request);
  const row = plain ?? (await server.call<ClaimedRow>('claim', [queue, ...claimArguments(request), remember, INLINE_BYTES]));
  return fillClaimed(server, queue, toClaimReply(row, request));
}
