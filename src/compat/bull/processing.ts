// What `process` sets in motion: one core Worker for all handlers of a queue, the jobs that run on it now, and what it tells, in Bull's words.
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
  /** So that a processor and the listeners of its job see one object. */
  wrap(job: CoreJob): J;
  /** A worker found a job whose owner had died. */
  stalled(jobId: string): void;
}

const SETTLED_POLL_MS = 5;

export class Processing<J extends Job> {
  /** This instance takes no jobs, whether it has a worker yet or not. */
  paused = false;
  readonly #options: ProcessingOptions<J>;
  readonly #handlers: Handlers;
  readonly #running = new Map<J, Promise<unknown>>();
  #worker: Worker | undefined;

  constructor(options: ProcessingOptions<J>) {
    this.#options = options;
    this.#handlers = new Handlers((error) => void options.emitter.emit('error', error));
  }

  /** With the arguments of `process`. */
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

  /** Of those that run now; others may begin meanwhile. */
  async finished(): Promise<void> {
    await Promise.all(
      [...this.#running].map(async ([job, run]) => {
        await run.catch(() => undefined);
        // The lock of a run lasts until the store has heard of its end.
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
      // It left nothing that Bull's listeners could be given.
      if (job === undefined) emitter.emit('error', error);
      else emitter.emit('failed', wrap(job), error, 'active');
    });
    worker.on('stalled', stalled);
    worker.on('drained', () => void emitter.emit('drained'));
    worker.on('lockRenewalError', (error) => {
      // Without its thread the event loop renews: nothing has failed to be extended yet.
      if ((error as Partial<HoldfastError>).code !== 'THREAD_FAILED') this.#tellRenewal(error);
    });
    worker.on('error', (error) => {
      const { code, jobId } = error as Partial<HoldfastError>;
      if (code === 'LOCK_UNTRUSTED' && jobId !== undefined) this.#tellRenewal(error, jobId);
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

  /** Without an id, it concerns all that run here: their session could not be renewed, and is tried again. */
  #tellRenewal(error: Error, jobId?: string): void {
    for (const job of this.#running.keys()) {
      if (jobId === undefined || job.id === jobId) this.#options.emitter.emit('lock-extension-failed', job, error);
    }
  }
}
