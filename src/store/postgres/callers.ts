// Remembers the last call of every caller. A call whose reply was lost can be repeated: it gets the recorded reply and is not carried out
// again.
import { RAISED } from './errors.js';
import { step, verb } from './sql-function.js';

/** A producer may repeat a call for ten minutes. */
const REMEMBERED_MS = 10 * 60_000;
/** How many callers one call checks for their age. */
const PRUNED_AT_ONCE = 500;

/**
 * Deletes the rows that no other transaction holds. It must not wait: closing a session holds that session already, and callers come
 * before sessions in the lock order.
 */
const unheld = (rows: string) =>
  `DELETE FROM callers WHERE ctid = ANY (ARRAY(SELECT c.ctid FROM ${rows} FOR UPDATE OF c SKIP LOCKED))`;

export const CALLER_FUNCTIONS =
  // Locks the caller, so that a call and its repetition run one after the other. Returns the number of its last call. This is the first
  // lock of every verb that takes it: callers, then sessions, then jobs in the order of their ids, then names (named-lock.ts). Rows
  // locked after that are taken only if no other transaction holds them.
  step(
    'enter_call(_queue int, _caller text)',
    'bigint',
    `
DECLARE
  _last bigint;
BEGIN
  LOOP
    SELECT seq INTO _last FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    IF FOUND THEN RETURN _last; END IF;
    INSERT INTO callers (queue, id, seq, used_at, look_at) VALUES (_queue, _caller, 0, clock_ms(), clock_ms() + ${REMEMBERED_MS}) ON CONFLICT DO NOTHING;
  END LOOP;
END`,
  ) +
  // Deletes callers that were not used for long, and moves the others on. Returns whether there may be more of them. A worker may repeat
  // its last call for as long as its session is open.
  step(
    'prune_callers(_now bigint)',
    'boolean',
    `
DECLARE
  _due tid[] := ARRAY(SELECT ctid FROM callers WHERE look_at <= _now ORDER BY look_at LIMIT ${PRUNED_AT_ONCE} FOR UPDATE SKIP LOCKED);
BEGIN
  DELETE FROM callers c WHERE c.ctid = ANY (_due) AND c.used_at < _now - ${REMEMBERED_MS}
    AND NOT EXISTS (SELECT FROM sessions s WHERE s.queue = c.queue AND s.id = c.id);
  UPDATE callers SET look_at = greatest(used_at + ${REMEMBERED_MS} + 1, _now + 1) WHERE ctid = ANY (_due) AND used_at >= _now - ${REMEMBERED_MS};
  UPDATE callers SET look_at = _now + ${REMEMBERED_MS} WHERE ctid = ANY (_due) AND look_at <= _now;
  RETURN cardinality(_due) = ${PRUNED_AT_ONCE};
END`,
  ) +
  verb(
    'forget_caller(_name text, _id text)',
    'text',
    `
BEGIN
  ${unheld('callers c WHERE c.queue = (SELECT queue FROM queues WHERE name = _name) AND c.id = _id')};
  RETURN 'null';
END`,
  ) +
  step(
    'refuse_straggler(_caller text, _seq bigint, _last bigint)',
    'void',
    `
BEGIN
  RAISE EXCEPTION 'Call % of % came after its call %: number calls upwards.', _seq, _caller, _last USING ERRCODE = '${RAISED.straggler}';
END`,
  );
