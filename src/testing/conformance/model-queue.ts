// The model that random verbs are compared with: what a queue is, without time (delays are far away, sessions die on request).
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import type { ListName } from '../../store/contract.js';
import { ids, sorted } from './expect.js';
import type { Random } from './random.js';
import { completed, delayed, failed, newJob, released, retried } from './samples.js';
import type { Scene } from './scene.js';

const MAX_STALLS = 2;
const FAR_MS = 3_600_000;

interface ModelJob {
  state: StoredState;
  priority: number;
  stalls: number;
  attempts: number;
  /** While active. */
  held?: { by: string; token: string };
}

type Step = [name: string, act: (scene: Scene) => Promise<void>];

export class ModelQueue {
  readonly #random: Random;
  readonly #jobs = new Map<string, ModelJob>();
  readonly #sessions = new Set<string>();
  /** Runs that ended: their tokens must be refused for ever. */
  readonly #stale: ClaimedJob[] = [];
  readonly #tokens = new Set<string>();
  #lastFence = 0;
  #paused = false;
  #names = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Each as often as it is to be chosen. */
  steps(): Step[] {
    const steps: [number, string, Step[1]][] = [
      [5, 'add', (scene) => this.#add(scene)],
      [2, 'openSession', (scene) => this.#openSession(scene)],
      [6, 'claim', (scene) => this.#claim(scene)],
      [6, 'settle', (scene) => this.#settle(scene)],
      [2, 'settle stale', (scene) => this.#settleStale(scene)],
      [2, 'settle and claim', (scene) => this.#settleAndClaim(scene)],
      [2, 'revoke', (scene) => this.#revoke(scene)],
      [2, 'renew', (scene) => this.#renew(scene)],
      [1, 'close', (scene) => this.#close(scene)],
      [1, 'perish', (scene) => this.#perish(scene)],
      [1, 'sweep', async (scene) => assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] })],
      [1, 'pause', (scene) => this.#pause(scene)],
      [2, 'promote', (scene) => this.#promote(scene)],
      [1, 'retry', (scene) => this.#retry(scene)],
      [1, 'remove', (scene) => this.#remove(scene)],
      [1, 'clear', (scene) => this.#clear(scene)],
      [1, 'requeue', (scene) => this.#requeue(scene)],
    ];
    return steps.flatMap(([weight, name, act]) => Array.from({ length: weight }, (): Step => [name, act]));
  }

  /** Everything that can be seen, against everything that is known. */
  async compare(scene: Scene): Promise<void> {
    const { store, queue } = scene;
    const { counts, paused } = await store.status(queue);
    assert.equal(paused, this.#paused);
    const seen: string[] = [];
    for (const name of ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'] as ListName[]) {
      const records = await store.list(queue, { lists: [name], start: 0, end: -1, asc: true });
      assert.equal(records.length, counts[name], `the count of ${name} is the length of its list`);
      assert.deepEqual(sorted(ids(records)), sorted(this.#inList(name)), `who is ${name}`);
      for (const { id, state, stalledCounter, attemptsMade, priority } of records) {
        const { stalls, attempts, ...job } = this.#job(id);
        assert.deepEqual(
          [state, stalledCounter, attemptsMade, priority],
          [job.state, stalls, attempts, job.priority],
          `job ${id}`,
        );
      }
      seen.push(...ids(records));
    }
    assert.equal(new Set(seen).size, seen.length, 'each job is in one list alone');
    await this.#compareLocks(scene);
  }

  async #compareLocks({ store, queue }: Scene): Promise<void> {
    assert.deepEqual(sorted((await store.sessions(queue)).map(({ id }) => id)), sorted([...this.#sessions]));
    const owned: string[] = [];
    for (const session of this.#sessions) {
      for (const { jobId, token } of await store.owned(queue, session)) {
        assert.deepEqual(this.#job(jobId).held, { by: session, token });
        owned.push(jobId);
      }
    }
    assert.deepEqual(sorted(owned), sorted(this.#in('active')), 'each active job has one lock, no other has any');
    for (const [id, job] of this.#jobs)
      assert.equal((await store.lockOf(queue, id))?.token, job.held?.token, `the lock of ${id}`);
  }

  async #add(scene: Scene): Promise<void> {
    const fresh = Array.from({ length: 1 + this.#random.int(4) }, () => ({
      id: `j${(this.#names += 1)}`,
      priority: this.#random.chance(3) ? 1 + this.#random.int(3) : 0,
      delayMs: this.#random.chance(4) ? FAR_MS : 0,
      lifo: this.#random.chance(5),
    }));
    const known = this.#random.some([...this.#jobs.keys()], this.#random.int(2)).map((id) => ({ id }));
    const call = scene.call('model');
    const jobs = [...fresh, ...known].map(newJob);
    const expected = [...fresh.map(({ id }) => ({ id, duplicate: false })), ...known.map(({ id }) => ({ id, duplicate: true }))];
    assert.deepEqual(await scene.store.add(scene.queue, jobs, call), expected);
    if (this.#random.chance(3)) assert.deepEqual(await scene.store.add(scene.queue, jobs, call), expected, 'repeated');
    for (const { id, priority, delayMs } of fresh) {
      this.#jobs.set(id, { state: delayMs > 0 ? 'delayed' : 'waiting', priority, stalls: 0, attempts: 0 });
    }
  }

  async #openSession(scene: Scene): Promise<void> {
    this.#sessions.add(await scene.session({ maxStalls: MAX_STALLS, durationMs: FAR_MS }));
  }

  async #claim(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.#sessions]);
    const request = scene.request(session ?? 'nobody', 1 + this.#random.int(4));
    const { jobs, sessionAlive } = await scene.store.claim(scene.queue, request);
    assert.equal(sessionAlive, session !== undefined);
    this.#granted(session ?? 'nobody', jobs, request.count);
    if (!this.#random.chance(3)) return;
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual(
      again.jobs.map(({ token }) => token),
      jobs.map(({ token }) => token),
      'repeated',
    );
  }

  /** Checks what a claim handed out, and makes it so in the model. */
  #granted(session: string, jobs: ClaimedJob[], count: number): void {
    const waiting = this.#in('waiting').map((id) => this.#job(id).priority);
    const most = this.#paused || !this.#sessions.has(session) ? 0 : Math.min(count, waiting.length);
    assert.deepEqual(
      jobs.map(({ priority }) => priority),
      waiting.sort((a, b) => a - b).slice(0, most),
      'as many as there are, the smallest priorities first',
    );
    for (const { id, token, fence } of jobs) {
      assert.equal(this.#job(id).state, 'waiting', `${id} was waiting`);
      assert(fence > this.#lastFence, 'fences only grow');
      assert(!this.#tokens.has(token), 'no token comes twice');
      this.#lastFence = fence;
      this.#tokens.add(token);
      Object.assign(this.#job(id), { state: 'active', held: { by: session, token } });
    }
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
    ];
    return this.#random.pick(outcomes) ?? assert.fail();
  }

  #ended(outcome: Outcome): void {
    const job = this.#job(outcome.jobId);
    this.#leave(outcome.jobId, job);
    if (outcome.kind === 'completed' || outcome.kind === 'failed') {
      job.state = outcome.kind;
      job.attempts += 1;
      if (outcome.keep.count === 0) this.#jobs.delete(outcome.jobId);
    } else {
      job.state = 'delayMs' in outcome && outcome.delayMs > 0 ? 'delayed' : 'waiting';
      if (outcome.kind === 'retry') job.attempts += 1;
    }
  }

  async #settle(scene: Scene): Promise<void> {
    const outcomes = this.#random.some(this.#running(), 3).map((job) => this.#outcome(job));
    const call = scene.call('settler');
    const expected = outcomes.map(() => 'done');
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, expected);
    if (this.#random.chance(3))
      assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, expected, 'repeated');
    for (const outcome of outcomes) this.#ended(outcome);
  }

  async #settleStale(scene: Scene): Promise<void> {
    const runs = this.#random.some(this.#stale, 3);
    // A finish is recognised by its token, so only moves that no run can have ended with are surely refused.
    const results = await scene.settle(...runs.map((job) => delayed(job, 1)));
    assert.deepEqual(
      results,
      runs.map(({ id }) => (this.#jobs.has(id) ? 'lost' : 'missing')),
    );
  }

  async #settleAndClaim(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.#sessions]);
    if (session === undefined) return;
    const outcomes = this.#random.some(this.#running(), 2).map((job) => this.#outcome(job));
    const call = scene.call(session);
    const request = scene.request(session, 1 + this.#random.int(3), { seq: call.seq });
    const reply = await scene.store.settle(scene.queue, outcomes, call, request);
    assert.deepEqual(
      reply.results,
      outcomes.map(() => 'done'),
    );
    for (const outcome of outcomes) this.#ended(outcome);
    this.#granted(session, reply.claimed?.jobs ?? [], request.count);
  }

  async #revoke(scene: Scene): Promise<void> {
    const chosen = this.#random.some([...this.#jobs.keys()], 2);
    const active = chosen.map((id) => this.#job(id).state === 'active');
    assert.deepEqual(await scene.store.revoke(scene.queue, chosen, 'model'), active);
    for (const id of chosen.filter((_, index) => active[index])) this.#handBack(id, 0);
  }

  async #renew(scene: Scene): Promise<void> {
    const chosen = [...this.#random.some([...this.#sessions], 3), 'nobody'];
    const replies = await scene.store.renew(chosen.map((id) => ({ queue: scene.queue, id, acked: 0 })));
    assert.deepEqual(
      replies.map(({ alive }) => alive),
      chosen.map((id) => this.#sessions.has(id)),
    );
  }

  async #close(scene: Scene): Promise<void> {
    const session = this.#random.pick([...this.#sessions]);
    if (session === undefined) return;
    const charged = this.#random.chance(2);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], charged);
    this.#died(session, charged ? 1 : 0);
  }

  async #perish(scene: Scene): Promise<void> {
    const session = await scene.briefSession({ maxStalls: MAX_STALLS });
    this.#sessions.add(session);
    const { jobs } = await scene.tryClaim(session, 3);
    this.#granted(session, jobs, 3);
    await scene.perish();
    const { stalled, failed: over } = await scene.sweep(2);
    assert.deepEqual(sorted([...stalled, ...over]), sorted(ids(jobs)));
    this.#died(session, 1);
    assert.deepEqual(sorted(over), sorted(ids(jobs).filter((id) => this.#job(id).state === 'failed')));
  }

  #died(session: string, charge: number): void {
    for (const [id, job] of this.#jobs) if (job.held?.by === session) this.#handBack(id, charge);
    this.#sessions.delete(session);
  }

  #handBack(id: string, charge: number): void {
    const job = this.#job(id);
    this.#leave(id, job);
    job.stalls += charge;
    job.state = charge > 0 && job.stalls > MAX_STALLS ? 'failed' : 'waiting';
  }

  #leave(id: string, job: ModelJob): void {
    if (job.held !== undefined) this.#stale.push({ id, token: job.held.token } as ClaimedJob);
    delete job.held;
  }

  async #pause(scene: Scene): Promise<void> {
    this.#paused = !this.#paused && this.#random.chance(2);
    await scene.store.pause(scene.queue, this.#paused);
  }

  async #promote(scene: Scene): Promise<void> {
    const chosen = this.#random.some([...this.#jobs.keys()], 2);
    const expected = chosen.map((id) => (this.#job(id).state === 'delayed' ? 'done' : 'state'));
    assert.deepEqual(
      await scene.store.change(
        scene.queue,
        chosen.map((jobId) => ({ jobId, kind: 'promote' }) as const),
      ),
      expected,
    );
    for (const id of chosen) if (this.#job(id).state === 'delayed') this.#job(id).state = 'waiting';
  }

  async #retry(scene: Scene): Promise<void> {
    const jobId = this.#random.pick(this.#in('failed'));
    if (jobId === undefined) return;
    const change = { jobId, kind: 'retry', from: 'failed', resetAttemptsMade: true, resetAttemptsStarted: true } as const;
    assert.deepEqual(await scene.store.change(scene.queue, [change]), ['done']);
    Object.assign(this.#job(jobId), { state: 'waiting', attempts: 0 });
  }

  async #remove(scene: Scene): Promise<void> {
    const chosen = [...this.#random.some([...this.#jobs.keys()], 2), 'ghost'];
    const expected = chosen.map((id) => (this.#jobs.has(id) ? (this.#job(id).held ? 'locked' : 'done') : 'missing'));
    assert.deepEqual(await scene.store.remove(scene.queue, chosen), expected);
    chosen.forEach((id, index) => expected[index] === 'done' && this.#jobs.delete(id));
  }

  async #clear(scene: Scene): Promise<void> {
    const state = this.#random.pick(['completed', 'failed', 'delayed'] as const) ?? 'completed';
    const cleared = await scene.store.clear(scene.queue, { states: [state], limit: 2 });
    assert.equal(cleared.length, Math.min(2, this.#in(state).length));
    for (const id of cleared) {
      assert.equal(this.#job(id).state, state);
      this.#jobs.delete(id);
    }
  }

  async #requeue(scene: Scene): Promise<void> {
    const state = this.#random.pick(['completed', 'failed', 'delayed'] as const) ?? 'completed';
    const chosen = this.#in(state);
    assert.equal(await scene.store.requeue(scene.queue, { states: [state], limit: 1_000 }), chosen.length);
    for (const id of chosen) this.#job(id).state = 'waiting';
  }

  #job(id: string): ModelJob {
    return this.#jobs.get(id) ?? assert.fail(`the model knows no job ${id}`);
  }

  #in(state: StoredState): string[] {
    return [...this.#jobs].filter(([, job]) => job.state === state).map(([id]) => id);
  }

  #inList(name: ListName): string[] {
    if (name === 'prioritized') return this.#in('waiting').filter((id) => this.#job(id).priority > 0);
    if (name === 'waiting') return this.#in('waiting').filter((id) => this.#job(id).priority === 0);
    return this.#in(name);
  }
}
