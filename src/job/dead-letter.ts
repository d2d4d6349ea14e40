// Dead letters: copies of jobs that failed for good, in a queue of their own, and their way back.
import type { Origin } from './origin.js';
import type { NewJob } from './record.js';

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
