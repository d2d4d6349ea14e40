// The verbs `extend` and `revoke` of the memory store: they move the end of a job's lock, or take the lock away.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { setEnd } from './moves.js';
import { giveBack } from './stall.js';
import type { QueueState, StoredJob } from './state.js';

export function extend(queue: QueueState, { jobId, token, durationMs }: Extension, now: number): ExtendStatus {
  const job = queue.jobs.get(jobId);
  if (job === undefined) return 'missing';
  if (job.lock?.token !== token) return job.finishedBy === token ? 'finished' : 'lost';
  setEnd(queue, job.lock, now + durationMs);
  return 'done';
}

/** Hands back all jobs together, so they wait in the order in which the caller named them. */
export function revoke(queue: QueueState, jobIds: string[], reason: string): boolean[] {
  const taken = new Set<StoredJob>();
  const replies = jobIds.map((jobId) => {
    const job = queue.jobs.get(jobId);
    const lock = job?.lock;
    if (job === undefined || lock === undefined || taken.has(job)) return false;
    const { session, token, order: fence } = lock;
    session.revocations.push({ number: ++session.revoked, jobId, token, fence, reason });
    taken.add(job);
    return true;
  });
  giveBack(queue, [...taken]);
  return replies;
}
