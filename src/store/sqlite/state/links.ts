// The links of all parents to their children (tables `links` and `families`). `families` counts the links of each parent by their state,
// so the end of a child costs the same with one sibling and with ten thousand.
import { type JobRef, LINK_STATES, type LinkState, refKey } from '../../../job/family.js';
import { withinReply } from '../../budget.js';
import type { ChildrenQuery, ChildrenReply, Link } from '../../contract/index.js';
import type { Database, Statement, Value } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { QueueState } from './queue-state.js';

type CountRow = [pending: number, processed: number, failed: number, ignored: number];
type LinkRow = [childQueue: string, child: string, status: number, text: string | null];

/** The number of each state in `links.status`. */
const STATUS = Object.fromEntries(LINK_STATES.map((state, number) => [state, number])) as Record<LinkState, number>;
/** For `count-link`: the link is deleted. */
const NONE = -1;

/** A child that has completed. */
export interface Result {
  id: string;
  text: string;
}

export class Links {
  readonly #insert: Statement;
  readonly #countNew: Statement;
  readonly #count: Statement<[pending: number]>;
  readonly #find: Statement<[status: number]>;
  readonly #end: Statement;
  readonly #set: Statement;
  readonly #deletePending: Statement;
  readonly #deleteAll: Statement;
  readonly #deleteCounts: Statement;
  readonly #counts: Statement<CountRow>;
  readonly #all: Statement<[childQueue: string, child: string]>;
  readonly #read: Statement<LinkRow>;
  readonly #bytes: Statement<[number]>;
  readonly #readOpen: Statement<LinkRow>;
  readonly #bytesOfOpen: Statement<[number]>;

  constructor(db: Database) {
    const link = 'queue parent childQueue child';
    this.#insert = sql(db, 'insert-link', link);
    this.#countNew = sql(db, 'count-new-link', 'queue parent');
    this.#count = sql(db, 'count-link', 'by from to queue parent');
    this.#find = sql(db, 'find-link', link);
    this.#end = sql(db, 'end-link', `to text ${link}`);
    this.#set = sql(db, 'set-link', `to text ${link}`);
    this.#deletePending = sql(db, 'delete-pending-link', link);
    this.#deleteAll = sql(db, 'delete-links', 'queue parent');
    this.#deleteCounts = sql(db, 'delete-family', 'queue parent');
    this.#counts = sql(db, 'find-family', 'queue parent');
    this.#all = sql(db, 'all-links', 'queue parent');
    this.#read = sql(db, 'read-links', `${link} states count`);
    this.#bytes = sql(db, 'bytes-of-links', `${link} states count`);
    this.#readOpen = sql(db, 'read-open-links', `${link} state count`);
    this.#bytesOfOpen = sql(db, 'bytes-of-open-links', `${link} state count`);
  }

  /** Makes a pending link. Returns false if there is a link. */
  add({ queue }: QueueState, parent: string, child: JobRef): boolean {
    if (this.#insert.run(queue, parent, child.queue, child.id) === 0) return false;
    this.#countNew.run(queue, parent);
    return true;
  }

  /** Changes the state of a link. Returns how many links of the parent are pending then; undefined if there is no link. */
  set({ queue }: QueueState, parent: string, child: JobRef, state: LinkState, text: string | null): number | undefined {
    const [to, link] = [STATUS[state], [queue, parent, child.queue, child.id]];
    if (to !== STATUS.pending && this.#end.run(to, text, ...link) === 1)
      return this.#count.get(1, STATUS.pending, to, queue, parent)?.[0];
    const from = this.#find.get(...link)?.[0];
    if (from === undefined) return undefined;
    this.#set.run(to, text, ...link);
    return this.#count.get(1, from, to, queue, parent)?.[0];
  }

  /** Ends the pending links of children of one queue that have completed, and counts them once. Returns as `set` does. */
  complete(queue: QueueState, parent: string, childQueue: string, results: readonly Result[]): number | undefined {
    const others = results.filter(
      ({ id, text }) => this.#end.run(STATUS.processed, text, queue.queue, parent, childQueue, id) === 0,
    );
    const count = results.length - others.length;
    let pending = count === 0 ? undefined : this.#count.get(count, STATUS.pending, STATUS.processed, queue.queue, parent)?.[0];
    for (const { id, text } of others) pending = this.set(queue, parent, { queue: childQueue, id }, 'processed', text) ?? pending;
    return pending;
  }

  /** Deletes a link that is pending. Returns how many links of the parent are pending then; undefined if there is no such link. */
  deletePending({ queue }: QueueState, parent: string, child: JobRef): number | undefined {
    if (this.#deletePending.run(queue, parent, child.queue, child.id) === 0) return undefined;
    return this.#count.get(1, STATUS.pending, NONE, queue, parent)?.[0];
  }

  isPending({ queue }: QueueState, parent: string, child: JobRef): boolean {
    return this.#find.get(queue, parent, child.queue, child.id)?.[0] === STATUS.pending;
  }

  /** Returns the number of links of each state; undefined if the job is no parent. */
  counts({ queue }: QueueState, parent: string): Record<LinkState, number> | undefined {
    const row = this.#counts.get(queue, parent);
    if (row === undefined) return undefined;
    const [pending, processed, failed, ignored] = row;
    return { pending, processed, failed, ignored };
  }

  childrenOf({ queue }: QueueState, parent: string): JobRef[] {
    return this.#all.all(queue, parent).map(([childQueue, id]) => ({ queue: childQueue, id }));
  }

  clear({ queue }: QueueState, parent: string): void {
    this.#deleteAll.run(queue, parent);
    this.#deleteCounts.run(queue, parent);
  }

  /** Returns the links in the order of the queues and ids of the children. */
  page(queue: QueueState, parent: string, { states, after, limit }: ChildrenQuery): ChildrenReply {
    const counts = this.counts(queue, parent);
    if (counts === undefined) return { counts: { pending: 0, processed: 0, failed: 0, ignored: 0 }, links: [] };
    const [first] = states;
    // The index of open links serves one state. For several states, one walk through all links returns them in order.
    const isOpen = states.length === 1 && first !== undefined && first !== 'processed';
    const [bytes, read] = isOpen ? [this.#bytesOfOpen, this.#readOpen] : [this.#bytes, this.#read];
    const which = isOpen ? STATUS[first] : JSON.stringify(states.map((state) => STATUS[state]));
    const values: Value[] = [queue.queue, parent, ...childOf(after), which];
    // SQLite knows the bytes of a text without reading the text.
    const sizes = bytes.all(...values, limit + 1);
    const count = withinReply(sizes.slice(0, limit), ([size]) => size).length;
    const links = read.all(...values, count).map(toLink);
    const last = sizes.length > count ? links.at(-1) : undefined;
    return last === undefined ? { counts, links } : { counts, links, next: refKey(last.child) };
  }
}

function toLink([queue, id, status, text]: LinkRow): Link {
  const link: Link = { child: { queue, id }, state: LINK_STATES[status] as LinkState };
  if (text !== null) link.text = text;
  return link;
}

/** The inverse of `refKey`; before all children without a key. */
function childOf(key = ''): [queue: string, id: string] {
  const end = key.indexOf('\n');
  return end === -1 ? ['', ''] : [key.slice(0, end), key.slice(end + 1)];
}
