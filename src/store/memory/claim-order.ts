// All waiting jobs of a queue, and which of them may be claimed next. Jobs without a key stand in claim order. Those with one stand
// in the lane of their key, of which claims see the first job alone, and only while the key is free: a claim costs the same
// whether ten or ten million jobs wait for a key.
import { Heap, type Timed } from './heap.js';
import { type Linked, oldestOf } from './linked-list.js';
import { Waiting } from './waiting.js';

interface Keyed {
  /** 0 comes first. Must not change while the job waits. */
  priority: number;
  /** Written here: where it stands among those of its priority. */
  place: number;
  readonly lockKey: string | undefined;
}

class Lane<T extends Linked<T> & Keyed> implements Timed {
  readonly jobs = new Waiting<T>();
  /** Its key is taken by an active job. */
  taken = false;
  /** Of the job that claims see. */
  at = 0;
  turn = 0;
  slot = -1;
}

export class ClaimOrder<T extends Linked<T> & Keyed> {
  readonly #free = new Waiting<T>();
  readonly #lanes = new Map<string, Lane<T>>();
  /** Lanes whose first job may be claimed, by its priority and place. */
  readonly #heads = new Heap<Lane<T>>();
  #front = 0;
  #back = 0;
  #size = 0;
  #plain = 0;

  get size(): number {
    return this.#size;
  }

  /** How many have no priority. */
  get plainSize(): number {
    return this.#plain;
  }

  get first(): T | undefined {
    const free = this.#free.first;
    const head = this.#heads.first?.jobs.first;
    if (free === undefined || head === undefined) return free ?? head;
    return inClaimOrder(free, head) < 0 ? free : head;
  }

  /** Behind or ahead of those with the same priority. */
  add(job: T, front: boolean): void {
    job.place = front ? --this.#front : ++this.#back;
    this.#count(job, 1);
    if (job.lockKey === undefined) this.#free.add(job, front);
    else this.#within(job.lockKey, ({ jobs }) => jobs.add(job, front));
  }

  remove(job: T): void {
    this.#count(job, -1);
    if (job.lockKey === undefined) this.#free.remove(job);
    else this.#within(job.lockKey, ({ jobs }) => jobs.remove(job));
  }

  isFree(key: string | undefined): boolean {
    return key === undefined || this.#lanes.get(key)?.taken !== true;
  }

  setTaken(key: string | undefined, taken: boolean): void {
    if (key === undefined) return;
    this.#within(key, (lane) => {
      lane.taken = taken;
    });
  }

  /** In claim order, those that wait for their key last. */
  *inOrder(prioritized: boolean, asc: boolean): Generator<T> {
    if (!asc) yield* this.#behind(prioritized).reverse();
    const free = prioritized ? this.#free.prioritized(asc) : asc ? this.#free.plain.forward() : this.#free.plain.backward();
    const heads = this.#firstOfLanes(prioritized);
    yield* merged(free, asc ? heads : heads.reverse(), asc ? inClaimOrder : (a, b) => inClaimOrder(b, a));
    // Only for those who read on until here.
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
    return jobs.sort(inClaimOrder);
  }

  oldest(limit: number): T[] {
    return oldestOf(this.#candidates(limit), limit);
  }

  *#candidates(limit: number): Generator<T> {
    yield* this.#free.candidates(limit);
    for (const { jobs } of this.#lanes.values()) yield* jobs.candidates(limit);
  }

  /** The lane changes within `work` alone, so that its first job is seen exactly while it may be claimed. */
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
