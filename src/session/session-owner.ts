// Owns the current session of a worker or lock client. It opens the session, hands it to a renewer, and opens a new one after the
// store has ended it.
import { HoldfastError, isError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import { inTime } from '../runtime/within.js';
import type { Store } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { StoreLease } from '../store/open.js';
import { InstanceWatch } from './instance-watch.js';
import type { DetachedLocks, Renewer, RenewerListener, Renewers, RunLimit, SessionPlan } from './renewer.js';
import type { CheckedSessionOptions } from './session-options.js';
import { Session } from './session.js';

export interface SessionOwnerOptions {
  queue: string;
  lease: StoreLease;
  /** Shown as the owner's name wherever the holder of a lock is listed. */
  name: string;
  sessionOptions: CheckedSessionOptions;
  renewers: Renewers;
  durationMs: number;
  /** Time between renewals, in ms. 0: the sessions are not renewed. */
  renewMs: number;
  /** How many jobs the owner can run at once. */
  slots: number;
  /** Of workers: whether the stack of a blocked event loop is taken. */
  blockedStack?: boolean;
  /** Returns the listener for a new session. */
  listenerFor(session: Session): RenewerListener;
  onError(error: Error): void;
}

/** A store may take this long to reply, however short the locks are. */
const MIN_TIMEOUT_MS = 1000;

export class SessionOwner {
  readonly #options: SessionOwnerOptions;
  #session: Session | undefined;
  #opening: Promise<Session> | undefined;
  #renewer: Renewer | undefined;
  /** True once it was reported that the thread cannot use the connection. Reported once, not for each session. */
  #isReported = false;
  #slots: number;
  #instances: InstanceWatch | undefined;

  constructor(options: SessionOwnerOptions) {
    this.#options = options;
    this.#slots = options.slots;
  }

  get current(): Session | undefined {
    return this.#session;
  }

  /** Returns the current session, or opens a new one. */
  async session(): Promise<Session> {
    if (this.#session !== undefined) return this.#session;
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** How many jobs the owner can run at once. The next renewal sends the number to the store. */
  set slots(slots: number) {
    this.#slots = slots;
    if (this.#session !== undefined) this.#session.memory.slots = slots;
  }

  /** The store no longer knows this session; the next call gets a new one. */
  drop(session: Session): void {
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#instances?.stop();
    void this.#renewer?.release(session.id, false);
  }

  grow(session: Session, block: SharedArrayBuffer): void {
    this.#renewer?.grow(session.id, block);
  }

  /** The session has jobs that were claimed ahead. */
  watchAhead(session: Session): void {
    if (session.memory.watch()) this.#renewer?.watchAhead(session.id);
  }

  limit(session: Session, limit: RunLimit): void {
    this.#renewer?.limit(session.id, limit);
  }

  unlimit(session: Session, token: string): void {
    this.#renewer?.unlimit(session.id, token);
  }

  detach(session: Session, locks: DetachedLocks): void {
    if (this.#session === session) this.#renewer?.detach(session.id, locks);
  }

  /** Stops renewing. The locks expire on their own, or are handed back when the process exits. */
  async retire(): Promise<void> {
    this.#instances?.stop();
    if (this.#session !== undefined) await this.#renewer?.release(this.#session.id, true);
  }

  /** Ends the session at once. The store hands back its jobs and locks. */
  async close(): Promise<void> {
    await this.#opening?.catch(() => undefined);
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    this.#instances?.stop();
    await this.#renewer?.release(session.id, false);
    const store = await this.#options.lease.ready();
    await store.closeSessions([{ queue: session.queue, id: session.id }], 'closed');
  }

  async #open(): Promise<Session> {
    const { queue, lease, name, sessionOptions, durationMs, onError } = this.#options;
    const store = await lease.ready();
    const { maxStalledCount: maxStalls, crashGraceMs: graceMs, instanceId } = sessionOptions;
    const instance = instanceId === undefined ? {} : { instance: instanceId };
    const settings = { queue, name, durationMs, maxStalls, graceMs, slots: this.#slots, ...instance };
    // After a timeout the next call opens another session. If the store did open this one, it holds nothing and expires by itself.
    const session = await inTime(
      Math.max(MIN_TIMEOUT_MS, durationMs),
      Session.open(store, settings, systemClock),
      () => new HoldfastError('TIMEOUT', 'The store did not answer the opening of a session.', { queue, retryable: true }),
    );
    this.#session = session;
    await this.#keep(session, store);
    // Only an instance id that the user gave can be in use twice.
    if (instanceId !== undefined) this.#instances = new InstanceWatch({ store, queue, instanceId, lookMs: durationMs, onError });
    return session;
  }

  async #keep(session: Session, store: Store): Promise<void> {
    const { sessionOptions, renewers, renewMs, listenerFor, blockedStack } = this.#options;
    const plan: SessionPlan = {
      queue: session.queue,
      id: session.id,
      durationMs: session.durationMs,
      renewMs,
      sweepMs: sessionOptions.skipStalledCheck ? 0 : sessionOptions.stalledInterval,
      graceMs: session.graceMs,
      maxBlockedMs: sessionOptions.maxBlockedMs,
      ...(blockedStack === undefined ? {} : { blockedStack }),
    };
    const descriptor = await this.#describe();
    const renewer = descriptor === undefined ? renewers.onLoop() : renewers.inThread(sessionOptions.lockThreadEntry);
    this.#renewer = renewer;
    const listener = listenerFor(session);
    if (descriptor === undefined) listener.threaded(false);
    renewer.keep({ plan, memory: session.memory, store, listener, ...(descriptor === undefined ? {} : { descriptor }) });
  }

  async #describe(): Promise<StoreDescriptor | undefined> {
    const { lease, sessionOptions, onError } = this.#options;
    if (!sessionOptions.useDedicatedLockThread) return undefined;
    try {
      return await lease.describe();
    } catch (error) {
      if (this.#isReported) return undefined;
      this.#isReported = true;
      const text = isError(error) ? error.message : String(error);
      const message = `Failed to initialize dedicated lock thread: ${text} Locks are renewed on the event loop instead.`;
      onError(new HoldfastError('THREAD_FAILED', message, { cause: error }));
      return undefined;
    }
  }
}
