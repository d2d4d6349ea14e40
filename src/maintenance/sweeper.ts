// Moves what time moves: finds sessions and locks whose time is over, on a schedule of this worker's own, and looks for owners whose
// process died (looking.ts says how often), so that their jobs move on after a short grace instead of a whole lock duration.
// Renewers run it, in the thread or on the loop. It never decides who is dead: the store does.
import { HoldfastError, toError } from '../errors.js';
import { MAX_TIMER_MS } from '../runtime/check.js';
import { inTime } from '../runtime/within.js';
import type { Store, SweepReply } from '../store/contract/index.js';
import { nextLookMs } from './probe-interval.js';
import { clearTimeout, setInterval, setTimeout } from '../runtime/timers.js';

export interface SweeperOptions {
  store: Store;
  queue: string;
  /** How often to sweep. */
  intervalMs: number;
  /** Waited for before each sweep: renewals that are overdue in this process go first. */
  beforeSweep?(): Promise<void>;
  onSwept(reply: Omit<SweepReply, 'more'>): void;
  onError(error: Error): void;
}

/** Few enough that no store is held up for more than about 2 ms. The first call, in cold code, took SQLite 3 ms; with 100, 4 ms. */
export const SWEPT_AT_ONCE = 50;
/** When a session ends, the sweep must find it expired on the store's clock, which may round. */
const AFTER_END_MS = 10;
/** A call that hangs for longer is told and given up, or it would be the last one. */
const PATIENCE_MS = 30_000;

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #sweeping = false;
  /** As the last look found them. */
  #sessions = 1;
  #looking = false;
  #nextLook: NodeJS.Timeout | undefined;
  #again = false;
  #outage = false;
  #stopped = false;
  #silent = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#every(this.#options.intervalMs, () => void this.sweep());
    // What died while nobody was here is found at once.
    void this.sweep();
    void this.#look();
  }

  /** No more calls, and nothing more is told. */
  stop(): void {
    this.retire();
    this.#silent = true;
  }

  /** No more calls: another sweeper takes over. What the present one finds is still told, or nobody would tell it. */
  retire(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  /** One pass over all that is dead now. A pass that is asked for while one runs follows it. */
  async sweep(): Promise<void> {
    if (this.#sweeping) {
      this.#again = true;
      return;
    }
    this.#sweeping = true;
    const { store, queue, beforeSweep, onSwept } = this.#options;
    try {
      for (let more = true; more && !this.#stopped; ) {
        this.#again = false;
        if (beforeSweep !== undefined) await patiently(beforeSweep());
        if (this.#stopped) return;
        const reply = await patiently(store.sweep(queue, SWEPT_AT_ONCE));
        this.#outage = false;
        const found = reply.stalled.length + reply.failed.length > 0;
        if (found && !this.#silent) onSwept(reply);
        // Something died: looks may have become too rare, if the fleet of the last one is no more.
        if (found) void this.#look();
        more = reply.more || this.#again;
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#sweeping = false;
    }
  }

  async #look(): Promise<void> {
    const { store, queue } = this.#options;
    if (!store.capabilities.crashHints || this.#looking || this.#stopped) return;
    this.#looking = true;
    try {
      const { sessions, dueInMs } = await patiently(store.probe(queue));
      this.#outage = false;
      this.#sessions = sessions;
      // A timer takes no more than MAX_TIMER_MS: past it, it would fire at once.
      if (dueInMs !== undefined) this.#after(Math.min(MAX_TIMER_MS, dueInMs + AFTER_END_MS), () => void this.sweep());
    } catch (error) {
      this.#fail(error);
    }
    this.#looking = false;
    if (this.#nextLook !== undefined) this.#forget(this.#nextLook);
    this.#nextLook = this.#after(nextLookMs(this.#sessions, Math.random()), () => void this.#look());
  }

  /** Once for each outage: looking goes on, and would tell as often. */
  #fail(error: unknown): void {
    if (!this.#stopped && !this.#outage) this.#options.onError(toError(error));
    this.#outage = true;
  }

  #every(ms: number, work: () => void): void {
    this.#timers.add(setInterval(work, ms).unref());
  }

  #after(ms: number, work: () => void): NodeJS.Timeout | undefined {
    if (this.#stopped) return undefined;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms).unref();
    this.#timers.add(timer);
    return timer;
  }

  #forget(timer: NodeJS.Timeout): void {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}

function patiently<T>(answer: Promise<T>): Promise<T> {
  const message = 'The store did not answer the search for dead owners.';
  return inTime(PATIENCE_MS, answer, () => new HoldfastError('TIMEOUT', message, { retryable: true }), false);
}
