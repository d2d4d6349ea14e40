// The time limit of one run. When it is over, the signal of the handler is aborted. A handler that does not end within the grace loses its
// job: the run fails as timed out, and the end of the handler, whenever it comes, does not count.
import { HoldfastError } from '../errors.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import type { HeldLock } from '../session/held-lock.js';

export interface TimeLimitOptions {
  timeoutMs: number;
  graceMs: number;
  /** The grace is over, and the handler has not ended. */
  onOver(error: HoldfastError): void;
  /** The handler has ended after that. */
  onLate(): void;
}

export class TimeLimit {
  readonly #lock: HeldLock;
  readonly #options: TimeLimitOptions;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(lock: HeldLock, options: TimeLimitOptions) {
    this.#lock = lock;
    this.#options = options;
  }

  start(): void {
    this.#timer ??= setTimeout(() => this.#timeOut(), this.#options.timeoutMs);
  }

  /** The handler has ended. Returns false if its end does not count. */
  end(): boolean {
    clearTimeout(this.#timer);
    if (this.#isOver) this.#options.onLate();
    return !this.#isOver;
  }

  #timeOut(): void {
    const { timeoutMs, graceMs, onOver } = this.#options;
    const { jobId, session } = this.#lock;
    const error = new HoldfastError('TIMEOUT', `timed out after ${timeoutMs} ms`, { jobId, queue: session.queue });
    this.#lock.cancel(error);
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      onOver(error);
    }, graceMs);
  }
}
