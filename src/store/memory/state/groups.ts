// The groups of a queue, and whose turn it is: see the rule in contract/groups.ts. A group in line that has room is in the ring. If only
// time keeps it from room, it is among the resting groups. So a claim visits no group without room.
import type { Linked } from '../../../runtime/linked-list.js';
import type { GroupQuery, GroupRules, GroupSettings, GroupsFound } from '../../contract/index.js';
import { Group } from './group.js';
import { Heap } from './heap.js';

interface Grouped {
  priority: number;
  readonly group: string | undefined;
}

export class Groups<T extends Linked<T> & Grouped> {
  readonly #groups = new Map<string, Group<T>>();
  readonly #ring = new Heap<Group<T>>((a, b) => a.at < b.at || (a.at === b.at && a.compare(b) < 0));
  readonly #resting = new Heap<Group<T>>();
  #rules: GroupRules = {};
  /** The number of the last turn. */
  #turns = 0;
  /** The number of the jobs without a group. */
  #plain = 0;
  /** The last moment that `advance` saw. */
  #now = Number.NEGATIVE_INFINITY;
  /** Where `forgetIdle` goes on. */
  #visited: Iterator<Group<T>> | undefined;

  add(key: string, job: T, front: boolean): void {
    const group = this.#groups.get(key) ?? new Group<T>(key);
    this.#groups.set(key, group);
    group.jobs.add(job, front);
    group.number ??= this.#turns;
    this.#place(group);
  }

  remove(key: string, job: T): void {
    this.#groups.get(key)?.jobs.remove(job);
  }

  /** True if a further job of the group may be active. */
  hasPlace(key: string): boolean {
    const group = this.#groups.get(key);
    return group === undefined || this.#hasPlace(group);
  }

  /** Call it when a job of the group becomes active (1), or leaves active (-1). */
  count(key: string, difference: 1 | -1): void {
    const group = this.#groups.get(key);
    if (group === undefined) return;
    group.active += difference;
    this.#place(group);
    this.#forget(group);
  }

