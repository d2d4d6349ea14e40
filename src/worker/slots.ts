// How many jobs may run at once, how many do, and how many more may be claimed.
import type { Clock } from '../runtime/clock.js';
import { systemClock } from '../runtime/clock.js';
import { Pace } from './pace.js';

export class Slots {
  concurrency: number;
  /** How many jobs may be held beyond those that run: waiting for a slot, or ended and not acknowledged by the store yet. */
  prefetch: number;
  /** Handlers that run. */
  running = 0;
  /** Jobs from their claim to the store's acknowledgement: waiting for a slot, running, ended. */
  inHand = 0;
  readonly pace: Pace;

  constructor(concurrency: number, prefetch = 0, clock: Clock = systemClock) {
    this.concurrency = concurrency;
    this.prefetch = prefetch;
    this.pace = new Pace(clock);
  }

  /** Free slots once `ending` runs are acknowledged. Not below 0: the concurrency may have been lowered while more were running. */
  freeAfter(ending: number): number {
    return Math.max(0, this.concurrency - this.inHand + ending);
  }

  /**
   * How many jobs may be claimed once `ending` runs are acknowledged. Without `prefetch` these are the free slots, so that a slot waits
   * for the store's answer; with it, a slot goes on with the next job meanwhile, and what is in hand stays bounded all the same.
   */
  roomAfter(ending: number): number {
    if (this.prefetch === 0) return this.freeAfter(ending);
    if (this.running > this.concurrency) return 0;
    const ahead = Math.min(this.prefetch, this.pace.expected());
    return Math.max(0, this.concurrency + ahead - this.inHand + ending);
  }
}
