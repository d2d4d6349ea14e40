// All waiting jobs of a queue, in the order in which claims take them. Jobs without a key are ordered directly. Jobs with a key are
// in the key group (`Lane`) of that key. Claims see only the first job of a key group, and only while the key is free. So a claim
// costs the same whether ten or ten million jobs wait for a key. Jobs of groups wait in `groups`.
import { Groups } from './groups.js';
import { Heap, type Timed } from './heap.js';
import { type Linked, oldestOf } from '../../../runtime/linked-list.js';
import { Waiting } from './waiting.js';

interface Keyed {
  /** Priority 0 is claimed first. Must not change while the job waits. */
  priority: number;
  /** Written by `ClaimOrder`: the position among the waiting jobs of the same priority. */
  place: number;
  readonly key: string | undefined;
  readonly group: string | undefined;
}

class Lane<T extends Linked<T> & Keyed> implements Timed {
  readonly jobs = new Waiting<T>();
  /** True while an active job holds the key. */
  taken = false;
  /** The priority of the first job, which is the one that claims see. */
  at = 0;
  turn = 0;
  slot = -1;
}

export class ClaimOrder<T extends Linked<T> & Keyed> {
  readonly groups = new Groups<T>();
  readonly #free = new Waiting<T>();
  readonly #lanes = new Map<string, Lane<T>>();
  /** Key groups whose first job may be claimed, ordered by the priority and place of that job. */
  readonly #heads = new Heap<Lane<T>>();
  #front = 0;
  #back = 0;
  #size = 0;
  #plain = 0;

  get size(): number {
    return this.#size;
  }

  /** The number of waiting jobs without a priority. */
  get plainSize(): number {
    return this.#plain;
  }

  /** Returns the number of waiting jobs with this priority. */
  sizeOf(priority: number): number {
    if (priority === 0) return this.#plain;
    let size = this.#free.sizeOf(priority);
    for (const { jobs } of this.#lanes.values()) size += jobs.sizeOf(priority);
    for (const jobs of this.groups.lists()) size += jobs.sizeOf(priority);
    return size;
  }

  /** The job that a claim takes next. Call `groups.advance` before, and `groups.tookTurn` when the claim has taken it. */
  get first(): T | undefined {
    return this.groups.first(this.#firstPlain);
  }

  get #firstPlain(): T | undefined {
    const free = this.#free.first;
    const head = this.#heads.first?.jobs.first;
    if (free === undefined || head === undefined) return free ?? head;
    return inClaimOrder(free, head) < 0 ? free : head;
  }

  /** Adds a job behind (or, with `front`, ahead of) the jobs of the same priority. */
  add(job: T, front: boolean): void {
    job.place = front ? --this.#front : ++this.#back;
    this.#count(job, 1);
    if (job.group !== undefined) this.groups.add(job.group, job, front);
    else if (job.key === undefined) this.#free.add(job, front);
    else this.#within(job.key, ({ jobs }) => jobs.add(job, front));
  }

  remove(job: T): void {
    this.#count(job, -1);
    if (job.group !== undefined) this.groups.remove(job.group, job);
    else if (job.key === undefined) this.#free.remove(job);
    else this.#within(job.key, ({ jobs }) => jobs.remove(job));
  }

  /** True if no active job holds the key of this job, and its group has a place. */
  isFree({ key, group }: T): boolean {
    if (group !== undefined) return this.groups.hasPlace(group);
    return key === undefined || this.#lanes.get(key)?.taken !== true;
  }

  /** Call it when the job becomes active, or leaves active. */
  setTaken({ key, group }: T, taken: boolean): void {
    if (group !== undefined) this.groups.count(group, taken ? 1 : -1);
    if (key === undefined) return;
    this.#within(key, (lane) => {
      lane.taken = taken;
    });
  }

  /** Yields the jobs in claim order; jobs that wait for their key and jobs of groups come last. */
  *inOrder(prioritized: boolean, asc: boolean): Generator<T> {
    if (!asc) yield* this.#behind(prioritized).reverse();
    const free = prioritized ? this.#free.prioritized(asc) : asc ? this.#free.plain.forward() : this.#free.plain.backward();
    const heads = this.#firstOfLanes(prioritized);
    yield* merged(free, asc ? heads : heads.reverse(), asc ? inClaimOrder : (a, b) => inClaimOrder(b, a));
    // Computed last, because most readers stop before these jobs.
    if (asc) yield* this.#behind(prioritized);
  }

  #firstOfLanes(prioritized: boolean): T[] {
    const firsts = Array.from(this.#heads.items(), ({ jobs }) => jobs.first).filter((job) => job !== undefined);
    return firsts.filter(({ priority }) => priority > 0 === prioritized).sort(inClaimOrder);
  }

  #behind(prioritized: boolean): T[] {
    const jobs: T[] = [];
    for (const lane of this.#lanes.values()) {
      const seen = lane.slot >= 0 ? lane.jobs.first : undefined;
      for (const job of lane.jobs.forward()) if (job !== seen && job.priority > 0 === prioritized) jobs.push(job);
    }
    for (const list of this.groups.lists())
      for (const job of list.forward()) if (job.priority > 0 === prioritized) jobs.push(job);
    return jobs.sort(inClaimOrder);
  }

  /** Returns the `limit` oldest jobs that match, with or without a priority. */
  oldest(prioritized: boolean, limit: number, matches: (job: T) => boolean): T[] {
    return oldestOf(this.#candidates(prioritized, limit, matches), limit);
  }

  *#candidates(prioritized: boolean, limit: number, matches: (job: T) => boolean): Generator<T> {
    yield* this.#free.candidates(prioritized, limit, matches);
    for (const { jobs } of this.#lanes.values()) yield* jobs.candidates(prioritized, limit, matches);
    for (const jobs of this.groups.lists()) yield* jobs.candidates(prioritized, limit, matches);
  }

  /**
   * Every change of a key group goes through `work`. This keeps the group in `#heads` exactly while its first job may be claimed.
   */
  #within(key: string, work: (lane: Lane<T>) => void): void {
    const lane = this.#lanes.get(key) ?? new Lane<T>();
    if (lane.slot >= 0) this.#heads.remove(lane);
    work(lane);
    const head = lane.jobs.first;
    if (head === undefined && !lane.taken) this.#lanes.delete(key);
    else this.#lanes.set(key, lane);
    if (head === undefined || lane.taken) return;
    lane.at = head.priority;
    this.#heads.push(lane, head.place);
  }

  #count(job: T, difference: number): void {
    this.#size += difference;
    if (job.priority === 0) this.#plain += difference;
  }
}

function inClaimOrder(a: Keyed, b: Keyed): number {
  return a.priority - b.priority || a.place - b.place;
}

function* merged<T>(many: Iterable<T>, few: T[], compare: (a: T, b: T) => number): Generator<T> {
  let next = 0;
  for (const item of many) {
    for (let other = few[next]; other !== undefined && compare(other, item) < 0; other = few[next]) {
      yield other;
      next++;
    }
    yield item;
  }
  yield* few.slice(next);
}
