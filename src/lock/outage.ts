// An outage of the store as a worker tells it: each reason once, from the first failure to the next answer. An answer that is only late
// is a reason too: on a half-open connection nothing fails for a long time, and a worker that no longer consumes says so.
import { HoldfastError } from '../errors.js';
import { systemClock } from '../runtime/clock.js';
import { LazyTimer } from '../runtime/lazy-timer.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';

/** What is not answered for so long is told, though still waited for. */
const SILENCE_MS = 5000;
/** The last part of it is counted anew: after a blocked event loop the answer may lie in the socket, unread. */
const READING_MS = 250;

/** The reasons of the present outage that were reported. The lanes of a caller share one, so each reason is reported once. */
export class OutageReport {
  readonly #onError: (error: Error) => void;
  readonly #onOver: (outageMs: number) => void;
  readonly #reasons = new Set<string>();
  #since = 0;

  constructor(onError: (error: Error) => void, onOver: (outageMs: number) => void = () => undefined) {
    this.#onError = onError;
    this.#onOver = onOver;
  }

  get inOutage(): boolean {
    return this.#reasons.size > 0;
  }

  failed(error: Error): void {
    const reason = error instanceof HoldfastError ? error.code : error.message;
    if (this.#reasons.has(reason)) return;
    if (!this.inOutage) this.#since = systemClock.monotonic();
    this.#reasons.add(reason);
    this.#onError(error);
  }

  answered(): void {
    if (!this.inOutage) return;
    this.#reasons.clear();
    this.#onOver(Math.round(systemClock.monotonic() - this.#since));
  }
}

export class Outage {
  readonly #report: OutageReport;
  readonly #silence = new LazyTimer(() => {
    this.#reading = setTimeout(() => this.#silent(), READING_MS);
  });
  #reading: NodeJS.Timeout | undefined;

  constructor(report: OutageReport) {
    this.#report = report;
  }

  /** A call begins, which is tried until it is answered or given up. */
  asked(): void {
    this.#silence.start(SILENCE_MS - READING_MS);
  }

  failed(error: Error): void {
    this.givenUp();
    this.#report.failed(error);
  }

  answered(): void {
    this.givenUp();
    this.#report.answered();
  }

  givenUp(): void {
    this.#silence.stop();
    if (this.#reading === undefined) return;
    clearTimeout(this.#reading);
    this.#reading = undefined;
  }

  end(): void {
    this.givenUp();
    this.#silence.end();
  }

  #silent(): void {
    const message = `The store has not answered for ${SILENCE_MS} ms. It is still waited for; check the server and the network.`;
    this.failed(new HoldfastError('TIMEOUT', message, { retryable: true }));
  }
}
