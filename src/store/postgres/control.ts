// Operator verbs of a queue: configure and forget.
import type { ForgetTarget, QueueSettings } from '../contract/index.js';
import { NOTE } from './fold.js';
import type { Server } from './server.js';
import { verb } from './sql-function.js';

/** Timeout for forgetting a caller: pruning removes it later anyway. */
const FORGET_CALLER_MS = 1000;

export const CONTROL_FUNCTIONS =
  verb(
    'pause(_name text, _paused boolean)',
    'text',
    `
DECLARE
  _queue int := queue_of(_name);
  _change journal := no_change(_queue);
BEGIN
  UPDATE queues SET paused = _paused WHERE queue = _queue AND paused <> _paused;
  IF FOUND THEN
    _change.events := 1;
    _change.body := event(CASE WHEN _paused THEN 'paused' ELSE 'resumed' END, NULL);
    ${NOTE}
  END IF;
  RETURN 'null';
END`,
  ) +
  verb(
    'limit_queue(_name text, _duration float8)',
    'text',
    `
DECLARE
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues SET limited_until = CASE WHEN _duration > 0 THEN ceil(clock_ms() + _duration) ELSE 0 END,
    window_ends = CASE WHEN _duration > 0 THEN window_ends ELSE 0 END
  WHERE queue = _queue;
  RETURN 'null';
END`,
  ) +
  verb(
    'cap_queue(_name text, _most float8)',
    'text',
    `
DECLARE
  -- Not in the statement, which would not see a row that it makes.
  _queue int := queue_of(_name);
BEGIN
  UPDATE queues SET max_active = _most WHERE queue = _queue;
  RETURN 'null';
END`,
  ) +
  // Keeps the counters of events and places: listeners read on from their event id, and jobs that still exist keep their order.
  verb(
    'forget(_name text)',
    'text',
    `
DECLARE
  _queue int;
BEGIN
  SELECT queue INTO _queue FROM queues WHERE name = _name FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM fold(_queue);
    PERFORM trim_log(_queue, 0);
    UPDATE queues SET paused = false, limited_until = 0, window_ends = 0, max_active = NULL WHERE queue = _queue;
    PERFORM setval(('ids_' || _queue)::regclass, 1, false);
  END IF;
  RETURN 'null';
END`,
  );

export function configure(server: Server, queue: string, { paused, blockedMs, cap }: QueueSettings): Promise<void> {
  return server.callAll({
    ...(paused !== undefined && { pause: [queue, paused] }),
    ...(blockedMs !== undefined && { limit_queue: [queue, blockedMs] }),
    ...(cap !== undefined && { cap_queue: [queue, cap?.maxActive ?? null] }),
  });
}

export async function forget(server: Server, queue: string, what: ForgetTarget): Promise<number> {
  if ('events' in what) return server.call<number>('trim_events', [queue, what.events]);
  if ('caller' in what) await server.ask('forget_caller', [queue, what.caller], FORGET_CALLER_MS);
  else await server.call('forget', [queue]);
  return 0;
}
