// Jobs that were claimed ahead of free slots (`prefetch`), in the order of their claims. Runs adds and takes them. It must not keep them
// for long: a job that has not started within half a second goes back. So an idle worker elsewhere gets it, although workers do not know
// of each other.
import type { ClaimedJob } from '../job/record.js';
import type { HeldLock } from '../session/held-lock.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface WaitingJob {
  claimed: ClaimedJob;
  lock: HeldLock;
}

/** A job that was here at two ticks has waited too long. All jobs share one timer: nothing is timed per job. */
const TICK_MS = 250;

export class PrefetchBuffer {
  /** A Map keeps the order, and allows removal from the middle when a lock was lost. */
  readonly #jobs = new Map<HeldLock, WaitingJob>();
  readonly #onStale: () => void;
  /** How many of the jobs were here at the last tick; they are the first ones. */
  #old = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `onStale` is called when the slots do not get to the jobs in time. */
  constructor(onStale: () => void) {
    this.#onStale = onStale;
  }

  get size(): number {
    return this.#jobs.size;
  }

  has(lock: HeldLock): boolean {
    return this.#jobs.has(lock);
  }

  add(job: WaitingJob): void {
    this.#jobs.set(job.lock, job);
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS);
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
    if (this.#jobs.size === 0) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    }
    return taken;
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#jobs.size === 0) return;
    if (this.#old > 0) this.#onStale();
    this.#old = this.#jobs.size;
    if (this.#old > 0) this.#timer = setTimeout(() => this.#tick(), TICK_MS);
  }
}
