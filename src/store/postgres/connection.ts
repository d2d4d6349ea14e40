// The PostgreSQL store: one schema that any number of machines share. It wires the parts of this folder to the store contract, the only
// way in which the rest of Holdfast calls it. Every verb is one function of the schema (sql.ts), called in one round trip, so
// that it is one transaction whatever lies between. Nothing here may keep state on a connection, except the listener.
import { HoldfastError } from '../../errors.js';
import type { Outcome } from '../../job/outcome.js';
import type { JobRecord, NewJob } from '../../job/record.js';
import type { Capabilities } from '../capabilities.js';
import { replyById } from '../change-reply.js';
import type * as contract from '../contract/index.js';
import type { StoreDescriptor } from '../descriptor.js';
import { add, addWithin } from './add.js';
import { changeById } from './change.js';
import { claim } from './claim.js';
import * as control from './control.js';
import { type Engine, migrate, startEngine } from './engine.js';
import { events } from './events.js';
import { Fitting } from './fitting.js';
import * as inspect from './inspect.js';
import { extend } from './lock.js';
import { acquire, letGo } from './named-lock.js';
import { threadOptions, planPostgres, type PostgresPlan, type PostgresStoreOptions } from './options.js';
import { checkSessions, probe } from './probe.js';
import { SCHEMA_VERSION } from './schema.js';
import { changeSelected } from './select.js';
import { closeSessions, openSession, renew } from './session.js';
import { Detours, settle } from './settle.js';
import { sweep } from './sweep.js';
import { joinTransaction } from './transaction.js';
import { Turns } from './turns.js';
import { write } from './write.js';

export interface Migrated {
  schema: string;
  /** The number of migrations that the schema has now. */
  version: number;
  /** The numbers of the migrations that this call ran. Empty if there was nothing to do, or if another process did it meanwhile. */
  ran: number[];
}

/** Creates or migrates the schema, for users who open their stores with `migrate: false`. */
export async function migratePostgres(options: PostgresStoreOptions): Promise<Migrated> {
  const plan = planPostgres(options);
  return { schema: plan.schema, ran: await migrate(plan), version: SCHEMA_VERSION };
}

export class PostgresStore implements contract.Store {
  readonly driver = 'pg';
  readonly #given: PostgresStoreOptions;
  readonly #plan: PostgresPlan;
  #opening: Promise<Engine> | undefined;
  #engine: Engine | undefined;
  #closing: Promise<void> | undefined;
  /**
   * Sessions with a claim that got no reply. That claim may still arrive, so the next one records its number even if it finds nothing.
   */
  readonly #unanswered = new Set<string>();
  readonly #turns = new Turns();
  readonly #detours = new Detours();
  readonly #fitting = new Fitting();
  /** Queues that surely exist. */
  readonly #known = new Set<string>();

  constructor(options: PostgresStoreOptions) {
    this.#given = { ...options };
    this.#plan = planPostgres(options);
  }

  get capabilities(): Capabilities {
    const crashHints = this.#engine?.hinted ?? this.#plan.notify;
    return {
      engine: 'postgres',
      shared: true,
      durable: true,
      crashHints,
      fallibleHints: crashHints,
      inline: false,
      transactions: true,
    };
  }

