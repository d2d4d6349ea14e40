// Measures from the thread how long the main loop has been blocked. The thread checks its own gap first: if it did not run itself
// (SIGSTOP, a suspended machine), its gap must not count as a block of the main loop. Both sides wake twice a second: each wake-up of
// an idle process costs about 0.01 % of a core. The main loop records each long pause when it ends, so a block that falls between two
// checks is found too.
import type { Clock } from '../runtime/clock.js';
import { between, moment, now, type Moment } from '../session/trust.js';
import { clearInterval, setInterval } from '../runtime/timers.js';

export const BEAT_MS = 500;
/** The shortest block that is reported, in ms. */
const REPORT_MS = 1000;
/** If two checks of the thread are further apart than this, in ms, the thread itself did not run. */
const OWN_GAP_MS = 1000;

/** The thread reports a block of this length, in ms, while it lasts. */
const SEEN_MS = 500;
/** How often the thread checks whether a block that it has seen is over, in ms. The sooner it reports, the fewer jobs have ended since. */
const HURRY_MS = 50;

/** Words of the shared memory: the last beat, the length and the end of the last long pause between two beats, and whether a debugger is attached. */
const BEAT = 0;
const PAUSE = 1;
const PAUSE_ENDED = 2;
const DEBUGGED = 3;
const WORDS = 4;

/** The main loop's side: a timer that fires only while the loop is free. */
export class Beat {
  readonly buffer = new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT);
  readonly #words = new Int32Array(this.buffer);
  readonly #clock: Clock;
  readonly #isDebugged: () => boolean;
  readonly #timer: NodeJS.Timeout;

  constructor(clock: Clock, isDebugged = () => false) {
    this.#clock = clock;
    this.#isDebugged = isDebugged;
    Atomics.store(this.#words, BEAT, now(clock));
    Atomics.store(this.#words, DEBUGGED, Number(isDebugged()));
    this.#timer = setInterval(() => this.beat(), BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  beat(): void {
    const time = now(this.#clock);
    const pause = between(moment(Atomics.exchange(this.#words, BEAT, time)), time);
    Atomics.store(this.#words, DEBUGGED, Number(this.#isDebugged()));
    if (pause < REPORT_MS) return;
    Atomics.store(this.#words, PAUSE, pause);
    Atomics.store(this.#words, PAUSE_ENDED, time);
  }
}

export interface WatchdogReports {
  /** Called at each beat of the watchdog's own timer: a second timer would wake an idle process as often again. */
  onBeat?(): void;
  /** The main loop is blocked, for half a second at least. Reported once for each block. */
  onBlocking?(): void;
  /** A block is over: the main loop could not receive a report earlier, and only now is the length known. `isLong`: it is to be reported. */
  onOver(blockedMs: number, endedAt: Moment, isLong: boolean): void;
}

/** The thread's side. */
export class Watchdog {
  readonly #words: Int32Array;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  readonly #reports: WatchdogReports;
  /** Runs while a block lasts that was reported to `onBlocking`. */
  #hurry: NodeJS.Timeout | undefined;
  #lookedAt: Moment;
  /** Time before this moment does not count as a block of the main loop. */
  #since: Moment;
  /** The end of the pause that was checked last. */
  #pauseSeen: number;

  constructor(beat: SharedArrayBuffer, clock: Clock, reports: WatchdogReports) {
    this.#words = new Int32Array(beat);
    this.#clock = clock;
    this.#lookedAt = now(clock);
    this.#since = this.#lookedAt;
    this.#pauseSeen = Atomics.load(this.#words, PAUSE_ENDED);
    this.#reports = reports;
    this.#timer = setInterval(() => {
      this.#check();
      reports.onBeat?.();
    }, BEAT_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
    clearInterval(this.#hurry);
  }

  /** True if a debugger was attached to the main thread at its last beat. */
  get isDebugged(): boolean {
    return Atomics.load(this.#words, DEBUGGED) !== 0;
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

  /** Returns the part of a pause between two beats that was certainly a block. */
  #blocked(from: Moment, to: Moment): number {
    const start = between(from, this.#since) > 0 ? this.#since : from;
    return Math.max(0, between(start, to) - BEAT_MS);
  }

  #check(): void {
    const time = this.#look();
    const ended = moment(Atomics.load(this.#words, PAUSE_ENDED));
    if (ended === this.#pauseSeen) {
      if (this.#hurry !== undefined || this.#blocked(moment(Atomics.load(this.#words, BEAT)), time) < SEEN_MS) return;
      this.#hurry = setInterval(() => this.#check(), HURRY_MS).unref();
      this.#reports.onBlocking?.();
      return;
    }
    this.#pauseSeen = ended;
    clearInterval(this.#hurry);
    this.#hurry = undefined;
    const blocked = this.#blocked(moment(ended - Atomics.load(this.#words, PAUSE)), ended);
    this.#reports.onOver(blocked, ended, blocked >= REPORT_MS);
  }
}
