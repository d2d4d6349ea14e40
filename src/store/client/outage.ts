// An outage of the store, as a worker reports it: each reason once, from the first failure to the next reply. A reply that is only late
// is a reason too. On a half-open connection no call fails for a long time, and a worker that no longer consumes must say so.
import { HoldfastError } from '../../errors.js';
import { systemClock } from '../../runtime/clock.js';
import { LazyTimer } from '../../runtime/lazy-timer.js';
import type { OutageReport } from '../../runtime/outage-report.js';
import { clearTimeout, setTimeout } from '../../runtime/timers.js';

/** A call without a reply for this long, in ms, is reported. The call goes on. */
const SILENCE_MS = 5000;
/** The last part of the silence, in ms, is measured separately: after a blocked event loop the reply may lie in the socket, unread. */
const READING_MS = 250;

export class Outage {
  readonly #report: OutageReport;
  readonly #silence = new LazyTimer(() => {
    this.#reading = setTimeout(() => this.#silent(), READING_MS);
  });
  #reading: NodeJS.Timeout | undefined;
  #askedAt = 0;

  constructor(report: OutageReport) {
    this.#report = report;
  }

  /** A call begins, and is retried until the store replies or the call is given up. */
  asked(): void {
    this.#askedAt = systemClock.monotonic();
    this.#silence.start(SILENCE_MS - READING_MS);
  }

  failed(error: Error): void {
    this.givenUp();
    this.#report.failed(error, this.#askedAt);
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
