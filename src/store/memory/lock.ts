import type { Extension, ExtendStatus } from '../contract.js';
import { setEnd } from './moves.js';
import { giveBack } from './stall.js';
import type { QueueState } from './state.js';

export function extend(queue: QueueState, { jobId, token, durationMs }: Extension, now: number): ExtendStatus {
  const job = queue.jobs.get(jobId);
  if (job === undefined) return 'missing';
  if (job.lock?.token !== token) return job.finishedBy === token ? 'finished' : 'lost';
  setEnd(queue, job.lock, now + durationMs);
  return 'done';
}

export function revoke(queue: QueueState, jobId: string, reason: string): boolean {
  const job = queue.jobs.get(jobId);
  const lock = job?.lock;
  if (job === undefined || lock === undefined) return false;
  const { session, token, order: fence } = lock;
  session.revocations.push({ number: ++session.revoked, jobId, token, fence, reason });
  giveBack(queue, [job]);
  return true;
}
