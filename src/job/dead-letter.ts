// Dead letters: copies of jobs that failed for good, in a queue of their own, and their way back.
import type { NewJob } from './record.js';

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

/** The content of the failed job, which its letter keeps. */
export interface Content {
  name: string;
  data: string;
  opts: string;
  timestamp: number;
}

/** The fence of the run makes the id unique: a job that is retried and fails again sends a second letter. */
export function letterId({ queue, id }: Origin, fence: number): string {
  return `${queue}:${id}:${fence}`;
}

/** Returns the job that a letter becomes when it goes back. It takes its old id if that is free, else the id of the letter. */
export function jobOfLetter({ name, data, opts, timestamp }: Content, id: string, origin: Origin): NewJob & { id: string } {
  const { priority, lockKey, group, deadLetter } = origin;
  const job: NewJob & { id: string } = { id, name, data, opts, timestamp, priority, delayMs: 0, lifo: false, deadLetter };
  if (lockKey !== undefined) job.lockKey = lockKey;
  if (group !== undefined) job.group = group;
  return job;
}
