// How active jobs go back without an outcome of their own.
import { keepOnFail } from '../../job/options.js';
import { STALLED_REASON } from '../contract.js';
import { FROM, putFinished, putWaiting, take } from './moves.js';
import { retain } from './retention.js';
import type { QueueState, StoredJob, StoredLock } from './state.js';

/** Handed back or taken away: uncharged. */
export function giveBack(queue: QueueState, jobs: StoredJob[]): void {
  for (const job of jobs) {
    take(queue, job);
    queue.log.tell('waiting', job.id, FROM.active);
  }
  toFront(queue, jobs);
}

/** Their owner died: charged. */
export function stall(queue: QueueState, locks: StoredLock[], now: number): { stalled: string[]; failed: string[] } {
  const stalled: StoredJob[] = [];
  const failed: string[] = [];
  for (const { job, session } of locks) {
    queue.log.tell('stalled', job.id);
    job.stalledCounter++;
    take(queue, job);
    if (job.stalledCounter <= session.maxStalls) {
      queue.log.tell('waiting', job.id, FROM.active);
      stalled.push(job);
    } else {
      fail(queue, job, now);
      failed.push(job.id);
    }
  }
  toFront(queue, stalled);
  return { stalled: stalled.map(({ id }) => id), failed };
}

function fail(queue: QueueState, job: StoredJob, now: number): void {
  job.failedReason = STALLED_REASON;
  putFinished(queue, job, 'failed', now);
  queue.log.tell('failed', job.id, { failedReason: STALLED_REASON, prev: 'active' });
  retain(queue, job, keepOnFail(job.opts), now);
}

/** The last one first, so that they wait in the order in which they came. */
function toFront(queue: QueueState, jobs: StoredJob[]): void {
  for (const job of jobs.toReversed()) putWaiting(queue, job, true);
}
