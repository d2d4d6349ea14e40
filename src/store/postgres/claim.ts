import type { ClaimReply, ClaimRequest } from '../contract.js';
import { ADVISORY } from './advisory.js';
import { remember } from './callers.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import { CLAIMED_ARRAYS, CLAIMED_COLUMNS, type JobArrays, toClaimed } from './job-row.js';
import type { Server } from './server.js';
import { expression, step, verb } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';

/** Delayed jobs that one claim moves to waiting. */
const PROMOTED_AT_ONCE = 500;

const FIRST_DUE = `(SELECT due_at FROM jobs WHERE queue = _queue AND state = ${STATE.delayed} ORDER BY due_at LIMIT 1)`;
const ALIVE = `queue = _queue AND id = _session AND ${IS_OPEN} AND expires_at > _now`;

/** Against being closed or reaped, and not against being renewed. */
export const LOCK_SESSION = `PERFORM FROM sessions WHERE ${ALIVE} FOR KEY SHARE;
  _alive := FOUND;`;

const stretch = (rows: string, order: string) =>
  `SELECT at FROM (
        SELECT ctid AS at FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND ${rows} ORDER BY ${order} LIMIT _room
        FOR UPDATE SKIP LOCKED) s`;

export const CLAIM_FUNCTIONS =
  expression(
    'claim_reply(_jobs text, _alive boolean, _paused boolean, _limited bigint, _due bigint, _now bigint, _drained boolean)',
    'text',
    'STABLE',
    `'{"jobs":[' || coalesce(_jobs, '') || '],"alive":' || _alive || ',"paused":' || _paused || ',"limited":' || _limited
      || ',"next":' || coalesce((CASE WHEN _paused THEN NULL WHEN _limited > 0 THEN _limited WHEN _due > _now THEN _due - _now WHEN _due <= _now THEN 0 END)::text, 'null')
      || ',"drained":' || _drained || '}'`,
  ) +
  // Until claims are possible again, under _max or, for somebody who looks from outside, under what the workers use; 0 when they are.
  expression(
    'limited_ms(_row queues, _max double precision, _now bigint)',
    'bigint',
    'IMMUTABLE',
    `greatest(0, _row.limited_until - _now,
       CASE WHEN _row.window_ends > _now AND _row.window_used >= _max THEN _row.window_ends - _now ELSE 0 END)`,
  ) +
  // No earlier fence can lie above the server's clock in µs. After a failover or a restored backup the sequence may have lost its last
  // numbers; it runs in another server then, so the first claim in each lifts the sequence over the clock.
  step(
    'lift_fences(_queue int)',
    'void',
    `
DECLARE
  _clock bigint := floor(clock_ms() * 1000);
BEGIN
  PERFORM pg_advisory_xact_lock(${ADVISORY.fences}, 'fences'::regclass::oid::int);
  -- A second ahead, which nobody can use up between the two calls.
  IF nextval('fences') < _clock THEN PERFORM setval('fences', _clock + 1000000); END IF;
  UPDATE queues SET fenced_on = pg_postmaster_start_time() WHERE queue = _queue;
END`,
  ) +
  step(
    'promote_due(_queue int, _now bigint, INOUT _change journal)',
    'journal',
    `
DECLARE
  _base bigint := nextval('places');
  _sum record;
BEGIN
  WITH due AS (
    SELECT at, row_number() OVER () AS n FROM (
      SELECT ctid AS at FROM jobs WHERE queue = _queue AND state = ${STATE.delayed} AND due_at <= _now
      ORDER BY due_at, ord LIMIT ${PROMOTED_AT_ONCE} FOR UPDATE SKIP LOCKED
    ) locked
  ), promoted AS (
    UPDATE jobs SET state = ${STATE.waiting}, ord = _base + due.n, delay = 0, due_at = NULL FROM due WHERE jobs.ctid = due.at
    RETURNING due.n, id, priority
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
    event('waiting', array_agg(id ORDER BY n), '{"prev":"delayed"}') AS body
  INTO _sum FROM promoted;
  IF _sum.jobs = 0 THEN RETURN; END IF;
  _change.delayed := _change.delayed - _sum.jobs;
  _change.waiting := _change.waiting + _sum.plain;
  _change.prioritized := _change.prioritized + _sum.jobs - _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END`,
  ) +
  // Three stretches of one index, one after the other as far as they are needed: what was put to the front, what waits from the head
  // on, and what has a priority.
  step(
    `grant_locks(_queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int,
       INOUT _change journal, INOUT _jobs text, OUT _taken int)`,
    'record',
    `
DECLARE
  _plain int;
  _rows text;
  _body text;
BEGIN
  WITH next AS (
    SELECT at, nextval('fences') AS fence FROM (
      ${stretch('priority = 0 AND ord < 0', 'ord')}
      UNION ALL ${stretch('priority = 0 AND ord >= _head', 'ord')}
      UNION ALL ${stretch('priority > 0', 'priority, ord')}
      LIMIT _room
    ) waiting
  ), taken AS (
    UPDATE jobs SET state = ${STATE.active}, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock),
      processed_by = _by, ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1
    FROM next WHERE jobs.ctid = next.at RETURNING ${CLAIMED_COLUMNS}
  )
  SELECT count(*), count(*) FILTER (WHERE priority = 0), ${CLAIMED_ARRAYS}, event('active', array_agg(id))
  INTO _taken, _plain, _rows, _body FROM (SELECT * FROM taken ORDER BY fence) taken;
  IF _taken = 0 THEN RETURN; END IF;
  _jobs := concat_ws(',', _jobs, _rows);
  _change.active := _change.active + _taken;
  _change.waiting := _change.waiting - _plain;
  _change.prioritized := _change.prioritized - _taken + _plain;
  _change.events := _change.events + _taken;
  _change.body := concat_ws(',', _change.body, _body);
END`,
  ) +
  // After enter_claim, which says whether the session is alive and what its last call was.
  step(
    `take(_queue int, _session text, _seq bigint, _count int, _by text, _timed float8, _max float8, _window float8, _clock float8,
       _alive boolean, _last bigint, INOUT _change journal, OUT _taken int, OUT _reply text)`,
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
BEGIN
  _taken := 0;
  SELECT q AS row, q.waiting + q.prioritized + coalesce(j.waiting, 0) AS waiting, q.delayed + coalesce(j.delayed, 0) AS delayed
  INTO _look FROM queues q, LATERAL (
    SELECT sum(waiting + prioritized) AS waiting, sum(delayed) AS delayed FROM journal WHERE journal.queue = _queue
  ) j WHERE q.queue = _queue;
  _row := _look.row;
  _left := _look.waiting + _change.waiting + _change.prioritized;
  IF _look.delayed + _change.delayed > 0 THEN _due := ${FIRST_DUE}; END IF;
  IF _alive AND _seq <= _last THEN
    -- Carried out already, or a straggler that its caller gave up on: it may see what it got and never get more.
    SELECT ${CLAIMED_ARRAYS} INTO _jobs FROM (
      SELECT * FROM jobs WHERE queue = _queue AND state = ${STATE.active} AND session = _session AND claim_seq = _seq ORDER BY fence
    ) j;
  ELSIF _alive AND NOT _row.paused AND (_left > 0 OR _due <= _now) THEN
    IF _row.fenced_on IS DISTINCT FROM pg_postmaster_start_time() THEN PERFORM lift_fences(_queue); END IF;
    IF _max IS NOT NULL OR _row.window_ends > _now THEN
      SELECT * INTO _row FROM queues WHERE queue = _queue FOR NO KEY UPDATE;
      IF _row.window_ends <= _now THEN _row.window_used := 0; END IF;
    END IF;
    IF _row.limited_until <= _now THEN _room := greatest(0, least(_count, coalesce(_max - _row.window_used, _count))); END IF;
  END IF;
  IF _room > 0 THEN
    IF _due <= _now THEN
      _change := promote_due(_queue, _now, _change);
      _due := ${FIRST_DUE};
    END IF;
    _got := grant_locks(_queue, _session, _seq, _by, _timed, _clock, _row.head_waiting, _room, _change, NULL);
    _taken := _got._taken;
    _left := _look.waiting + (_got._change).waiting + (_got._change).prioritized;
    IF _taken < _room AND _left > 0 THEN
      -- Something lies below the head, because its transaction committed late; or was changed while it was being locked.
      _got := grant_locks(_queue, _session, _seq, _by, _timed, _clock, 0, _room - _taken, _got._change, _got._jobs);
      _taken := _taken + _got._taken;
      _left := _left - _got._taken;
    END IF;
    _change := _got._change;
    _jobs := _got._jobs;
    IF _taken > 0 AND (_max IS NOT NULL OR _row.window_ends > _now) THEN
      -- The window opens with the first claim in it, not with the first look.
      UPDATE queues SET window_ends = CASE WHEN window_ends > _now THEN window_ends ELSE ceil(_clock + _window) END,
        window_used = _row.window_used + _taken, window_max = coalesce(_max, window_max)
      WHERE queue = _queue RETURNING * INTO _row;
    END IF;
  END IF;
  _reply := claim_reply(_jobs, _alive, _row.paused, limited_ms(_row, _max, _now), _due, _now, _left <= 0 AND coalesce(_due > _now, true));
END`,
  ) +
  // What there is nothing to write for is answered without a lock: a look at an empty queue costs no transaction number and no fsync.
  verb(
    'claim(_name text, _session text, _seq bigint, _count int, _by text, _timed float8, _max float8, _window float8, _remember boolean)',
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
  _alive boolean;
  _last bigint;
  _change journal;
  _got record;
BEGIN
  IF _queue IS NULL THEN RETURN claim_reply(NULL, false, false, 0, NULL, _now, true); END IF;
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  SELECT q AS row, EXISTS (SELECT FROM sessions WHERE ${ALIVE}) AS alive,
    coalesce((SELECT seq FROM callers WHERE queue = _queue AND id = _session), 0) AS last,
    q.waiting + q.prioritized + coalesce((SELECT sum(waiting + prioritized) FROM journal WHERE queue = _queue), 0) > 0 AS waiting,
    ${FIRST_DUE} AS due
  INTO _look FROM queues q WHERE queue = _queue;
  _row := _look.row;
  _limited := limited_ms(_row, _max, _now);
  _any := _look.waiting OR coalesce(_look.due <= _now, false);
  IF NOT _look.alive OR _seq > _look.last AND NOT _remember AND (_row.paused OR _count = 0 OR _limited > 0 OR NOT _any) THEN
    RETURN claim_reply(NULL, _look.alive, _row.paused, _limited, _look.due, _now, NOT _any);
  END IF;
  _last := enter_call(_queue, _session);
  ${LOCK_SESSION}
  _got := take(_queue, _session, _seq, _count, _by, _timed, _max, _window, _clock, _alive, _last, no_change(_queue));
  _change := _got._change;
  IF _alive AND _seq > _last AND (_got._taken > 0 OR _remember) THEN ${remember('_session', '_seq', 'NULL')}; END IF;
  ${NOTE}
  ${FOLD_SOMETIMES}
  RETURN _got._reply;
END`,
  );

