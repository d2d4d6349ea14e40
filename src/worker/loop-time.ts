// A clock that counts only the time in which the event loop could run. A timeout on this clock does not blame the store if the loop was
// blocked or the process frozen while the reply lay in the socket, unread. The clock stands still until it is started.
import type { Clock } from '../runtime/clock.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

const TICK_MS = 500;
/** Timers are late on a busy machine; a gap longer than this, in ms, was a block. */
const GAP_MS = 3 * TICK_MS;
const REMEMBERED_MS = 60_000;

export class LoopTime {
  readonly #clock: Clock;
  #ticks: NodeJS.Timeout | undefined;
  #readAt = 0;
  #time = 0;
  #blocked = { ms: 0, at: 0 };

  readonly #onBlocked: (blockedMs: number) => void;

  constructor(clock: Clock, onBlocked: (blockedMs: number) => void = () => undefined) {
    this.#clock = clock;
    this.#onBlocked = onBlocked;
  }

  /** Starts the clock once; `onTick` is called every half second. */
  start(onTick: () => void): void {
    if (this.#ticks !== undefined) return;
    this.#readAt = this.#clock.monotonic();
    this.#ticks = setInterval(onTick, TICK_MS).unref();
  }

  stop(): void {
    clearInterval(this.#ticks);
  }

  now(): number {
    if (this.#ticks === undefined) return this.#time;
    const at = this.#clock.monotonic();
    const gap = at - this.#readAt;
    this.#readAt = at;
    this.#time += Math.min(gap, GAP_MS);
    if (gap > GAP_MS) {
      if (gap > this.#blocked.ms || this.#isPast(at)) this.#blocked = { ms: gap, at };
      this.#onBlocked(Math.round(gap));
    }
    return this.#time;
  }

  /** Returns the longest block of the last minute, in ms. */
  blockedMs(): number {
    return this.#isPast(this.#clock.monotonic()) ? 0 : this.#blocked.ms;
  }

  #isPast(at: number): boolean {
    return at - this.#blocked.at > REMEMBERED_MS;
  }
}
