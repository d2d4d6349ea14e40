// How an active job goes back without an outcome of its own.
import { STALLED_REASON } from '../contract.js';
import { FROM, putFinished, putWaiting, take } from './moves.js';
import { keepOnFail, retain } from './retention.js';
import type { QueueState, StoredJob, StoredLock } from './state.js';

/** Handed back or taken away: uncharged. */
export function giveBack(queue: QueueState, job: StoredJob): void {
  take(queue, job);
  putWaiting(queue, job, true);
  queue.log.tell('waiting', job.id, FROM.active);
}

/** Its owner died: charged. Answers where the job went. */
export function stall(queue: QueueState, { job, session }: StoredLock, now: number): 'stalled' | 'failed' {
  queue.log.tell('stalled', job.id);
  job.stalledCounter++;
  if (job.stalledCounter <= session.maxStalls) {
    giveBack(queue, job);
    return 'stalled';
  }
  take(queue, job);
  job.failedReason = STALLED_REASON;
  putFinished(queue, job, 'failed', now);
  queue.log.tell('failed', job.id, { failedReason: STALLED_REASON, prev: 'active' });
  retain(queue, job, keepOnFail(job.opts), now);
  return 'failed';
}
