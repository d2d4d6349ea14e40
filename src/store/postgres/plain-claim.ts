// The fast path of a claim: jobs without key and priority, in a queue that is not paused, limited or capped. It is also part of the fast
// path of settling (plain-settle.ts). It is one function that calls no other, under the settings of the connection (sql-function.ts). If
// the queue needs more, it calls `claim`, which must then find everything as if this attempt had never happened.
import { REPLY_BYTES } from '../budget.js';
import type { ClaimRequest } from '../contract/index.js';
import { FOLD_SOMETIMES, NOTE } from './fold.js';
import { FIRST_DUE, lockedUpTo, stretch } from './grant.js';
import { ALL_INLINE, CLAIMED_ARRAYS, CLAIMED_COLUMNS, CLAIMED_ONE, WAITING_SIZE } from './job-row.js';
import { journalOf } from './journal-rows.js';
import { ANY_BEHIND, ANY_KEYED } from './key.js';
import { inlineBytes } from './large-values.js';
import type { Server } from './server.js';
import { step } from './sql-function.js';
import { IS_OPEN, STATE } from './tables.js';
import { UNTOUCHED } from './untouched.js';

const TAKEN = `state = ${STATE.active}, session = _session, claim_seq = _seq, processed_on = _now, processed_by = _by, ends_at = NULL, timed = false,
    attempts_started = attempts_started + 1`;
/** Undoes TAKEN. The start of an earlier run of the job is lost. */
const UNTAKEN = `state = ${STATE.waiting}, session = NULL, fence = NULL, claim_seq = NULL, attempts_started = attempts_started - 1,
    processed_on = CASE WHEN attempts_started > 1 THEN processed_on END, processed_by = CASE WHEN attempts_started > 1 THEN processed_by END`;
const next = (columns: string, count: string) =>
  stretch(columns, `priority = 0 AND ord >= _head AND ${UNTOUCHED}`, 'ord', lockedUpTo(count));

/**
 * Selects from `q` and `j`: where the list begins, how many jobs wait, when the first delayed job is due, and whether the fast path
 * applies.
 */
export const PLAIN_LOOK = `q.head_waiting, q.waiting + q.prioritized + coalesce(j.waiting + j.prioritized, 0),
    CASE WHEN q.delayed + coalesce(j.delayed, 0) > 0 THEN ${FIRST_DUE} END,
    NOT q.paused AND q.limited_until <= _now AND q.window_ends <= _now AND q.max_active IS NULL AND q.fenced_on = pg_postmaster_start_time()
      AND q.prioritized + coalesce(j.prioritized, 0) <= 0
      AND (SELECT ord FROM jobs WHERE queue = _queue AND state = ${STATE.waiting} AND priority = 0 AND ord < 0 ORDER BY ord LIMIT 1) IS NULL
      AND NOT ${ANY_KEYED}`;
export const JOURNALED = `LATERAL (
    SELECT sum(waiting) AS waiting, sum(prioritized) AS prioritized, sum(delayed) AS delayed FROM ${journalOf('q')}
  ) j`;
export const UNDOUBTED = `s.${IS_OPEN} AND s.expires_at > _now AND NOT s.suspected`;

/**
 * Takes up to _count jobs, of _left. If they are too large for one reply, all of them go back, and `grant_locks` takes those that fit.
 * Summing up the sizes before jobs are taken would cost every claim 3 % of the server's time, and few queues have such jobs.
 */
export const TAKE = `IF _count = 1 AND _left > 0 THEN
    UPDATE jobs SET ${TAKEN}, fence = nextval('fences') WHERE ctid = (${next('ctid', '1')}) RETURNING event('active', ARRAY[id]), ${CLAIMED_ONE} INTO _active, _rows;
    GET DIAGNOSTICS _taken = ROW_COUNT;
  ELSIF _count > 0 AND _left > 0 THEN
    WITH next AS (
      SELECT at, nextval('fences') AS fence FROM (${next('ctid AS at', '_count')}) waiting
    ), taken AS (
      UPDATE jobs SET ${TAKEN}, fence = next.fence FROM next WHERE jobs.ctid = next.at RETURNING ${CLAIMED_COLUMNS}, ${WAITING_SIZE} AS size
    )
    SELECT count(*), ${CLAIMED_ARRAYS}, event('active', array_agg(id)), sum(size) INTO _taken, _rows, _active, _bytes
    FROM (SELECT * FROM taken ORDER BY fence) taken;
    IF _taken = 0 OR _bytes > ${REPLY_BYTES} THEN
      UPDATE jobs SET ${UNTAKEN} WHERE queue = _queue AND state = ${STATE.active} AND session = _session AND claim_seq = _seq;
      _taken := 0;
      _bytes := 0;
      _rows := NULL;
      _active := NULL;
    END IF;
  ELSE
    _taken := 0;
  END IF;`;

