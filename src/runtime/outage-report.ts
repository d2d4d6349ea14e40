// Reports an outage of the store to the user: each reason at once and then again with growing pauses while it lasts, and the end once.
import { HoldfastError } from '../errors.js';
import { systemClock } from './clock.js';
import { retryPauseMs } from './retry-pause.js';

/** The pauses between two reports of one reason, in ms. */
const FIRST_PAUSE_MS = 30_000;
const LAST_PAUSE_MS = 600_000;

interface Reported {
  times: number;
  nextAt: number;
}

/** Remembers the reported reasons of the current outage. All lanes of a caller share one report, so each reason is reported once. */
export class OutageReport {
  readonly #onError: (error: Error) => void;
  readonly #onOver: (outageMs: number) => void;
  readonly #reasons = new Map<string, Reported>();
  #since = 0;

  constructor(onError: (error: Error) => void, onOver: (outageMs: number) => void = () => undefined) {
    this.#onError = onError;
    this.#onOver = onOver;
  }

  get inOutage(): boolean {
    return this.#reasons.size > 0;
  }

  /** `askedAt`: when the call that failed was made, on the monotonic clock. The outage is counted from the first of them. */
  failed(error: Error, askedAt?: number): void {
    const time = systemClock.monotonic();
    const reason = error instanceof HoldfastError ? error.code : error.message;
    const { times, nextAt } = this.#reasons.get(reason) ?? { times: 0, nextAt: time };
    if (time < nextAt) return;
    if (!this.inOutage) this.#since = askedAt ?? time;
    this.#reasons.set(reason, { times: times + 1, nextAt: time + retryPauseMs(times + 1, LAST_PAUSE_MS, FIRST_PAUSE_MS) });
    this.#onError(error);
  }

  answered(): void {
    if (!this.inOutage) return;
    this.#reasons.clear();
    this.#onOver(Math.round(systemClock.monotonic() - this.#since));
  }
}
