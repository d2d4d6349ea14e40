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

  add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    return this.#call((engine) => {
      this.#checkTransaction(transaction);
      if (jobs.length === 0 && transaction === undefined) return [];
      return this.#operations.add(engine, queue, jobs, call, transaction);
    });
  }

  claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    return this.#call((engine) => this.#operations.claim(engine, queue, request));
  }

  settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    request?: contract.ClaimRequest,
    transaction?: unknown,
  ): Promise<contract.SettleReply> {
    if (transaction !== undefined) this.#checkTransaction(transaction);
    if (outcomes.length > 0)
      return this.#call((engine) => this.#operations.settle(engine, queue, outcomes, call, request, transaction));
    if (request === undefined) return this.#call(() => ({ results: [] }));
    return this.claim(queue, request).then((claimed) => ({ results: [], claimed }));
  }

  openSession(session: contract.NewSession): Promise<void> {
    return this.#call((engine) => this.#operations.openSession(engine, session));
  }

  renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    return this.#each(renewals, (engine) => this.#operations.renew(engine, renewals));
  }

  closeSessions(sessions: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    return this.#call((engine) => (sessions.length > 0 ? this.#operations.closeSessions(engine, sessions, how) : undefined));
  }

  sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    return this.#call((engine) => this.#operations.sweep(engine, queue, limit));
  }

  probe(queue: string): Promise<contract.ProbeReply> {
    return this.#call((engine) => this.#operations.probe(engine, queue));
  }

  checkSessions(sessions: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    return this.#each(sessions, (engine) => this.#operations.checkSessions(engine, sessions));
  }

  extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    return this.#each(extensions, (engine) => this.#operations.extend(engine, queue, extensions));
  }

  acquire(queue: string, requests: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    return this.#each(requests, (engine) => this.#operations.acquire(engine, queue, requests));
  }

  letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    return this.#each(locks, (engine) => this.#operations.letGo(engine, queue, locks));
  }

  configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    return this.#call((engine) => this.#operations.configure(engine, queue, settings));
  }

  write(queue: string, writes: contract.Write[], transaction?: unknown): Promise<contract.WriteReply[]> {
    return this.#each(writes, (engine) => {
      this.#checkTransaction(transaction);
      return this.#operations.write(engine, queue, writes, transaction);
    });
  }

  change(queue: string, target: string[] | contract.Selection, change: contract.Change): Promise<contract.ChangeReply> {
    return this.#call((engine) =>
      isEmpty(target) ? { changed: [], others: [], more: false } : this.#operations.change(engine, queue, target, change),
    );
  }

  schedule(queue: string, changes: contract.ScheduleChange[]): Promise<contract.ScheduleReply[]> {
    return this.#each(changes, (engine) => this.#operations.schedule(engine, queue, changes));
  }

  relay(queue: string, limit: number): Promise<contract.RelayReply> {
    return this.#call((engine) => this.#operations.relay(engine, queue, limit));
  }

  children(queue: string, jobId: string, query: contract.ChildrenQuery): Promise<contract.ChildrenReply> {
    return this.#call((engine) => this.#operations.children(engine, queue, jobId, query));
  }

  forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    return this.#call((engine) => this.#operations.forget(engine, queue, what));
  }

  queues(limit: number, after?: string): Promise<string[]> {
    return this.#call((engine) => this.#operations.queues(engine, limit, after));
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  jobs(queue: string, query: contract.GroupJobsQuery): Promise<contract.JobsReply<JobRecord>>;
  jobs(queue: string, query: contract.StepsQuery): Promise<contract.StepsFound>;
  jobs(queue: string, query: JobsQuery | contract.StepsQuery): Promise<contract.JobsReply | contract.StepsFound> {
    if ('stepsOf' in query) return this.#steps(queue, query.stepsOf);
    return this.#call((engine) => (isEmpty(query) ? { jobs: [], more: false } : this.#operations.jobs(engine, queue, query)));
  }

  status(queue: string, query: contract.StatusQuery = {}): Promise<contract.QueueStatus> {
    return this.#call((engine) => this.#operations.status(engine, queue, query));
  }

  logs(queue: string, jobId: string, range: { start: number; end: number; asc: boolean }): ReturnType<Store['logs']> {
    return this.#call((engine) => this.#operations.logs(engine, queue, jobId, range));
  }

  events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return this.#call((engine) => this.#operations.events(engine, queue, after, limit));
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    const asked = 'session' in query ? query.session : 'names' in query ? query.names : query.jobIds;
    return this.#call((engine) => (isEmpty(asked) ? [] : this.#operations.locks(engine, queue, query)));
  }

  sessions(queue: string): Promise<contract.SessionInfo[]> {
    return this.#call((engine) => this.#operations.sessions(engine, queue));
  }

  watch(queue: string, listener: () => void, what: contract.WatchedChange = 'events'): () => void {
    return this.#operations.watch(this.#use(), queue, listener, what);
  }

  onWarning(listener: (warning: HoldfastError) => void): () => void {
    return this.#operations.onWarning(this.#use(), listener);
  }

  async #steps(queue: string, jobId: string): Promise<contract.StepsFound> {
    return { steps: await this.#call((engine) => this.#operations.steps(engine, queue, jobId)) };
  }

  #checkTransaction(transaction: unknown): void {
    if (!this.capabilities.transactions) refuseTransaction(this.capabilities.engine, transaction);
  }

  #each<O>(items: unknown[], work: (engine: Engine) => Reply<O[]>): Promise<O[]> {
    return this.#call(items.length > 0 ? work : () => []);
  }

  /** Makes a call that `close` waits for. Its work begins before this method returns. */
  async #call<T>(work: (engine: Engine) => Reply<T>): Promise<T> {
    const reply = work(this.#use());
    if (!(reply instanceof Promise)) return reply;
    this.#inFlight += 1;
    try {
      return await reply;
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#onIdle?.();
    }
  }

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
