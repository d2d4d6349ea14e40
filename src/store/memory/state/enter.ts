// Puts a new job into the queue.
import type { NewJob } from '../../../job/record.js';
import { putDelayed, putParent, putWaiting } from './moves.js';
import { type QueueState, StoredJob } from './queue-state.js';

export function enter(queue: QueueState, id: string, job: NewJob, now: number): StoredJob {
  const stored = new StoredJob(id, job, ++queue.added, Math.floor(now));
  queue.jobs.set(id, stored);
  queue.isUsed = true;
  queue.log.record('added', id, { jobName: job.name });
  if (job.waitsForChildren === true) {
    putParent(queue, stored, job.delayMs);
    queue.log.record('waiting-children', id);
  } else if (job.delayMs > 0) {
    putDelayed(queue, stored, job.delayMs, now);
    queue.log.record('delayed', id, { delay: Math.ceil(stored.at) });
  } else {
    putWaiting(queue, stored, job.lifo);
    queue.log.record('waiting', id);
  }
  return stored;
}

/**
 * Returns the next generated job id. Skips an id that a user has already chosen, because the new job would be dropped as its
 * duplicate.
 */
export function nextId(queue: QueueState): string {
  let id: string;
  do id = String(++queue.lastId);
  while (queue.jobs.has(id));
  return id;
}