  describe(): StoreDescriptor | undefined {
    return { engine: 'postgres', options: threadOptions(this.#given) };
  }

  async open(): Promise<void> {
    if (this.#closing !== undefined) throw closed();
    this.#opening ??= startEngine(this.#plan);
    try {
      this.#engine = await this.#opening;
    } catch (error) {
      // The next call tries again: the server may be back by then.
      this.#opening = undefined;
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const engine = await this.#opening?.catch(() => undefined);
    await engine?.close(this.#turns.idle());
  }

  async add(queue: string, jobs: NewJob[], call: contract.Call, transaction?: unknown): Promise<contract.AddReply[]> {
    const { server, wake } = this.#use();
    if (transaction !== undefined) return this.#addWithin(transaction, queue, jobs);
    if (jobs.length === 0) return [];
    const { replies, told } = await this.#turns.take(call, () => add(server, queue, jobs, call, wake.telling(queue)));
    wake.added(queue, jobs.length, told);
    return replies;
  }

  async #addWithin(transaction: unknown, queue: string, jobs: NewJob[]): Promise<contract.AddReply[]> {
    const { server, wake } = this.#use();
    const joined = joinTransaction(server, transaction, wake.notification(queue));
    if (jobs.length === 0) return [];
    // Create the queue outside of the transaction, where it is committed at once. Otherwise other processes that use the name for the
    // first time would wait for the commit.
    if (!this.#known.has(queue)) await server.call('ensure_queue', { name: queue });
    this.#known.add(queue);
    return addWithin(joined, queue, jobs);
  }

  async claim(queue: string, request: contract.ClaimRequest): Promise<contract.ClaimReply> {
    const { server, wake } = this.#use();
    const doubtful = this.#unanswered.has(request.session);
    this.#unanswered.add(request.session);
    const changes = wake.claiming(queue);
    const sent = this.#fitting.limit(queue, request);
    const reply = await this.#turns.take({ caller: request.session, seq: request.seq }, () =>
      claim(server, queue, sent, doubtful),
    );
    this.#unanswered.delete(request.session);
    this.#fitting.learn(queue, request, sent, reply);
    wake.claimed(queue, changes, request.count, reply);
    // Another claim may have skipped the jobs that did not fit into this reply.
    if (reply.jobs.length > 0) wake.signal(queue, reply.more === true ? 'jobs' : 'news');
    return reply;
  }

  async settle(
    queue: string,
    outcomes: Outcome[],
    call?: contract.Call,
    request?: contract.ClaimRequest,
  ): Promise<contract.SettleReply> {
    const { server, wake } = this.#use();
    if (outcomes.length === 0)
      return request === undefined ? { results: [] } : { results: [], claimed: await this.claim(queue, request) };
    const sent = request && this.#fitting.limit(queue, request);
    const work = () => settle(server, queue, outcomes, call, sent, this.#detours);
    const changes = wake.claiming(queue);
    const { room, ...reply } = await (call === undefined ? work() : this.#turns.take(call, work));
    if (call !== undefined) this.#unanswered.delete(call.caller);
    const { claimed } = reply;
    if (request !== undefined && sent !== undefined && claimed !== undefined) {
      this.#fitting.learn(queue, request, sent, claimed);
      wake.claimed(queue, changes, request.count, claimed);
    }
    const back = outcomes.some(({ kind }) => kind !== 'completed' && kind !== 'failed');
    wake.signal(queue, back || room || claimed?.more === true ? 'jobs' : 'news');
    return reply;
  }

  async openSession(session: contract.NewSession): Promise<void> {
    const engine = this.#use();
    await engine.vouch((vouching) => openSession(engine.server, session, vouching));
  }

  async renew(renewals: contract.Renewal[]): Promise<contract.RenewReply[]> {
    const { server, wake } = this.#use();
    if (renewals.length === 0) return [];
    const replies = await renew(server, renewals);
    // Slots that a session gives up leave jobs for other sessions.
    for (const { queue, slots } of renewals) if (slots !== undefined) wake.signal(queue, 'jobs');
    return replies;
  }

  async closeSessions(sessions: contract.SessionRef[], how: contract.SessionEnd): Promise<void> {
    const { server, wake } = this.#use();
    if (sessions.length === 0) return;
    await closeSessions(server, sessions, how);
    for (const queue of new Set(sessions.map((session) => session.queue))) wake.signal(queue, 'both');
    for (const { id } of sessions) this.#unanswered.delete(id);
  }

  async sweep(queue: string, limit: number): Promise<contract.SweepReply> {
    const { server, wake } = this.#use();
    const { reaped, ...reply } = await sweep(server, queue, limit);
    if (reaped > 0) wake.signal(queue, 'both');
    else if (reply.stalled.length + reply.failed.length > 0) wake.signal(queue, 'jobs');
    return reply;
  }

  async probe(queue: string): Promise<contract.ProbeReply> {
    const { server, hinted } = this.#use();
    return probe(server, queue, hinted);
  }

  async checkSessions(sessions: contract.SessionRef[]): Promise<contract.SessionCheck[]> {
    const { server } = this.#use();
    return sessions.length === 0 ? [] : checkSessions(server, sessions);
  }

  async extend(queue: string, extensions: contract.Extension[]): Promise<contract.ExtendStatus[]> {
    const { server } = this.#use();
    return extensions.length === 0 ? [] : extend(server, queue, extensions);
  }

  async acquire(queue: string, wishes: contract.LockRequest[]): Promise<contract.LockGrant[]> {
    const { server } = this.#use();
    return wishes.length === 0 ? [] : acquire(server, queue, wishes);
  }

  async letGo(queue: string, locks: contract.NamedLockRef[]): Promise<contract.LetGoStatus[]> {
    const { server, wake } = this.#use();
    if (locks.length === 0) return [];
    const replies = await letGo(server, queue, locks);
    if (replies.includes('done')) wake.signal(queue, 'locks');
    return replies;
  }

  async configure(queue: string, settings: contract.QueueSettings): Promise<void> {
    const { server, wake } = this.#use();
    await control.configure(server, queue, settings);
    wake.signal(queue, 'jobs');
  }

  async write(queue: string, writes: contract.Write[]): Promise<contract.WriteReply[]> {
    const { server, wake } = this.#use();
    if (writes.length === 0) return [];
    const replies = await write(server, queue, writes);
    if (writes.some(({ kind }) => kind === 'progress')) wake.signal(queue, 'news');
    return replies;
  }

  async change(queue: string, target: string[] | contract.Selection, change: contract.Change): Promise<contract.ChangeReply> {
    const { server, wake } = this.#use();
    if (Array.isArray(target) && target.length === 0) return replyById([], []);
    const reply = Array.isArray(target)
      ? await changeById(server, queue, target, change)
      : await changeSelected(server, queue, target, change);
    // After a removal too: another job of the key may come first now.
    if (reply.changed.length > 0) wake.signal(queue, 'jobs');
    return reply;
  }

  async forget(queue: string, what: contract.ForgetTarget): Promise<number> {
    const { server, wake } = this.#use();
    const removed = await control.forget(server, queue, what);
    if ('all' in what) wake.signal(queue, 'jobs');
    return removed;
  }

  async queues(limit: number, after?: string): Promise<string[]> {
    return inspect.queues(this.#use().server, limit, after);
  }

  jobs(queue: string, jobIds: string[]): Promise<contract.JobsReply>;
  jobs(queue: string, query: contract.ListQuery): Promise<contract.JobsReply<JobRecord>>;
  async jobs(queue: string, query: string[] | contract.ListQuery): Promise<contract.JobsReply> {
    return inspect.jobs(this.#use().server, queue, query);
  }

  async status(queue: string): Promise<contract.QueueStatus> {
    return inspect.status(this.#use().server, queue);
  }

  async logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): ReturnType<contract.Store['logs']> {
    return inspect.logs(this.#use().server, queue, jobId, range);
  }

  async events(queue: string, after: number | undefined, limit: number): Promise<contract.EventsReply> {
    return events(this.#use().server, queue, after, limit);
  }

  locks(queue: string, query: { jobIds: string[] }): Promise<(contract.LockInfo | undefined)[]>;
  locks(queue: string, query: { names: string[] }): Promise<(contract.NamedLockInfo | undefined)[]>;
  locks(queue: string, query: { session: string }): Promise<contract.OwnedLock[]>;
  async locks(queue: string, query: contract.LockQuery): Promise<contract.LockReply> {
    return inspect.locks(this.#use().server, queue, query);
  }

  async sessions(queue: string): Promise<contract.SessionInfo[]> {
    return inspect.sessions(this.#use().server, queue);
  }

  watch(queue: string, listener: () => void, what: contract.WatchedChange = 'events'): () => void {
    return this.#use().watch(queue, listener, what);
  }

  onWarning(listener: (warning: HoldfastError) => void): () => void {
    return this.#use().warnings.listen(listener);
  }

  #use(): Engine {
    if (this.#closing !== undefined) throw closed();
    if (this.#engine !== undefined) return this.#engine;
    throw new HoldfastError('STORE_CLOSED', 'The store is not open yet: call open() and wait for it first.', {
      store: 'postgres',
    });
  }
}

function closed(): HoldfastError {
  return new HoldfastError('STORE_CLOSED', 'The store was closed before the call: make a new one to use it again.', {
    store: 'postgres',
  });
}
