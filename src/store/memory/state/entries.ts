// The entries of deduplication of one queue, by their ids and by their ends.
import type { NewJob } from '../../../job/record.js';
import { Heap, type Timed } from './heap.js';

export const NEVER = Number.POSITIVE_INFINITY;

export class Entry implements Timed {
  /** The end of the entry; infinite if it ends with its owner. */
  at = NEVER;
  turn = 0;
  slot = -1;
  /** Added when the owner ends. An entry with a draft has no end of its own. */
  draft: NewJob | undefined = undefined;

  constructor(
    readonly id: string,
    public owner: string,
  ) {}
}

export class Entries {
  readonly #byId = new Map<string, Entry>();
  /** The entries with an end of their own. */
  readonly #ends = new Heap<Entry>();

  get(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  set(entry: Entry, at: number): void {
    this.delete(entry.id);
    this.#byId.set(entry.id, entry);
    entry.at = at;
    if (at !== NEVER) this.#ends.push(entry);
  }

  delete(id: string): void {
    const entry = this.#byId.get(id);
    if (entry !== undefined && entry.slot !== -1) this.#ends.remove(entry);
    this.#byId.delete(id);
  }

  clear(): void {
    for (const id of this.#byId.keys()) this.delete(id);
  }

  deleteEnded(limit: number, now: number): void {
    for (let left = limit, first = this.#ends.first; left > 0 && first !== undefined && first.at <= now; left -= 1) {
      this.delete(first.id);
      first = this.#ends.first;
    }
  }
}
