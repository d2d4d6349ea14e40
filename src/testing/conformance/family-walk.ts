// Random verbs on the families of three queues, for the random work of the suite. After each verb all messages are delivered and
// the store is compared with the model: lists, records, and the links of every job that the verb concerned.
import assert from 'node:assert/strict';
import { FAILURE_INSTRUCTIONS, LINK_STATES, type JobRef, type ParentLink, refKey } from '../../job/family.js';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { Change, ListName } from '../../store/contract/index.js';
import { STALLED_REASON } from '../../store/contract/index.js';
import { changedAll, sorted } from './expect.js';
import { type FamilyJob, type FamilyMember, ModelFamilies } from './model-families.js';
import type { Random } from './random.js';
import { completed, delayed, failed, newJob, released, retried, retryFrom, returned } from './samples.js';
import type { Scene } from './scene.js';

const FAR_MS = 3_600_000;
const MAX_STALLS = 1;
const QUEUES = 3;
/** No more jobs than this, so that verbs meet related jobs. */
const CROWD = 40;
const LISTS: ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'waiting-children'];
const INSTRUCTIONS = [...Object.values(FAILURE_INSTRUCTIONS), undefined];

type Step = [name: string, act: (scene: Scene) => Promise<void>];

export class FamilyWalk {
  readonly queues: string[];
  readonly #random: Random;
  readonly #model = new ModelFamilies();
  /** The session that claims in each queue. */
  readonly #sessions = new Map<string, string>();
  readonly #stale: { queue: string; id: string; token: string }[] = [];
  #names = 0;

  constructor(random: Random, queue: string) {
    this.#random = random;
    this.queues = Array.from({ length: QUEUES }, (_, n) => `${queue}-${n}`);
  }

