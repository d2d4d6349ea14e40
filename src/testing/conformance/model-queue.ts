// The model that the results of random verbs are compared with: a queue without time. Delays are far away, and sessions die on
// request.
import assert from 'node:assert/strict';
import { roomUnderCap } from '../../job/cap.js';
import { type LossFound, readLostBy } from '../../job/lost-by.js';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ListName } from '../../store/contract/index.js';
import { changedAll, ids, only, sorted } from './expect.js';
import { type AddedJob, ModelEntries } from './model-entries.js';
import { ModelGroups } from './model-groups.js';
import { type ModelJob, ModelJobs } from './model-jobs.js';
import { ModelNames, type ModelSessions } from './model-names.js';
import { ModelSchedules } from './model-schedules.js';
import { ModelSteps } from './model-steps.js';
import type { Random } from './random.js';
import { completed, delayed, failed, newJob, released, retried, retryFrom, returned } from './samples.js';
import type { Scene } from './scene.js';
import { type ChangeStatus, replyById } from '../../store/change-reply.js';

const MAX_STALLS = 2;
const FAR_MS = 3_600_000;

type Step = [name: string, act: (scene: Scene) => Promise<void>];

/** What the store under test knows. */
export interface Knowledge {
  deduplication: boolean;
  schedules: boolean;
  groups: boolean;
  steps: boolean;
  cancelling: boolean;
}

export class ModelQueue implements ModelSessions {
  readonly living = new Map<string, { slots: number }>();
  readonly #namedLocks: ModelNames;
  readonly #random: Random;
  readonly #jobs = new ModelJobs();
  readonly #entries: ModelEntries;
  readonly #schedules: ModelSchedules;
  readonly #groups: ModelGroups;
  readonly #steps: ModelSteps;
  readonly #knows: Knowledge;
  /** Runs that ended. The store must refuse their tokens for ever. */
  readonly #stale: ClaimedJob[] = [];
  readonly #tokens = new Set<string>();
  #lastFence = 0;
  #paused = false;
  #cap: number | undefined = undefined;
  #names = 0;

  constructor(random: Random, knows: Knowledge) {
    this.#random = random;
    this.#knows = knows;
    this.#schedules = new ModelSchedules(random, this.#jobs);
    this.#entries = new ModelEntries(random, this.#jobs);
    this.#groups = new ModelGroups(random, this.#jobs);
    this.#steps = new ModelSteps(random, this.#jobs, { failed: (id) => this.#failedOutside(id) });
    this.#namedLocks = new ModelNames(random, this);
  }

