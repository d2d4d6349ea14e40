// A timeout for replies that are awaited one after the other. Like `within`, which is for a single reply and costs a timer and four
// promises; this one costs one promise. A reply that arrived while the event loop was blocked is in time: it is read before the immediate.
import { LazyTimer } from './lazy-timer.js';
import { setImmediate } from './timers.js';

export class ReplyTimeout {
  readonly #timer = new LazyTimer(() => {
    const giveUp = this.#giveUp;
    setImmediate(() => {
      if (this.#giveUp === giveUp) giveUp?.();
    });
  });
  /** Rejects the current wait. */
  #giveUp: (() => void) | undefined;

  /** Waits for one reply at a time. Rejects with `late` after `ms` without a reply. Keeps the process alive until then. */
  wait<T>(ms: number, answer: Promise<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#giveUp = undefined;
        reject(late());
      };
      // A late reply is dropped: the next wait may have begun.
      const isLate = (): boolean => {
        if (this.#giveUp !== giveUp) return true;
        this.#giveUp = undefined;
        this.#timer.stop();
        return false;
      };
      this.#giveUp = giveUp;
      this.#timer.start(ms);
      answer.then(
        (value) => {
          if (!isLate()) resolve(value);
        },
        (error: Error) => {
          if (!isLate()) reject(error);
        },
      );
    });
  }

  /** Restarts the timeout of the current wait with a shorter time. */
  shorten(ms: number): void {
    if (this.#giveUp !== undefined) this.#timer.start(ms);
  }

  /** Frees the timer. Call it when the ReplyTimeout is no longer used. */
  end(): void {
    this.#timer.end();
  }
}
