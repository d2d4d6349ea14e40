// All readers of one queue's log in this process share one watch and one timer. Readers at the same position share one read, and nearly
// all of them are at the end of the log. So a thousand listeners cost the store as much as one.
import { clearTimeout, genuine, performance, setImmediate, setTimeout } from '../runtime/timers.js';
import type { EventsReply, Store, StoredEvent } from '../store/contract/index.js';
import { JobEnds } from './job-ends.js';

const tails = new WeakMap<Store, Map<string, LogTail>>();

interface Sleeper {
  dueAt: number;
  /** A wake-up of the store ends the sleep. */
  wakeable: boolean;
  resolve(): void;
}

const nextTick = genuine(process.nextTick, 'nextTick');
const PAGE = 500;
const FILLED_AT_ONCE = 50;
const FILLED = Promise.resolve();
/** Sleepers that are due within this many ms after the first wake with it, so that they read together from then on. */
const TOGETHER_MS = 10;

export class LogTail {
  readonly #store: Store;
  readonly #queue: string;
  readonly #sleepers = new Set<Sleeper>();
  /** Reads that will be sent at the end of this turn, by position. */
  readonly #reads = new Map<number | undefined, Promise<EventsReply>>();
  readonly #fills = new WeakMap<StoredEvent, Promise<void>>();
  #readers = 0;
  #unwatch: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #waking = false;
  #ends: JobEnds | undefined;
  /** The number of wake-ups by the store. */
  wakeUps = 0;

  private constructor(store: Store, queue: string) {
    this.#store = store;
    this.#queue = queue;
  }

  static of(store: Store, queue: string): LogTail {
    const known = tails.get(store) ?? new Map<string, LogTail>();
    tails.set(store, known);
    const tail = known.get(queue) ?? new LogTail(store, queue);
    known.set(queue, tail);
    return tail;
  }

  /** Adds a reader. Returns the function that removes it, which is idempotent. */
  join(): () => void {
    this.#readers += 1;
    this.#unwatch ??= this.#store.watch(this.#queue, () => this.#wake(), 'events');
    let joined = true;
    return () => {
      if (!joined) return;
      joined = false;
      this.#readers -= 1;
      if (this.#readers > 0) return;
      this.#unwatch?.();
      this.#unwatch = undefined;
      tails.get(this.#store)?.delete(this.#queue);
    };
  }

  /** How removed jobs ended. */
  get ends(): JobEnds {
    this.#ends ??= new JobEnds(this);
    return this.#ends;
  }

  /** Returns the position of the newest event. */
  async end(): Promise<number> {
    return (await this.#read(undefined)).last;
  }

  /** Returns the events after a position, and whether there may be more. */
  async after(position: number): Promise<EventsReply> {
    const reply = await this.#read(position);
    return reply.events.length < PAGE ? reply : { ...reply, more: true };
  }

  /**
   * Reads a value that was too large for its event from the job. If the job was removed or run again since, the value is lost. The same
   * call brings the values of the next events that need one, as far as a reply goes.
   */
  async fillIn(event: StoredEvent, next: () => StoredEvent[]): Promise<void> {
    const filling = this.#fills.get(event) ?? this.#fill([event, ...next().slice(0, FILLED_AT_ONCE - 1)]);
    this.#fills.set(event, filling);
    await filling;
  }

  /** Returns the sleep, and a function that ends it early. */
  sleep(ms: number, wakeable: boolean): { slept: Promise<void>; end(): void } {
    let sleeper!: Sleeper;
    const slept = new Promise<void>((resolve) => {
      sleeper = { dueAt: performance.now() + ms, wakeable, resolve };
    });
    this.#sleepers.add(sleeper);
    this.#arm(sleeper.dueAt);
    return { slept, end: () => this.#rouse(sleeper) };
  }

  /**
   * A read is shared only until it is sent: the reply to an earlier read may lack the event that the reader was woken for. It is sent after
   * the promises of this turn have run, because all readers that were woken together ask within them.
   */
  #read(position: number | undefined): Promise<EventsReply> {
    const known = this.#reads.get(position);
    if (known !== undefined) return known;
    const read = new Promise<void>((resolve) => nextTick(resolve)).then(() => {
      this.#reads.delete(position);
      return this.#store.events(this.#queue, position, position === undefined ? 1 : PAGE);
    });
    this.#reads.set(position, read);
    return read;
  }

  async #fill(events: StoredEvent[]): Promise<void> {
    const ids = [...new Set(events.map(({ jobId = '' }) => jobId))];
    const { jobs } = await this.#store.jobs(this.#queue, ids);
    // The reply may end before the last of them.
    const found = new Map(jobs.map((job, index) => [ids[index], job]));
    for (const event of events) {
      if (!found.has(event.jobId)) continue;
      const job = found.get(event.jobId);
      if (event.name === 'completed' && job?.state === 'completed') event['returnvalue'] = job.returnvalue;
      if (event.name === 'progress') event['data'] = job?.progress;
      if (!this.#fills.has(event)) this.#fills.set(event, FILLED);
    }
  }

  #wake(): void {
    this.wakeUps += 1;
    if (this.#waking) return;
    this.#waking = true;
    // The readers wake at the end of this turn, so that the events of a busy queue come in one batch.
    setImmediate(() => {
      this.#waking = false;
      for (const sleeper of this.#sleepers) if (sleeper.wakeable) this.#rouse(sleeper);
    });
  }

  #rouse(sleeper: Sleeper): void {
    if (!this.#sleepers.delete(sleeper)) return;
    sleeper.resolve();
    if (this.#sleepers.size > 0) return;
    clearTimeout(this.#timer);
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** Arms one timer, for the first sleeper that is due. */
  #arm(dueAt: number): void {
    if (dueAt >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = dueAt;
    this.#timer = setTimeout(() => this.#ring(), Math.max(0, dueAt - performance.now()));
  }

  /** Wakes the sleepers that are due. If one that waits for wake-ups polls now, all others that wait for wake-ups poll with it. */
  #ring(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const due = performance.now() + TOGETHER_MS;
    const anyWakeable = [...this.#sleepers].some(({ wakeable, dueAt }) => wakeable && dueAt <= due);
    let next = Number.POSITIVE_INFINITY;
    for (const sleeper of this.#sleepers) {
      if (sleeper.dueAt <= due || (anyWakeable && sleeper.wakeable)) this.#rouse(sleeper);
      else next = Math.min(next, sleeper.dueAt);
    }
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
  }
}
