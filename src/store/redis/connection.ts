// The Redis store: many machines on one Redis, Valkey or Redis Cluster. It wires the parts of this folder to the store contract,
// through which alone the rest of Holdfast calls it. Every verb is one script (long lists: one per part), atomic on the server, on
// Redis' clock. The store must never send a call twice by itself: only the caller knows whether a call can be repeated.
import { HoldfastError, toError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { JobRecord, NewJob } from '../../job/record.js';
import { within } from '../../runtime/within.js';
import { type Capabilities, refuseTransaction } from '../capabilities.js';
import { replyById } from '../change-reply.js';
import type * as contract from '../contract/index.js';
import type { StoreDescriptor } from '../descriptor.js';
import { add } from './add.js';
import { changeById, changeSelected } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import { readEvents } from './events.js';
import * as inspect from './inspect.js';
import * as lock from './lock.js';
import * as named from './named-lock.js';
import { checkOptions, type CheckedOptions, type RedisStoreOptions } from './options.js';
import { makeParts, type Parts } from './parts.js';
import { probe } from './probe.js';
import type { Server } from './server.js';
import * as session from './session.js';
import { settle } from './settle.js';
import { threadOptions } from './thread-options.js';
import { write } from './write.js';

/**
 * Outcomes and claims in one call. With 150, a call blocks Redis for about 2 ms. With 1,000 it was 12 ms, and the jobs per second differed
 * by less than the noise.
 */
const BATCH = 150;
/** How long `close` waits for earlier calls, in ms; at most the commandTimeout. */
const CLOSING_PATIENCE_MS = 5000;

export class RedisStore implements contract.Store {
  readonly driver = 'ioredis';
  readonly capabilities: Capabilities = {
    engine: 'redis',
    shared: true,
    durable: true,
    crashHints: true,
    fallibleHints: true,
    inline: false,
    transactions: false,
    batch: BATCH,
    lanes: 2,
  };
  readonly #options: CheckedOptions;
  readonly #calls = new Set<Promise<unknown>>();
  readonly #parts: Parts;
  #opening: Promise<void> | undefined;
  #open = false;
  #closing: Promise<void> | undefined;

  constructor(options: RedisStoreOptions = {}) {
    this.#options = checkOptions(options);
    this.#parts = makeParts(this.#options);
  }

  describe(): StoreDescriptor | undefined {
    return { engine: 'redis', options: threadOptions(this.#options) };
  }

  /** Version and settings of the server, as read when the store last connected; undefined before. */
  get server(): Server | undefined {
    return this.#parts.server;
  }

  /**
   * Reports settings under which Redis loses acknowledged writes: the current warnings at once, later ones at every new connection. Returns
   * a function that stops the reports.
   */
  onWarning(listener: (warning: HoldfastError) => void): () => void {
    return this.#parts.warnings.listen(listener);
  }

  async open(): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= this.#parts.link.open();
    try {
      await this.#opening;
      this.#open = true;
    } catch (error) {
      // The next call to `open` tries again: the server may be reachable then.
      this.#opening = undefined;
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { wake, link } = this.#parts;
    wake.close();
    await within(Math.min(CLOSING_PATIENCE_MS, this.#options.commandTimeout), Promise.allSettled(this.#calls));
    link.close();
  }

  async add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    refuseTransaction(this.capabilities.engine, transaction);
    return this.#each(jobs, ({ run, wake, registry }) => {
      if (!registry.isKnown(queue)) this.#register(queue);
      const added = add(run, queue, jobs, call);
      wake.sent(queue);
      return added;
    });
  }

  claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    return this.#call(({ run }) => claim(run, queue, request));
  }

  settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    request?: contract.ClaimRequest,
  ): Promise<contract.SettleReply> {
    if (outcomes.length === 0) return this.#settleNothing(queue, request);
    return this.#call(({ run }) => settle(run, queue, outcomes, call, request));
  }

  async #settleNothing(queue: string, request: contract.ClaimRequest | undefined): Promise<contract.SettleReply> {
    this.#use();
    return request === undefined ? { results: [] } : { results: [], claimed: await this.claim(queue, request) };
  }

  async openSession(opened: contract.NewSession): Promise<void> {
    this.#use();
    this.#register(opened.queue);
    return this.#call(async ({ run, presence }) => {
      await session.openSession(run, opened, presence.current);
      presence.vouchFor(opened.queue, opened.id);
    });
  }

  async renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    return this.#each(renewals, async ({ run, presence }) => {
      const replies = await session.renew(run, renewals, presence.current);
      renewals.forEach(({ queue, id }, index) => {
        if (replies[index]?.alive === true) presence.vouchFor(queue, id);
        else presence.forget(queue, id);
      });
      return replies;
    });
  }

  async closeSessions(sessions: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    if (sessions.length === 0) return void this.#use();
    return this.#call(async ({ run, presence }) => {
      await session.closeSessions(run, sessions, how);
      for (const { queue, id } of sessions) presence.forget(queue, id);
    });
  }

  async sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    return this.#call(({ run }) => session.sweep(run, queue, limit));
  }

  async probe(queue: string): Promise<contract.ProbeReply> {
    return this.#call(({ run, link }) => probe(run, link, queue));
  }

  async checkSessions(sessions: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    return this.#each(sessions, ({ run }) => session.checkSessions(run, sessions));
  }

  async extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    return this.#each(extensions, ({ run }) => lock.extend(run, queue, extensions));
  }

  async acquire(queue: string, wishes: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    return this.#each(wishes, ({ run }) => named.acquire(run, queue, wishes));
  }

  async letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    return this.#each(locks, ({ run }) => named.letGo(run, queue, locks));
  }

  async configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    return this.#call(({ run }) => control.configure(run, queue, settings));
  }

  async write(queue: string, writes: contract.Write[]): Promise<contract.WriteReply[]> {
    return this.#each(writes, ({ run }) => write(run, queue, writes));
  }

  async change(queue: string, target: string[] | contract.Selection, change: contract.Change): Promise<contract.ChangeReply> {
    const { run } = this.#use();
    if (!Array.isArray(target)) return this.#call(() => changeSelected(run, queue, target, change));
    return target.length === 0 ? replyById([], []) : this.#call(() => changeById(run, queue, target, change));
  }

  async forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    return this.#call(({ run }) => control.forget(run, queue, what));
  }

  async queues(limit: number, after?: string): Promise<string[]> {
    return this.#call(({ registry }) => registry.list(limit, after));
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  async jobs(queue: string, query: string[] | contract.ListQuery): Promise<contract.JobsReply> {
    return this.#call(({ run }) => inspect.jobs(run, queue, query));
  }

  async status(queue: string): Promise<contract.QueueStatus> {
    return this.#call(({ run }) => inspect.status(run, queue));
  }

  async logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): ReturnType<contract.Store['logs']> {
    return this.#call(({ run }) => inspect.logs(run, queue, jobId, range));
  }

  async events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return this.#call(({ run }) => readEvents(run, queue, after, limit));
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  async locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    return this.#call(({ run }) => inspect.locks(run, queue, query));
  }

  async sessions(queue: string): Promise<contract.SessionInfo[]> {
    return this.#call(({ run }) => inspect.sessions(run, queue));
  }

  watch(queue: string, listener: () => void, what: contract.WatchedChange = 'events'): () => void {
    return this.#use().wake.watch(queue, listener, what);
  }

  #use(): Parts {
    if (this.#open && this.#closing === undefined) return this.#parts;
    if (this.#closing !== undefined) throw closed();
    throw new HoldfastError('STORE_CLOSED', 'The store is not open yet: call open() and wait for it first.', { store: 'redis' });
  }

  /** Writes the name of the queue beside the call that needs it. Nothing waits for it but `close`. */
  #register(queue: string): void {
    void this.#call(({ registry }) => registry.write(queue));
  }

  /** Makes a call that `close` waits for. Rejects if the store is not open. */
  #call<T>(work: (parts: Parts) => Promise<T>): Promise<T> {
    let call: Promise<T>;
    try {
      call = work(this.#use());
    } catch (error) {
      return Promise.reject(toError(error));
    }
    const ended = (): void => void this.#calls.delete(call);
    this.#calls.add(call);
    call.then(ended, ended);
    return call;
  }

  #each<I, O>(items: I[], work: (parts: Parts) => Promise<O[]>): Promise<O[]> {
    if (items.length > 0) return this.#call(work);
    this.#use();
    return Promise.resolve([]);
  }
}

function closed(): HoldfastError {
  return new HoldfastError('STORE_CLOSED', 'The store was closed before the call: make a new one to use it again.', {
    store: 'redis',
  });
}
