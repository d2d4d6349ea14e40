// Sweeps a queue: lua/sweep.lua ends expired sessions and takes dead locks from their owners.
import type { SweepReply } from '../contract/index.js';
import type { Runner } from './driver/runner.js';

/** Stands in replies for an unknown owner. */
const UNKNOWN = 'null';

export async function sweep(run: Runner, queue: string, limit: number): Promise<SweepReply> {
  type Raw = [stalled: string[], failed: string[], more: number, lostBy: string[]];
  const [stalled, failed, more, lostBy] = (await run('sweep', queue, [limit])) as Raw;
  const reply: SweepReply = { stalled, failed, more: more === 1 };
  if (lostBy.length > 0) reply.lostBy = lostBy.map((text) => (text === UNKNOWN ? null : text));
  return reply;
}
