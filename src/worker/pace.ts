// How fast the slots of a worker work jobs off: what may be claimed ahead of them without keeping it from idle workers.
import type { Clock } from '../runtime/clock.js';

/** Jobs are claimed ahead for so long at most, by what the slots have done of late. */
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

  /** Jobs that will begin within a window if it goes on like this. From a standing start it doubles with each call to the store. */
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

  /** What was claimed ahead could not be begun: nothing more is, until handlers end again. */
  broken(): void {
    this.#before = 0;
    this.#ended = 0;
    this.#from = this.#clock.monotonic();
  }
}
