// Selects the jobs that `clear` and `requeue` work on.
import { isFinished, type StoredState } from '../../job/state.js';
import type { Selection } from '../contract/index.js';
import { oldestOf } from './linked-list.js';
import type { QueueState, StoredJob } from './state.js';

/** Returns unlocked jobs, state by state, the oldest of each state first. */
export function select(queue: QueueState, { states, olderThanMs, limit }: Selection, now: number): StoredJob[] {
  const latest = olderThanMs === undefined ? Number.POSITIVE_INFINITY : now - olderThanMs;
  const picked: StoredJob[] = [];
  for (const state of new Set(states)) {
    for (const job of oldestIn(queue, state, limit - picked.length)) {
      if (picked.length >= limit || (job.finishedOn ?? job.addedOn) > latest) break;
      picked.push(job);
    }
  }
  return picked;
}

function oldestIn(queue: QueueState, state: StoredState, limit: number): Iterable<StoredJob> {
  if (isFinished(state)) return queue.finished[state].forward();
  if (state === 'waiting') return queue.waiting.oldest(limit);
  if (state === 'delayed') return oldestOf(queue.delayed.items(), limit);
  // All active jobs are locked.
  return [];
}
