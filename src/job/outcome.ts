// How a run ended, as its owner tells the store. Every outcome carries the token of the run; a store changes nothing when it is stale.

/** How many finished jobs of a queue stay. Absent fields do not limit; `{ count: 0 }` removes this job and says nothing of others. */
export interface Keep {
  count?: number;
  ageMs?: number;
}

interface Owned {
  jobId: string;
  token: string;
}

export type Outcome =
  /** Done. Counts the attempt. */
  | (Owned & { kind: 'completed'; value: string; keep: Keep })
  /** Failed for good. Counts the attempt. `early`: before its attempts were used up. */
  | (Owned & { kind: 'failed'; reason: string; stacktrace: string; keep: Keep; early?: boolean })
  /** Failed, to be tried again. Counts the attempt. `delayMs` 0 goes straight to waiting: to its back, or to its front with `lifo`. */
  | (Owned & { kind: 'retry'; reason: string; stacktrace: string; delayMs: number; lifo: boolean })
  /** Put off by the handler itself. The attempt does not count. */
  | (Owned & { kind: 'delay'; delayMs: number })
  /** Handed back (by the handler, by a rate limit, at shutdown), to the front of waiting. Neither attempt nor stall counts. */
  | (Owned & { kind: 'release' })
  /** Handed back by who has not begun it, to the front of waiting, as it came: the start does not count either. */
  | (Owned & { kind: 'return' });

/**
 * done: it is as the outcome says, by this call or by an earlier one with the same token.
 * lost: the token is not the current one, or has finished the job in another way; nothing was changed.
 * missing: there is no such job; nothing was changed.
 */
export type SettleStatus = 'done' | 'lost' | 'missing';
