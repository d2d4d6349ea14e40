// Removes and moves jobs in large numbers. It works in chunks, so that no call blocks a store for long. It handles no more jobs than there
// were at the start. Otherwise a queue that fills as fast as it is emptied would keep the caller for ever.
import { HoldfastError } from '../errors.js';
import { MAX_DELAY_MS, checkBoolean, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { batchOf } from '../store/capabilities.js';
import type { ListName, Store } from '../store/contract/index.js';
import { readList } from '../store/client/read-on.js';

export const CHUNK = 500;

export type CleanType = 'completed' | 'failed' | 'delayed' | 'active' | 'wait' | 'waiting' | 'paused' | 'prioritized';

export async function drain(store: Store, queue: string, delayed: boolean): Promise<void> {
  const { counts } = await store.status(queue);
  await clearAll(store, queue, ['waiting'], counts.waiting + counts.prioritized);
  if (delayed) await clearAll(store, queue, ['delayed'], counts.delayed);
}

/** Returns the ids of the removed jobs: those that finished, ran or were made (the first that is known) at least `grace` ms ago. */
export async function clean(store: Store, queue: string, grace: number, limit: number, type: CleanType): Promise<string[]> {
  checkInteger('grace', grace, { max: MAX_DELAY_MS });
  checkInteger('limit', limit);
  const max = limit === 0 ? Number.POSITIVE_INFINITY : limit;
  const { gone, told } = await cleanType(store, queue, grace, max, type);
  if (!told) await store.clear(queue, { states: [], limit: 0, removed: gone.length });
  return gone;
}

/** `told`: the store has already recorded the event. */
async function cleanType(
  store: Store,
  queue: string,
  grace: number,
  max: number,
  type: CleanType,
): Promise<{ gone: string[]; told: boolean }> {
  const listed = async (list: ListName) => ({ gone: await removeListed(store, queue, list, grace, max), told: false });
  switch (type) {
    case 'completed':
    case 'failed':
    case 'delayed':
    case 'active': {
      const { counts } = await store.status(queue);
      const gone = await clearAll(store, queue, [type], Math.min(max, counts[type]), grace);
      return { gone, told: gone.length > 0 };
    }
    case 'wait':
    case 'waiting':
      return listed('waiting');
    case 'paused':
      return (await store.status(queue)).paused ? listed('waiting') : { gone: [], told: false };
    case 'prioritized':
      return listed('prioritized');
    default:
      throw invalidOption('type', type, 'completed, failed, delayed, active, wait, paused or prioritized');
  }
}

export interface RequeueOptions {
  /** Jobs per step. Default and maximum 500. */
  count?: number;
  state?: 'completed' | 'failed';
  /** Only jobs that finished before this moment, in ms since the epoch. */
  timestamp?: number;
}

const REQUEUE_NAMES = new OptionNames<RequeueOptions>({ of: 'retryJobs', known: { count: true, state: true, timestamp: true } });

export async function retryJobs(store: Store, queue: string, options: RequeueOptions): Promise<void> {
  const { count = CHUNK, state = 'failed', timestamp } = REQUEUE_NAMES.checked(options);
  if (state !== 'failed' && state !== 'completed') throw invalidOption('state', state, "'failed' or 'completed'");
  if (timestamp !== undefined) checkInteger('timestamp', timestamp);
  const age = timestamp === undefined ? {} : { olderThanMs: Math.max(0, Date.now() - timestamp) };
  await requeueAll(store, queue, state, count, age);
}

const PROMOTE_NAMES = new OptionNames<{ count?: number }>({ of: 'promoteJobs', known: { count: true } });

export async function promoteJobs(store: Store, queue: string, options: { count?: number }): Promise<void> {
  const { count = CHUNK } = PROMOTE_NAMES.checked(options);
  await requeueAll(store, queue, 'delayed', count, {});
}

/** Removes everything, running jobs too with `force`. The workers that run them learn that their locks are lost. */
export async function obliterate(store: Store, queue: string, options: ObliterateOptions): Promise<void> {
  const { force = false, count = CHUNK } = OBLITERATE_NAMES.checked(options);
  checkBoolean('force', force);
  const limit = Math.min(checkInteger('count', count, { min: 1 }), CHUNK);
  const { paused } = await store.status(queue);
  // In a paused queue no job moves from waiting to active while we count.
  await store.pause(queue, true);
  const { counts } = await store.status(queue);
  if (counts.active > 0 && !force) {
    await store.pause(queue, paused);
    // Programs written for BullMQ match this text.
    throw new HoldfastError('QUEUE_ACTIVE', 'Cannot obliterate queue with active jobs', { queue });
  }
  const revoked = Math.min(limit, batchOf(store.capabilities));
  for (let left = counts.active; left > 0; left -= revoked) {
    const running = await readList(store, queue, { lists: ['active'], start: 0, end: revoked - 1, asc: true });
    await store.revoke(
      queue,
      running.map(({ id }) => id),
      'the queue was obliterated',
    );
  }
  const all = Object.values((await store.status(queue)).counts).reduce((sum, each) => sum + each, 0);
  await clearAll(store, queue, ['waiting', 'delayed', 'completed', 'failed'], all, undefined, limit);
  await store.forget(queue);
}

export interface ObliterateOptions {
  force?: boolean;
  /** Jobs per step. Default and maximum 500. */
  count?: number;
}

const OBLITERATE_NAMES = new OptionNames<ObliterateOptions>({ of: 'obliterate', known: { force: true, count: true } });

type Cleared = 'waiting' | 'delayed' | 'active' | 'completed' | 'failed';

async function clearAll(
  store: Store,
  queue: string,
  states: Cleared[],
  max: number,
  olderThanMs?: number,
  chunk = CHUNK,
): Promise<string[]> {
  const gone: string[] = [];
  while (gone.length < max) {
    const limit = Math.min(chunk, max - gone.length);
    const ids = await store.clear(queue, { states, limit, ...(olderThanMs === undefined ? {} : { olderThanMs }) });
    gone.push(...ids);
    if (ids.length < limit) break;
  }
  return gone;
}

async function requeueAll(
  store: Store,
  queue: string,
  state: Cleared,
  chunk: number,
  age: { olderThanMs?: number },
): Promise<void> {
  const step = Math.min(checkInteger('count', chunk, { min: 1 }), CHUNK);
  const { counts } = await store.status(queue);
  for (let left = counts[state]; left > 0; ) {
    const limit = Math.min(step, left);
    const moved = await store.requeue(queue, { states: [state], limit, ...age });
    left -= moved;
    if (moved < limit) return;
  }
}

/**
 * Removes the jobs of one list. A store selects waiting jobs whatever their priority, so jobs with and without one are distinguished by
 * their lists. The age counts since the job finished, ran or was made, the first that is known. If a worker takes a job between the read
 * and the removal, the job is locked, and stays.
 */
async function removeListed(store: Store, queue: string, list: ListName, grace: number, max: number): Promise<string[]> {
  const gone: string[] = [];
  const latest = Date.now() - grace;
  const step = Math.min(CHUNK, batchOf(store.capabilities));
  let kept = 0;
  for (let left = (await store.status(queue)).counts[list]; left > 0 && gone.length < max; left -= step) {
    const page = await readList(store, queue, { lists: [list], start: kept, end: kept + step - 1, asc: true });
    const old = page.filter((job) => (job.finishedOn ?? job.processedOn ?? job.timestamp) <= latest).slice(0, max - gone.length);
    const statuses = await store.remove(
      queue,
      old.map(({ id }) => id),
    );
    const removed = old.filter((_, index) => statuses[index] === 'done').map(({ id }) => id);
    gone.push(...removed);
    kept += page.length - removed.length;
  }
  return gone;
}
