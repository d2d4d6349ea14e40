// The last call of every caller: one whose reply was lost is answered again and not carried out again.
import { RAISED } from './errors.js';
import { step } from './sql-function.js';

/** Producers may repeat a call for ten minutes. */
export const REMEMBERED_MS = 10 * 60_000;

export const CALLER_FUNCTIONS =
  // Locks the caller, so that a call and its repetition come one after the other, and answers the number of its last call. This is the first lock of every verb that takes it:
  // callers, then sessions, then jobs in the order of their ids, then names (named-lock.ts); what is locked after that is taken only where
  // nobody holds it.
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
    INSERT INTO callers (queue, id, seq, used_at) VALUES (_queue, _caller, 0, clock_ms()) ON CONFLICT DO NOTHING;
  END LOOP;
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

/**
 * Enters the call _seq of _caller: `reply` is the reply that the same call got, if it was carried out already.
 * Statements of a verb and not a function: a call of one from another costs as much as a statement.
 */
export const recall = (reply: string) => `
    SELECT seq, callers.reply INTO _last, ${reply} FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    IF NOT FOUND THEN _last := enter_call(_queue, _caller); END IF;
    IF _seq > _last THEN
      ${reply} := NULL;
    ELSIF _seq < _last THEN
      -- Its caller gave up on it and went on, so carrying it out now would surprise everybody.
      PERFORM refuse_straggler(_caller, _seq, _last);
    END IF;`;

export const remember = (caller: string, seq: string, reply: string) =>
  `UPDATE callers SET seq = ${seq}, used_at = clock_ms(), reply = ${reply} WHERE queue = _queue AND id = ${caller}`;
