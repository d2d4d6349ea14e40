// An outage of the store as a worker tells it: each reason once, from the first failure to the next answer. An answer that is only late
// is a reason too: on a half-open connection nothing fails for a long time, and a worker that no longer consumes says so.
import { HoldfastError } from '../errors.js';

/** What is not answered for so long is told, though still waited for. */
const SILENCE_MS = 5000;
/** The last part of it is counted anew: after a blocked event loop the answer may lie in the socket, unread. */
const READING_MS = 250;

export class Outage {
  readonly #onError: (error: Error) => void;
  readonly #told: Set<string>;
  #silence: NodeJS.Timeout | undefined;

  /** `told`: the reasons that were told since the last answer, shared by those who would tell the same. */
  constructor(onError: (error: Error) => void, told: Set<string>) {
    this.#onError = onError;
    this.#told = told;
  }

  /** A call begins, which is tried until it is answered or given up. */
  asked(): void {
    this.#silence = setTimeout(() => {
      this.#silence = setTimeout(() => this.#silent(), READING_MS);
    }, SILENCE_MS - READING_MS);
  }

  failed(error: Error): void {
    clearTimeout(this.#silence);
    const reason = error instanceof HoldfastError ? error.code : error.message;
    if (this.#told.has(reason)) return;
    this.#told.add(reason);
    this.#onError(error);
  }

  answered(): void {
    this.givenUp();
    this.#told.clear();
  }

  givenUp(): void {
    clearTimeout(this.#silence);
  }

  #silent(): void {
    const message = `The store has not answered for ${SILENCE_MS} ms. It is still waited for; check the server and the network.`;
    this.failed(new HoldfastError('TIMEOUT', message, { retryable: true }));
  }
}
