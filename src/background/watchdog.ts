// Sees from the thread how long the main loop has been blocked. A thread that was itself not running (SIGSTOP, a suspended machine)
// must not take its own absence for a block, so it looks at its own gap first. Both sides are woken twice a second: each wake-up of an idle
// process costs about 0.01 % of a core. A block that falls between two looks is found because the main loop notes it when it is over.
import type { Clock } from '../runtime/clock.js';
import { between, moment, now, type Moment } from '../session/trust.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

export const BEAT_MS = 500;
/** Below this nobody wants to hear of it. */
const REPORT_MS = 1000;
/** A look of the thread that is later than this was held up itself. */
const OWN_GAP_MS = 1000;

/** Words of the shared memory: the last beat, and of the last long pause between two beats its length and its end. */
const BEAT = 0;
const PAUSE = 1;
const PAUSE_ENDED = 2;

/** The main loop's side: a timer that can only run while the loop is free. */
export class Beat {
  readonly buffer = new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT);
  readonly #words = new Int32Array(this.buffer);
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock) {
    this.#clock = clock;
    Atomics.store(this.#words, BEAT, now(clock));
    this.#timer = setInterval(() => this.beat(), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  beat(): void {
    const time = now(this.#clock);
    const pause = between(moment(Atomics.exchange(this.#words, BEAT, time)), time);
    if (pause < REPORT_MS) return;
    Atomics.store(this.#words, PAUSE, pause);
    Atomics.store(this.#words, PAUSE_ENDED, time);
  }
}

/** The thread's side. */
export class Watchdog {
  readonly #words: Int32Array;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #lookedAt: Moment;
  /** The main loop is not blamed for anything before this. */
  #since: Moment;
  /** The end of the pause that was looked at last. */
  #pauseSeen: number;

  constructor(beat: SharedArrayBuffer, clock: Clock, onBlocked: (blockedMs: number) => void) {
    this.#words = new Int32Array(beat);
    this.#clock = clock;
    this.#lookedAt = now(clock);
    this.#since = this.#lookedAt;
    this.#pauseSeen = Atomics.load(this.#words, PAUSE_ENDED);
    this.#timer = setInterval(() => this.#report(onBlocked), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  blockedMs(): number {
    const time = this.#look();
    return this.#blocked(moment(Atomics.load(this.#words, BEAT)), time);
  }

  #look(): Moment {
    const time = now(this.#clock);
    if (between(this.#lookedAt, time) > OWN_GAP_MS) this.#since = time;
    this.#lookedAt = time;
    return time;
  }

  /** The part of a pause between two beats that was surely a block. */
  #blocked(from: Moment, to: Moment): number {
    const start = between(from, this.#since) > 0 ? this.#since : from;
    return Math.max(0, between(start, to) - BEAT_MS);
  }

  /** Only when it is over: the main loop cannot hear of it before, and wants to know for how long it was blocked. */
  #report(onBlocked: (blockedMs: number) => void): void {
    this.#look();
    const ended = moment(Atomics.load(this.#words, PAUSE_ENDED));
    if (ended === this.#pauseSeen) return;
    this.#pauseSeen = ended;
    const blocked = this.#blocked(moment(ended - Atomics.load(this.#words, PAUSE)), ended);
    if (blocked >= REPORT_MS) onBlocked(blocked);
  }
}
