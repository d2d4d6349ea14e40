// The processing half of a Bull queue: one core Worker for all handlers, the jobs that run on it now, and its events under Bull's names.
// It decides nothing about jobs and locks.
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldfastError } from '../../errors.js';
import type { Job as CoreJob } from '../../handle/job.js';
import type { Emitter } from '../../runtime/emitter.js';
import { Worker } from '../../worker/worker.js';
import type { WorkerOptions } from '../../worker/options.js';
import type { BullEvents, JobPromise } from './events.js';
import { Handlers } from './handlers.js';
import type { Job } from './job.js';

export interface ProcessingOptions<J extends Job> {
  queue: string;
  worker: WorkerOptions;
  emitter: Emitter<BullEvents<J>>;
  /** Returns one object per job, so that a processor and the listeners of its job see the same one. */
  wrap(job: CoreJob): J;
  /** Called when a worker found a job whose owner had died. */
  stalled(jobId: string): void;
}

const SETTLED_POLL_MS = 5;

export class Processing<J extends Job> {
  /** True if this instance takes no jobs, whether it has a worker yet or not. */
  paused = false;
  readonly #options: ProcessingOptions<J>;
  readonly #handlers: Handlers;
  readonly #running = new Map<J, Promise<unknown>>();
  #worker: Worker | undefined;

  constructor(options: ProcessingOptions<J>) {
    this.#options = options;
    this.#handlers = new Handlers((error) => void options.emitter.emit('error', error));
  }

  /** Takes the arguments of `process`. */
  add(args: unknown[]): void {
    this.#handlers.define(args);
    const { concurrency } = this.#handlers;
    if (this.#worker !== undefined) this.#worker.concurrency = concurrency;
    else if (concurrency > 0) this.#worker = this.#start(concurrency);
  }

  async ready(): Promise<void> {
    await this.#worker?.waitUntilReady();
  }

  async pause(doNotWaitActive: boolean): Promise<void> {
    this.paused = true;
    await this.#worker?.pause(doNotWaitActive);
  }

  resume(): void {
    this.paused = false;
    this.#worker?.resume();
  }

  /** Resolves when the jobs that run now have ended. Other jobs may start meanwhile. */
  async finished(): Promise<void> {
    await Promise.all(
      [...this.#running].map(async ([job, run]) => {
        await run.catch(() => undefined);
        // The lock of a run is held until the store has acknowledged the outcome.
        while (job.lock.held) await sleep(SETTLED_POLL_MS);
      }),
    );
  }

  async close(force: boolean): Promise<void> {
    await this.#worker?.close(force);
  }

  #start(concurrency: number): Worker {
    const { queue, emitter, wrap, stalled } = this.#options;
    const worker = new Worker(queue, (job) => this.#run(wrap(job)), { ...this.#options.worker, concurrency });
    worker.on('completed', (job, result) => void emitter.emit('completed', wrap(job), result, 'active'));
    worker.on('failed', (job, error) => {
      // The job is gone, so there is no job to pass to Bull's listeners.
      if (job === undefined) emitter.emit('error', error);
      else emitter.emit('failed', wrap(job), error, 'active');
    });
    worker.on('stalled', stalled);
    worker.on('drained', () => void emitter.emit('drained'));
    worker.on('lockRenewalError', (error) => {
      // Without the lock thread the event loop renews, so no extension has failed yet.
      if ((error as Partial<HoldfastError>).code !== 'THREAD_FAILED') this.#emitRenewal(error);
    });
    worker.on('error', (error) => {
      const { code, jobId } = error as Partial<HoldfastError>;
      if (code === 'LOCK_UNTRUSTED' && jobId !== undefined) this.#emitRenewal(error, jobId);
      emitter.emit('error', error);
    });
    if (this.paused) void worker.pause(true);
    return worker;
  }

  async #run(job: J): Promise<unknown> {
    const run = this.#handlers.run(job);
    const cancel = (): void => void this.#worker?.cancelJob(job.id);
    this.#running.set(job, run);
    this.#options.emitter.emit('active', job, Object.assign(run, { cancel }) as JobPromise, 'waiting');
    try {
      return await run;
    } finally {
      this.#running.delete(job);
    }
  }

  /** Without an id, the error concerns all jobs that run here: the renewal of their session failed and is retried. */
  #emitRenewal(error: Error, jobId?: string): void {
    for (const job of this.#running.keys()) {
      if (jobId === undefined || job.id === jobId) this.#options.emitter.emit('lock-extension-failed', job, error);
    }
  }
}
