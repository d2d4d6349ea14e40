// Jobs that were claimed ahead of free slots (`prefetch`), in the order in which they came. Runs puts them here and takes them out again.
// It must never sit on them: what has not begun within half a second goes back, so that an idle worker elsewhere gets it although no
// worker knows of any other.
import type { ClaimedJob } from '../job/record.js';
import type { HeldLock } from '../session/held-lock.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

export interface WaitingJob {
  claimed: ClaimedJob;
  lock: HeldLock;
}

/** A job that has seen two of these pass has waited for too long. One timer for all of them: nothing is timed per job. */
const TICK_MS = 250;

export class PrefetchBuffer {
  /** A Map keeps the order, and lets one out of the middle whose lock was lost. */
  readonly #jobs = new Map<HeldLock, WaitingJob>();
  readonly #onStale: () => void;
  /** How many of them were here at the last tick; they are the first ones. */
  #old = 0;
  #timer: NodeJS.Timeout | undefined;

  /** `onStale`: the slots do not get to them. */
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

  /** The one that came first. */
  next(): WaitingJob | undefined {
    const first = this.#jobs.values().next();
    if (first.done === true) return undefined;
    this.#jobs.delete(first.value.lock);
    this.#old -= 1;
    return first.value;
  }

  delete(lock: HeldLock): boolean {
    if (!this.#jobs.delete(lock)) return false;
    // It may have been a young one. Then the old ones wait for a tick more; the other way round, young ones would go back.
    this.#old -= 1;
    return true;
  }

  /** All but the first `keep`, in their order. */
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
