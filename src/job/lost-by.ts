// Which owner lost a job without an outcome, and how the store found out. Stores keep it as JSON text beside the job.

export interface LostBy {
  /** The process that owned the job. */
  host: string;
  pid: number;
  /** The name of its worker; of a job that was taken by hand, that of the session that held it. */
  worker: string;
  found: LossFound;
}

/**
 * - `exit`: the process handed the job back as it ended by an error.
 * - `process-gone`: another process saw that the owner's process or connection was gone, and no renewal came within the grace.
 * - `session-expired`: the owner's session was not renewed in time. Its process was killed, frozen, or cut off from the store.
 * - `lock-expired`: the time of a lock that is not renewed (`takeLock`, `getNextJob`, `skipLockRenewal`) was over. Its process may live.
 */
export type LossFound = 'exit' | 'process-gone' | 'session-expired' | 'lock-expired';

/** As stores keep it. */
export function lostByText({ host, pid, name }: { host: string; pid: number; name: string }, found: LossFound): string {
  return JSON.stringify({ host, pid, worker: name, found } satisfies LostBy);
}

/**
 * Undefined where the text is missing: no owner lost the job, or a version that did not record it handed the job back. Text that is not
 * JSON is not ours, and must not keep the job from being read.
 */
export function readLostBy(text: unknown): LostBy | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return JSON.parse(text) as LostBy;
  } catch {
    return undefined;
  }
}
