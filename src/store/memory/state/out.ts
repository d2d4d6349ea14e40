// Takes a job out of its place. Verbs call it through leave.ts.
import { unlock } from './moves.js';
import type { QueueState, StoredJob } from './queue-state.js';

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
    case 'waiting-children':
      queue.parents.remove(job);
      break;
    case 'completed':
    case 'failed':
      queue.finished[job.state].remove(job);
  }
}
