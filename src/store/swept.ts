// Jobs that a sweep has handed back or failed, as engines collect them, and the reply built from them.
import type { SweepReply } from './contract/index.js';

export interface LostJob {
  id: string;
  /** JSON text of LostBy. */
  lostBy: string | null;
}

export interface Swept {
  stalled: LostJob[];
  failed: LostJob[];
}

export function sweepReply({ stalled, failed }: Swept, more: boolean): SweepReply {
  const reply: SweepReply = { stalled: stalled.map(({ id }) => id), failed: failed.map(({ id }) => id), more };
  const lost = [...stalled, ...failed];
  if (lost.length > 0) reply.lostBy = lost.map(({ lostBy }) => lostBy);
  return reply;
}
