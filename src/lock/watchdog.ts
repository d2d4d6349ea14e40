// Sees from the thread how long the main loop has been blocked. A thread that was itself not running (SIGSTOP, a suspended machine)
// must not take its own absence for a block, so it looks at its own gap first.
import type { Clock } from '../runtime/clock.js';
import { between, moment, now, type Moment } from './trust.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

export const BEAT_MS = 250;
/** Below this nobody wants to hear of it. */
const REPORT_MS = 1000;

/** The main loop's side: a timer that can only run while the loop is free. */
export class Beat {
  readonly buffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  readonly #word = new Int32Array(this.buffer);
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beat();
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    Atomics.store(this.#word, 0, now(this.#clock));
  }
}

/** The thread's side. */
export class Watchdog {
  readonly #word: Int32Array;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #lookedAt: Moment;
  /** The main loop is not blamed for anything before this. */
  #since: Moment;
  /** How long the present block has lasted. */
  #lasted = 0;

  constructor(beat: SharedArrayBuffer, clock: Clock, onBlocked: (blockedMs: number) => void) {
    this.#word = new Int32Array(beat);
    this.#clock = clock;
    this.#lookedAt = now(clock);
    this.#since = this.#lookedAt;
    this.#timer = setInterval(() => this.#report(onBlocked), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  blockedMs(): number {
    const time = now(this.#clock);
    if (between(this.#lookedAt, time) > 3 * BEAT_MS) this.#since = time;
    this.#lookedAt = time;
    const beat = Atomics.load(this.#word, 0);
    const last = between(beat, this.#since) > 0 ? this.#since : beat;
    return Math.max(0, between(last, moment(time - BEAT_MS)));
  }

  #report(onBlocked: (blockedMs: number) => void): void {
    const blocked = this.blockedMs();
    if (blocked >= REPORT_MS) {
      this.#lasted = blocked;
    } else if (this.#lasted > 0) {
      // Only now: the main loop cannot hear of it before it is free, and wants to know for how long it was not.
      onBlocked(this.#lasted);
      this.#lasted = 0;
    }
  }
}
