// Selects the jobs that `change` by selection works on.
import type { Change, ListName, Selection } from '../contract/index.js';
import { oldestOf } from '../../runtime/linked-list.js';
import { isCancelled } from './state/fail.js';
import { isNext } from './state/owing.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

type Condition = (job: StoredJob) => boolean;

const any: Condition = () => true;

/** A removal passes over the next jobs of schedules, only letters are sent, and only jobs that have not finished are cancelled. */
const FITTING: Record<string, Condition> = {
  remove: (job) => !isNext(job),
  send: ({ extras }) => extras?.origin !== undefined,
  cancel: (job) => job.finishedOn === undefined && !isCancelled(job),
};

/** Returns unlocked jobs, list by list, the oldest of each list first. A removal passes over the next jobs of schedules. */
export function select(queue: QueueState, { lists, olderThanMs, limit }: Selection, what: Change, now: number): StoredJob[] {
  const latest = olderThanMs === undefined ? Number.POSITIVE_INFINITY : now - olderThanMs;
  const isOld: Condition = ({ finishedOn, processedOn, addedOn }) => (finishedOn ?? processedOn ?? addedOn) <= latest;
  const fits: Condition = (job) => isOld(job) && (FITTING[what.kind] ?? any)(job);
  const picked: StoredJob[] = [];
  for (const list of new Set(lists)) {
    // All active jobs are locked.
    if (list === 'active' && what.kind !== 'cancel') continue;
    picked.push(...oldestIn(queue, list, limit - picked.length, fits));
  }
  return picked;
}

function oldestIn(queue: QueueState, list: ListName, limit: number, isOld: Condition): StoredJob[] {
  switch (list) {
    case 'waiting':
    case 'prioritized':
      return queue.waiting.oldest(list === 'prioritized', limit, isOld);
    case 'delayed':
      return oldestOf(Array.from(queue.delayed.items()).filter(isOld), limit);
    case 'active':
      return oldestOf(Array.from(queue.active.forward()).filter(isOld), limit);
    case 'waiting-children':
      return oldestOf(Array.from(queue.parents.forward()).filter(isOld), limit);
    case 'completed':
    case 'failed':
      return firstOf(queue.finished[list].forward(), limit, isOld);
  }
}

/** Stops at the first job that is too young: all later ones finished after it. */
function firstOf(jobs: Iterable<StoredJob>, limit: number, isOld: Condition): StoredJob[] {
  const picked: StoredJob[] = [];
  for (const job of jobs) {
    if (picked.length >= limit || !isOld(job)) break;
    picked.push(job);
  }
  return picked;
}
