// Removes and moves jobs in large numbers. It works in chunks, so that no call blocks a store for long. It handles no more jobs than there
// were at the start. Otherwise a queue that fills as fast as it is emptied would keep the caller for ever.
import { HoldfastError } from '../errors.js';
import { MAX_DELAY_MS, checkBoolean, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { batchOf } from '../store/capabilities.js';
import type { BulkChange, ListName, Selection, Store } from '../store/contract/index.js';
import { readList } from '../store/client/read-on.js';

export const CHUNK = 500;

type Removal = Extract<BulkChange, { kind: 'remove' }>;

/** As in BullMQ, a parent in the same queue is removed with its last pending child. */
const WITH_PARENT: Removal = { kind: 'remove', parentToo: true };

export type CleanType =
  | 'completed'
  | 'failed'
  | 'delayed'
  | 'active'
  | 'wait'
  | 'waiting'
  | 'paused'
  | 'prioritized'
  | 'waiting-children';

export async function drain(store: Store, queue: string, delayed: boolean): Promise<void> {
  const { counts } = await store.status(queue);
  const waiting = counts.waiting + counts.prioritized;
  if (waiting > 0) await removeAll(store, queue, { lists: ['waiting', 'prioritized'], max: waiting }, WITH_PARENT);
  if (delayed && counts.delayed > 0) await removeAll(store, queue, { lists: ['delayed'], max: counts.delayed }, WITH_PARENT);
}

/** Returns the ids of the removed jobs: those that finished, last started or were added (the first that is known) at least `grace` ms ago. */
export async function clean(store: Store, queue: string, grace: number, limit: number, type: CleanType): Promise<string[]> {
  checkInteger('grace', grace, { max: MAX_DELAY_MS });
  checkInteger('limit', limit);
  const { counts, paused } = await store.status(queue);
  const list = listOf(type, paused);
  const size = list === undefined ? 0 : counts[list];
  const selection = {
    lists: list === undefined ? [] : [list],
    max: limit === 0 ? size : Math.min(limit, size),
    // Every job is at least 0 ms old.
    ...(grace > 0 && { olderThanMs: grace }),
  };
  return removeAll(store, queue, selection, WITH_PARENT);
}

/** Returns undefined for jobs of a paused queue if the queue is not paused: there are none. */
function listOf(type: CleanType, paused: boolean): ListName | undefined {
  switch (type) {
    case 'completed':
    case 'failed':
    case 'delayed':
    case 'active':
    case 'prioritized':
    case 'waiting-children':
      return type;
    case 'wait':
    case 'waiting':
      return 'waiting';
    case 'paused':
      return paused ? 'waiting' : undefined;
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
  await moveAll(store, queue, { lists: [state], ...age }, count, {
    kind: 'retry',
    from: state,
    resetAttemptsMade: false,
    resetAttemptsStarted: false,
  });
}

const PROMOTE_NAMES = new OptionNames<{ count?: number }>({ of: 'promoteJobs', known: { count: true } });

export async function promoteJobs(store: Store, queue: string, options: { count?: number }): Promise<void> {
  const { count = CHUNK } = PROMOTE_NAMES.checked(options);
  await moveAll(store, queue, { lists: ['delayed'] }, count, { kind: 'promote' });
}

/** Removes everything, running jobs too with `force`. The workers that run them learn that their locks are lost. */
export async function obliterate(store: Store, queue: string, options: ObliterateOptions): Promise<void> {
  const { force = false, count = CHUNK } = OBLITERATE_NAMES.checked(options);
  checkBoolean('force', force);
  const limit = Math.min(checkInteger('count', count, { min: 1 }), CHUNK);
  const { paused } = await store.status(queue);
  // In a paused queue no job moves from waiting to active while we count.
  await store.configure(queue, { paused: true });
  const { counts } = await store.status(queue);
  if (counts.active > 0 && !force) {
    await store.configure(queue, { paused });
    // Programs written for BullMQ match this text.
    throw new HoldfastError('QUEUE_ACTIVE', 'Cannot obliterate queue with active jobs', { queue });
  }
  const revoked = Math.min(limit, batchOf(store.capabilities));
  for (let left = counts.active; left > 0; left -= revoked) {
    const running = await readList(store, queue, { lists: ['active'], start: 0, end: revoked - 1, asc: true });
    const ids = running.map(({ id }) => id);
    await store.change(queue, ids, { kind: 'revoke', reason: 'the queue was obliterated' });
  }
  const all = Object.values((await store.status(queue)).counts).reduce((sum, each) => sum + each, 0);
  const lists: ListName[] = ['waiting', 'prioritized', 'delayed', 'completed', 'failed', 'waiting-children'];
  await removeAll(store, queue, { lists, max: all }, { kind: 'remove' }, limit);
  // Parents in other queues learn that their children are gone.
  while ((await store.relay(queue, CHUNK)).more);
  await store.forget(queue, { all: true });
}

export interface ObliterateOptions {
  force?: boolean;
  /** Jobs per step. Default and maximum 500. */
  count?: number;
}

const OBLITERATE_NAMES = new OptionNames<ObliterateOptions>({ of: 'obliterate', known: { force: true, count: true } });

/** Makes at least one call, so that the store records the end of a clean that finds nothing. Returns the ids of the removed jobs. */
async function removeAll(
  store: Store,
  queue: string,
  { max, ...selection }: Omit<Selection, 'limit'> & { max: number },
  removal: Removal,
  chunk = CHUNK,
): Promise<string[]> {
  const gone: string[] = [];
  for (;;) {
    const limit = Math.min(chunk, max - gone.length);
    const { changed, more } = await store.change(queue, { ...selection, limit }, removal);
    gone.push(...changed);
    if (!more || gone.length >= max) return gone;
  }
}

async function moveAll(
  store: Store,
  queue: string,
  selection: Omit<Selection, 'limit'>,
  chunk: number,
  change: BulkChange,
): Promise<void> {
  const step = Math.min(checkInteger('count', chunk, { min: 1 }), CHUNK);
  const { counts } = await store.status(queue);
  let left = selection.lists.reduce((sum, list) => sum + counts[list], 0);
  while (left > 0) {
    const { changed, more } = await store.change(queue, { ...selection, limit: Math.min(step, left) }, change);
    left -= changed.length;
    if (!more) return;
  }
}
