// A clock that the test moves: time passes when the test says so, and the wall clock can step without time passing.
import type { Clock } from '../runtime/clock.js';

export interface ManualClockOptions {
  /** Start of the monotonic clock, in ms. Default 1,000,000. */
  monotonicMs?: number;
  /** Start of the wall clock, in ms since the epoch. Default: the start of 2030. */
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

  /** Moves only the wall clock, forward or back, as an operator or a time server does. */
  stepWall(ms: number): void {
    if (!Number.isFinite(ms)) throw new RangeError(`The wall clock steps by a finite number of ms, not by ${ms}.`);
    this.#wall += ms;
  }
}
