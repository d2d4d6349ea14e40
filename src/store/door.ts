// The door of every store: the contract's verbs, written once. It opens and closes the engine, rejects calls while the engine is not
// open, replies to empty lists without I/O, and counts the calls in flight so that `close` can wait for them.
// An engine fills the door with its operations, one per verb: a missing operation does not compile. A store decides in its operations
// which change wakes which watcher, because only the engine knows that: from its log, its commit or the reply of its server.
// The door must not add a promise to an operation that returns its reply at once: the memory store would pay for it with every job.
import { HoldfastError } from '../errors.js';
import type { Outcome } from '../job/outcome.js';
import type { JobRecord, NewJob } from '../job/record.js';
import { type Capabilities, refuseTransaction } from './capabilities.js';
import type * as contract from './contract/index.js';
import type { StoreDescriptor } from './descriptor.js';

type Store = contract.Store;
type Reply<T> = T | Promise<T>;
type JobsQuery = string[] | contract.ListQuery | contract.GroupJobsQuery;

/** Verbs with overloads or defaults, as the door passes them on. */
interface Spelled<Engine> {
  change(
    engine: Engine,
    queue: string,
    target: string[] | contract.Selection,
    change: contract.Change,
  ): Reply<contract.ChangeReply>;
  jobs(engine: Engine, queue: string, query: JobsQuery): Reply<contract.JobsReply>;
  /** `jobs` with a StepsQuery. */
  steps(engine: Engine, queue: string, jobId: string): Reply<contract.Step[]>;
  status(engine: Engine, queue: string, query: contract.StatusQuery): Reply<contract.QueueStatus>;
  locks(engine: Engine, queue: string, query: contract.LockQuery): Reply<contract.LockReply>;
  watch(engine: Engine, queue: string, listener: () => void, what: contract.WatchedChange): () => void;
  onWarning(engine: Engine, listener: (warning: HoldfastError) => void): () => void;
}

type Verb = Exclude<keyof Store, keyof Spelled<unknown> | 'capabilities' | 'driver' | 'client' | 'describe' | 'open' | 'close'>;

/** The operations of an engine: each verb of the contract, with the open engine before its arguments. No list is empty. */
export type Operations<Engine> = Spelled<Engine> & {
  [V in Verb]: (engine: Engine, ...args: Parameters<Store[V]>) => Reply<Awaited<ReturnType<Store[V]>>>;
};

export abstract class Door<Engine> implements Store {
  abstract readonly capabilities: Capabilities;
  /** Undefined while the store is not open. A store that needs no `open` sets it in its constructor. */
  protected engine: Engine | undefined;
  readonly #operations: Operations<Engine>;
  #opening: Promise<Engine> | undefined;
  #closing: Promise<void> | undefined;
  #inFlight = 0;
  #onIdle: (() => void) | undefined;

  constructor(operations: Operations<Engine>) {
    this.#operations = operations;
  }

  abstract describe(): StoreDescriptor | undefined;

  /** Returns the open engine. Called again after a failure. */
  protected abstract start(): Reply<Engine>;

  /** Releases what `start` made, if it was called. `calls` resolves when the calls in flight have ended. */
  protected abstract stop(opened: Promise<Engine | undefined>, calls: Promise<void>): Promise<void>;

  async open(): Promise<void> {
    if (this.#closing !== undefined) throw this.#notOpen();
    const opening = (this.#opening ??= Promise.resolve(this.start()));
    try {
      const engine = await opening;
      if (this.#closing === undefined) this.engine = engine;
    } catch (error) {
      // The next call tries again: the server may be back by then.
      if (this.#opening === opening) this.#opening = undefined;
      throw error;
    }
  }

  close(): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    const opened = this.#opening?.catch(() => undefined) ?? Promise.resolve(this.engine);
    this.engine = undefined;
    this.#closing = this.stop(opened, this.#idle());
    return this.#closing;
  }

  async add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    const engine = this.#use();
    this.#checkTransaction(transaction);
    if (jobs.length === 0 && transaction === undefined) return [];
    return this.#counted(this.#operations.add(engine, queue, jobs, call, transaction));
  }

  async claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    return this.#counted(this.#operations.claim(this.#use(), queue, request));
  }

  async settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    request?: contract.ClaimRequest,
    transaction?: unknown,
  ): Promise<contract.SettleReply> {
    const engine = this.#use();
    this.#checkTransaction(transaction);
    if (outcomes.length > 0) return this.#counted(this.#operations.settle(engine, queue, outcomes, call, request, transaction));
    return request === undefined ? { results: [] } : { results: [], claimed: await this.claim(queue, request) };
  }

  async openSession(session: contract.NewSession): Promise<void> {
    return this.#counted(this.#operations.openSession(this.#use(), session));
  }

