// A clock under the test's hand: time passes when the test says so, and the wall can be stepped without any time passing.
import type { Clock } from '../runtime/clock.js';

export interface ManualClockOptions {
  /** Where the monotonic clock starts, in ms. */
  monotonicMs?: number;
  /** Where the wall clock starts, in ms since the epoch. */
  wallMs?: number;
}

export class ManualClock implements Clock {
  #monotonic: number;
  #wall: number;

  constructor({ monotonicMs = 1_000_000, wallMs = Date.UTC(2030, 0, 1) }: ManualClockOptions = {}) {
    this.#monotonic = monotonicMs;
    this.#wall = wallMs;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  wall(): number {
    return this.#wall;
  }

  /** Lets time pass on both clocks. */
  advance(ms: number): void {
    if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) {
      throw new RangeError(`Time passes by a number of ms from 0 up, not by ${ms}. To set the wall clock back, use stepWall().`);
    }
    this.#monotonic += ms;
    this.#wall += ms;
  }

  /** Moves only the wall, forward or back, as an operator or a time server does. */
  stepWall(ms: number): void {
    if (!Number.isFinite(ms)) throw new RangeError(`The wall clock steps by a finite number of ms, not by ${ms}.`);
    this.#wall += ms;
  }
}
