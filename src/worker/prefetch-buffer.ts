// Jobs that were claimed ahead of free slots (`prefetch`), in the order of their claims. Runs adds and takes them. It must not keep them
// for long: a job that has not started within 25 ms goes back. So an idle worker elsewhere gets it, although workers do not know of each
// other. While the event loop is blocked, the renewer gives the jobs back (background/ahead-watch.ts).
import type { ClaimedJob } from '../job/record.js';
import type { HeldLock } from '../session/held-lock.js';
import type { Session } from '../session/session.js';
import { now } from '../session/trust.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface WaitingJob {
  claimed: ClaimedJob;
  lock: HeldLock;
  /** The renewer may give the job back before its run begins. */
  isAhead: boolean;
}

/**
 * A job that was here at two ticks has waited too long. All jobs share one timer: nothing is timed per job. Without `prefetch`, jobs only wait
 * here for their turn of the loop, because others compute for long: they have slots, so they may wait longer.
 */
const AHEAD_TICK_MS = 12;
const TICK_MS = 250;

export class PrefetchBuffer {
  /** A Map keeps the order, and allows removal from the middle when a lock was lost. */
  readonly #jobs = new Map<HeldLock, WaitingJob>();
  readonly #onStale: () => void;
  readonly #onAhead: (session: Session) => void;
  /** How many of the jobs were here at the last tick; they are the first ones. */
  #old = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The session of the last job. While the timer runs, the renewer of the session can see when it last fired. */
  #session: Session | undefined;

  /** `onStale` is called when the slots do not get to the jobs in time; `onAhead` when a session gets its first jobs here. */
  constructor(onStale: () => void, onAhead: (session: Session) => void) {
    this.#onStale = onStale;
    this.#onAhead = onAhead;
  }

  get size(): number {
    return this.#jobs.size;
  }

  has(lock: HeldLock): boolean {
    return this.#jobs.has(lock);
  }

  add(job: WaitingJob): void {
    const { session } = job.lock;
    this.#jobs.set(job.lock, job);
    if (job.isAhead && session !== this.#session) {
      this.#rest();
      this.#session = session;
      session.memory.aheadAt = now(session.clock);
      this.#onAhead(session);
    }
    if (this.#timer === undefined) this.#startTimer();
  }

  /** Takes out the job that came first. */
  next(): WaitingJob | undefined {
    const first = this.#jobs.values().next();
    if (first.done === true) return undefined;
    this.#jobs.delete(first.value.lock);
    this.#old -= 1;
    return first.value;
  }

  delete(lock: HeldLock): boolean {
    if (!this.#jobs.delete(lock)) return false;
    // It may have been a newer job. Then the old ones wait one tick longer; without this decrement newer jobs would go back too early.
    this.#old -= 1;
    return true;
  }

  /** Takes out all but the first `keep`, in their order. */
  takeBeyond(keep: number): WaitingJob[] {
    const taken = [...this.#jobs.values()].slice(keep);
    for (const { lock } of taken) this.#jobs.delete(lock);
    this.#old = Math.min(this.#old, keep);
    if (this.#jobs.size === 0) this.#rest();
    return taken;
  }

  #tick(): void {
    this.#timer = undefined;
    const session = this.#session;
    if (session !== undefined) session.memory.aheadAt = now(session.clock);
    if (this.#old > 0 && this.#jobs.size > 0) this.#onStale();
    this.#old = this.#jobs.size;
    if (this.#old > 0) this.#startTimer();
    else this.#rest();
  }

  #startTimer(): void {
    this.#timer = setTimeout(() => this.#tick(), this.#session === undefined ? TICK_MS : AHEAD_TICK_MS);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#session !== undefined) this.#session.memory.aheadAt = undefined;
    this.#session = undefined;
  }
}
