// Waiting for answers that are asked for one after the other, and for none of them for ever. As `within`, which is for a single answer and
// costs a timer and four promises; this one costs a promise. An answer that came while the event loop was blocked is in time: it is read
// before the immediate.
import { LazyTimer } from './lazy-timer.js';
import { setImmediate } from './timers.js';

export class ReplyTimeout {
  readonly #timer = new LazyTimer(() => {
    const giveUp = this.#giveUp;
    setImmediate(() => {
      if (this.#giveUp === giveUp) giveUp?.();
    });
  });
  /** Of the answer that is waited for. */
  #giveUp: (() => void) | undefined;

  /** One at a time. Rejects with `late` when the time is over first; keeps the process alive until then. */
  wait<T>(ms: number, answer: Promise<T>, late: () => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#giveUp = undefined;
        reject(late());
      };
      // What comes too late is nobody's: the next one may be waited for.
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

  /** From now on there is less time, for the answer that is waited for. */
  shorten(ms: number): void {
    if (this.#giveUp !== undefined) this.#timer.start(ms);
  }

  /** It is not used any more. */
  end(): void {
    this.#timer.end();
  }
}
