// The memory store keeps everything in this process and loses it when the process ends. It serves tests and single processes. The
// other engines are compared with it, so it implements each sentence of the contract in the plainest way.
// The rest of Holdfast calls the memory store only through the contract. A verb does all its work before it returns its promise.
// That makes the verb atomic, so no verb may ever await. The store shares no object with its callers: it copies on the way in and
// out.
import { HoldfastError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { JobRecord, NewJob } from '../../job/record.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import { fakedNow, onFakeTimer } from '../../runtime/faked-time.js';
import { type Capabilities, refuseTransaction } from '../capabilities.js';
import type * as contract from '../contract/index.js';
import type { StoreDescriptor } from '../descriptor.js';
import { add } from './add.js';
import { change } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import * as inspect from './inspect.js';
import * as lock from './lock.js';
import * as named from './named-lock.js';
import * as session from './session.js';
import { settle } from './settle.js';
import { QueueState } from './state.js';

export interface MemoryStoreOptions {
  clock?: Clock;
  /**
   * Calls that a worker may have in flight. Default 1: calls never wait in this store, so a second lane only costs. Tests of
   * parallel lanes set 2.
   */
  lanes?: number;
}

export class MemoryStore implements contract.Store {
  readonly capabilities: Capabilities;
  readonly #queues = new Map<string, QueueState>();
  readonly #clock: Clock;
  readonly #epoch: number;
  readonly #mayBeFaked: boolean;
  /** Milliseconds by which a faked clock is ahead of the genuine clock. */
  #shift = 0;
  readonly #alarms = new Map<QueueState, () => void>();
  #closed = false;

  constructor({ clock, lanes = 1 }: MemoryStoreOptions = {}) {
    this.capabilities = {
      engine: 'memory',
      shared: false,
      durable: false,
      crashHints: false,
      inline: false,
      transactions: false,
      lanes,
    };
    this.#clock = clock ?? systemClock;
    this.#mayBeFaked = clock === undefined;
    // Read once, so a step of the wall clock does not move the store's time.
    this.#epoch = this.#clock.wall() - this.#clock.monotonic();
  }

  describe(): StoreDescriptor | undefined {
    return undefined;
  }

  async open(): Promise<void> {
    this.#checkOpen();
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const cancel of this.#alarms.values()) cancel();
    this.#alarms.clear();
    for (const queue of this.#queues.values()) queue.wake.clear();
    this.#queues.clear();
  }

  async add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    refuseTransaction(this.capabilities.engine, transaction);
    return this.#write(queue, (state, now) => add(state, jobs, call, now));
  }

  async claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    const reply = this.#write(queue, (state, now) => claim(state, request, now));
    this.#wakeWhenDue(this.state(queue), reply);
    return reply;
  }

  async settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    request?: contract.ClaimRequest,
  ): Promise<contract.SettleReply> {
    const reply = this.#write(queue, (state, now) => settle(state, outcomes, call, request, now));
    if (reply.claimed !== undefined) this.#wakeWhenDue(this.state(queue), reply.claimed);
    return reply;
  }

  async openSession(opened: contract.NewSession): Promise<void> {
    this.#write(opened.queue, (state, now) => session.openSession(state, opened, now));
  }

  async renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    this.#checkOpen();
    return renewals.map((renewal) => this.#write(renewal.queue, (state, now) => session.renew(state, renewal, now)));
  }

  async closeSessions(sessions: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    this.#checkOpen();
    for (const { queue, id } of sessions) this.#write(queue, (state, now) => session.closeSession(state, id, how, now));
  }

  async sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    return this.#write(queue, (state, now) => session.sweep(state, limit, now));
  }

  async probe(queue: string): Promise<contract.ProbeReply> {
    return this.#write(queue, (state) => session.probe(state));
  }

  async checkSessions(sessions: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    this.#checkOpen();
    return sessions.map(({ queue, id }) => ({ unsuspected: session.isLiving(this.state(queue), id, this.now()) }));
  }

  async extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    return this.#write(queue, (state, now) => extensions.map((extension) => lock.extend(state, extension, now)));
  }

  async acquire(queue: string, wishes: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    return this.#write(queue, (state, now) => wishes.map((wish) => named.acquire(state, wish, now)));
  }

  async letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    return this.#write(queue, (state, now) => locks.map((ref) => named.letGo(state, ref, now)));
  }

  async configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    this.#write(queue, (state, now) => control.configure(state, settings, now));
  }

  async write(queue: string, writes: contract.Write[]): Promise<contract.WriteReply[]> {
    return this.#write(queue, (state) => writes.map((write) => control.write(state, write)));
  }

  async change(queue: string, target: string[] | contract.Selection, what: contract.Change): Promise<contract.ChangeReply> {
    return this.#write(queue, (state, now) => change(state, target, what, now));
  }

  async forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    return this.#write(queue, (state) => control.forget(state, what));
  }

  async queues(limit: number, after?: string): Promise<string[]> {
    this.#checkOpen();
    return inspect.queues(this.#queues, limit, after);
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  async jobs(queue: string, query: string[] | contract.ListQuery): Promise<contract.JobsReply> {
    return inspect.jobs(this.state(queue), query);
  }

  async status(queue: string): Promise<contract.QueueStatus> {
    return inspect.status(this.state(queue), this.now());
  }

  async logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): ReturnType<contract.Store['logs']> {
    return inspect.logs(this.state(queue), jobId, range);
  }

  async events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return this.state(queue).log.read(after, limit);
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  async locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    return inspect.locks(this.state(queue), query, this.now());
  }

  async sessions(queue: string): Promise<contract.SessionInfo[]> {
    return inspect.sessions(this.state(queue), queue, this.now());
  }

  /** Never calls a listener: this store has no server whose settings could be wrong. */
  onWarning(): () => void {
    return () => undefined;
  }

  watch(queue: string, listener: () => void): () => void {
    return this.state(queue).wake.watch(listener);
  }

  /** Returns the store's epoch ms with fractions, because rounding could make a session expire early. */
  protected now(): number {
    const time = this.#clock.monotonic() + this.#epoch;
    return this.#mayBeFaked ? this.#follow(time) : time;
  }

  /**
   * If a test has faked the clock, the faked clock decides when delays, rate limits and ages end. Sessions and locks are renewed on
   * the genuine clock and keep living by it, so their ends move along with the faked clock.
   */
  #follow(time: number): number {
    const faked = fakedNow();
    const shift = faked === undefined ? 0 : faked - time;
    if (shift !== this.#shift) {
      for (const queue of this.#queues.values()) queue.moveEnds(shift - this.#shift);
      this.#shift = shift;
    }
    return time + shift;
  }

  /**
   * Workers wait for delays on genuine timers, which fire too late when a test moves a faked clock. A fake timer wakes them
   * instead.
   */
  #wakeWhenDue(state: QueueState, { nextInMs }: contract.ClaimReply): void {
    if (!this.#mayBeFaked || nextInMs === undefined) return;
    this.#alarms.get(state)?.();
    this.#alarms.delete(state);
    const cancel = onFakeTimer(nextInMs, () => state.wake.signal());
    if (cancel !== undefined) this.#alarms.set(state, cancel);
  }

  protected state(queue: string): QueueState {
    this.#checkOpen();
    let state = this.#queues.get(queue);
    if (state === undefined) {
      state = new QueueState();
      this.#queues.set(queue, state);
    }
    return state;
  }

  /** Called after every verb that may have changed the queue. `SyncStore` overrides it. */
  protected changed(_state: QueueState): void {}

  #write<T>(queue: string, work: (state: QueueState, now: number) => T): T {
    const state = this.state(queue);
    const lastEvent = state.log.last;
    const result = work(state, this.now());
    if (state.log.last !== lastEvent) state.wake.signal();
    this.changed(state);
    return result;
  }

  #checkOpen(): void {
    if (this.#closed) {
      const { engine } = this.capabilities;
      throw new HoldfastError('STORE_CLOSED', `The ${engine} store was closed: open a new one.`, { store: engine });
    }
  }
}
