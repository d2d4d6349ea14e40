// The one way out: every end of a job's stay in a state goes through this file.
import { ownEntry, ownedEntry } from './state/deduplication.js';
import { enter, nextId } from './state/enter.js';
import { NEVER } from './state/entries.js';
import { unlock } from './state/moves.js';
import { runEnded } from './state/owing.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

/** Takes a job out of its place. An active job loses its lock, and its key becomes free. */
export function leave(queue: QueueState, job: StoredJob): void {
  switch (job.state) {
    case 'waiting':
      queue.waiting.remove(job);
      break;
    case 'delayed':
      queue.delayed.remove(job);
      job.delay = 0;
      break;
    case 'active':
      queue.active.remove(job);
      queue.waiting.setTaken(job, false);
      if (job.lock !== undefined) unlock(queue, job.lock);
      break;
    case 'completed':
    case 'failed':
      queue.finished[job.state].remove(job);
  }
}

/** Removes a job for a caller, with everything that belongs to it. */
export function remove(queue: QueueState, job: StoredJob): void {
  drop(queue, job);
  if (job.marks === 0) return;
  const entry = ownedEntry(queue, job);
  if (entry !== undefined) queue.entries.delete(entry.id);
}

/** Does what the end of a job entails: its entry is released, its draft added, its schedule owing. Call it after the events of the end. */
export function ended(queue: QueueState, job: StoredJob, now: number): void {
  if (job.marks === 0) return;
  release(queue, job, now);
  runEnded(queue, job);
}

function release(queue: QueueState, job: StoredJob, now: number): void {
  const entry = ownedEntry(queue, job);
  if (entry === undefined || entry.at !== NEVER) return;
  const { draft } = entry;
  queue.entries.delete(entry.id);
  if (draft?.deduplication === undefined) return;
  const id = draft.id ?? nextId(queue);
  if (queue.jobs.has(id)) {
    queue.log.record('duplicated', id);
    return;
  }
  enter(queue, id, draft, now);
  ownEntry(queue, draft.deduplication, id, now);
}

/** Deletes a job. Trims of finished jobs end here: they leave the entry of the job as it is. */
export function drop(queue: QueueState, job: StoredJob): void {
  leave(queue, job);
  queue.jobs.delete(job.id);
}
