// The last call of every caller: one whose reply was lost is answered again and not carried out again.
import { step } from './sql-function.js';

/** Raised for a call that came after a later one. */
export const STRAGGLER = 'HF001';
/** Producers may repeat a call for ten minutes. */
export const REMEMBERED_MS = 10 * 60_000;

export const CALLER_FUNCTIONS =
  // Locks the caller, so that a call and its repetition come one after the other. This is the first lock of every verb that takes it:
  // callers, then sessions, then jobs in the order of their ids; what is locked after that is taken only where nobody holds it.
  step(
    'enter_call(_queue int, _caller text, OUT last bigint, OUT reply text)',
    'record',
    `
BEGIN
  LOOP
    SELECT callers.seq, callers.reply INTO last, reply FROM callers WHERE queue = _queue AND id = _caller FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO callers (queue, id, seq, used_at) VALUES (_queue, _caller, 0, clock_ms()) ON CONFLICT DO NOTHING;
  END LOOP;
END`,
  ) +
  // The reply that the same call got, if it was carried out already.
  step(
    'recall(_queue int, _caller text, _seq bigint)',
    'text',
    `
DECLARE
  _call record;
BEGIN
  SELECT * INTO _call FROM enter_call(_queue, _caller);
  IF _seq > _call.last THEN RETURN NULL; END IF;
  IF _seq = _call.last THEN RETURN _call.reply; END IF;
  -- Its caller gave up on it and went on, so carrying it out now would surprise everybody.
  RAISE EXCEPTION 'Call % of % came after its call %: number calls upwards.', _seq, _caller, _call.last USING ERRCODE = '${STRAGGLER}';
END`,
  ) +
  step(
    'remember(_queue int, _caller text, _seq bigint, _reply text)',
    'void',
    `
BEGIN
  UPDATE callers SET seq = _seq, used_at = clock_ms(), reply = _reply WHERE queue = _queue AND id = _caller;
END`,
  );
