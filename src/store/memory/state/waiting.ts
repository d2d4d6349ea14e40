// Waiting jobs in claim order: one list per priority, and an ordered list of the priorities in use. A claim reads only the front,
// so it costs the same whether ten or ten million jobs wait.
import { type Linked, LinkedList } from '../../../runtime/linked-list.js';

interface Prioritized {
  /** Priority 0 is claimed first. Must not change while the job waits. */
  priority: number;
}

export class Waiting<T extends Linked<T> & Prioritized> {
  size = 0;
  /** Jobs without a priority, which are claimed first. */
  readonly plain = new LinkedList<T>();
  readonly #lists = new Map<number, LinkedList<T>>();
  readonly #priorities: number[] = [];

  get first(): T | undefined {
    return this.plain.first ?? this.#lists.get(this.#priorities[0] ?? 0)?.first;
  }

  /** Adds a job behind (or, with `front`, ahead of) the jobs of the same priority. */
  add(job: T, front: boolean): void {
    const list = job.priority === 0 ? this.plain : (this.#lists.get(job.priority) ?? this.#open(job.priority));
    if (front) list.pushFront(job);
    else list.pushBack(job);
    this.size++;
  }

  remove(job: T): void {
    this.size--;
    if (job.priority === 0) {
      this.plain.remove(job);
      return;
    }
    const list = this.#lists.get(job.priority);
    list?.remove(job);
    if (list?.size === 0) this.#close(job.priority);
  }

  /** Returns the number of jobs with this priority. */
  sizeOf(priority: number): number {
    return (priority === 0 ? this.plain : this.#lists.get(priority))?.size ?? 0;
  }

  *forward(): Generator<T> {
    yield* this.plain.forward();
    yield* this.prioritized(true);
  }

  *prioritized(asc: boolean): Generator<T> {
    for (const priority of asc ? this.#priorities : this.#priorities.toReversed()) {
      const list = this.#lists.get(priority);
      if (list !== undefined) yield* asc ? list.forward() : list.backward();
    }
  }

  /** Yields jobs that match, among which are the `limit` oldest ones that match. */
  *candidates(prioritized: boolean, limit: number, matches: (job: T) => boolean): Generator<T> {
    for (const list of prioritized ? this.#lists.values() : [this.plain]) {
      let left = list.ascending ? limit : list.size;
      for (let job = list.first; job !== undefined && left > 0; job = job.after) {
        if (!matches(job)) continue;
        yield job;
        left--;
      }
    }
  }

  #open(priority: number): LinkedList<T> {
    const list = new LinkedList<T>();
    this.#lists.set(priority, list);
    this.#priorities.splice(this.#slotOf(priority), 0, priority);
    return list;
  }

  #close(priority: number): void {
    this.#lists.delete(priority);
    this.#priorities.splice(this.#slotOf(priority), 1);
  }

  #slotOf(priority: number): number {
    let low = 0;
    let high = this.#priorities.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#priorities[middle] as number) < priority) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
