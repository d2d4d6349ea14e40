// One of the two that are compared: its connections, and the tokens and fences that its store has made, under names that are the same on
// both sides as long as they were made in the same order.
import { HoldfastError } from '../../src/errors.js';
import type { ClaimedJob } from '../../src/job/record.js';
import type { RenewReply, Store, StoredEvent } from '../../src/store/contract/index.js';
import type { TokenPart } from './steps.js';

/** One call of the contract. */
export type Act = (store: Store, side: Side) => Promise<unknown>;

export interface EventsQuery {
  after: number | undefined;
  page: number;
  marks: readonly number[];
}

/** What is left of a time: all of them end in 5, and a store may round up what its own microseconds make longer. */
const LEFT = /InMs$|^(limited|blocked)Ms$/;

export class Side {
  readonly #connections: Store[];
  /** Of each job, in the order in which they were granted. */
  readonly #granted = new Map<string, string[]>();
  readonly #tokens = new Map<string, string>();
  readonly #fences = new Map<number, string>();
  readonly #seen = new Map<string, number>();
  #lastFence = 0;
  #trimmedTo = 0;

  constructor(connections: Store[]) {
    this.#connections = connections;
  }

  /** Answers the reply, or the code with which it was refused, under common names. */
  async run(act: Act, via: number): Promise<unknown> {
    const store = this.#connections[via % this.#connections.length] as Store;
    try {
      return this.#rename(await act(store, this));
    } catch (error) {
      if (error instanceof HoldfastError) return { refused: error.code };
      throw error;
    }
  }

  /** Notes the tokens of a claim. */
  async granted<R>(reply: Promise<R>, jobsOf: (reply: R) => ClaimedJob[]): Promise<R> {
    const answer = await reply;
    for (const { id, token } of jobsOf(answer)) {
      const known = this.#granted.get(id) ?? [];
      if (!known.includes(token)) this.#granted.set(id, [...known, token]);
    }
    return answer;
  }

  token(job: string, part: TokenPart): string {
    const own = this.#granted.get(job) ?? [];
    const others = [...this.#granted].filter(([id]) => id !== job).flatMap(([, tokens]) => tokens);
    const chosen = { last: own.at(-1), before: own.at(-2), foreign: others.at(-1), unknown: 's1-0:1', empty: '' }[part];
    return chosen ?? 's1-0:2';
  }

  /** The highest revocation that a session was told of. */
  seenBy(session: string): number {
    return this.#seen.get(session) ?? 0;
  }

  async told(sessions: string[], replies: Promise<RenewReply[]>): Promise<RenewReply[]> {
    const answer = await replies;
    answer.forEach(({ notices }, index) => {
      const last = notices.at(-1)?.number;
      if (last !== undefined) this.#seen.set(sessions[index] as string, last);
    });
    return answer;
  }

  /** "Keeps about the newest": from here on, what came before may be there or not, and nobody says how many went. */
  async trimmed(trimming: Promise<unknown>, store: Store, queue: string): Promise<void> {
    await trimming;
    this.#trimmedTo = (await store.events(queue, undefined, 1)).last;
  }

  /** All events after one, read in pages. `marks`: where calls ended in the log. */
  async events(store: Store, queue: string, { after, page, marks }: EventsQuery): Promise<unknown> {
    if (after === undefined) return store.events(queue, after, page);
    const events: StoredEvent[] = [];
    let last = Math.max(after, this.#trimmedTo);
    for (;;) {
      const read = await store.events(queue, last, page);
      if (read.events.length > page) throw new Error(`${read.events.length} events were read, ${page} at most were asked for`);
      if (read.events.length === 0) return { events: byCall(events, marks), last: read.last };
      events.push(...read.events);
      last = read.last;
    }
  }

  #rename(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.#rename(item));
    if (typeof value !== 'object' || value === null) return value;
    const renamed = Object.entries(value).map(([field, inner]) => {
      if (field === 'token') return [field, this.#tokenName(inner as string)];
      if (LEFT.test(field) && typeof inner === 'number') return [field, Math.round(inner / 5) * 5];
      if (field === 'fence') return [field, this.#fenceName(inner as number)];
      return [field, this.#rename(inner)];
    });
    return Object.fromEntries(renamed);
  }

  /** Those of named locks are the caller's own. */
  #tokenName(token: string): string {
    if (token.startsWith('wish-')) return token;
    const name = this.#tokens.get(token) ?? `token ${this.#tokens.size + 1}`;
    this.#tokens.set(token, name);
    return name;
  }

  /** Each is seen first in the reply that grants it, so a new one must be greater than all before. */
  #fenceName(fence: number): string {
    const known = this.#fences.get(fence);
    if (known !== undefined) return known;
    const name = fence > this.#lastFence ? `fence ${this.#fences.size + 1}` : `fence ${fence}, not above ${this.#lastFence}`;
    this.#lastFence = Math.max(fence, this.#lastFence);
    this.#fences.set(fence, name);
    return name;
  }
}

/**
 * "Which verb tells what, in this order within a call": the order is that of what is told of one job. Whether a call tells all of one job
 * before it speaks of the next is the store's affair, so what a call told is compared job by job; ids still count up without a gap.
 */
function byCall(events: StoredEvent[], marks: readonly number[]): unknown[] {
  const callOf = ({ id }: StoredEvent): number => marks.findIndex((mark) => id <= mark);
  const about = ({ jobId }: StoredEvent): string => jobId ?? '~';
  const sorted = events.toSorted((a, b) => callOf(a) - callOf(b) || (about(a) < about(b) ? -1 : about(a) > about(b) ? 1 : 0));
  return [events.map(({ id }) => id), sorted.map(({ id: _, ...event }) => event)];
}