  /** Returns each step as often as its weight says. */
  steps(): Step[] {
    const steps: [number, string, Step[1]][] = [
      [5, 'add', (scene) => this.#add(scene)],
      [2, 'openSession', (scene) => this.#openSession(scene)],
      [6, 'claim', (scene) => this.#claim(scene)],
      [6, 'settle', (scene) => this.#settle(scene)],
      [2, 'take by id', (scene) => this.#takeById(scene)],
      [2, 'settle stale', (scene) => this.#settleStale(scene)],
      [2, 'settle and claim', (scene) => this.#settleAndClaim(scene)],
      [2, 'revoke', (scene) => this.#revoke(scene)],
      [2, 'renew', (scene) => this.#renew(scene)],
      [1, 'close', (scene) => this.#close(scene)],
      [1, 'perish', (scene) => this.#perish(scene)],
      [1, 'sweep', async (scene) => assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] })],
      [1, 'pause', (scene) => this.#pause(scene)],
      [1, 'cap', (scene) => this.#setCap(scene)],
      [1, 'priority', (scene) => this.#changePriority(scene)],
      [5, 'wish', (scene) => this.#namedLocks.wish(scene)],
      [3, 'let go', (scene) => this.#namedLocks.letGo(scene)],
      [2, 'promote', (scene) => this.#promote(scene)],
      [1, 'retry', (scene) => this.#retry(scene)],
      [1, 'remove', (scene) => this.#remove(scene)],
      [1, 'remove by selection', (scene) => this.#clear(scene)],
      [1, 'move by selection', (scene) => this.#requeue(scene)],
    ];
    if (this.#knows.schedules) {
      steps.push([4, 'schedule', (scene) => this.#schedules.change(scene)]);
      steps.push([2, 'advance schedules', (scene) => this.#schedules.advance(scene)]);
    }
    if (this.#knows.groups) steps.push([3, 'limits of groups', (scene) => this.#groups.configure(scene)]);
    if (this.#knows.deduplication) {
      steps.push([1, 'forget entries', (scene) => this.#entries.forget(scene)]);
      steps.push([1, 'end an entry', (scene) => this.#entries.passBrief(scene, [this.#name(), this.#name()])]);
    }
    if (this.#knows.steps) {
      steps.push([4, 'record a step', (scene) => this.#steps.record(scene, this.#running())]);
      steps.push([1, 'record a step late', (scene) => this.#steps.record(scene, this.#stale)]);
      steps.push([3, 'signal', (scene) => this.#steps.signal(scene)]);
      steps.push([1, 'retry from a step', (scene) => this.#retryFromStep(scene)]);
    }
    if (this.#knows.cancelling) {
      steps.push([2, 'cancel', (scene) => this.#steps.cancel(scene)]);
      steps.push([1, 'cancel by selection', (scene) => this.#steps.cancelSelected(scene)]);
    }
    return steps.flatMap(([weight, name, act]) => Array.from({ length: weight }, (): Step => [name, act]));
  }

  /** Compares everything visible in the store with the model. */
  async compare(scene: Scene): Promise<void> {
    const { store, queue } = scene;
    const { counts, paused, cap } = await store.status(queue);
    assert.deepEqual([paused, cap?.maxActive], [this.#paused, this.#cap]);
    const seen: string[] = [];
    for (const name of ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'] as ListName[]) {
      const { jobs: records } = await store.jobs(queue, { lists: [name], start: 0, end: -1, asc: true });
      assert.equal(records.length, counts[name], `the count of ${name} is the length of its list`);
      assert.deepEqual(sorted(ids(records)), sorted(this.#jobs.inList(name)), `who is ${name}`);
      for (const { id, state, stalledCounter, attemptsMade, priority, lostBy, deduplicationId, scheduleId, group } of records) {
        const { stalls, attempts, ...job } = this.#jobs.get(id);
        assert.deepEqual([scheduleId, group], [job.scheduleId, job.group], `the schedule and the group of ${id}`);
        assert.deepEqual(
          [state, stalledCounter, attemptsMade, priority, deduplicationId, readLostBy(lostBy)?.found],
          [job.state, stalls, attempts, job.priority, job.unique, job.found],
          `job ${id}`,
        );
      }
      seen.push(...ids(records));
    }
    assert.equal(new Set(seen).size, seen.length, 'each job is in one list alone');
    await this.#compareLocks(scene);
    await this.#namedLocks.compare(scene);
    if (this.#knows.deduplication) await this.#entries.compare(scene);
    if (this.#knows.groups) await this.#groups.compare(scene);
    if (this.#knows.steps && this.#knows.cancelling) await this.#steps.compare(scene);
  }

  /** Compares what must hold after every step. */
  async check(scene: Scene): Promise<void> {
    this.#groups.arrive();
    if (this.#knows.schedules) await this.#schedules.compare(scene);
  }

  async #compareLocks({ store, queue }: Scene): Promise<void> {
    assert.deepEqual(sorted((await store.sessions(queue)).map(({ id }) => id)), sorted([...this.living.keys()]));
    const owned: string[] = [];
    for (const session of this.living.keys()) {
      for (const { jobId, token } of await store.locks(queue, { session })) {
        assert.deepEqual(this.#jobs.get(jobId).held, { by: session, token });
        owned.push(jobId);
      }
    }
    assert.deepEqual(sorted(owned), sorted(this.#jobs.in('active')), 'each active job has one lock, no other has any');
    for (const [id, job] of this.#jobs)
      assert.equal((await store.locks(queue, { jobIds: [id] }))[0]?.token, job.held?.token, `the lock of ${id}`);
  }

  async #add(scene: Scene): Promise<void> {
    const fresh = Array.from({ length: 1 + this.#random.int(4) }, () => ({
      id: this.#name(),
      priority: this.#random.chance(3) ? 1 + this.#random.int(3) : 0,
      delayMs: this.#random.chance(4) ? FAR_MS : 0,
      lifo: this.#random.chance(5),
      ...this.#line(),
      ...(this.#knows.deduplication && this.#random.chance(2) && { deduplication: this.#entries.mode() }),
    }));
    const known = this.#random
      .some([...this.#jobs.ids(), ...this.#entries.draftIds()], this.#random.int(2))
      .map((id) => ({ id }));
    const call = scene.call('model');
    const jobs = [...fresh, ...known].map((job) => newJob(job) as AddedJob);
    const expected = jobs.map((job) => this.#entries.add(job));
    assert.deepEqual(await scene.store.add(scene.queue, jobs, call), expected);
    if (this.#random.chance(3)) assert.deepEqual(await scene.store.add(scene.queue, jobs, call), expected, 'repeated');
  }

  /** Returns a lock key, a group or neither. */
  #line(): { lockKey?: string; group?: string } {
    if (!this.#random.chance(2)) return {};
    return this.#knows.groups && this.#random.chance(2) ? { group: this.#groups.key() } : { lockKey: `k${this.#random.int(3)}` };
  }

  #name(): string {
    return `j${(this.#names += 1)}`;
  }

  async #openSession(scene: Scene): Promise<void> {
    const slots = this.#random.int(5);
    this.living.set(await scene.session({ maxStalls: MAX_STALLS, durationMs: FAR_MS, slots }), { slots });
  }

  async #claim(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.living.keys()]);
    const request = scene.request(session ?? 'no-session', 1 + this.#random.int(4));
    const { jobs, sessionAlive, undone } = await scene.store.claim(scene.queue, request);
    assert.equal(sessionAlive, session !== undefined);
    this.#granted(session ?? 'no-session', jobs, request.count);
    const debts = jobs.filter(({ debt }) => debt !== undefined).length;
    assert.equal(undone, this.#schedules.owing > debts ? true : undefined, 'undone');
    if (!this.#random.chance(3)) return;
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual(
      again.jobs.map(({ token }) => token),
      jobs.map(({ token }) => token),
      'repeated',
    );
  }

  /** Checks the jobs that a claim returned, and applies the claim to the model. */
  #granted(session: string, jobs: ClaimedJob[], count: number): void {
    const most = this.#paused ? 0 : Math.min(count, this.#roomOf(session));
    this.#groups.arrive();
    this.#groups.checkTurns(jobs, most);
    this.#take(session, jobs);
  }

  #roomOf(session: string): number {
    const own = this.living.get(session);
    if (own === undefined) return 0;
    if (this.#cap === undefined) return Number.POSITIVE_INFINITY;
    const active = this.#jobs.in('active').map((id) => this.#jobs.get(id).held?.by);
    const claimants = [...this.living].map(([id, { slots }]) => ({ id, slots, active: active.filter((by) => by === id).length }));
    const [mine, others] = [claimants.filter(({ id }) => id === session), claimants.filter(({ id }) => id !== session)];
    return roomUnderCap(this.#cap, active.length, only(mine), others);
  }

  #take(session: string, jobs: ClaimedJob[]): void {
    for (const claimed of jobs) {
      const { id, token, fence } = claimed;
      const job = this.#jobs.get(id);
      this.#schedules.claimed(claimed);
      job.starts += 1;
      assert.equal(job.state, 'waiting', `${id} was waiting`);
      assert(this.#jobs.isFree(job.key), `no other job with the key of ${id} is active`);
      assert(!this.#tokens.has(token), 'no token comes twice');
      this.fenceGrew(fence);
      this.#tokens.add(token);
      Object.assign(job, { state: 'active', held: { by: session, token } });
    }
  }

  fenceGrew(fence: number): void {
    assert(fence > this.#lastFence, 'fences only grow');
    this.#lastFence = fence;
  }

  async #takeById(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.living.keys()]);
    if (session === undefined) return;
    const jobIds = [...this.#random.some(this.#jobs.ids(), 4), 'ghost'];
    const request = scene.request(session, 1 + this.#random.int(3), { jobIds });
    const { jobs } = await scene.store.claim(scene.queue, request);
    const hasPlace = (group: string, taken: string[]): boolean => this.#groups.hasPlace(group, taken);
    const expected = this.#jobs.takeable(jobIds, request.count, hasPlace);
    assert.deepEqual(ids(jobs), expected);
    this.#groups.use(jobs);
    this.#take(session, jobs);
  }

  async #setCap(scene: Scene): Promise<void> {
    this.#cap = this.#random.chance(2) ? undefined : 1 + this.#random.int(6);
    await scene.store.configure(scene.queue, { cap: this.#cap === undefined ? null : { maxActive: this.#cap } });
  }

  async #changePriority(scene: Scene): Promise<void> {
    const jobId = this.#random.pick(this.#jobs.ids());
    if (jobId === undefined) return;
    const change = { kind: 'priority', priority: this.#random.int(4), lifo: this.#random.chance(2) } as const;
    assert.deepEqual(await scene.store.change(scene.queue, [jobId], change), changedAll(jobId));
    this.#jobs.get(jobId).priority = change.priority;
  }

  /**
   * Asserts that no job and no lock waiter starves. Every waiting job is claimed in the end, whatever its key and however small the
   * cap. Every lock waiter gets its lock.
   */
  async drain(scene: Scene): Promise<void> {
    const { store, queue } = scene;
    await store.configure(queue, { paused: (this.#paused = false) });
    if (this.#knows.groups) await this.#groups.free(scene);
    await this.#openSession(scene);
    const worker = await scene.session({ durationMs: FAR_MS, slots: 2 });
    this.living.set(worker, { slots: 2 });
    for (let left = this.#jobs.in('waiting').length + this.#entries.drafts + 1; left > 0; left -= 1) {
      const outcomes = this.#running().map((job) => completed(job));
      await scene.finish(...outcomes);
      for (const outcome of outcomes) this.#ended(outcome);
      for (const session of this.living.keys()) this.#granted(session, await scene.claim(session, 2), 2);
      if (this.#jobs.in('waiting').length === 0) break;
    }
    assert.deepEqual(this.#jobs.in('waiting'), [], 'everything that waited was claimed');
    await this.#namedLocks.drain(scene);
  }

  #running(): ClaimedJob[] {
    return [...this.#jobs].flatMap(([id, { held }]) => (held === undefined ? [] : [{ id, token: held.token } as ClaimedJob]));
  }

  #outcome(job: ClaimedJob): Outcome {
    const outcomes = [
      completed(job),
      completed(job, { count: 0 }),
      failed(job),
      retried(job),
      retried(job, FAR_MS),
      delayed(job, FAR_MS),
      released(job),
      returned(job),
      ...(this.#knows.steps ? [this.#steps.sleep(job), this.#steps.sleep(job)] : []),
    ];
    return this.#random.pick(outcomes) ?? assert.fail();
  }

  #ended(outcome: Outcome): void {
    const job = this.#jobs.get(outcome.jobId);
    const wasCancelled = job.cancelled === true;
    if (outcome.kind === 'delay') this.#steps.delayed(job, outcome);
    if (outcome.kind === 'retry' && outcome.delayMs > 0) job.awaits = undefined;
    this.#leave(outcome.jobId, job);
    if (wasCancelled && outcome.kind !== 'completed' && outcome.kind !== 'failed') {
      job.state = 'failed';
      this.#failedOutside(outcome.jobId);
      return;
    }
    if (outcome.kind === 'completed' || outcome.kind === 'failed') {
      job.state = outcome.kind;
      job.attempts += 1;
      this.#entries.ended(outcome.jobId);
      this.#schedules.ended(outcome.jobId);
      if (outcome.keep.count === 0) this.#jobs.delete(outcome.jobId);
    } else {
      job.state = 'delayMs' in outcome && outcome.delayMs > 0 ? 'delayed' : 'waiting';
      if (outcome.kind === 'retry') job.attempts += 1;
      if (outcome.kind === 'return') job.starts -= 1;
    }
  }

  async #settle(scene: Scene): Promise<void> {
    const outcomes = this.#random.some(this.#running(), 3).map((job) => this.#outcome(job));
    const call = scene.call('settler');
    const expected = outcomes.map((outcome) => (this.#steps.isReady(outcome) ? 'ready' : 'done'));
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, expected);
    if (this.#random.chance(3))
      assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, expected, 'repeated');
    for (const [n, outcome] of outcomes.entries()) if (expected[n] === 'done') this.#ended(outcome);
  }

  async #settleStale(scene: Scene): Promise<void> {
    const runs = this.#random.some(this.#stale, 3);
    // The store accepts a repeated finish by its token. So only an outcome that no run can have ended with is certainly refused.
    const results = await scene.settle(...runs.map((job) => delayed(job, 1)));
    assert.deepEqual(
      results,
      runs.map(({ id }) => (this.#jobs.has(id) ? 'lost' : 'missing')),
    );
  }

  async #settleAndClaim(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.living.keys()]);
    if (session === undefined) return;
    const outcomes = this.#random.some(this.#running(), 2).map((job) => this.#outcome(job));
    const call = scene.call(session);
    const request = scene.request(session, 1 + this.#random.int(3), { seq: call.seq });
    const expected = outcomes.map((outcome) => (this.#steps.isReady(outcome) ? 'ready' : 'done'));
    const reply = await scene.store.settle(scene.queue, outcomes, call, request);
    assert.deepEqual(reply.results, expected);
    for (const [n, outcome] of outcomes.entries()) if (expected[n] === 'done') this.#ended(outcome);
    this.#granted(session, reply.claimed?.jobs ?? [], request.count);
  }

  async #revoke(scene: Scene): Promise<void> {
    const chosen = this.#random.some(this.#jobs.ids(), 2);
    const expected = replyById(chosen, this.#statuses(chosen, 'active'));
    assert.deepEqual(await scene.store.change(scene.queue, chosen, { kind: 'revoke', reason: 'model' }), expected);
    for (const id of expected.changed) this.#handBack(id);
  }

  async #renew(scene: Scene): Promise<void> {
    const chosen = [...this.#random.some([...this.living.keys()], 3), 'no-session'];
    const slots = this.#random.chance(2) ? { slots: this.#random.int(5) } : {};
    const replies = await scene.store.renew(chosen.map((id) => ({ queue: scene.queue, id, acked: 0, ...slots })));
    assert.deepEqual(
      replies.map(({ alive }) => alive),
      chosen.map((id) => this.living.has(id)),
    );
    for (const id of chosen) Object.assign(this.living.get(id) ?? {}, slots);
  }

  async #close(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.living.keys()]);
    if (session === undefined) return;
    const how = this.#random.chance(2) ? 'crashed' : 'closed';
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], how);
    this.#died(session, how === 'crashed' ? 'exit' : undefined);
  }

  async #perish(scene: Scene): Promise<void> {
    const session = await scene.briefSession({ maxStalls: MAX_STALLS, slots: 3 });
    this.living.set(session, { slots: 3 });
    await this.#namedLocks.wish(scene, session);
    const { jobs } = await scene.tryClaim(session, 3);
    this.#granted(session, jobs, 3);
    await scene.perish();
    // The session counts as dead for named locks and for the shares of others, before a sweep.
    this.#namedLocks.died(session);
    this.living.delete(session);
    await this.#namedLocks.wish(scene);
    const { stalled, failed: over } = await scene.sweep(2);
    assert.deepEqual(sorted([...stalled, ...over]), sorted(ids(jobs)));
    this.#died(session, 'session-expired');
    assert.deepEqual(sorted(over), sorted(ids(jobs).filter((id) => this.#jobs.get(id).state === 'failed')));
  }

  /** `found` says how the loss was found; undefined if it does not count as a stall. */
  #died(session: string, found: LossFound | undefined): void {
    for (const [id, job] of this.#jobs) if (job.held?.by === session) this.#handBack(id, found);
    this.#namedLocks.died(session);
    this.living.delete(session);
  }

  #handBack(id: string, found?: LossFound): void {
    const job = this.#jobs.get(id);
    const wasCancelled = job.cancelled === true;
    this.#leave(id, job);
    job.state = 'waiting';
    if (found !== undefined) {
      job.stalls += 1;
      job.found = found;
    }
    if (!wasCancelled && (found === undefined || job.stalls <= MAX_STALLS)) return;
    job.state = 'failed';
    this.#failedOutside(id);
  }

  /** A job has failed without an outcome of its run. */
  #failedOutside(id: string): void {
    this.#entries.ended(id);
    this.#schedules.ended(id);
  }

  async #retryFromStep(scene: Scene): Promise<void> {
    const jobId = await this.#steps.retryFrom(scene);
    if (jobId !== undefined) this.#entries.reopened(jobId);
  }

  #leave(id: string, job: ModelJob): void {
    if (job.held !== undefined) this.#stale.push({ id, token: job.held.token } as ClaimedJob);
    delete job.held;
    delete job.cancelled;
  }

  async #pause(scene: Scene): Promise<void> {
    this.#paused = !this.#paused && this.#random.chance(2);
    await scene.store.configure(scene.queue, { paused: this.#paused });
  }

  async #promote(scene: Scene): Promise<void> {
    const chosen = this.#random.some(this.#jobs.ids(), 2);
    const expected = replyById(chosen, this.#statuses(chosen, 'delayed'));
    assert.deepEqual(await scene.store.change(scene.queue, chosen, { kind: 'promote' }), expected);
    for (const id of expected.changed) this.#jobs.get(id).state = 'waiting';
  }

  #statuses(jobIds: string[], from: ModelJob['state']): ChangeStatus[] {
    return jobIds.map((id) => (this.#jobs.get(id).state === from ? 'done' : 'state'));
  }

  async #retry(scene: Scene): Promise<void> {
    const jobId = this.#random.pick(this.#jobs.in('failed'));
    if (jobId === undefined) return;
    const change = { kind: 'retry', from: 'failed', resetAttemptsMade: true, resetAttemptsStarted: true } as const;
    assert.deepEqual(await scene.store.change(scene.queue, [jobId], change), changedAll(jobId));
    Object.assign(this.#jobs.get(jobId), { state: 'waiting', attempts: 0 });
    this.#entries.reopened(jobId);
  }

  async #remove(scene: Scene): Promise<void> {
    const chosen = [...this.#random.some(this.#jobs.ids(), 2), 'ghost'];
    const expected = replyById(
      chosen,
      chosen.map((id) => this.#removal(id)),
    );
    assert.deepEqual(await scene.store.change(scene.queue, chosen, { kind: 'remove' }), expected);
    for (const id of expected.changed) this.#drop(id);
  }

  #removal(id: string): ChangeStatus {
    if (!this.#jobs.has(id)) return 'missing';
    if (this.#jobs.get(id).held !== undefined) return 'locked';
    return this.#schedules.isNext(id) ? 'scheduled' : 'done';
  }

  async #clear(scene: Scene): Promise<void> {
    const list = this.#random.pick(['completed', 'failed', 'delayed', 'prioritized'] as const) ?? 'completed';
    const there = this.#jobs.inList(list).filter((id) => !this.#schedules.isNext(id));
    const cleared = (await scene.store.change(scene.queue, { lists: [list], limit: 2 }, { kind: 'remove' })).changed;
    assert.equal(cleared.length, Math.min(2, there.length));
    for (const id of cleared) {
      assert(there.includes(id), `${id} is ${list}`);
      this.#drop(id);
    }
  }

  #drop(id: string): void {
    this.#jobs.delete(id);
    this.#entries.removed(id);
  }

  async #requeue(scene: Scene): Promise<void> {
    const state = this.#random.pick(['completed', 'failed', 'delayed'] as const) ?? 'completed';
    const chosen = this.#jobs.in(state);
    const change = state === 'delayed' ? ({ kind: 'promote' } as const) : retryFrom(state);
    const { changed } = await scene.store.change(scene.queue, { lists: [state], limit: 1_000 }, change);
    assert.deepEqual(sorted(changed), sorted(chosen));
    // If two of the jobs have the same deduplication id, the first one owns its entry.
    for (const id of changed) this.#jobs.get(id).state = 'waiting';
    if (state !== 'delayed') for (const id of changed) this.#entries.reopened(id);
  }
}
