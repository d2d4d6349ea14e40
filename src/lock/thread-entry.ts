// The lock thread. Started once per process by ThreadKeeper; holds one connection per store, renews all sessions of the process, sweeps
// for their queues and watches the main loop. No user code runs here.
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { HoldfastError, toError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import type { SessionRef } from '../store/contract.js';
import type { FromThread, PlainError, ThreadData, ToThread } from './messages.js';
import { SessionMemory } from './session-memory.js';
import { ThreadStore } from './thread-store.js';
import { Watchdog } from './watchdog.js';

if (isMainThread || parentPort === null) {
  throw new HoldfastError('THREAD_FAILED', 'holdfast/lock-thread is the entry file of the lock thread and cannot be imported.');
}

const port = parentPort;
const { beat, handedBack } = workerData as ThreadData;
const stores = new Map<string, ThreadStore>();
const storeOf = new Map<string, ThreadStore>();
/** Of workers that were closed by force: no longer renewed, handed back at exit. */
const retired = new Map<string, { store: ThreadStore; ref: SessionRef }>();

const watchdog = new Watchdog(beat, systemClock, (blockedMs) => {
  for (const store of stores.values()) {
    for (const sessionId of store.sessionIds()) send({ type: 'blocked', sessionId, blockedMs, ceiling: false });
  }
});

function send(message: FromThread): void {
  port.postMessage(message);
}

function plain(thrown: unknown): PlainError {
  const error = toError(thrown);
  const known = error instanceof HoldfastError;
  return { code: known ? error.code : 'STORE_FAILED', message: error.message, retryable: known && error.retryable };
}

function keep(message: ToThread & { type: 'keep' }): void {
  const { plan, buffers, descriptor } = message;
  const key = JSON.stringify(descriptor);
  let store = stores.get(key);
  if (store === undefined) {
    store = new ThreadStore(descriptor);
    stores.set(key, store);
  }
  storeOf.set(plan.id, store);
  const sessionId = plan.id;
  let overCeiling = false;
  store.keep(new SessionMemory(buffers), plan, {
    mayRenew: () => {
      if (plan.maxBlockedMs === 0) return true;
      const blockedMs = watchdog.blockedMs();
      const over = blockedMs > plan.maxBlockedMs;
      if (over && !overCeiling) send({ type: 'blocked', sessionId, blockedMs, ceiling: true });
      overCeiling = over;
      return !over;
    },
    renewed: () => send({ type: 'renewed', sessionId }),
    revoked: (revocations) => send({ type: 'revoked', sessionId, revocations }),
    lost: () => {
      storeOf.delete(sessionId);
      send({ type: 'lost', sessionId });
    },
    swept: (reply) => send({ type: 'swept', sessionId, reply }),
    failed: (error, opening) => send({ type: 'failed', sessionId, opening, error: plain(error) }),
  });
}

async function release({ sessionId, handBackAtExit }: ToThread & { type: 'release' }): Promise<void> {
  const store = storeOf.get(sessionId) ?? retired.get(sessionId)?.store;
  storeOf.delete(sessionId);
  retired.delete(sessionId);
  if (store !== undefined) {
    const ref = store.release(sessionId);
    if (handBackAtExit && ref !== undefined) retired.set(sessionId, { store, ref });
    else await closeIfUnused(store);
  }
  send({ type: 'released', sessionId });
}

async function closeIfUnused(store: ThreadStore): Promise<void> {
  if (store.size > 0 || [...retired.values()].some((entry) => entry.store === store)) return;
  for (const [key, candidate] of stores) if (candidate === store) stores.delete(key);
  await store.close().catch(() => undefined);
}

async function handBack(charged: boolean): Promise<void> {
  const late = [...stores.values()].map((store) => {
    const refs = [...retired.values()].filter((entry) => entry.store === store).map(({ ref }) => ref);
    return store.handBack(refs, charged);
  });
  await Promise.allSettled(late);
  const word = new Int32Array(handedBack);
  Atomics.store(word, 0, 1);
  Atomics.notify(word, 0);
}

port.on('message', (message: ToThread) => {
  switch (message.type) {
    case 'keep':
      keep(message);
      break;
    case 'grow':
      storeOf.get(message.sessionId)?.grow(message.sessionId, message.block);
      break;
    case 'release':
      void release(message);
      break;
    case 'handBack':
      void handBack(message.charged);
      break;
  }
});
