// Sweeps a queue on a timer: the store finds expired sessions and locks. Between sweeps it probes for owners whose process died;
// probe-interval.ts says how often. Their jobs then move on after a short grace instead of a whole lock duration.
// Renewers run it, in the thread or on the event loop. It never decides which owner is dead: the store does.
import { HoldfastError, isLate, toError } from '../errors.js';
import { MAX_TIMER_MS } from '../runtime/check.js';
import { OutageReport } from '../runtime/outage-report.js';
import { inTime } from '../runtime/within.js';
import type { Store, SweepReply } from '../store/contract/index.js';
import { nextLookMs } from './probe-interval.js';
import { clearTimeout, setInterval, setTimeout } from '../runtime/timers.js';

export interface SweeperOptions {
  store: Store;
  queue: string;
  /** Time between two sweeps, in ms. */
  intervalMs: number;
  /** Awaited before each sweep: overdue renewals of this process go first. */
  beforeSweep?(): Promise<void>;
  onSwept(reply: Omit<SweepReply, 'more'>): void;
  /** A probe found work that a process left undone: schedules that are owing, or messages, which the sweeper has relayed. */
  onUndone(): void;
  onError(error: Error): void;
}

/** Limit per call, so that no store is blocked for more than about 2 ms. The first call, in cold code, took SQLite 3 ms; with 100, 4 ms. */
export const SWEPT_AT_ONCE = 50;
/** Messages per call. */
const RELAYED_AT_ONCE = 100;
/** Added to a session's end, in ms: the sweep must find the session expired on the store's clock, which may round. */
const AFTER_END_MS = 10;
/** A call that hangs for longer, in ms, is reported and given up; otherwise no further call would be made. */
const TIMEOUT_MS = 30_000;

/** The limit of calls that are repeated. After one that took too long, the next asks for half; each that succeeds lets the next ask for one more. */
class Limit {
  readonly #most: number;
  #limit: number;

  constructor(most: number) {
    this.#most = this.#limit = most;
  }

  async of<T>(call: (limit: number) => Promise<T>): Promise<T> {
    try {
      const reply = await call(this.#limit);
      this.#limit = Math.min(this.#most, this.#limit + 1);
      return reply;
    } catch (error) {
      if (isLate(error)) this.#limit = Math.max(1, this.#limit >> 1);
      throw error;
    }
  }
}

export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  #sweeping = false;
  /** The number of sessions that the last probe returned. */
  #sessions = 1;
  #looking = false;
  #nextLook: NodeJS.Timeout | undefined;
  #again = false;
  /** Reports once per outage, because the probes go on and would fail as often. */
  readonly #outage: OutageReport;
  readonly #swept = new Limit(SWEPT_AT_ONCE);
  readonly #relayed = new Limit(RELAYED_AT_ONCE);
  #stopped = false;
  #silent = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#outage = new OutageReport(options.onError);
  }

  start(): void {
    this.#every(this.#options.intervalMs, () => void this.sweep());
    // The first sweep runs at once, for owners that died while no worker was running.
    void this.sweep();
    void this.#look();
  }

  /** Makes no more calls and reports nothing more. */
  stop(): void {
    this.retire();
    this.#silent = true;
  }

  /** Makes no more calls: another sweeper takes over. The result of a call under way is still reported: no other sweeper gets it. */
  retire(): void {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
  }

  /** Sweeps everything that is dead now. A sweep that is requested while one runs follows it. */
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
        if (beforeSweep !== undefined) await withTimeout(beforeSweep());
        if (this.#stopped) return;
        const reply = await this.#swept.of((limit) => withTimeout(store.sweep(queue, limit)));
        this.#outage.answered();
        const found = reply.stalled.length + reply.failed.length > 0;
        if (found && !this.#silent) onSwept(reply);
        // An owner died. If a large fleet is gone, the probe interval is too long for the workers that are left, so probe now.
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
    const { store, queue, onUndone } = this.#options;
    if (!store.capabilities.crashHints || this.#looking || this.#stopped) return;
    this.#looking = true;
    try {
      const { sessions, dueInMs, undone } = await withTimeout(store.probe(queue));
      this.#outage.answered();
      if (undone === true && !this.#stopped) {
        await this.#relay();
        onUndone();
      }
      this.#sessions = sessions;
      // A timer takes at most MAX_TIMER_MS; with a longer delay it would fire at once.
      if (dueInMs !== undefined) this.#after(Math.min(MAX_TIMER_MS, dueInMs + AFTER_END_MS), () => void this.sweep());
    } catch (error) {
      this.#fail(error);
    }
    this.#looking = false;
    if (this.#nextLook !== undefined) this.#forget(this.#nextLook);
    this.#nextLook = this.#after(nextLookMs(this.#sessions, Math.random()), () => void this.#look());
  }

  /** Delivers what a process that died has not delivered to other queues. */
  async #relay(): Promise<void> {
    const { store, queue } = this.#options;
    for (let more = true; more && !this.#stopped; ) {
      const reply = await this.#relayed.of((limit) => withTimeout(store.relay(queue, limit)));
      more = reply.more && reply.delivered > 0;
    }
  }

  #fail(error: unknown): void {
    if (!this.#stopped) this.#outage.failed(toError(error));
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

function withTimeout<T>(answer: Promise<T>): Promise<T> {
  const message = 'The store did not answer the search for dead owners.';
  return inTime(TIMEOUT_MS, answer, () => new HoldfastError('TIMEOUT', message, { retryable: true }), false);
}
