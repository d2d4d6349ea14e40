// The groups of the model: whose turn it is, and which groups have room. Windows and blocks last longer than any test.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { GroupInfo, GroupRules } from '../../store/contract/index.js';
import { sorted } from './expect.js';
import type { ModelJobs } from './model-jobs.js';
import type { Random } from './random.js';
import type { Scene } from './scene.js';

const KEYS = ['a', 'b', 'c'];
const FAR_MS = 3_600_000;

interface ModelGroup extends GroupRules {
  paused: boolean;
  blocked: boolean;
  /** The claims in the open window; undefined if none is open. */
  used: number | undefined;
  /** The number in line. */
  number: number | undefined;
}

export class ModelGroups {
  readonly #random: Random;
  readonly #jobs: ModelJobs;
  readonly #groups = new Map<string, ModelGroup>();
  #rules: GroupRules = {};
  #turns = 0;
  #plain = 0;

  constructor(random: Random, jobs: ModelJobs) {
    this.#random = random;
    this.#jobs = jobs;
  }

  /** Returns a random group for a new job. */
  key(): string {
    return this.#random.pick(KEYS) ?? assert.fail();
  }

  /** Puts groups into line whose first job has begun to wait. Call it after every change. */
  arrive(): void {
    for (const key of KEYS) if (this.#waiting(key).length > 0) this.#get(key).number ??= this.#turns;
  }

  /** Checks that a claim of up to `most` jobs took these in turn. Call it before the model applies the claim. */
  checkTurns(jobs: ClaimedJob[], most: number): void {
    const taken = new Set<string>();
    for (const { id, priority } of jobs.slice(0, most)) {
      const member = this.#next(taken) ?? assert.fail(`no job may be claimed, but ${id} was`);
      assert.equal(this.#jobs.get(id).group ?? '', member, `the turn at ${id}`);
      assert.equal(priority, Math.min(...this.#prioritiesOf(member, taken)), `the smallest priority, at ${id}`);
      const contended = this.#first(taken) !== undefined;
      taken.add(id);
      this.#tookTurn(member, taken, contended);
    }
    assert(jobs.length <= most, `no more than ${most} jobs`);
    if (jobs.length < most) assert.equal(this.#next(taken), undefined, 'all jobs that may be claimed were claimed');
  }

  /** True if a claim by id may take another job of the group. `taken`: jobs that the claim has taken already. */
  hasPlace(key: string, taken: string[] = []): boolean {
    const { paused, maxActive = this.#rules.maxActive ?? Number.POSITIVE_INFINITY } = this.#get(key);
    const active = this.#jobs.in('active').filter((id) => this.#jobs.get(id).group === key).length;
    return !paused && active + taken.filter((id) => this.#jobs.get(id).group === key).length < maxActive;
  }

  /** Counts claimed jobs in the windows of their groups. */
  use(jobs: ClaimedJob[]): void {
    for (const { id } of jobs) {
      const key = this.#jobs.get(id).group;
      if (key !== undefined) this.#use(key);
    }
  }

  async configure({ store, queue }: Scene): Promise<void> {
    if (this.#random.chance(2)) {
      this.#rules = this.#limits();
      await store.configure(queue, { groups: Object.keys(this.#rules).length === 0 ? null : this.#rules });
      return;
    }
    const key = this.key();
    const group = this.#get(key);
    const { maxActive, rate } = this.#limits();
    const blocked = this.#random.pick([undefined, true, false, false]);
    group.paused = this.#random.chance(4);
    delete group.maxActive;
    delete group.rate;
    Object.assign(group, maxActive !== undefined && { maxActive }, rate !== undefined && { rate });
    if (blocked === false) group.used = undefined;
    group.blocked = blocked ?? group.blocked;
    const block = blocked === undefined ? {} : { blockedMs: blocked ? FAR_MS : 0 };
    await store.configure(queue, {
      group: { key, paused: group.paused, maxActive: maxActive ?? null, rate: rate ?? null, ...block },
    });
  }

  /** Removes all limits, so that every job can be claimed. */
  async free({ store, queue }: Scene): Promise<void> {
    this.#rules = {};
    await store.configure(queue, { groups: null });
    for (const key of KEYS) {
      const { number } = this.#get(key);
      this.#groups.set(key, { ...UNLIMITED, number });
      await store.configure(queue, { group: { key, paused: false, maxActive: null, rate: null, blockedMs: 0 } });
    }
  }

  async compare({ store, queue }: Scene): Promise<void> {
    const { groups } = await store.status(queue, { groups: { keys: KEYS } });
    const limited = ({ limitedMs, ...info }: GroupInfo): unknown => ({ ...info, limited: limitedMs !== undefined });
    assert.deepEqual(groups?.rules, Object.keys(this.#rules).length === 0 ? undefined : this.#rules);
    assert.deepEqual(
      groups?.groups.map(limited),
      KEYS.map((key) => this.#info(key)),
    );
    const { groups: page } = await store.status(queue, { groups: { limit: 10 } });
    const known = KEYS.filter((key) => this.#isKnown(key));
    assert.deepEqual(
      page?.groups.map(({ key }) => key),
      known,
      'the groups with jobs or settings',
    );
    for (const key of KEYS) {
      const { jobs } = await store.jobs(queue, { group: key, start: 0, end: -1, asc: true });
      assert.deepEqual(sorted(jobs.map(({ id }) => id)), sorted(this.#waiting(key)), `the waiting jobs of ${key}`);
    }
  }

  #limits(): GroupRules {
    return {
      ...(this.#random.chance(2) && { maxActive: this.#random.int(4) }),
      ...(this.#random.chance(4) && { rate: { max: 1 + this.#random.int(3), durationMs: FAR_MS } }),
    };
  }

  #info(key: string): unknown {
    const { paused, maxActive, rate } = this.#get(key);
    const active = this.#jobs.in('active').filter((id) => this.#jobs.get(id).group === key).length;
    const own = { ...(maxActive !== undefined && { maxActive }), ...(rate !== undefined && { rate }) };
    return { key, paused, active, ...own, waiting: this.#waiting(key).length, limited: this.#isLimited(key) };
  }

  #isKnown(key: string): boolean {
    const { paused, maxActive, rate } = this.#get(key);
    const isOf = (id: string): boolean => this.#jobs.get(id).group === key;
    return (
      paused ||
      maxActive !== undefined ||
      rate !== undefined ||
      [...this.#jobs.in('waiting'), ...this.#jobs.in('active')].some(isOf)
    );
  }

  #get(key: string): ModelGroup {
    const group = this.#groups.get(key) ?? { ...UNLIMITED };
    this.#groups.set(key, group);
    return group;
  }

  #waiting(key: string): string[] {
    return this.#jobs.in('waiting').filter((id) => this.#jobs.get(id).group === key);
  }

  #isLimited(key: string): boolean {
    const { blocked, used = 0, rate = this.#rules.rate } = this.#get(key);
    return blocked || (rate !== undefined && used >= rate.max);
  }

  /** Returns the first group in line that has room. */
  #first(taken: Set<string>): string | undefined {
    const inLine = KEYS.filter(
      (key) => this.#get(key).number !== undefined && this.hasPlace(key, [...taken]) && !this.#isLimited(key),
    );
    return inLine.sort((a, b) => (this.#get(a).number ?? 0) - (this.#get(b).number ?? 0) || (a < b ? -1 : 1))[0];
  }

  /** Returns the member whose turn it is. Groups that are first without a job go out of line. */
  #next(taken: Set<string>): string | undefined {
    let first = this.#first(taken);
    for (; first !== undefined && this.#prioritiesOf(first, taken).length === 0; first = this.#first(taken)) {
      this.#get(first).number = undefined;
    }
    const plain = this.#prioritiesOf('', taken).length > 0 ? '' : undefined;
    if (first === undefined || plain === undefined) return first ?? plain;
    return this.#plain <= (this.#get(first).number ?? 0) ? plain : first;
  }

  #prioritiesOf(member: string, taken: Set<string>): number[] {
    if (member === '') return this.#jobs.claimable(taken);
    return this.#waiting(member)
      .filter((id) => !taken.has(id))
      .map((id) => this.#jobs.get(id).priority);
  }

  #tookTurn(member: string, taken: Set<string>, contended: boolean): void {
    if (member === '') {
      if (contended) this.#plain = this.#turns += 1;
      return;
    }
    this.#turns += 1;
    this.#get(member).number = this.#prioritiesOf(member, taken).length > 0 ? this.#turns : undefined;
    this.#use(member);
  }

  #use(key: string): void {
    const group = this.#get(key);
    if ((group.rate ?? this.#rules.rate) === undefined && group.used === undefined) return;
    group.used = (group.used ?? 0) + 1;
  }
}

const UNLIMITED: ModelGroup = { paused: false, blocked: false, used: undefined, number: undefined };