  /** Counts a claim in the window of the group. */
  use(key: string, now: number): void {
    const group = this.#groups.get(key);
    if (group === undefined) return;
    group.limit.use(1, this.#rateOf(group), now);
    this.#rest(group, now);
  }

  /** Lets the groups whose rest is over back into the ring. Call it before `first` and `restEndsAt`. */
  advance(now: number): void {
    this.#now = now;
    for (let group = this.#resting.first; group !== undefined && group.at <= now; group = this.#resting.first) this.#place(group);
  }

  /** Returns the first job of the group whose turn it is, unless it is the turn of a job without a group (`plain`). */
  first(plain: T | undefined): T | undefined {
    for (let group = this.#ring.first; group !== undefined; group = this.#ring.first) {
      const job = group.jobs.first;
      if (job !== undefined) return plain !== undefined && this.#plain <= group.at ? plain : job;
      this.#leaveLine(group);
    }
    return plain;
  }

  /** Call it when a claim has taken this job in turn. */
  tookTurn({ group: key }: T): void {
    if (key === undefined) {
      if (this.#ring.size > 0) this.#plain = ++this.#turns;
      return;
    }
    const group = this.#groups.get(key);
    if (group === undefined) return;
    const number = ++this.#turns;
    group.number = group.jobs.size > 0 ? number : undefined;
    this.#place(group);
  }

  /** Returns the moment at which time alone lets a waiting job be claimed. */
  get restEndsAt(): number | undefined {
    const first = this.#resting.first;
    if (first === undefined || first.jobs.size > 0) return first?.at;
    return this.#resting.sorted().find(({ jobs }) => jobs.size > 0)?.at;
  }

  /** Visits all groups, unless the limits are as before: each worker of a queue sets them when it starts. */
  setRules(rules: GroupRules | null, now: number): void {
    if (areSame(this.#rules, rules ?? {})) return;
    this.#rules = { ...rules };
    this.#restAll(now);
  }

  set(settings: GroupSettings, now: number): void {
    const group = this.#groups.get(settings.key) ?? new Group<T>(settings.key);
    this.#groups.set(settings.key, group);
    group.set(settings, now);
    this.#rest(group, now);
    this.#now = now;
    this.#forget(group);
  }

  /** Forgets all settings, blocks, windows and turns. `keepRules`: the limits of all groups stay. */
  forgetAll(now: number, keepRules: boolean): void {
    this.#turns = 0;
    this.#plain = 0;
    for (const group of this.#groups.values()) {
      group.forgetSettings();
      if (group.number !== undefined) group.number = group.jobs.size > 0 ? 0 : undefined;
    }
    if (!keepRules) this.#rules = {};
    this.#restAll(now);
    this.forgetIdle(this.#groups.size, now);
  }

  /** Forgets groups without jobs and settings. Visits up to `limit` groups, and goes on there the next time. */
  forgetIdle(limit: number, now: number): void {
    this.#now = now;
    this.#visited ??= this.#groups.values();
    for (let left = limit; left > 0; left -= 1) {
      const { value, done } = this.#visited.next();
      if (done === true) {
        this.#visited = undefined;
        return;
      }
      this.#forget(value);
    }
  }

  /** The waiting jobs of a group, in the order of their turns. */
  jobsOf(key: string): Iterable<T> {
    return this.#groups.get(key)?.jobs.forward() ?? [];
  }

  *lists(): Generator<Group<T>['jobs']> {
    for (const { jobs } of this.#groups.values()) yield jobs;
  }

  find(query: GroupQuery, now: number): GroupsFound {
    this.advance(now);
    const { maxActive, rate } = this.#rules;
    const rules = { ...(maxActive !== undefined && { maxActive }), ...(rate !== undefined && { rate: { ...rate } }) };
    const counted = 'keys' in query;
    const found = counted ? query.keys.map((key) => this.#groups.get(key) ?? new Group<T>(key)) : this.#page(query);
    const groups = found.map((group) => group.info(now, counted));
    return Object.keys(rules).length > 0 ? { rules, groups } : { groups };
  }

  #page({ limit, after }: Exclude<GroupQuery, { keys: string[] }>): Group<T>[] {
    const known = [...this.#groups.values()].filter(({ jobs, active, hasSettings }) => jobs.size + active > 0 || hasSettings);
    const sorted = known.sort((a, b) => a.compare(b));
    const start = after === undefined ? undefined : new Group<T>(after);
    return sorted.filter((group) => start === undefined || group.compare(start) > 0).slice(0, limit);
  }

  #hasPlace({ paused, active, maxActive = this.#rules.maxActive }: Group<T>): boolean {
    return !paused && active < (maxActive ?? Number.POSITIVE_INFINITY);
  }

  #rateOf({ rate = this.#rules.rate }: Group<T>): GroupRules['rate'] {
    return rate;
  }

  #restAll(now: number): void {
    for (const group of this.#groups.values()) this.#rest(group, now);
  }

  #rest(group: Group<T>, now: number): void {
    const restMs = group.limit.remainingMs(this.#rateOf(group), now);
    group.restsUntil = restMs > 0 ? now + restMs : Number.NEGATIVE_INFINITY;
    this.#place(group);
  }

  #leaveLine(group: Group<T>): void {
    group.number = undefined;
    this.#place(group);
    this.#forget(group);
  }

  /** Puts a group into the ring, among the resting groups, or into neither. */
  #place(group: Group<T>): void {
    const isOut = group.number === undefined || !this.#hasPlace(group);
    const resting = group.restsUntil > this.#now;
    const at = resting ? group.restsUntil : (group.number ?? 0);
    // Most changes leave a group where it is.
    if (group.slot >= 0 && !isOut && resting === group.resting && at === group.at) return;
    if (group.slot >= 0) (group.resting ? this.#resting : this.#ring).remove(group);
    if (isOut) return;
    group.resting = resting;
    group.at = at;
    (resting ? this.#resting : this.#ring).push(group);
  }

  #forget(group: Group<T>): void {
    if (group.isIdle(this.#now)) this.#groups.delete(group.key);
  }
}

function areSame(a: GroupRules, b: GroupRules): boolean {
  return a.maxActive === b.maxActive && a.rate?.max === b.rate?.max && a.rate?.durationMs === b.rate?.durationMs;
}
