// The line in front of the pool: calls that wait for a connection, first come first served. The pool has a line too, but gives up whoever
// has waited for too long, which is no sign of trouble while others are served: 500 workers that shared ten connections reported
// outages of a server that answered all the time.
import { clearTimeout, performance, setImmediate, setTimeout } from '../../runtime/timers.js';

export class PoolLine {
  readonly #most: number;
  readonly #waiting = new Set<() => void>();
  #out = 0;
  #answeredAt = 0;

  /** `most`: connections of the pool. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The server has answered something. */
  answered(): void {
    this.#answeredAt = performance.now();
  }

  /** Whether the server has answered anything in the last so many milliseconds. */
  isServed(ms: number): boolean {
    return performance.now() - this.#answeredAt < ms;
  }

  /** Waits for its turn, as long as others are served: nothing in so many milliseconds means that it rejects with `late`. */
  async enter(ms: number, late: () => Error): Promise<void> {
    if (this.#out >= this.#most) await this.#wait(ms, late);
    else this.#out += 1;
  }

  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#out -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  #wait(ms: number, late: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout;
      const turn = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const look = (): void => {
        // An answer that came while the event loop was blocked is read before the immediate.
        setImmediate(() => {
          if (!this.#waiting.has(turn)) return;
          if (this.isServed(ms)) timer = setTimeout(look, ms);
          else if (this.#waiting.delete(turn)) reject(late());
        });
      };
      this.#waiting.add(turn);
      timer = setTimeout(look, ms);
    });
  }
}
