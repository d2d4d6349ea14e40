// The time limit of one run. When it is over, the signal of the handler is aborted. A handler that does not end within the grace loses its
// job: the run fails as timed out, and the end of the handler, whenever it comes, does not count.
import { HoldfastError } from '../errors.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import type { HeldLock } from '../session/held-lock.js';

/** How much later than the event loop the lock thread ends a run, in ms. The loop is free in most cases. */
const THREAD_LATER_MS = 1000;

export interface TimeLimitOptions {
  timeoutMs: number;
  graceMs: number;
  /** Lets the lock thread end the run after this time, with this error. */
  onStart(inMs: number, error: HoldfastError): void;
  onEnd(): void;
  /** The grace is over, and the handler has not ended. */
  onOver(error: HoldfastError): void;
}

export class TimeLimit {
  readonly #lock: HeldLock;
  readonly #options: TimeLimitOptions;
  #timer: NodeJS.Timeout | undefined;

  constructor(lock: HeldLock, options: TimeLimitOptions) {
    this.#lock = lock;
    this.#options = options;
  }

  start(): void {
    const { timeoutMs, graceMs, onStart } = this.#options;
    this.#timer = setTimeout(() => this.#timeOut(), timeoutMs);
    onStart(timeoutMs + graceMs + THREAD_LATER_MS, this.#error());
  }

  /** The run is over. */
  end(): void {
    clearTimeout(this.#timer);
    this.#options.onEnd();
  }

  #timeOut(): void {
    const error = this.#error();
    this.#lock.cancel(error);
    this.#timer = setTimeout(() => this.#options.onOver(error), this.#options.graceMs);
  }

  #error(): HoldfastError {
    const { jobId, session } = this.#lock;
    return new HoldfastError('TIMEOUT', `timed out after ${this.#options.timeoutMs} ms`, { jobId, queue: session.queue });
  }
}
