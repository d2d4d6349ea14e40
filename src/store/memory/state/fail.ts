// Fails a job for a reason that is not an outcome of its run: it stalled too often, or it was cancelled.
import { keepOnFail } from '../../../job/options.js';
import { ended, leave } from '../leave.js';
import { retain } from '../retention.js';
import { MARK } from '../../marks.js';
import { putFinished } from './moves.js';
import type { QueueState, StoredJob } from './queue-state.js';

export function isCancelled({ marks }: StoredJob): boolean {
  return (marks & MARK.cancelled) !== 0;
}

/** Fails a cancelled job that would wait again, or one that is cancelled in this step. */
export function failCancelled(queue: QueueState, job: StoredJob, reason: string, now: number): void {
  const fence = job.lock?.order ?? 0;
  job.marks |= MARK.cancelled;
  const prev = job.state;
  leave(queue, job);
  fail(queue, job, { reason, prev, fence }, now);
}

/** Fails a job that has left its place. */
export function fail(
  queue: QueueState,
  job: StoredJob,
  { reason, prev, fence, lostBy }: { reason: string; prev: string; fence: number; lostBy?: string },
  now: number,
): void {
  job.failedReason = reason;
  putFinished(queue, job, 'failed', now);
  const fields = { failedReason: reason, prev, ...(lostBy !== undefined && { lostBy }) };
  queue.log.record('failed', job.id, fields, reason.length + (lostBy?.length ?? 0));
  ended(queue, job, fence, now);
  retain(queue, job, keepOnFail(job.opts), now);
}
