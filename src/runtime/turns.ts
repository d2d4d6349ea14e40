// Lets long work take turns with the event loop, so that timers and sockets do not wait for all of it.
import { performance, setImmediate } from './timers.js';

/** How long the work uses the event loop at once, in ms. */
const SHARE_MS = 10;

export class Turns {
  #since = performance.now();

  /** True if the work has used its share of this turn: await `next` before the work goes on. */
  get isOver(): boolean {
    return performance.now() - this.#since >= SHARE_MS;
  }

  /** Waits for the next turn of the event loop. */
  async next(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.#since = performance.now();
  }
}
