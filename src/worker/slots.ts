// Counts how many jobs may run at once, how many do, and how many more may be claimed.
import type { Clock } from '../runtime/clock.js';
import { systemClock } from '../runtime/clock.js';
import { Pace } from './pace.js';

export class Slots {
  concurrency: number;
  /** How many jobs may be in hand beyond the running ones: waiting for a slot, or ended and not yet acknowledged by the store. */
  prefetch: number;
  /** Number of jobs that are passed to the processor, or wait for their batch. */
  running = 0;
  /** Number of jobs that wait for their batch to begin. */
  waiting = 0;
  /** Number of jobs between their claim and the store's acknowledgement: waiting for a slot, running, or ended. */
  inHand = 0;
  readonly pace: Pace;

  constructor(concurrency: number, prefetch = 0, clock: Clock = systemClock) {
    this.concurrency = concurrency;
    this.prefetch = prefetch;
    this.pace = new Pace(clock);
  }

  /** Sets how many calls of the processor may run at once. */
  set(concurrency: number): void {
    this.concurrency = concurrency;
  }

  /** Returns the free slots once `ending` runs are acknowledged. Never below 0: the concurrency may have been lowered while more ran. */
  freeAfter(ending: number): number {
    return Math.max(0, this.concurrency - this.inHand + ending);
  }

  /**
   * Returns how many jobs may be claimed once `ending` runs are acknowledged. Without `prefetch` these are the free slots, so a slot waits
   * for the store's reply. With `prefetch`, a slot goes on with the next job meanwhile, and the number of jobs in hand stays bounded.
   */
  roomAfter(ending: number): number {
    if (this.prefetch === 0) return this.freeAfter(ending);
    if (this.running > this.concurrency) return 0;
    const ahead = Math.min(this.prefetch, this.pace.expected());
    return Math.max(0, this.concurrency + ahead - this.inHand + ending);
  }
}
