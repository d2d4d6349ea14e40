// How many finished jobs stay. Trimming takes from the old end of the list, so each job is looked at once when it goes.
import type { Keep } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import { drop } from './moves.js';
import type { QueueState, StoredJob } from './state.js';

/** Called when a job has just finished. `{ count: 0 }` speaks of that job alone: its neighbours may be wanted. */
export function retain(queue: QueueState, job: StoredJob, keep: Keep, now: number): void {
  if (keep.count === 0) {
    drop(queue, job);
    return;
  }
  const list = queue.finished[job.state as FinishedState];
  const maxCount = keep.count ?? Number.POSITIVE_INFINITY;
  const oldest = now - (keep.ageMs ?? Number.POSITIVE_INFINITY);
  for (let first = list.first; first !== undefined; first = list.first) {
    if (list.size <= maxCount && (first.finishedOn ?? 0) > oldest) return;
    drop(queue, first);
  }
}
