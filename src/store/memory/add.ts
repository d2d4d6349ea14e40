// The verb `add` of the memory store: stores new jobs, and returns the first reply when a caller repeats a call.
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import { putDelayed, putWaiting } from './moves.js';
import { type QueueState, StoredJob } from './state.js';

export function add(queue: QueueState, jobs: NewJob[], call: Call, now: number): AddReply[] {
  const remembered = queue.adds.recall(call);
  if (remembered !== undefined) return copy(remembered);
  const replies = jobs.map((job) => addOne(queue, job, now));
  queue.adds.remember(call, copy(replies), now, () => false);
  return replies;
}

function addOne(queue: QueueState, job: NewJob, now: number): AddReply {
  const id = job.id ?? nextId(queue);
  if (queue.jobs.has(id)) {
    queue.log.tell('duplicated', id);
    return { id, status: 'duplicate' };
  }
  const stored = new StoredJob(id, job, ++queue.added, Math.floor(now));
  queue.jobs.set(id, stored);
  queue.isUsed = true;
  queue.log.tell('added', id, { jobName: job.name });
  if (job.delayMs > 0) {
    putDelayed(queue, stored, job.delayMs, now);
    queue.log.tell('delayed', id, { delay: Math.ceil(stored.at) });
  } else {
    putWaiting(queue, stored, job.lifo);
    queue.log.tell('waiting', id);
  }
  return { id, status: 'added' };
}

/**
 * Returns the next generated job id. Skips an id that a user has already chosen, because the new job would be dropped as its
 * duplicate.
 */
function nextId(queue: QueueState): string {
  let id: string;
  do id = String(++queue.lastId);
  while (queue.jobs.has(id));
  return id;
}

function copy(replies: AddReply[]): AddReply[] {
  return replies.map(({ id, status }) => ({ id, status }));
}