/** Takes the jobs that TAKE missed. It runs after the journal was written. */
export const TAKE_THE_REST = `IF _taken < _count AND _taken < _left THEN
    -- Something lies below the head, because its transaction committed late; or was changed while it was being locked; or is large.
    _rest := grant_locks(_queue, _session, _seq, _by, NULL, _clock, 0, _count - _taken, false, no_change(_queue), _rows, _inline, coalesce(_bytes, 0), true);
    _more := _rest._cut;
    _taken := _taken + _rest._taken;
    _rows := _rest._jobs;
    _change := _rest._change;
    ${NOTE}
  END IF;`;

// The variables have no defaults, and the statements of TAKE do as much as possible beside their main work. Each expression that a
// function evaluates separately is set up again in every transaction, for about 1 µs.
export const TAKE_VARIABLES = `
  _plain boolean;
  _head bigint;
  _left bigint;
  _due bigint;
  _taken int;
  _bytes bigint;
  _more boolean;
  _rows text;
  _active text;
  _rest record;
  _change journal;`;

const LONG_WAY = 'claim(_name, _session, _seq, _count, NULL, _by, NULL, NULL, NULL, false, _inline)';

export const PLAIN_CLAIM_FUNCTIONS = step(
  `claim_plain(_name text, _session text, _seq bigint, _count int, _by text, _inline int DEFAULT ${ALL_INLINE})`,
  'text',
  `
DECLARE
  _clock float8 := clock_ms();
  _now bigint := floor(_clock);
  _queue int := (SELECT queue FROM queues WHERE name = _name);
  _last bigint;${TAKE_VARIABLES}
BEGIN
  -- One snapshot for all of it: a call must not miss its own first run between two looks.
  SELECT c.seq, ${PLAIN_LOOK} AND NOT ${ANY_BEHIND}
  INTO _last, _head, _left, _due, _plain FROM callers c, sessions s, queues q, ${JOURNALED}
  WHERE c.queue = _queue AND c.id = _session AND s.queue = _queue AND s.id = _session AND ${UNDOUBTED} AND q.queue = _queue;
  IF _plain IS NOT TRUE OR _due <= _now OR _seq <= _last THEN RETURN ${LONG_WAY}; END IF;
  -- A look at an empty queue costs no transaction number and no fsync.
  IF _left <= 0 OR _count = 0 THEN RETURN claim_reply(NULL, true, false, 0, _due, _now, _left <= 0); END IF;
  UPDATE callers SET seq = _seq, used_at = _now, reply = NULL WHERE queue = _queue AND id = _session AND seq < _seq;
  IF NOT FOUND THEN RETURN ${LONG_WAY}; END IF;
  PERFORM FROM sessions s WHERE s.queue = _queue AND s.id = _session AND ${UNDOUBTED} FOR KEY SHARE;
  IF NOT FOUND THEN
    UPDATE callers SET seq = _seq - 1 WHERE queue = _queue AND id = _session;
    RETURN ${LONG_WAY};
  END IF;
  ${TAKE}
  IF _taken > 0 THEN INSERT INTO journal (queue, waiting, active, events, body) VALUES (_queue, -_taken, _taken, _taken, _active); END IF;
  ${TAKE_THE_REST}
  ${FOLD_SOMETIMES}
  RETURN claim_reply(_rows, true, false, 0, _due, _now, _left <= _taken, _more);
END`,
);

/** Returns undefined if the request does not fit the fast path, or if connections are not set up for it. */
export async function claimPlain<T>(server: Server, queue: string, request: ClaimRequest): Promise<T | undefined> {
  const { session, seq, count, by = null } = request;
  if (request.jobIds !== undefined || request.timedMs !== undefined || request.limit !== undefined) return undefined;
  const values = [queue, session, seq, Math.min(count, 2 ** 31 - 1), by, inlineBytes(count)];
  const rows = await server.short('claim_plain', server.statement('claim_plain', values.length), values);
  return rows === undefined ? undefined : (JSON.parse(rows[0]?.[0] as string) as T);
}
