// The start of every test of the suite: an open store, a queue of its own, callers that number their calls, and short methods for
// frequent steps. It calls the store through the contract only.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import type { ClaimedJob, JobRecord, NewJob } from '../../job/record.js';
import type {
  Call,
  ClaimReply,
  ClaimRequest,
  ListName,
  LockInfo,
  NewSession,
  Store,
  StoredEvent,
} from '../../store/contract/index.js';
import { ids, only } from './expect.js';
import type { Level } from './levels.js';
import type { StoreUnderTest } from './runner.js';
import { newJob, newSession } from './samples.js';
import { Trail } from './trail.js';

export class Scene {
  readonly store: Store;
  readonly queue: string;
  readonly unit: number;
  readonly #under: StoreUnderTest;
  readonly #levels: ReadonlySet<Level>;
  readonly #shared: { seqs: Map<string, number>; opened: Store[]; trail: Trail };

  constructor(
    under: StoreUnderTest,
    unit: number,
    levels: ReadonlySet<Level>,
    view?: { of: Scene; store?: Store; queue?: string },
  ) {
    this.#under = under;
    this.unit = unit;
    this.#levels = levels;
    this.#shared = view === undefined ? { seqs: new Map(), opened: [], trail: new Trail() } : view.of.#shared;
    this.store = view?.store ?? view?.of.store ?? this.#shared.trail.through(under.store);
    this.queue = view?.queue ?? view?.of.queue ?? `conformance-${randomUUID()}`;
  }

