// Trims finished jobs. Trimming takes from the old end of the list, so each job is visited once, when it is dropped.
import type { Keep } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import { drop } from './leave.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

/**
 * Applies `keep` right after a job has finished. `{ count: 0 }` removes that job alone, because its neighbours may have been kept
 * on purpose.
 */
export function retain(queue: QueueState, job: StoredJob, keep: Keep, now: number): void {
  if (keep.count === 0) {
    drop(queue, job, now);
    return;
  }
  const list = queue.finished[job.state as FinishedState];
  const maxCount = keep.count ?? Number.POSITIVE_INFINITY;
  const oldest = now - (keep.ageMs ?? Number.POSITIVE_INFINITY);
  for (let first = list.first; first !== undefined; first = list.first) {
    if (list.size <= maxCount && (first.finishedOn ?? 0) > oldest) return;
    drop(queue, first, now);
  }
}
