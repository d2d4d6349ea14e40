// How a run ended, as its owner sends it to the store. Every outcome carries the token of the run. If the token is stale, the store
// changes nothing.
import type { JobRef } from './family.js';

/** How many finished jobs of a queue stay. Absent fields do not limit. `{ count: 0 }` removes this job and does not affect others. */
export interface Keep {
  count?: number;
  ageMs?: number;
}

interface Owned {
  jobId: string;
  token: string;
}

export type Outcome =
  /** Completed. Counts the attempt. */
  | (Owned & { kind: 'completed'; value: string; keep: Keep })
  /** Failed for good. Counts the attempt. `early`: attempts were left. */
  | (Owned & { kind: 'failed'; reason: string; stacktrace: string; keep: Keep; early?: boolean })
  /** Failed, to be retried. Counts the attempt. With `delayMs` 0 the job goes straight to the back of waiting, with `lifo` to the front. */
  | (Owned & { kind: 'retry'; reason: string; stacktrace: string; delayMs: number; lifo: boolean })
  /**
   * Delayed by the handler itself. The attempt does not count. `step` is recorded in the same step of the store: see the file `steps` of the
   * contract. With `awaits`, which comes with a step, a signal of that name lets the job wait before it is due; if the name is recorded
   * already, the outcome is refused as `ready`.
   */
  | (Owned & { kind: 'delay'; delayMs: number; step?: { name: string; value: string }; awaits?: string })
  /** Handed back to the front of waiting (by the handler, by a rate limit, at shutdown). Neither an attempt nor a stall counts. */
  | (Owned & { kind: 'release' })
  /**
   * Waits for its children, or for one of them: see the file `families` of the contract. The attempt does not count.
   */
  | (Owned & { kind: 'children'; child?: JobRef })
  /** Handed back unchanged to the front of waiting by a worker that has not started it: the start does not count either. */
  | (Owned & { kind: 'return' });

/**
 * done: the job is as the outcome says, by this call or by an earlier one with the same token.
 * lost: the token is not the current one, or has finished the job in another way; nothing was changed.
 * missing: the job does not exist; nothing was changed.
 * pending, unsuccessful: a child has not ended, or one has failed whose failure fails the job; nothing was changed.
 * ready: of the outcomes `children` and `delay`: what the job would wait for has come; nothing was changed.
 * full: the job has no room for the step; nothing was changed.
 * ended: of a signal: the job has finished; nothing was changed.
 */
export type SettleStatus = 'done' | 'lost' | 'missing' | 'pending' | 'unsuccessful' | 'ready' | 'full' | 'ended';
