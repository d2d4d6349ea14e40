import { isFinished, type StoredState } from '../../job/state.js';
import type { Selection } from '../contract/index.js';
import { oldestOf } from './linked-list.js';
import type { QueueState, StoredJob } from './state.js';

/** Unlocked jobs, one state after the other, the oldest of each first. */
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
  // Active jobs are locked, all of them.
  return [];
}
