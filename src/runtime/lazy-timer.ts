// A timer for what is started and stopped with every call and almost never comes to its end. Starting and stopping one of Node's costs
// more than all the rest of such a call's bookkeeping (three of them were 10 of the 155 µs that a job takes in a worker of Redis). So a
// stopped one is left to run: started again, it only notes until when, and finds out when it fires that it is not time yet.
import { systemClock } from './clock.js';
import { clearTimeout, setTimeout } from './timers.js';

export class LazyTimer {
  readonly #over: () => void;
  #timer: NodeJS.Timeout | undefined;
  #firesAt = 0;
  #endsAt = Number.POSITIVE_INFINITY;

  constructor(over: () => void) {
    this.#over = over;
  }

  get isRunning(): boolean {
    return this.#endsAt !== Number.POSITIVE_INFINITY;
  }

  /** Anew if it runs. Keeps the process alive until it is stopped or over. */
  start(ms: number): void {
    const time = systemClock.monotonic();
    this.#endsAt = time + ms;
    if (this.#timer === undefined || this.#endsAt < this.#firesAt) this.#arm(time);
    else this.#timer.ref();
  }

  stop(): void {
    this.#endsAt = Number.POSITIVE_INFINITY;
    this.#timer?.unref();
  }

  /** It is not used any more. */
  end(): void {
    this.stop();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(time: number): void {
    clearTimeout(this.#timer);
    const ms = Math.max(1, Math.ceil(this.#endsAt - time));
    this.#firesAt = time + ms;
    this.#timer = setTimeout(() => this.#fired(), ms);
  }

  #fired(): void {
    this.#timer = undefined;
    if (!this.isRunning) return;
    const time = systemClock.monotonic();
    if (time < this.#endsAt) {
      this.#arm(time);
      return;
    }
    this.#endsAt = Number.POSITIVE_INFINITY;
    this.#over();
  }
}
