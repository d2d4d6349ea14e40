// A list whose items store their own neighbours, so any item leaves in O(1) without a lookup.

export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
  /** Age among items of the same kind; smaller is older. */
  readonly order: number;
}

export class LinkedList<T extends Linked<T>> {
  size = 0;
  first: T | undefined;
  last: T | undefined;
  /**
   * True while the list is known to run from oldest to newest. Then the oldest items are found without a scan of the whole list.
   */
  ascending = true;

  pushBack(item: T): void {
    const neighbour = this.last;
    item.before = neighbour;
    item.after = undefined;
    if (neighbour === undefined) {
      this.first = item;
    } else {
      neighbour.after = item;
      if (neighbour.order > item.order) this.ascending = false;
    }
    this.last = item;
    this.size++;
  }

  pushFront(item: T): void {
    const neighbour = this.first;
    item.before = undefined;
    item.after = neighbour;
    if (neighbour === undefined) {
      this.last = item;
    } else {
      neighbour.before = item;
      if (neighbour.order < item.order) this.ascending = false;
    }
    this.first = item;
    this.size++;
  }

  /** The item must be in this list or in none. */
  has(item: T): boolean {
    return item.before !== undefined || this.first === item;
  }

  /** The item must be in this list. */
  remove(item: T): void {
    if (item.before === undefined) this.first = item.after;
    else item.before.after = item.after;
    if (item.after === undefined) this.last = item.before;
    else item.after.before = item.before;
    item.before = undefined;
    item.after = undefined;
    this.size--;
    if (this.size === 0) this.ascending = true;
  }

  *forward(): Generator<T> {
    for (let item = this.first; item !== undefined; item = item.after) yield item;
  }

  *backward(): Generator<T> {
    for (let item = this.last; item !== undefined; item = item.before) yield item;
  }
}

/**
 * Returns the `limit` oldest items, oldest first. Does not sort all items, because a queue of a million jobs is cleared in many
 * small steps.
 */
export function oldestOf<T extends { readonly order: number }>(items: Iterable<T>, limit: number): T[] {
  const byAge = (a: T, b: T) => a.order - b.order;
  const picked: T[] = [];
  let newest = Number.POSITIVE_INFINITY;
  if (limit <= 0) return picked;
  for (const item of items) {
    if (item.order > newest) continue;
    picked.push(item);
    if (picked.length < 2 * limit + 64) continue;
    picked.sort(byAge).length = limit;
    newest = picked[limit - 1]?.order ?? newest;
  }
  return picked.sort(byAge).slice(0, limit);
}