  /** Returns each step as often as its weight says. */
  steps(): Step[] {
    const steps: [number, string, Step[1]][] = [
      [8, 'add', (scene) => this.#add(scene)],
      [6, 'claim', (scene) => this.#claim(scene)],
      [6, 'claim by id', (scene) => this.#claimById(scene)],
      [12, 'settle', (scene) => this.#settle(scene)],
      [1, 'settle stale', (scene) => this.#settleStale(scene)],
      [2, 'crash', (scene) => this.#crash(scene)],
      [2, 'sweep', (scene) => this.#sweep(scene)],
      [1, 'revoke', (scene) => this.#revoke(scene)],
      [3, 'retry', (scene) => this.#retry(scene)],
      [2, 'promote', (scene) => this.#promote(scene)],
      [2, 'remove', (scene) => this.#remove(scene)],
      [2, 'remove by selection', (scene) => this.#removeSelected(scene)],
      [2, 'unlink', (scene) => this.#unlink(scene)],
      [3, 'send', (scene) => this.#send(scene)],
    ];
    return steps.flatMap(([weight, name, act]) => Array.from({ length: weight }, (): Step => [name, act]));
  }

  /** Delivers all messages of all queues. */
  async relay(scene: Scene): Promise<void> {
    for (let round = 0; round < 10_000; round += 1) {
      let idle = true;
      for (const queue of this.queues) {
        const { delivered, more } = await scene.store.relay(queue, 100);
        if (delivered > 0 || more) idle = false;
      }
      if (idle) return;
    }
    assert.fail('relay delivered messages ten thousand times');
  }

  /** Compares all lists and records, and the links of the jobs that the last verb concerned (`all`: of all jobs). */
  async compare(scene: Scene, all = false): Promise<void> {
    const states = new Map((await Promise.all(this.queues.map((queue) => this.#compareQueue(scene, queue)))).flat());
    const members = this.#model.all().filter((member) => all || this.#model.touched.has(refKey(member)));
    await Promise.all(members.map((member) => this.#compareLinks(scene, member, states)));
    this.#model.touched.clear();
  }

  /** Asserts that everything ends: no parent waits when all its children have ended. */
  async drain(scene: Scene): Promise<void> {
    for (let round = 0; round < 2 * CROWD; round += 1) {
      let idle = true;
      for (const queue of this.queues) if (await this.#drainQueue(scene, queue)) idle = false;
      await this.relay(scene);
      await this.compare(scene);
      if (idle) break;
    }
    const open = this.#model.all().filter(({ state }) => state !== 'completed' && state !== 'failed');
    assert.deepEqual(
      open.map(({ id, state }) => `${id} ${state}`),
      [],
      'everything ended',
    );
  }

  /** Returns true if a job of the queue changed. */
  async #drainQueue(scene: Scene, queue: string): Promise<boolean> {
    const { store } = scene;
    const due = this.#model.of(queue, 'delayed');
    if (due.length > 0)
      await store.change(
        queue,
        due.map(({ id }) => id),
        { kind: 'promote' },
      );
    for (const member of due) member.state = 'waiting';
    const stuck = this.#model.of(queue, 'failed').filter((member) => this.#waitingFor(member).length > 0);
    for (const member of stuck) await this.#unstick(scene, member);
    this.#granted(queue, await scene.at(queue).claim(await this.#session(scene, queue), 1_000));
    const active = this.#model.of(queue, 'active');
    for (const member of active) {
      const job = claimOf(member);
      const way = this.#model.hasFailed(member)
        ? failed(job)
        : this.#model.pendingOf(member).length > 0
          ? waits(job)
          : completed(job);
      assert.deepEqual(await scene.at(queue).settle(way), [this.#model.settle(member, way)]);
      await this.relay(scene);
    }
    return due.length + stuck.length + active.length > 0;
  }

  /** A failed job keeps its parents waiting. It is retried, or parted from them if its own children let it fail again. */
  async #unstick({ store }: Scene, member: FamilyMember): Promise<void> {
    if (!this.#model.hasFailed(member)) {
      assert.deepEqual(await store.change(member.queue, [member.id], retryFrom('failed')), changedAll(member.id));
      this.#model.reopen(member);
      return;
    }
    const child = { queue: member.queue, id: member.id };
    for (const parent of this.#waitingFor(member)) {
      assert.deepEqual(await store.change(parent.queue, [parent.id], { kind: 'unlink', child }), changedAll(parent.id));
      this.#model.unlink(parent, child);
    }
  }

  /** Returns the parents that wait for this job. */
  #waitingFor(member: FamilyMember): FamilyMember[] {
    return member.parents.flatMap((ref) => {
      const parent = this.#model.find(ref);
      const isWaiting = parent?.state === 'waiting-children' && parent.links.get(refKey(member))?.state === 'pending';
      return parent !== undefined && isWaiting ? [parent] : [];
    });
  }

  /** Returns the state of each job. */
  async #compareQueue({ store }: Scene, queue: string): Promise<[key: string, state: string][]> {
    const listed = store.jobs(queue, { lists: LISTS, start: 0, end: -1, asc: true });
    const [{ counts }, { jobs }] = await Promise.all([store.status(queue), listed]);
    const members = this.#model.of(queue);
    assert.deepEqual(
      sorted(jobs.map(({ id, state }) => `${id} ${state}`)),
      sorted(members.map(({ id, state }) => `${id} ${state}`)),
    );
    const waiting = this.#model.of(queue, 'waiting-children').length;
    assert.equal(counts['waiting-children'], waiting, 'the count of waiting-children');
    for (const record of jobs) this.#compareRecord(queue, record);
    return jobs.map(({ id, state }) => [refKey({ queue, id }), state]);
  }

  #compareRecord(queue: string, record: JobRecord): void {
    const { id, doomedBy, origin, parents = [], deadLetter, attemptsMade, stalledCounter, priority } = record;
    const member = this.#model.get({ queue, id });
    const { failedOn, ...letter } = origin ?? { failedOn: undefined };
    assert.equal(failedOn === undefined, member.origin === undefined, `${id} is a letter`);
    assert.deepEqual(letter, member.origin ?? {}, `the origin of ${id}`);
    assert.deepEqual(
      [deadLetter, attemptsMade, stalledCounter, priority],
      [member.deadLetter, member.attempts, member.stalls, member.priority],
      `the fields of ${id}`,
    );
    const byKey = (a: ParentLink, b: ParentLink): number => (refKey(a) < refKey(b) ? -1 : 1);
    assert.deepEqual(parents.toSorted(byKey), member.parents.toSorted(byKey), `the parents of ${id}`);
    const dooms = doomedBy === undefined ? member.doomers.size === 0 : member.doomers.has(refKey(doomedBy));
    assert(dooms, `${id} is doomed by one of ${[...member.doomers].join(', ')}, not by ${JSON.stringify(doomedBy)}`);
  }

  async #compareLinks({ store }: Scene, member: FamilyMember, states: Map<string, string>): Promise<void> {
    const { queue, id, state, links: expected } = member;
    const reply = await this.#links(store, member);
    assert.deepEqual(sorted(reply.links.map(linkText)), sorted([...expected.values()].map(linkText)), `the links of ${id}`);
    for (const name of LINK_STATES) {
      const there = reply.links.filter((link) => link.state === name).length;
      assert.equal(reply.counts[name], there, `the count of ${name} links of ${id}`);
    }
    assert(state !== 'waiting-children' || reply.counts.pending > 0, `${id} waits for a child`);
    for (const { child, state: ofLink } of reply.links) {
      if (ofLink !== 'pending') continue;
      const found = states.get(refKey(child));
      assert(found !== undefined && found !== 'completed', `${child.id}, a pending child of ${id} in ${queue}, is open`);
    }
  }

  /** Reads the links in one page or in pages of two. */
  async #links(store: Scene['store'], { queue, id }: JobRef): ReturnType<Scene['store']['children']> {
    const limit = this.#random.chance(3) ? 2 : 1_000;
    const reply = await store.children(queue, id, { states: [...LINK_STATES], limit });
    for (let { next } = reply; next !== undefined; ) {
      const page = await store.children(queue, id, { states: [...LINK_STATES], limit, after: next });
      reply.links.push(...page.links);
      next = page.next;
    }
    return reply;
  }

  async #add(scene: Scene): Promise<void> {
    const jobs = this.#tree();
    const queue = jobs[0]?.queue ?? assert.fail('a tree has a root');
    const call = scene.call('model');
    const expected = this.#model.add(jobs);
    // A job of the queue that the call names may leave its queue out.
    const given = jobs.map(({ queue: own, ...job }) => (own === queue && this.#random.chance(2) ? job : { ...job, queue: own }));
    assert.deepEqual(await scene.store.add(queue, given, call), expected);
    if (this.#random.chance(4)) assert.deepEqual(await scene.store.add(queue, given, call), expected, 'repeated');
  }

  /** Returns a root, and jobs whose parents stand before them or exist. */
  #tree(): FamilyJob[] {
    const crowded = this.#model.all().length > CROWD;
    const jobs: FamilyJob[] = [];
    const count = 1 + this.#random.int(crowded ? 2 : 5);
    for (let n = 0; n < count; n += 1) {
      const known = n > 0 && this.#random.chance(4) ? this.#random.pick(this.#model.all()) : undefined;
      const own = this.#random.chance(2) ? jobs[0]?.queue : undefined;
      const { queue, id } = known ?? { queue: own ?? this.#queue(), id: `j${(this.#names += 1)}` };
      if (jobs.some((job) => job.id === id && job.queue === queue)) continue;
      const parents = this.#parents({ queue, id }, jobs);
      // Only the last job, because the contract does not say what its own children would be called.
      if (n === count - 1 && this.#random.chance(12)) parents.push({ queue: this.#queue(), id: 'nowhere' });
      jobs.push(this.#job({ queue, id }, parents));
    }
    return jobs;
  }

  /** Returns up to two parents, and now and then a third that exists. No job becomes a parent of its own ancestors. */
  #parents(child: JobRef, jobs: FamilyJob[]): ParentLink[] {
    const known = this.#model.all().filter((member) => !this.#reaches(member, child, jobs));
    const before = jobs.filter((job) => !this.#reaches(job, child, jobs));
    const chosen: JobRef[] = this.#random.some(before, this.#random.pick([1, 1, 1, 2]) ?? 1);
    if (this.#random.chance(6)) chosen.push(...this.#random.some(known, 1));
    const distinct = chosen.filter((one, index) => chosen.findIndex((other) => refKey(other) === refKey(one)) === index);
    return distinct.map(({ queue, id }) => {
      const onFailure = this.#random.pick(INSTRUCTIONS);
      return { queue, id, ...(onFailure !== undefined && { onFailure }) };
    });
  }

  /** True if `ancestor` is an ancestor of the job, also by parents that this call gives. */
  #reaches(ref: JobRef, ancestor: JobRef, jobs: FamilyJob[]): boolean {
    if (this.#model.descends(ref, ancestor)) return true;
    const own = jobs.find((job) => refKey(job as JobRef) === refKey(ref))?.parents ?? [];
    const known = this.#model.find(ref)?.parents ?? [];
    return [...own, ...known].some((parent) => this.#reaches(parent, ancestor, jobs));
  }

  #job(ref: JobRef, parents: ParentLink[]): FamilyJob {
    return {
      ...newJob(),
      ...ref,
      priority: this.#random.chance(4) ? 1 + this.#random.int(2) : 0,
      delayMs: this.#random.chance(6) ? FAR_MS : 0,
      ...(this.#random.chance(5) && { lockKey: `k${this.#random.int(2)}` }),
      ...(this.#random.chance(3) && { deadLetter: this.#queue() }),
      ...(this.#random.chance(2) && { waitsForChildren: true }),
      ...(parents.length > 0 && { parents }),
      ...(this.#random.chance(2) && { shares: true }),
    };
  }

  #queue(): string {
    return this.#random.pick(this.queues) ?? assert.fail();
  }

  async #session(scene: Scene, queue: string): Promise<string> {
    const known = this.#sessions.get(queue) ?? (await scene.at(queue).session({ maxStalls: MAX_STALLS, durationMs: FAR_MS }));
    this.#sessions.set(queue, known);
    return known;
  }

  async #claim(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const session = await this.#session(scene, queue);
    const count = 1 + this.#random.int(3);
    const { jobs, undone } = await scene.at(queue).tryClaim(session, count);
    assert.equal(undone, undefined, 'nothing is undone after all messages are delivered');
    const free = this.#model.of(queue, 'waiting').filter(({ key }) => this.#isFree(queue, key));
    const keys = new Set(free.flatMap(({ key }) => key ?? []));
    const claimable = free.filter(({ key }) => key === undefined).length + keys.size;
    assert.equal(jobs.length, Math.min(count, claimable), 'how many jobs were claimed');
    this.#granted(queue, jobs);
  }

  async #claimById(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const jobIds = this.#random.some(this.#model.of(queue), 3).map(({ id }) => id);
    if (jobIds.length === 0) return;
    const session = await this.#session(scene, queue);
    const jobs = await scene.at(queue).claim(session, 3, { jobIds });
    assert.deepEqual(
      jobs.map(({ id }) => id),
      this.#takeable(queue, jobIds),
    );
    this.#granted(queue, jobs);
  }

  /** Returns the named jobs that a claim takes. */
  #takeable(queue: string, jobIds: string[]): string[] {
    const keys = new Set<string>();
    return jobIds.filter((id) => {
      const { state, key } = this.#model.get({ queue, id });
      if (state !== 'waiting' || !this.#isFree(queue, key) || (key !== undefined && keys.has(key))) return false;
      if (key !== undefined) keys.add(key);
      return true;
    });
  }

  #isFree(queue: string, key: string | undefined): boolean {
    return key === undefined || !this.#model.of(queue, 'active').some((member) => member.key === key);
  }

  #granted(queue: string, jobs: ClaimedJob[], session = this.#sessions.get(queue) ?? assert.fail()): void {
    for (const job of jobs) {
      const member = this.#model.get({ queue, id: job.id });
      assert.equal(member.state, 'waiting', `${job.id} was waiting`);
      this.#compareRecord(queue, job);
      Object.assign(member, { state: 'active', held: { session, token: job.token, fence: job.fence } });
    }
  }

  #outcome(member: FamilyMember): Outcome {
    const job = claimOf(member);
    const child = this.#random.pick([...member.links.values()])?.child;
    const outcomes = [
      ...[completed(job), completed(job, {}, `"${member.id}"`), completed(job, { count: 0 })],
      ...[failed(job), failed(job), failed(job, { count: 0 })],
      ...[retried(job), retried(job, FAR_MS), delayed(job, FAR_MS), released(job), returned(job)],
      ...[waits(job), child === undefined ? waits(job) : waits(job, child)],
    ];
    return this.#random.pick(outcomes) ?? assert.fail();
  }

  async #settle(scene: Scene): Promise<void> {
    const queue = this.#queue();
    // Whether the end of a child counts for a parent in the same call depends on when the store delivers messages.
    const [first, ...others] = this.#random.some(this.#model.of(queue, 'active'), 3);
    if (first === undefined) return;
    const members = [first, ...others.filter((other) => !this.#model.areRelated(first, other)).slice(0, 1)];
    const outcomes = members.map((member) => this.#outcome(member));
    const call = scene.call(`settler-of-${queue}`);
    const before = members.map((member) => ({ ...member, held: member.held }));
    const { results } = await scene.store.settle(queue, outcomes, call);
    const expected = members.map((member, index) => this.#model.settle(member, outcomes[index] ?? assert.fail()));
    assert.deepEqual(results, expected, `the results of ${outcomes.map(({ kind }) => kind).join(', ')}`);
    for (const [index, { id, held }] of before.entries())
      if (results[index] === 'done' && held !== undefined) this.#stale.push({ queue, id, token: held.token });
    if (this.#random.chance(4)) assert.deepEqual((await scene.store.settle(queue, outcomes, call)).results, expected, 'repeated');
  }

  async #settleStale(scene: Scene): Promise<void> {
    const run = this.#random.pick(this.#stale);
    if (run === undefined) return;
    const outcome =
      this.#random.pick([delayed(run as unknown as ClaimedJob, 1), waits(run as unknown as ClaimedJob)]) ?? assert.fail();
    const expected = this.#model.find(run) === undefined ? 'missing' : 'lost';
    assert.deepEqual(await scene.at(run.queue).settle(outcome), [expected]);
  }

  /** Whether a child that fails dooms a parent of the same dead session depends on when the store delivers messages. */
  #haveRelated(members: FamilyMember[]): boolean {
    return members.some((one) => members.some((other) => one !== other && this.#model.areRelated(one, other)));
  }

  async #crash(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const id = this.#sessions.get(queue);
    if (id === undefined || this.#haveRelated(this.#model.of(queue, 'active'))) return;
    await scene.store.closeSessions([{ queue, id }], 'crashed');
    this.#sessions.delete(queue);
    for (const member of this.#model.of(queue, 'active')) this.#stalled(member);
  }

  async #sweep(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const chosen = this.#random.some(this.#model.of(queue, 'waiting'), 3);
    if (chosen.length === 0 || this.#haveRelated(chosen)) return;
    const brief = await scene.at(queue).briefSession({ maxStalls: MAX_STALLS });
    const jobs = await scene.at(queue).claim(brief, 3, { jobIds: chosen.map(({ id }) => id) });
    this.#granted(queue, jobs, brief);
    await scene.perish();
    const { stalled, failed: over } = await scene.at(queue).sweep(2);
    assert.deepEqual(sorted([...stalled, ...over]), sorted(jobs.map(({ id }) => id)));
    for (const { id } of jobs) this.#stalled(this.#model.get({ queue, id }));
    assert.deepEqual(sorted(over), sorted(over.filter((id) => this.#model.get({ queue, id }).state === 'failed')));
  }

  #stalled(member: FamilyMember): void {
    const { fence = 0, token = '' } = member.held ?? {};
    this.#stale.push({ queue: member.queue, id: member.id, token });
    delete member.held;
    member.stalls += 1;
    if (member.stalls <= MAX_STALLS) member.state = 'waiting';
    else this.#model.end(member, 'failed', STALLED_REASON, fence);
  }

  async #revoke(scene: Scene): Promise<void> {
    const member = this.#random.pick(this.#model.all().filter(({ state }) => state === 'active'));
    if (member === undefined) return;
    const { queue, id, held } = member;
    assert.deepEqual(await scene.store.change(queue, [id], { kind: 'revoke', reason: 'model' }), changedAll(id));
    this.#stale.push({ queue, id, token: held?.token ?? '' });
    delete member.held;
    member.state = 'waiting';
  }

  async #retry(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const from = this.#random.pick(['failed', 'failed', 'completed'] as const) ?? 'failed';
    const finished = this.#model.of(queue, from);
    const bySelection = this.#random.chance(3);
    const chosen = bySelection ? finished : this.#random.some(finished, 2);
    const target = bySelection ? { lists: [from], limit: 1_000 } : chosen.map(({ id }) => id);
    const change = retryFrom(from);
    const { changed } = Array.isArray(target)
      ? await scene.store.change(queue, target, change)
      : await scene.store.change(queue, target, change);
    assert.deepEqual(sorted(changed), sorted(chosen.map(({ id }) => id)));
    for (const member of chosen) this.#model.reopen(member);
  }

  async #promote(scene: Scene): Promise<void> {
    const member = this.#random.pick(this.#model.all());
    if (member === undefined) return;
    const { changed } = await scene.store.change(member.queue, [member.id], { kind: 'promote' });
    assert.deepEqual(changed, member.state === 'delayed' ? [member.id] : []);
    if (member.state === 'delayed') member.state = 'waiting';
  }

  async #remove(scene: Scene): Promise<void> {
    const member = this.#random.pick(this.#model.all());
    if (member === undefined) return;
    const { queue, id, held } = member;
    const children = this.#random.chance(2);
    const expected =
      held === undefined ? changedAll(id) : { changed: [], others: [{ jobId: id, status: 'locked' }], more: false };
    assert.deepEqual(await scene.store.change(queue, [id], { kind: 'remove', children }), expected);
    if (held === undefined) this.#model.remove(member, { children });
  }

  async #removeSelected(scene: Scene): Promise<void> {
    const queue = this.#queue();
    const list = this.#random.pick(['completed', 'failed', 'waiting-children', 'delayed', 'waiting'] as const) ?? 'failed';
    const there = this.#model.of(queue, list).filter(({ priority }) => list !== 'waiting' || priority === 0);
    const parentToo = this.#random.chance(2);
    // Whether the parent of a parent goes too is not a question of this walk.
    const parents = there.flatMap((member) => this.#model.waitingForThisAlone(member));
    if (parentToo && parents.some((parent) => this.#model.waitingForThisAlone(parent).length > 0)) return;
    const { changed } = await scene.store.change(queue, { lists: [list], limit: 1 }, { kind: 'remove', parentToo });
    assert.equal(changed.length, Math.min(1, there.length), `how many ${list} jobs were removed`);
    for (const id of changed) {
      const member = there.find((one) => one.id === id) ?? assert.fail(`${id} is ${list}`);
      if (parentToo) for (const parent of this.#model.waitingForThisAlone(member)) this.#model.remove(parent);
      this.#model.remove(member);
    }
  }

  async #unlink(scene: Scene): Promise<void> {
    const member = this.#random.pick(this.#model.all().filter(({ links }) => links.size > 0));
    if (member === undefined) return;
    const { queue, id } = member;
    const { child } = this.#random.pick([...member.links.values()]) ?? assert.fail();
    const { changed } = await scene.store.change(queue, [id], { kind: 'unlink', child });
    assert.deepEqual(changed, this.#model.unlink(member, child) ? [id] : []);
  }

  async #send(scene: Scene): Promise<void> {
    const [queue, to] = [this.#queue(), this.#queue()];
    const change = { kind: 'send', to } as const satisfies Change;
    if (this.#random.chance(2)) {
      const letters = this.#model.of(queue, 'waiting').filter(({ origin, priority }) => origin !== undefined && priority === 0);
      const { changed } = await scene.store.change(queue, { lists: ['waiting'], limit: 1 }, change);
      assert.equal(changed.length, Math.min(1, letters.length), 'how many letters were sent');
      for (const id of changed) this.#model.send(this.#model.get({ queue, id }), to);
      return;
    }
    const members = this.#model.of(queue);
    const letters = members.filter(({ origin }) => origin !== undefined);
    const member = this.#random.pick(this.#random.chance(4) ? members : letters);
    if (member === undefined) return;
    const status = member.held !== undefined ? 'locked' : member.origin === undefined ? 'state' : 'done';
    const { changed, others } = await scene.store.change(queue, [member.id], change);
    assert.deepEqual([changed, others], status === 'done' ? [[member.id], []] : [[], [{ jobId: member.id, status }]]);
    if (status === 'done') this.#model.send(member, to);
  }
}

function claimOf({ id, held }: FamilyMember): ClaimedJob {
  return { id, token: held?.token ?? assert.fail(`${id} is locked`) } as ClaimedJob;
}

function waits({ id, token }: ClaimedJob, child?: JobRef): Outcome {
  return { kind: 'children', jobId: id, token, ...(child !== undefined && { child }) };
}

function linkText({ child, state, text }: { child: JobRef; state: string; text?: string }): string {
  return `${child.queue} ${child.id} ${state} ${text}`;
}
