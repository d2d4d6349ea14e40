// The owner that lost a job without an outcome, and how the store found out. Stores keep it as JSON text beside the job.

export interface LostBy {
  /** The process that owned the job. */
  host: string;
  pid: number;
  /** The name of the owner's worker. For a job that was taken by hand, the name of the session that held it. */
  worker: string;
  found: LossFound;
}

/**
 * - `exit`: the process handed the job back when it ended with an error.
 * - `process-gone`: another process saw that the owner's process or connection was gone, and no renewal came within the grace.
 * - `session-expired`: the owner's session was not renewed in time. Its process was killed, frozen, or cut off from the store.
 * - `lock-expired`: a lock that is not renewed (`takeLock`, `getNextJob`, `skipLockRenewal`) expired. Its process may be alive.
 */
export type LossFound = 'exit' | 'process-gone' | 'session-expired' | 'lock-expired';

/** Returns the text that stores keep. */
export function lostByText({ host, pid, name }: { host: string; pid: number; name: string }, found: LossFound): string {
  return JSON.stringify({ host, pid, worker: name, found } satisfies LostBy);
}

/**
 * Returns undefined if the text is missing: no owner lost the job, or an older version handed the job back and did not record it. Text
 * that is not JSON was not written by Holdfast, and must not keep the job from being read.
 */
export function readLostBy(text: unknown): LostBy | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return JSON.parse(text) as LostBy;
  } catch {
    return undefined;
  }
}
