// Measures how fast the slots of a worker finish jobs. The pace limits the jobs claimed ahead to those that begin soon, so that they are not
// kept from idle workers.
import type { Clock } from '../runtime/clock.js';

/** Jobs are claimed ahead for this many ms of work at the recent pace, or for this many round trips to the store if they take longer. */
const LEAST_MS = 5;
const ROUND_TRIPS = 4;
/** The limit for a store that takes very long to reply, in ms. */
const MOST_MS = 100;
/** The pace is measured anew after this many ms. */
const WINDOW_MS = 20;

export class Pace {
  readonly #clock: Clock;
  #from: number;
  #ended = 0;
  /** Jobs per ms in the last window. */
  #before = 0;
  /** How long a call to the store takes, in ms: the shortest of the last calls. A handler may delay the reading of a reply. */
  #roundTripMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#from = clock.monotonic();
  }

  /** A handler has ended. */
  ended(): void {
    this.#ended += 1;
  }

  /** A call to the store got its reply after so many ms. */
  answered(ms: number): void {
    this.#roundTripMs = this.#roundTripMs === 0 ? ms : Math.min(ms, this.#roundTripMs * 1.1);
  }

  /** Returns how many jobs will begin soon at this pace. After a standstill the number grows with each call to the store. */
  expected(): number {
    const time = this.#clock.monotonic();
    const elapsed = time - this.#from;
    const pace = this.#ended / Math.max(1, elapsed);
    const ms = Math.min(MOST_MS, Math.max(LEAST_MS, ROUND_TRIPS * this.#roundTripMs));
    if (elapsed < WINDOW_MS) return Math.floor(Math.max(this.#before, pace) * ms);
    this.#before = pace;
    this.#ended = 0;
    this.#from = time;
    return Math.floor(pace * ms);
  }

  /** Called when jobs that were claimed ahead could not start: no more are claimed ahead until handlers end again. */
  broken(): void {
    this.#before = 0;
    this.#ended = 0;
    this.#from = this.#clock.monotonic();
  }
}