export interface ClaimedRow {
  /** In one or two parts. */
  jobs: JobArrays[];
  alive: boolean;
  paused: boolean;
  limited: number;
  next: number | null;
  drained: boolean;
}

/** The arguments of a claim, as both verbs that carry one out take them. */
export function claimArguments(request: ClaimRequest | undefined): (string | number | null)[] {
  if (request === undefined) return [null, null, null, null, null, null, null];
  const { session, seq, count, by = null, timedMs = null, limit } = request;
  return [session, seq, Math.min(count, 2 ** 31 - 1), by, timedMs, limit?.max ?? null, limit?.durationMs ?? null];
}

export function toClaimReply(row: ClaimedRow, { session, by }: ClaimRequest): ClaimReply {
  const { jobs, alive, paused, limited, next, drained } = row;
  const reply: ClaimReply = { jobs: jobs.flatMap((part) => toClaimed(part, session, by)), sessionAlive: alive, paused, drained };
  if (limited > 0) reply.limitedMs = limited;
  if (next !== null) reply.nextInMs = next;
  return reply;
}

export async function claim(server: Server, queue: string, request: ClaimRequest, remember: boolean): Promise<ClaimReply> {
  const row = await server.call<ClaimedRow>('claim', [queue, ...claimArguments(request), remember]);
  return toClaimReply(row, request);
}
