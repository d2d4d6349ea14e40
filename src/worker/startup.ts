// Starts a worker that run() was called on: opens the store and the session, and then lets the store loop claim jobs.
import { toError } from '../errors.js';
import { within } from '../runtime/within.js';
import type { Store } from '../store/contract/index.js';
import type { WorkerContext } from './context.js';
import type { Stations } from './stations.js';

/**
 * How long the first claim waits for the lock thread, in ms. A handler that blocks the event loop at once leaves its locks to a thread
 * that may not run yet; on a busy machine the thread's start takes longer than a short lock lasts. After this wait the event loop renews,
 * as without a thread. Locks that last at least twice as long survive such a start, so their worker does not wait: its first job would
 * start a quarter to three quarters of a second later on a busy machine.
 */
const RENEWER_TIMEOUT_MS = 3000;

/**
 * A store that refuses a setting of the worker ends the start: a worker that went on without a limit would break the limit, and one that
 * waited would look healthy and take no job. The worker is idle again, and `run()` may be called again.
 */
export async function startOrRefuse(stations: Stations): Promise<void> {
  const { emitter, lifecycle, owner } = stations.context;
  try {
    await startUp(stations);
  } catch (thrown) {
    const error = toError(thrown);
    lifecycle.refused(error);
    // The session stays open, and must not count as one that takes jobs.
    owner.slots = 0;
    emitter.emit('error', error);
  }
}

async function startUp({ context, storeLoop }: Stations): Promise<void> {
  const { calls, emitter, lifecycle, slots, opts } = context;
  // An empty call opens the store and the session, and is retried until they are open.
  try {
    await calls.perform([]);
  } catch (error) {
    if (!lifecycle.isClosing) throw error;
  }
  if (lifecycle.isClosing) return;
  const store = await openStore(context);
  await context.queueSetup.set();
  if (lifecycle.isClosing) return;
  if (store.capabilities.inline) {
    slots.concurrency = Number.MAX_SAFE_INTEGER;
    slots.prefetch = 0;
  }
  storeLoop.attach(store);
  lifecycle.attached();
  emitter.emit('ready');
  const { skipLockRenewal, lockDuration } = opts;
  if (!skipLockRenewal && lockDuration < 2 * RENEWER_TIMEOUT_MS) await within(RENEWER_TIMEOUT_MS, lifecycle.renewerKnown);
  lifecycle.started();
  // A listener may have closed or paused the worker.
  if (lifecycle.state === 'running') storeLoop.startClaiming();
}

export async function openStore(context: WorkerContext): Promise<Store> {
  const store = await context.ready();
  context.health.opened(store);
  return store;
}
