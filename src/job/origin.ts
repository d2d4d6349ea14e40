// The origin of a dead letter.

/** Where a letter comes from, and what its job needs to be added again. */
export interface Origin {
  /** The queue of the failed job, by its name in the store. */
  queue: string;
  id: string;
  failedReason: string;
  attemptsMade: number;
  /** When the job failed: store's epoch ms. */
  failedOn: number;
  priority: number;
  lockKey?: string;
  group?: string;
  /** The queue that the letter came to. */
  deadLetter: string;
}
