// The queue of calls in front of the pool, first come first served. The pool has a queue too, but rejects a call that has waited too
// long. While other calls are served, that is no sign of trouble: 500 workers that shared ten connections reported outages of a server
// that replied all the time.
import { clearTimeout, performance, setImmediate, setTimeout } from '../../../runtime/timers.js';

export class PoolLine {
  readonly #most: number;
  readonly #waiting = new Set<() => void>();
  #out = 0;
  #answeredAt = 0;

  /** `most`: how many connections the pool has. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Records that the server has replied to some call. */
  answered(): void {
    this.#answeredAt = performance.now();
  }

  /** True if the server has replied to any call in the last `ms` milliseconds. */
  isServed(ms: number): boolean {
    return performance.now() - this.#answeredAt < ms;
  }

  /**
   * Waits for a free connection as long as other calls are served. Rejects with `late` if the server replies to nothing for `ms`
   * milliseconds.
   */
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
        // If a reply came while the event loop was blocked, it is read before the immediate runs.
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
