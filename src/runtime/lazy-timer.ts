// A timer that is started and stopped with every call and almost never fires. Starting and stopping a Node timer costs more than the
// rest of such a call's bookkeeping. (Three of them took 10 of the 155 µs that a job takes in a worker on Redis.) So `stop` leaves the
// Node timer running. A new `start` only records the new end; when the Node timer fires too early, it is armed again.
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

  /** Starts the timer, or restarts it with the new time. Keeps the process alive until it is stopped or fires. */
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

  /** Frees the Node timer. Call it when the LazyTimer is no longer used. */
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
