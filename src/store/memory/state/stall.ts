// Moves active jobs out of `active` without an outcome of their own: handed back, revoked or stalled.
import { type LossFound, lostByText } from '../../../job/lost-by.js';
import { STALLED_REASON } from '../../contract/index.js';
import type { LostJob, Swept } from '../../swept.js';
import { leave } from '../leave.js';
import { fail, failCancelled, isCancelled } from './fail.js';
import { FROM, putWaiting } from './moves.js';
import type { QueueState, StoredJob, StoredLock } from './queue-state.js';

/** Hands back jobs to the front of waiting. This does not count as a stall. Cancelled jobs fail instead. */
export function giveBack(queue: QueueState, jobs: StoredJob[], now: number): void {
  const back = jobs.filter((job) => !isCancelled(job));
  for (const job of jobs) {
    if (isCancelled(job)) {
      failCancelled(queue, job, reasonOf(job), now);
      continue;
    }
    leave(queue, job);
    queue.log.record('waiting', job.id, FROM.active);
  }
  toFront(queue, back);
}

/** Returns why a cancelled job was cancelled. */
function reasonOf({ extras }: StoredJob): string {
  return extras?.cancelled ?? '';
}

export interface Lost {
  lock: StoredLock;
  found: LossFound;
}

/** Puts back the jobs of a dead owner. This counts as a stall. A job over its session's `maxStalls` fails, and so does a cancelled one. */
export function stall(queue: QueueState, lost: Lost[], now: number): Swept {
  const stalled: StoredJob[] = [];
  const failed: LostJob[] = [];
  for (const { lock, found } of lost) {
    const { job, session } = lock;
    job.lostBy = lostByText(session.owner, found);
    queue.log.record('stalled', job.id, { lostBy: job.lostBy }, job.lostBy.length);
    job.stalledCounter++;
    leave(queue, job);
    if (job.stalledCounter <= session.maxStalls && !isCancelled(job)) {
      queue.log.record('waiting', job.id, FROM.active);
      stalled.push(job);
    } else {
      const reason = isCancelled(job) ? reasonOf(job) : STALLED_REASON;
      fail(queue, job, { reason, prev: 'active', fence: lock.order, lostBy: job.lostBy }, now);
      failed.push(lostJob(job));
    }
  }
  toFront(queue, stalled);
  return { stalled: stalled.map(lostJob), failed };
}

/** Pushes the last job first, so the jobs wait in the given order. */
function toFront(queue: QueueState, jobs: StoredJob[]): void {
  for (const job of jobs.toReversed()) putWaiting(queue, job, true);
}

function lostJob({ id, lostBy }: StoredJob): LostJob {
  return { id, lostBy: lostBy ?? null };
}