  // ── other views of the same data ────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the same scene on another queue. */
  at(queue: string): Scene {
    return new Scene(this.#under, this.unit, this.#levels, { of: this, queue });
  }

  /** Returns the same scene through another store. */
  through(store: Store): Scene {
    return new Scene(this.#under, this.unit, this.#levels, { of: this, store });
  }

  /** Returns the same scene through a second connection. */
  async peer(): Promise<Scene> {
    assert(this.#under.peer, 'capabilities say shared, so the harness must offer peer()');
    return this.#joined(await this.#under.peer());
  }

  /** Closes the store and opens its data again. */
  async reopen(): Promise<Scene> {
    assert(this.#under.reopen, 'capabilities say durable, so the harness must offer reopen()');
    await this.store.close();
    return this.#joined(await this.#under.reopen());
  }

  #joined(store: Store): Scene {
    this.#shared.opened.push(store);
    return this.through(this.#shared.trail.through(store));
  }

  async close(): Promise<void> {
    for (const store of this.#shared.opened) await store.close();
    await this.#under.close();
  }

  /** Adds the last calls of the test to the message of its failure. */
  explain(failure: unknown): void {
    this.#shared.trail.explain(failure);
  }

  /** True if the store under test has this level. A test of a lower level then covers more verbs. */
  has(level: Level): boolean {
    return this.#levels.has(level);
  }

  // ── time ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  ms(units: number): number {
    return units * this.unit;
  }

  pass(units: number): Promise<void> {
    return this.#under.advance(this.ms(units));
  }

  stepWall(ms: number): void {
    assert(this.#under.stepWall, 'a harness with a manual clock must offer stepWall()');
    this.#under.stepWall(ms);
  }

  // ── in ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the next call of a caller: 1, 2, 3 … */
  call(caller: string): Call {
    const seq = (this.#shared.seqs.get(caller) ?? 0) + 1;
    this.#shared.seqs.set(caller, seq);
    return { caller, seq };
  }

  /** Adds one job for each argument, which overrides fields of a plain job. Returns the ids. */
  async add(...jobs: Partial<NewJob>[]): Promise<string[]> {
    const replies = await this.store.add(this.queue, jobs.map(newJob), this.call(`producer-of-${this.queue}`));
    return replies.map(({ id }) => id);
  }

  async addOne(job: Partial<NewJob> = {}): Promise<string> {
    return only(await this.add(job));
  }

  async addMany(count: number): Promise<string[]> {
    return this.add(...Array.from({ length: count }, () => ({})));
  }

  // ── out ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Opens a session that outlives the test unless `options` make it brief. Returns its id. */
  async session(options: Partial<NewSession> = {}): Promise<string> {
    const session = newSession(this.queue, this.ms(1_000), options);
    await this.store.openSession(session);
    return session.id;
  }

  /** Opens a session that expires with `perish` unless it is renewed. */
  briefSession(options: Partial<NewSession> = {}): Promise<string> {
    return this.session({ durationMs: this.ms(5), ...options });
  }

  /** Opens a session whose owner dies at once. Returns its id. */
  async orphan(session: NewSession): Promise<string> {
    assert(this.#under.orphan, 'capabilities say crashHints, so the harness must offer orphan()');
    await this.#under.orphan(session);
    return session.id;
  }

  /** Lets brief sessions and brief locks expire. Does not sweep. */
  perish(): Promise<void> {
    return this.pass(6);
  }

  request(session: string, count: number, options: Partial<ClaimRequest> = {}): ClaimRequest {
    return { session, seq: options.seq ?? this.call(session).seq, count, ...options };
  }

  tryClaim(session: string, count = 1, options: Partial<ClaimRequest> = {}): Promise<ClaimReply> {
    return this.store.claim(this.queue, this.request(session, count, options));
  }

  async claim(session: string, count = 1, options: Partial<ClaimRequest> = {}): Promise<ClaimedJob[]> {
    const { jobs, sessionAlive } = await this.tryClaim(session, count, options);
    assert.equal(sessionAlive, true, 'the session is alive');
    return jobs;
  }

  async claimOne(session: string, options: Partial<ClaimRequest> = {}): Promise<ClaimedJob> {
    return only(await this.claim(session, 1, options));
  }

  /** Adds a job, opens a session and claims the job. */
  async running(job: Partial<NewJob> = {}, options: Partial<NewSession> = {}): Promise<{ session: string; job: ClaimedJob }> {
    await this.add(job);
    const session = await this.session(options);
    return { session, job: await this.claimOne(session) };
  }

  /** Claims everything that is waiting, in order. Returns the ids. */
  async order(): Promise<string[]> {
    return ids(await this.claim(await this.session(), 1_000));
  }

  // ── done ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async settle(...outcomes: Outcome[]): Promise<SettleStatus[]> {
    return (await this.store.settle(this.queue, outcomes)).results;
  }

  /** Settles, and asserts that the store accepted all outcomes. */
  async finish(...outcomes: Outcome[]): Promise<void> {
    assert.deepEqual(
      await this.settle(...outcomes),
      outcomes.map(() => 'done'),
    );
  }

  /** Sweeps until nothing dead is left. Returns everything that it found. */
  async sweep(limit = 1_000): Promise<{ stalled: string[]; failed: string[] }> {
    const found = { stalled: [] as string[], failed: [] as string[] };
    for (let round = 0; round < 10_000; round += 1) {
      const { stalled, failed, more } = await this.store.sweep(this.queue, limit);
      found.stalled.push(...stalled);
      found.failed.push(...failed);
      if (!more) return found;
    }
    throw new Error('sweep answered `more` ten thousand times');
  }

  // ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  async find(id: string): Promise<JobRecord | undefined> {
    return only((await this.store.jobs(this.queue, [id])).jobs);
  }

  async job(id: string): Promise<JobRecord> {
    const record = await this.find(id);
    assert(record, `job ${id} exists`);
    return record;
  }

  async stateOf(id: string): Promise<string> {
    return (await this.find(id))?.state ?? 'missing';
  }

  async list(name: ListName, asc = true): Promise<string[]> {
    return ids((await this.store.jobs(this.queue, { lists: [name], start: 0, end: -1, asc })).jobs);
  }

  /** Returns all events, or the events after an id. */
  async events(after = 0): Promise<StoredEvent[]> {
    return (await this.store.events(this.queue, after, 100_000)).events;
  }

  async lastEvent(): Promise<number> {
    return (await this.store.events(this.queue, undefined, 1)).last;
  }

  async lockOf(id: string): Promise<LockInfo | undefined> {
    return only(await this.store.locks(this.queue, { jobIds: [id] }));
  }

  /** Returns everything visible of a job and its queue, except what time alone changes. */
  async snapshot(id: string): Promise<unknown> {
    const { counts, paused } = await this.store.status(this.queue);
    const lock = await this.lockOf(id);
    return {
      record: await this.find(id),
      logs: this.has('control') ? await this.store.logs(this.queue, id, { start: 0, end: -1, asc: true }) : undefined,
      events: await this.events(),
      lock: lock && { token: lock.token, fence: lock.fence, session: lock.session },
      waiting: await this.list('waiting'),
      counts,
      paused,
    };
  }
}
