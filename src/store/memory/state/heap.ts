// A binary heap ordered by time or by any other number. Items know their own slot, so an item leaves the middle in O(log n) without
// a search.

export interface Timed {
  /** The moment by which items are ordered; store's epoch ms. Must not change while the item is in the heap. */
  at: number;
  /** Written by the heap: breaks ties between equal moments. */
  turn: number;
  /** Written by the heap; -1 while the item is in no heap. */
  slot: number;
}

export class Heap<T extends Timed> {
  readonly #items: T[] = [];
  readonly #earlier: (a: T, b: T) => boolean;
  #turns = 0;

  /** `isEarlier` replaces the order by moment and turn. */
  constructor(isEarlier: (a: T, b: T) => boolean = earlier) {
    this.#earlier = isEarlier;
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  /** Adds an item. Items with equal moments leave by `turn`; by default `turn` follows the order of the pushes. */
  push(item: T, turn = ++this.#turns): void {
    item.turn = turn;
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** The item must be in this heap. */
  remove(item: T): void {
    const slot = item.slot;
    const filler = this.#items.pop() as T;
    item.slot = -1;
    if (filler === item) return;
    this.#rise(filler, slot);
    this.#sink(filler, filler.slot);
  }

  /** All items, in no particular order. */
  items(): Iterable<T> {
    return this.#items;
  }

  sorted(): T[] {
    return [...this.#items].sort((a, b) => a.at - b.at || a.turn - b.turn);
  }

  #rise(item: T, from: number): void {
    let slot = from;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = this.#items[parentSlot] as T;
      if (!this.#earlier(item, parent)) break;
      this.#put(parent, slot);
      slot = parentSlot;
    }
    this.#put(item, slot);
  }

  #sink(item: T, from: number): void {
    let slot = from;
    for (;;) {
      let childSlot = 2 * slot + 1;
      let child = this.#items[childSlot];
      const right = this.#items[childSlot + 1];
      if (child === undefined) break;
      if (right !== undefined && this.#earlier(right, child)) {
        child = right;
        childSlot++;
      }
      if (!this.#earlier(child, item)) break;
      this.#put(child, slot);
      slot = childSlot;
    }
    this.#put(item, slot);
  }

  #put(item: T, slot: number): void {
    this.#items[slot] = item;
    item.slot = slot;
  }
}

function earlier(a: Timed, b: Timed): boolean {
  return a.at < b.at || (a.at === b.at && a.turn < b.turn);
}
