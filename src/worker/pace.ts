// Measures how fast the slots of a worker finish jobs. The pace limits the jobs claimed ahead, so that they are not kept from idle workers.
import type { Clock } from '../runtime/clock.js';

/** Jobs are claimed ahead for at most this many ms of work, by the recent pace of the slots. */
const WINDOW_MS = 250;

export class Pace {
  readonly #clock: Clock;
  #from: number;
  #ended = 0;
  #before = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#from = clock.monotonic();
  }

  /** A handler has ended. */
  ended(): void {
    this.#ended += 1;
  }

  /** Returns how many jobs will start within a window at this pace. After a standstill the number doubles with each call to the store. */
  expected(): number {
    const time = this.#clock.monotonic();
    const elapsed = time - this.#from;
    if (elapsed >= WINDOW_MS) {
      this.#before = Math.floor((this.#ended * WINDOW_MS) / elapsed);
      this.#ended = 0;
      this.#from = time;
    }
    return Math.max(this.#before, this.#ended);
  }

  /** Called when jobs that were claimed ahead could not start: no more are claimed ahead until handlers end again. */
  broken(): void {
    this.#before = 0;
    this.#ended = 0;
    this.#from = this.#clock.monotonic();
  }
}
