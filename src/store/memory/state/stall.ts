// Moves active jobs out of `active` without an outcome of their own: handed back, revoked or stalled.
import { type LossFound, lostByText } from '../../../job/lost-by.js';
import { keepOnFail } from '../../../job/options.js';
import { STALLED_REASON } from '../../contract/index.js';
import type { LostJob, Swept } from '../../swept.js';
import { ended, leave } from '../leave.js';
import { FROM, putFinished, putWaiting } from './moves.js';
import { retain } from '../retention.js';
import type { QueueState, StoredJob, StoredLock } from './queue-state.js';

/** Hands back jobs to the front of waiting. This does not count as a stall. */
export function giveBack(queue: QueueState, jobs: StoredJob[]): void {
  for (const job of jobs) {
    leave(queue, job);
    queue.log.record('waiting', job.id, FROM.active);
  }
  toFront(queue, jobs);
}

export interface Lost {
  lock: StoredLock;
  found: LossFound;
}

/** Puts back the jobs of a dead owner. This counts as a stall, and a job over its session's `maxStalls` fails. */
export function stall(queue: QueueState, lost: Lost[], now: number): Swept {
  const stalled: StoredJob[] = [];
  const failed: LostJob[] = [];
  for (const { lock, found } of lost) {
    const { job, session } = lock;
    job.lostBy = lostByText(session.owner, found);
    queue.log.record('stalled', job.id, { lostBy: job.lostBy }, job.lostBy.length);
    job.stalledCounter++;
    leave(queue, job);
    if (job.stalledCounter <= session.maxStalls) {
      queue.log.record('waiting', job.id, FROM.active);
      stalled.push(job);
    } else {
      fail(queue, job, lock.order, job.lostBy, now);
      failed.push(lostJob(job));
    }
  }
  toFront(queue, stalled);
  return { stalled: stalled.map(lostJob), failed };
}

function fail(queue: QueueState, job: StoredJob, fence: number, lostBy: string, now: number): void {
  job.failedReason = STALLED_REASON;
  putFinished(queue, job, 'failed', now);
  queue.log.record('failed', job.id, { failedReason: STALLED_REASON, prev: 'active', lostBy }, lostBy.length);
  ended(queue, job, fence, now);
  retain(queue, job, keepOnFail(job.opts), now);
}

/** Pushes the last job first, so the jobs wait in the given order. */
function toFront(queue: QueueState, jobs: StoredJob[]): void {
  for (const job of jobs.toReversed()) putWaiting(queue, job, true);
}

function lostJob({ id, lostBy }: StoredJob): LostJob {
  return { id, lostBy: lostBy ?? null };
}
