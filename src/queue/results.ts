// Waits for the results of jobs that this queue adds (`addAndWait`). It opens a QueueEvents of its own with the first wait, and closes it
// with the queue.
import { QueueEvents } from '../events/queue-events.js';
import { HoldfastError, isTimeout } from '../errors.js';
import type { Job } from '../handle/job.js';
import { MAX_TIMER_MS, checkInteger } from '../runtime/check.js';
import { performance } from '../runtime/timers.js';
import { inTime } from '../runtime/within.js';
import type { QueueBaseOptions } from '../store/base-options.js';

export class Results {
  readonly #name: string;
  readonly #options: QueueBaseOptions;
  readonly #onError: (error: Error) => void;
  #events: QueueEvents | undefined;

  constructor(name: string, { connection, prefix }: QueueBaseOptions, onError: (error: Error) => void) {
    this.#name = name;
    this.#options = { ...(connection === undefined ? {} : { connection }), ...(prefix === undefined ? {} : { prefix }) };
    this.#onError = onError;
  }

  /** Calls `add` and waits for the end of its job. `timeoutMs` covers both. */
  async of(add: () => Promise<Job>, timeoutMs: number | undefined): Promise<unknown> {
    const events = this.#opened();
    if (timeoutMs === undefined) return (await this.#added(events, add)).waitUntilFinished(events);
    const started = performance.now();
    const ms = checkInteger('timeoutMs', timeoutMs, { max: MAX_TIMER_MS });
    const job = await inTime(ms, this.#added(events, add), () => this.#notAdded(ms));
    try {
      return await job.waitUntilFinished(events, Math.max(0, Math.ceil(ms - (performance.now() - started))));
    } catch (error) {
      throw isTimeout(error) ? this.#notFinished(job, ms) : error;
    }
  }

  async close(): Promise<void> {
    await this.#events?.close();
  }

  #opened(): QueueEvents {
    if (this.#events === undefined) {
      this.#events = new QueueEvents(this.#name, this.#options);
      this.#events.on('error', this.#onError);
    }
    return this.#events;
  }

  /** Adds the job after the position in the log is fixed: a job that is removed when it ends leaves its result in the log only. */
  async #added(events: QueueEvents, add: () => Promise<Job>): Promise<Job> {
    await events.waitUntilReady();
    return add();
  }

  #notAdded(ms: number): HoldfastError {
    const message = `addAndWait: the store did not acknowledge the job within ${ms} ms. It may be added yet, and then it runs.`;
    return new HoldfastError('TIMEOUT', message, { queue: this.#name });
  }

  #notFinished({ id, name }: Job, ms: number): HoldfastError {
    const message = `addAndWait: job ${id} ("${name}") did not finish within ${ms} ms. It goes on; wait again or look at its state.`;
    return new HoldfastError('TIMEOUT', message, { jobId: id, queue: this.#name });
  }
}
