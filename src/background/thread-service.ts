// The work of the lock thread: it holds one connection per store, renews all sessions of the process, sweeps for their queues, and
// watches the main loop. It exchanges messages with ThreadRenewer. User code never runs here.
import type { MessagePort } from 'node:worker_threads';
import { HoldfastError, toError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import type { SessionEnd, SessionRef } from '../store/contract/index.js';
import { BlockWatch } from './block-watch.js';
import type { FromThread, PlainError, ThreadData, ToThread } from './messages.js';
import { SessionMemory } from '../session/session-memory.js';
import { ThreadStore } from './thread-store.js';
import { Watchdog } from './watchdog.js';

export class ThreadService {
  readonly #port: MessagePort;
  readonly #handedBack: Int32Array;
  readonly #watchdog: Watchdog;
  readonly #blocks = new BlockWatch(systemClock);
  readonly #stores = new Map<string, ThreadStore>();
  readonly #storeOf = new Map<string, ThreadStore>();
  /** Sessions of workers that were closed by force: no longer renewed, handed back at exit. */
  readonly #retired = new Map<string, { store: ThreadStore; ref: SessionRef }>();

  constructor(port: MessagePort, { beat, handedBack, noStack }: ThreadData) {
    this.#port = port;
    this.#handedBack = new Int32Array(handedBack);
    this.#watchdog = new Watchdog(beat, systemClock, {
      onBeat: () => {
        for (const store of this.#stores.values()) store.beat();
      },
      onBlocking: () => this.#blocks.begin(noStack ?? (this.#watchdog.isDebugged ? 'a debugger is attached' : undefined)),
      onOver: (blockedMs, endedAt, isLong) => {
        const seen = this.#blocks.end(endedAt);
        if (!isLong) return;
        for (const sessionId of this.#storeOf.keys())
          this.#send({ type: 'blocked', sessionId, blockedMs, ceiling: false, ...seen(sessionId) });
      },
    });
    port.on('message', (message: ToThread) => this.#receive(message));
  }

  #receive(message: ToThread): void {
    switch (message.type) {
      case 'keep':
        this.#keep(message);
        break;
      case 'grow':
        this.#storeOf.get(message.sessionId)?.grow(message.sessionId, message.block);
        break;
      case 'limit':
        this.#storeOf.get(message.sessionId)?.limit(message.sessionId, message.limit);
        break;
      case 'unlimit':
        this.#storeOf.get(message.sessionId)?.unlimit(message.token);
        break;
      case 'watchAhead':
        this.#storeOf.get(message.sessionId)?.watchAhead(message.sessionId);
        break;
      case 'detach':
        this.#storeOf.get(message.sessionId)?.detach(message.sessionId, message.locks);
        break;
      case 'release':
        void this.#release(message);
        break;
      case 'handBack':
        void this.#handBack(message.how);
        break;
    }
  }

  #send(message: FromThread): void {
    this.#port.postMessage(message);
  }

  #keep({ plan, buffers, descriptor }: ToThread & { type: 'keep' }): void {
    const key = JSON.stringify(descriptor);
    let store = this.#stores.get(key);
    if (store === undefined) {
      store = new ThreadStore(descriptor);
      this.#stores.set(key, store);
    }
    const sessionId = plan.id;
    this.#storeOf.set(sessionId, store);
    const memory = new SessionMemory(buffers);
    this.#blocks.keep(plan, memory);
    let overCeiling = false;
    store.keep(memory, plan, {
      mayRenew: () => {
        if (plan.maxBlockedMs === 0) return true;
        const blockedMs = this.#watchdog.blockedMs();
        const over = blockedMs > plan.maxBlockedMs;
        if (over && !overCeiling) this.#send({ type: 'blocked', sessionId, blockedMs, ceiling: true });
        overCeiling = over;
        return !over;
      },
      renewed: () => this.#send({ type: 'renewed', sessionId }),
      noticed: (notices) => this.#send({ type: 'noticed', sessionId, notices }),
      // The session stays listed until the worker releases it: only then is the connection known to be unused.
      lost: () => this.#send({ type: 'lost', sessionId }),
      swept: (reply) => this.#send({ type: 'swept', sessionId, reply }),
      undone: () => this.#send({ type: 'undone', sessionId }),
      failed: (error, what) => this.#send({ type: 'failed', sessionId, what, error: plain(error) }),
    });
  }

  async #release({ sessionId, handBackAtExit }: ToThread & { type: 'release' }): Promise<void> {
    const store = this.#storeOf.get(sessionId) ?? this.#retired.get(sessionId)?.store;
    this.#storeOf.delete(sessionId);
    this.#retired.delete(sessionId);
    this.#blocks.release(sessionId);
    if (store !== undefined) {
      const ref = store.release(sessionId);
      if (handBackAtExit && ref !== undefined) this.#retired.set(sessionId, { store, ref });
      else await this.#closeIfUnused(store);
    }
    this.#send({ type: 'released', sessionId });
  }

  async #closeIfUnused(store: ThreadStore): Promise<void> {
    if (store.size > 0 || this.#retiredOf(store).length > 0) return;
    for (const [key, candidate] of this.#stores) if (candidate === store) this.#stores.delete(key);
    await store.close().catch(() => undefined);
  }

  async #handBack(how: SessionEnd): Promise<void> {
    // The process would wait for an open session of its inspector.
    this.#blocks.stop();
    await Promise.allSettled([...this.#stores.values()].map((store) => store.handBack(this.#retiredOf(store), how)));
    Atomics.store(this.#handedBack, 0, 1);
    Atomics.notify(this.#handedBack, 0);
  }

  #retiredOf(store: ThreadStore): SessionRef[] {
    return [...this.#retired.values()].filter((entry) => entry.store === store).map(({ ref }) => ref);
  }
}

function plain(thrown: unknown): PlainError {
  const error = toError(thrown);
  const known = error instanceof HoldfastError;
  return { code: known ? error.code : 'STORE_FAILED', message: error.message, retryable: known && error.retryable };
}
