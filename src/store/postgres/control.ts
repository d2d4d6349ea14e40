// Operator verbs of a queue: configure and forget.
import type { ForgetTarget, QueueSettings } from '../contract/index.js';
import type { Server } from './server.js';

/** Timeout for forgetting a caller: pruning removes it later anyway. */
const FORGET_CALLER_MS = 1000;

export function configure(server: Server, queue: string, { paused, blockedMs, cap }: QueueSettings): Promise<void> {
  return server.callAll({
    ...(paused !== undefined && { pause: [queue, paused] }),
    ...(blockedMs !== undefined && { limit_queue: [queue, blockedMs] }),
    ...(cap !== undefined && { cap_queue: [queue, cap?.maxActive ?? null] }),
  });
}

export async function forget(server: Server, queue: string, what: ForgetTarget): Promise<number> {
  if ('events' in what) return server.call<number>('trim_events', { name: queue, keep: what.events });
  if ('caller' in what) await server.ask('forget_caller', { name: queue, id: what.caller }, FORGET_CALLER_MS);
  else await server.call('forget', { name: queue });
  return 0;
}
