// An outage of the store as a worker tells it: each reason once, from the first failure to the next answer. An answer that is only late
// is a reason too: on a half-open connection nothing fails for a long time, and a worker that no longer consumes says so.
import { HoldfastError } from '../../errors.js';
import { LazyTimer } from '../../runtime/lazy-timer.js';
import type { OutageReport } from '../../runtime/outage-report.js';
import { clearTimeout, setTimeout } from '../../runtime/timers.js';

/** What is not answered for so long is told, though still waited for. */
const SILENCE_MS = 5000;
/** The last part of it is counted anew: after a blocked event loop the answer may lie in the socket, unread. */
const READING_MS = 250;

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
