// The worker's hold on the store: its current session, given to a keeper, and replaced by a new one when the store has ended it.
import { HoldfastError } from '../errors.js';
import { keeperInThread, keeperOnLoop } from '../lock/keepers.js';
import type { Keeper, KeeperListener, SessionPlan } from '../lock/keeper.js';
import { Session } from '../lock/session.js';
import { systemClock } from '../runtime/clock.js';
import type { Store } from '../store/contract.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { StoreLease } from '../store/open.js';
import type { CheckedWorkerOptions } from './options.js';

export interface TenureOptions {
  queue: string;
  lease: StoreLease;
  options: CheckedWorkerOptions;
  /** The listener of a new session. */
  listenerFor(session: Session): KeeperListener;
  onError(error: Error): void;
}

export class Tenure {
  readonly #options: TenureOptions;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;
  #keeper: Keeper | undefined;

  constructor(options: TenureOptions) {
    this.#options = options;
  }

  get current(): Session | undefined {
    return this.#session;
  }

  /** The current session, or a new one. */
  async session(): Promise<Session> {
    if (this.#session !== undefined) return this.#session;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** The store no longer knows this session; the next call gets a new one. */
  drop(session: Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    void this.#keeper?.release(session.id, false);
  }

  grow(session: Session, block: SharedArrayBuffer): void {
    this.#keeper?.grow(session.id, block);
  }

  /** Stops renewing. The locks end on their own, or are handed back when the process exits. */
  async retire(): Promise<void> {
    if (this.#session !== undefined) await this.#keeper?.release(this.#session.id, true);
  }

  /** Lets go of the session. With `handBack`, it ends at once and what it holds goes back; else it lapses by itself. */
  async close(handBack: boolean): Promise<void> {
    await this.#opening?.catch(() => undefined);
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    await this.#keeper?.release(session.id, false);
    if (!handBack) return;
    const store = await this.#options.lease.ready();
    await store.closeSessions([{ queue: session.queue, id: session.id }], false);
  }

  async #open(): Promise<Session> {
    const { queue, lease, options } = this.#options;
    const store = await lease.ready();
    const { name, lockDuration: durationMs, maxStalledCount: maxStalls } = options;
    const session = await Session.open(store, { queue, name, durationMs, maxStalls }, systemClock);
    this.#session = session;
    await this.#keep(session, store);
    return session;
  }

  async #keep(session: Session, store: Store): Promise<void> {
    const { options, listenerFor } = this.#options;
    const plan: SessionPlan = {
      queue: session.queue,
      id: session.id,
      durationMs: session.durationMs,
      renewMs: options.skipLockRenewal ? 0 : options.lockRenewTime,
      sweepMs: options.skipStalledCheck ? 0 : options.stalledInterval,
      graceMs: options.crashGraceMs,
      maxBlockedMs: options.maxBlockedMs,
    };
    const descriptor = await this.#describe();
    const keeper = descriptor === undefined ? keeperOnLoop() : keeperInThread(options.lockThreadEntry);
    this.#keeper = keeper;
    const listener = listenerFor(session);
    if (descriptor === undefined) listener.threaded(false);
    keeper.keep({ plan, memory: session.memory, store, listener, ...(descriptor === undefined ? {} : { descriptor }) });
  }

  async #describe(): Promise<StoreDescriptor | undefined> {
    const { lease, options, onError } = this.#options;
    if (!options.useDedicatedLockThread) return undefined;
    try {
      return await lease.describe();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      const message = `Failed to initialize dedicated lock thread: ${text} Locks are renewed on the event loop instead.`;
      onError(new HoldfastError('THREAD_FAILED', message, { cause: error }));
      return undefined;
    }
  }
}
