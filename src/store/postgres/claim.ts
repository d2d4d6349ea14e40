import type { ClaimReply, ClaimRequest } from '../contract.js';
import { type JobRow, toClaimed } from './job-row.js';
import type { Server } from './server.js';
import { expression, step, verb } from './sql-function.js';
import { STATE } from './tables.js';

/** Delayed jobs that one claim moves to waiting. */
const PROMOTED_AT_ONCE = 500;

// Three stretches of one index, one after the other, as far as they are needed: what was put to the front, what waits from the head
// on, and what has a priority.
const stretch = (rows: string, order: string) =>
  `(SELECT ctid FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND ${rows} ORDER BY ${order} LIMIT _room FOR UPDATE SKIP LOCKED)`;

export const CLAIM_FUNCTIONS =
  expression(
    'claim_reply(_jobs text, _alive boolean, _paused boolean, _limited bigint, _due bigint, _now bigint, _drained boolean)',
    'text',
    'IMMUTABLE',
    `'{"jobs":' || coalesce(_jobs, '[]') || ',"alive":' || _alive || ',"paused":' || _paused || ',"limited":' || _limited
      || ',"next":' || coalesce(CASE WHEN _paused THEN NULL WHEN _limited > 0 THEN _limited ELSE greatest(0, _due - _now) END::text, 'null')
      || ',"drained":' || _drained || '}'`,
  ) +
  // Milliseconds until claims are possible again, under _max or, for somebody who looks from outside, under what the workers use.
  expression(
    'limited_ms(_row queues, _max double precision, _now bigint)',
    'bigint',
    'IMMUTABLE',
    `greatest(0, _row.limited_until - _now,
       CASE WHEN _row.window_ends > _now AND _row.window_used >= _max THEN _row.window_ends - _now ELSE 0 END)`,
  ) +
  // No earlier fence can lie above the server's clock in µs. After a failover or a restored backup the sequence may have lost its last
  // numbers; it is another server process then, so the first claim of each lifts the sequence over the clock.
  step(
    'lift_fences(_queue int)',
    'void',
    `
DECLARE
  _clock bigint := floor(clock_ms() * 1000);
BEGIN
  PERFORM pg_advisory_xact_lock('fences'::regclass::int, 0);
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
    UPDATE jobs SET state = ${STATE.waiting}, ord = _base + due.n, delay = 0, due_at = NULL FROM due WHERE ctid = due.at
    RETURNING due.n, id, priority
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain,
    string_agg('["waiting",' || to_json(id) || ',{"prev":"delayed"}]', ',' ORDER BY n) AS body
  INTO _sum FROM promoted;
  _change.delayed := _change.delayed - _sum.jobs;
  _change.waiting := _change.waiting + _sum.plain;
  _change.prioritized := _change.prioritized + _sum.jobs - _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END`,
  ) +
  // Grants up to _room locks. In a claim of its own and not together with a settle: fused into one statement, ten connections
  // deadlocked.
  step(
    'grant(_queue int, _session text, _seq bigint, _by text, _timed float8, _clock float8, _head bigint, _room int, INOUT _change journal, INOUT _jobs text, OUT _taken int)',
    'record',
    `
DECLARE
  _sum record;
BEGIN
  WITH next AS (
    SELECT waiting.ctid AS at, nextval('fences') AS fence FROM (
      ${stretch('priority = 0 AND ord < 0', 'ord')}
      UNION ALL ${stretch('priority = 0 AND ord >= _head', 'ord')}
      UNION ALL ${stretch('priority > 0', 'priority, ord')}
      LIMIT _room
    ) waiting
  ), taken AS (
    UPDATE jobs SET state = ${STATE.active}, session = _session, fence = next.fence, claim_seq = _seq, processed_on = floor(_clock),
      processed_by = _by, ends_at = ceil(_clock + _timed), timed = _timed IS NOT NULL, attempts_started = attempts_started + 1
    FROM next WHERE jobs.ctid = next.at RETURNING jobs.*
  )
  SELECT count(*) AS jobs, count(*) FILTER (WHERE priority = 0) AS plain, json_agg(job_row(taken) ORDER BY fence)::text AS rows,
    string_agg('["active",' || to_json(id) || ']', ',' ORDER BY fence) AS body
  INTO _sum FROM taken;
  _taken := _sum.jobs;
  _jobs := _sum.rows;
  _change.active := _change.active + _sum.jobs;
  _change.waiting := _change.waiting - _sum.plain;
  _change.prioritized := _change.prioritized - _sum.jobs + _sum.plain;
  _change.events := _change.events + _sum.jobs;
  _change.body := concat_ws(',', _change.body, _sum.body);
END`,
  );
void verb;
void toClaimed;
export type { JobRow, Server, ClaimReply, ClaimRequest };
