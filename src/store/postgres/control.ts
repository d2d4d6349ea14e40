// Operator verbs of a queue: configure and forget.
import type { ForgetTarget, QueueSettings } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

/** Timeout for forgetting a caller: pruning removes it later anyway. */
const FORGET_CALLER_MS = 1000;

export async function configure({ server, wake }: Engine, queue: string, settings: QueueSettings): Promise<void> {
  await server.call('configure', { name: queue, settings: JSON.stringify(settings) });
  wake.signal(queue, 'jobs');
}

export async function forget({ server, wake }: Engine, queue: string, what: ForgetTarget): Promise<number> {
  if ('events' in what) return server.call<number>('trim_events', { name: queue, keep: what.events });
  if ('caller' in what) await server.ask('forget_caller', { name: queue, id: what.caller }, FORGET_CALLER_MS);
  else if ('deduplication' in what) {
    return server.call<number>('forget_entries', { name: queue, ids: what.deduplication, owner: what.ownedBy });
  } else {
    await server.call('forget', { name: queue });
    wake.signal(queue, 'jobs');
  }
  return 0;
}
