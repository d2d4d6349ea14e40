// Sweeps a queue: lua/sweep.lua ends expired sessions and takes dead locks from their owners.
import type { SweepReply } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

/** Stands in replies for an unknown owner. */
const UNKNOWN = 'null';

export async function sweep({ run, relays }: Engine, queue: string, limit: number): Promise<SweepReply> {
  type Raw = [stalled: string[], failed: string[], more: number, lostBy: string[], sentTo?: string[], checks?: number];
  const [stalled, failed, more, lostBy, sentTo = [], checks] = (await run('sweep', queue, [limit])) as Raw;
  if (sentTo.length > 0) await relays.after(queue, sentTo);
  if (checks === 1) await relays.check(queue);
  const reply: SweepReply = { stalled, failed, more: more === 1 };
  if (lostBy.length > 0) reply.lostBy = lostBy.map((text) => (text === UNKNOWN ? null : text));
  return reply;
}
