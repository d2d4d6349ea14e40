// The SQLite store: one file that all processes of a host may share. This class connects the parts of this folder to the store
// contract; the rest of Holdfast calls the store only through the contract. Writes go through the committer and share transactions.
// Reads run at once; large reads take turns with the event loop (read-turns.ts).
// No code here may await inside a transaction, because the connection of the lock thread would wait for that transaction.
import path from 'node:path';
import { HoldfastError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { JobRecord, NewJob } from '../../job/record.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../../runtime/check.js';
import { type Clock, systemClock } from '../../runtime/clock.js';
import { type Capabilities, refuseTransaction } from '../capabilities.js';
import { replyById, replyToSelection } from '../change-reply.js';
import type * as contract from '../contract/index.js';
import type { StoreDescriptor } from '../descriptor.js';
import { type Engine, startEngine } from './engine.js';
import { toStoreError } from './errors.js';
import type { QueueState } from './queue-state.js';
import { ReadTurns } from './read-turns.js';
import type { Transaction } from './transaction.js';

export interface SqliteStoreOptions {
  path: string;
  clock?: Clock;
  /**
   * 'full' (default): acknowledged writes survive a power cut. 'normal': they survive a crash of the process, but a power cut may
   * lose the last commits.
   */
  synchronous?: 'full' | 'normal';
  /**
   * How long a call waits while another program holds the write lock, in ms (default 10,000). After that it rejects with
   * STORE_BUSY.
   */
  busyTimeoutMs?: number;
}

export class SqliteStore implements contract.Store {
  readonly capabilities: Capabilities = {
    engine: 'sqlite',
    shared: true,
    durable: true,
    crashHints: true,
    inline: false,
    transactions: false,
  };
  readonly #options: Required<SqliteStoreOptions>;
  readonly #turns = new ReadTurns();
  #opening: Promise<Engine> | undefined;
  #engine: Engine | undefined;
  #closing: Promise<void> | undefined;

  constructor({ path: file, clock = systemClock, synchronous = 'full', busyTimeoutMs = 10_000 }: SqliteStoreOptions) {
    if (typeof file !== 'string' || file === '') throw invalidOption('path', file, 'the path of a file');
    if (synchronous !== 'full' && synchronous !== 'normal') throw invalidOption('synchronous', synchronous, "'full' or 'normal'");
    checkInteger('busyTimeoutMs', busyTimeoutMs, { max: MAX_TIMER_MS });
    this.#options = { path: path.resolve(file), clock, synchronous, busyTimeoutMs };
  }

  get driver(): string | undefined {
    return this.#engine?.driver;
  }

  describe(): StoreDescriptor | undefined {
    const { path: file, synchronous, busyTimeoutMs } = this.#options;
    return { engine: 'sqlite', options: { path: file, synchronous, busyTimeoutMs } };
  }

  async open(): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= startEngine(this.#options);
    try {
      this.#engine = await this.#opening;
    } catch (error) {
      // The next call of `open` tries again: the folder may exist by then.
      this.#opening = undefined;
      throw toStoreError(error, this.#options.path);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const engine = await this.#opening?.catch(() => undefined);
    this.#engine = undefined;
    await this.#turns.idle();
    await engine?.close();
  }

  async add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    refuseTransaction(this.capabilities.engine, transaction);
    const { adding } = this.#use();
    if (jobs.length === 0) return [];
    const bytes = jobs.reduce((sum, { data }) => sum + data.length, 0);
    return this.#write((transaction) => adding.add(transaction, queue, jobs, call), { bytes });
  }

  async claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    const { claiming } = this.#use();
    return this.#write((transaction) => claiming.claim(transaction, transaction.queue(queue), request), {
      look: (engine) => claiming.look(engine.queues.peek(queue), request, engine.clock.now()),
    });
  }

  async settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    claim?: contract.ClaimRequest,
  ): Promise<contract.SettleReply> {
    const { settling, claiming } = this.#use();
    if (outcomes.length === 0)
      return claim === undefined ? { results: [] } : { results: [], claimed: await this.claim(queue, claim) };
    const bytes = outcomes.reduce((sum, outcome) => sum + (outcome.kind === 'completed' ? outcome.value.length : 0), 0);
    const reply = await this.#write((transaction) => settling.settle(transaction, queue, outcomes, call, claim), { bytes });
    if (claim === undefined || reply.claimed?.more !== true || reply.claimed.jobs.length > 0) return reply;
    // The first job is too large for the settle's transaction, so this transaction claims it. It is still the same call: `lastSeq`
    // below its number says that the number is unused.
    const remember = call?.caller !== claim.session || call.seq !== claim.seq;
    const rest = { remember, lastSeq: claim.seq - 1 };
    const claimed = await this.#write((transaction) => claiming.claim(transaction, transaction.queue(queue), claim, rest));
    return { ...reply, claimed };
  }

  async openSession(session: contract.NewSession): Promise<void> {
    const engine = this.#use();
    const presence = engine.presence();
    await this.#write((transaction) => engine.sessions.open(transaction, session, presence));
  }

  async renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    const { sessions } = this.#use();
    return renewals.length === 0
      ? []
      : this.#write((transaction) => renewals.map((renewal) => sessions.renew(transaction, renewal)));
  }

  async closeSessions(refs: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    const { sessions, closing } = this.#use();
    if (refs.length === 0) return;
    // Submit all steps at once, so that closing the store waits for them. The committer cuts them into transactions.
    const steps = refs.flatMap((ref) => {
      const count = this.#read(ref.queue, (_, state) => closing.stepsOf(state, ref.id));
      return Array.from({ length: count }, () => this.#write((transaction) => closing.handBackSome(transaction, ref, how)));
    });
    const end = this.#write((transaction) => {
      for (const ref of refs) sessions.close(transaction, ref, how);
    });
    await Promise.all([...steps, end]);
  }

  async sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    const { sessions } = this.#use();
    return this.#write((transaction) => sessions.sweep(transaction, queue, limit), {
      look: (engine) => {
        const anyDead = sessions.anyDead(engine.queues.peek(queue), engine.clock.now());
        return anyDead ? undefined : { stalled: [], failed: [], more: false };
      },
    });
  }

  async probe(queue: string): Promise<contract.ProbeReply> {
    const { probing } = this.#use();
    return this.#write((transaction) => probing.probe(transaction, queue), {
      look: (engine) => probing.look(engine.queues.peek(queue), engine.clock.now()),
    });
  }

  async checkSessions(refs: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    const { probing, queues, clock } = this.#use();
    const now = clock.now();
    return refs.map(({ queue, id }) => ({ unsuspected: probing.isUnsuspected(queues.peek(queue), id, now) }));
  }

  async extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    const { locks } = this.#use();
    return this.#writeEach(extensions, (transaction, extension) => locks.extend(transaction, queue, extension));
  }

  async acquire(queue: string, wishes: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    const { namedLocks } = this.#use();
    return this.#writeEach(wishes, (transaction, wish) => namedLocks.acquire(transaction, queue, wish));
  }

  async letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    const { namedLocks } = this.#use();
    return this.#writeEach(locks, (transaction, lock) => namedLocks.letGo(transaction, queue, lock));
  }

  async configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    const { controlling } = this.#use();
    return this.#write((transaction) => controlling.configure(transaction, queue, settings));
  }

  async write(queue: string, writes: contract.Write[]): Promise<contract.WriteReply[]> {
    const { writing } = this.#use();
    const bytes = writes.reduce((sum, write) => sum + bytesOf(write), 0);
    return this.#writeEach(writes, (transaction, write) => writing.write(transaction, queue, write), bytes);
  }

  async change(queue: string, target: string[] | contract.Selection, change: contract.Change): Promise<contract.ChangeReply> {
    const { changing } = this.#use();
    if (!Array.isArray(target)) {
      const changed =
        change.kind === 'remove'
          ? await this.#removeSelected(queue, target)
          : await this.#write((transaction) => changing.bySelection(transaction, queue, target, change));
      return replyToSelection(changed, target);
    }
    if (target.length === 0) return replyById([], []);
    return replyById(target, await this.#write((transaction) => changing.byId(transaction, queue, target, change)));
  }

  async #removeSelected(queue: string, selection: contract.Selection): Promise<string[]> {
    const { removing } = this.#use();
    const gone: string[] = [];
    for (;;) {
      const rest = { ...selection, limit: selection.limit - gone.length };
      const { ids, cut } = await this.#write((transaction) =>
        removing.removeSelected(transaction, queue, rest, gone.length === 0),
      );
      gone.push(...ids);
      if (!cut) return gone;
    }
  }

  async forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    const { controlling } = this.#use();
    return this.#write((transaction) => controlling.forget(transaction, queue, what));
  }

  async queues(limit: number, after?: string): Promise<string[]> {
    return this.#read('', ({ inspecting }) => inspecting.queues(limit, after));
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  async jobs(queue: string, query: string[] | contract.ListQuery): Promise<contract.JobsReply> {
    if (!Array.isArray(query)) return this.#readInTurn(queue, ({ inspecting }, state) => inspecting.list(state, query));
    if (query.length === 0) return { jobs: [], more: false };
    return this.#readInTurn(queue, ({ inspecting }, state) => inspecting.jobs(state, query));
  }

  async status(queue: string): Promise<contract.QueueStatus> {
    return this.#read(queue, ({ inspecting, clock }, state) => inspecting.status(state, clock.now()));
  }

  async logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): ReturnType<contract.Store['logs']> {
    return this.#readInTurn(queue, ({ inspecting }, state) => inspecting.logs(state, jobId, range));
  }

  async events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return this.#readInTurn(queue, ({ events }, state) => events.read(state, after, limit));
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  async locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    const { inspecting, namedLocks } = this.#use();
    if ('session' in query) return this.#read(queue, (_, state) => inspecting.owned(state, query.session));
    if ('names' in query) return this.#readEach(queue, query.names, (state, name, now) => namedLocks.look(state, name, now));
    return this.#readEach(queue, query.jobIds, (state, id, now) => inspecting.lockOf(state, id, now));
  }

  async sessions(queue: string): Promise<contract.SessionInfo[]> {
    return this.#read(queue, ({ inspecting, clock }, state) => inspecting.sessions(state, clock.now()));
  }

  onWarning(listener: (warning: HoldfastError) => void): () => void {
    return this.#use().warnings.listen(listener);
  }

  watch(queue: string, listener: () => void): () => void {
    return this.#use().wake.watch(queue, listener);
  }

  #use(): Engine {
    if (this.#engine !== undefined && this.#closing === undefined) return this.#engine;
    if (this.#closing !== undefined) throw closed();
    throw new HoldfastError('STORE_CLOSED', 'The store is not open yet: call open() and wait for it first.', { store: 'sqlite' });
  }

  #write<T>(
    run: (transaction: Transaction) => T,
    { look, bytes = 0 }: { look?: (engine: Engine) => T | undefined; bytes?: number } = {},
  ): Promise<T> {
    const engine = this.#use();
    return engine.committer.submit(look === undefined ? { run, bytes } : { run, bytes, look: () => look(engine) });
  }

  #writeEach<I, O>(items: I[], run: (transaction: Transaction, item: I) => O, bytes = 0): Promise<O[]> {
    if (items.length === 0) return Promise.resolve([]);
    return this.#write((transaction) => items.map((item) => run(transaction, item)), { bytes });
  }

  /** For reads that may be large. */
  #readInTurn<T>(queue: string, look: (engine: Engine, state: QueueState) => T): T | Promise<T> {
    const engine = this.#use();
    return this.#turns.run(() => this.#read(queue, look, engine));
  }

  #readEach<I, O>(queue: string, items: I[], look: (state: QueueState, item: I, now: number) => O): O[] {
    if (items.length === 0) return [];
    return this.#read(queue, ({ clock }, state) => items.map((item) => look(state, item, clock.now())));
  }

  #read<T>(queue: string, look: (engine: Engine, state: QueueState) => T, engine = this.#use()): T {
    try {
      return look(engine, engine.queues.peek(queue));
    } catch (error) {
      throw engine.committer.explain(error);
    }
  }
}

function bytesOf(write: contract.Write): number {
  if (write.kind === 'data') return write.data.length;
  if (write.kind === 'progress') return write.progress.length;
  return write.kind === 'log' ? write.row.length : 0;
}

function closed(): HoldfastError {
  return new HoldfastError('STORE_CLOSED', 'The store was closed before the call: make a new one to use it again.', {
    store: 'sqlite',
  });
}