  async renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    const engine = this.#use();
    return isEmpty(renewals) ? [] : this.#counted(this.#operations.renew(engine, renewals));
  }

  async closeSessions(sessions: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    const engine = this.#use();
    if (!isEmpty(sessions)) await this.#counted(this.#operations.closeSessions(engine, sessions, how));
  }

  async sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    return this.#counted(this.#operations.sweep(this.#use(), queue, limit));
  }

  async probe(queue: string): Promise<contract.ProbeReply> {
    return this.#counted(this.#operations.probe(this.#use(), queue));
  }

  async checkSessions(sessions: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    const engine = this.#use();
    return isEmpty(sessions) ? [] : this.#counted(this.#operations.checkSessions(engine, sessions));
  }

  async extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    const engine = this.#use();
    return isEmpty(extensions) ? [] : this.#counted(this.#operations.extend(engine, queue, extensions));
  }

  async acquire(queue: string, requests: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    const engine = this.#use();
    return isEmpty(requests) ? [] : this.#counted(this.#operations.acquire(engine, queue, requests));
  }

  async letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    const engine = this.#use();
    return isEmpty(locks) ? [] : this.#counted(this.#operations.letGo(engine, queue, locks));
  }

  async configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    return this.#counted(this.#operations.configure(this.#use(), queue, settings));
  }

  async write(queue: string, writes: contract.Write[], transaction?: unknown): Promise<contract.WriteReply[]> {
    const engine = this.#use();
    this.#checkTransaction(transaction);
    return isEmpty(writes) ? [] : this.#counted(this.#operations.write(engine, queue, writes, transaction));
  }

  async change(queue: string, target: string[] | contract.Selection, change: contract.Change): Promise<contract.ChangeReply> {
    const engine = this.#use();
    if (isEmpty(target)) return { changed: [], others: [], more: false };
    return this.#counted(this.#operations.change(engine, queue, target, change));
  }

  async schedule(queue: string, changes: contract.ScheduleChange[]): Promise<contract.ScheduleReply[]> {
    const engine = this.#use();
    return isEmpty(changes) ? [] : this.#counted(this.#operations.schedule(engine, queue, changes));
  }

  async relay(queue: string, limit: number): Promise<contract.RelayReply> {
    return this.#counted(this.#operations.relay(this.#use(), queue, limit));
  }

  async children(queue: string, jobId: string, query: contract.ChildrenQuery): Promise<contract.ChildrenReply> {
    return this.#counted(this.#operations.children(this.#use(), queue, jobId, query));
  }

  async forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    return this.#counted(this.#operations.forget(this.#use(), queue, what));
  }

  async queues(limit: number, after?: string): Promise<string[]> {
    return this.#counted(this.#operations.queues(this.#use(), limit, after));
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  jobs(queue: string, query: contract.GroupJobsQuery): Promise<contract.JobsReply<JobRecord>>;
  jobs(queue: string, query: contract.StepsQuery): Promise<contract.StepsFound>;
  async jobs(queue: string, query: JobsQuery | contract.StepsQuery): Promise<contract.JobsReply | contract.StepsFound> {
    const engine = this.#use();
    if ('stepsOf' in query) return { steps: await this.#counted(this.#operations.steps(engine, queue, query.stepsOf)) };
    return isEmpty(query) ? { jobs: [], more: false } : this.#counted(this.#operations.jobs(engine, queue, query));
  }

  async status(queue: string, query: contract.StatusQuery = {}): Promise<contract.QueueStatus> {
    return this.#counted(this.#operations.status(this.#use(), queue, query));
  }

  async logs(queue: string, jobId: string, range: Parameters<Store['logs']>[2]): ReturnType<Store['logs']> {
    return this.#counted(this.#operations.logs(this.#use(), queue, jobId, range));
  }

  async events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return this.#counted(this.#operations.events(this.#use(), queue, after, limit));
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  async locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    const engine = this.#use();
    const asked = 'session' in query ? query.session : 'names' in query ? query.names : query.jobIds;
    return isEmpty(asked) ? [] : this.#counted(this.#operations.locks(engine, queue, query));
  }

  async sessions(queue: string): Promise<contract.SessionInfo[]> {
    return this.#counted(this.#operations.sessions(this.#use(), queue));
  }

  watch(queue: string, listener: () => void, what: contract.WatchedChange = 'events'): () => void {
    return this.#operations.watch(this.#use(), queue, listener, what);
  }

  onWarning(listener: (warning: HoldfastError) => void): () => void {
    return this.#operations.onWarning(this.#use(), listener);
  }

  #checkTransaction(transaction: unknown): void {
    if (!this.capabilities.transactions) refuseTransaction(this.capabilities.engine, transaction);
  }

  /** Counts a call until its reply, because `close` waits for it. */
  #counted<T>(reply: Reply<T>): Reply<T> {
    if (reply instanceof Promise) {
      this.#inFlight += 1;
      reply.then(this.#landed, this.#landed);
    }
    return reply;
  }

  readonly #landed = (): void => {
    this.#inFlight -= 1;
    if (this.#inFlight === 0) this.#onIdle?.();
  };

  #use(): Engine {
    if (this.engine === undefined) throw this.#notOpen();
    return this.engine;
  }

  /** Resolves when no call is in flight. Called once, when no further call can begin. */
  #idle(): Promise<void> {
    return this.#inFlight === 0 ? Promise.resolve() : new Promise((resolve) => (this.#onIdle = resolve));
  }

  #notOpen(): HoldfastError {
    const reason =
      this.#closing === undefined
        ? 'The store is not open yet: call open() and wait for it first.'
        : 'The store was closed before the call: make a new one to use it again.';
    return new HoldfastError('STORE_CLOSED', reason, { store: this.capabilities.engine });
  }
}

function isEmpty(query: unknown): boolean {
  return Array.isArray(query) && query.length === 0;
}
