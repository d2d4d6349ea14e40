// Lets large reads take turns with the event loop. SQLite reads on the thread of its caller. So many reads in one turn, each within
// its budget, would keep timers and sockets waiting for seconds. Once the reads of a turn have used their share of time, the others
// follow in later turns, in order.
import { performance, setImmediate } from '../../../runtime/timers.js';

const SHARE_OF_TURN_MS = 10;

export class ReadPacer {
  #spentMs = 0;
  readonly #waiting: (() => void)[] = [];

  /** Calls `read` at once, or in a later turn if the share of this turn is used up. `read` may throw. */
  run<T>(read: () => T): T | Promise<T> {
    if (this.#spentMs < SHARE_OF_TURN_MS && this.#waiting.length === 0) return this.#measured(read);
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(this.#measured(read));
        } catch (error) {
          reject(error as Error);
        }
      });
      if (this.#waiting.length === 1) setImmediate(this.#goOn);
    });
  }

  #measured<T>(read: () => T): T {
    const began = performance.now();
    try {
      return read();
    } finally {
      this.#spentMs += performance.now() - began;
    }
  }

  readonly #goOn = (): void => {
    this.#spentMs = 0;
    for (let next = this.#waiting[0]; next !== undefined && this.#spentMs < SHARE_OF_TURN_MS; next = this.#waiting[0]) {
      next();
      this.#waiting.shift();
    }
    if (this.#waiting.length > 0) setImmediate(this.#goOn);
  };
}
