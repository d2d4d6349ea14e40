// bun-queue's Queue on top of the core: one core Queue (which takes part in the leader election, if enabled), one Worker once `process` is
// called, and one QueueEvents once a listener needs events that only the log has. Jobs are the core's own.
import { setTimeout as sleep } from 'node:timers/promises';
import { closedError, HoldfastError, toError } from '../../errors.js';
import { QueueEvents } from '../../events/queue-events.js';
import type { Job } from '../../handle/job.js';
import type { JobProgress } from '../../handle/job-context.js';
import { storedName } from '../../job/names.js';
import type { JobType } from '../../job/state.js';
import type { Any } from '../../job/typing.js';
import type { Instance } from '../../lock/instances.js';
import { Queue as CoreQueue } from '../../queue/queue.js';
import { checkInteger, invalidOption } from '../../runtime/check.js';
import { ClosingEmitter } from '../../runtime/emitter.js';
import { STALLED_REASON } from '../../store/contract/index.js';
import { Worker } from '../../worker/worker.js';
import { within } from '../time-limit.js';
import { type CronJobOptions, scheduleCron } from './cron.js';
import { FOREIGN_JOB_OPTIONS, type JobOptions, jobOptionsOf, type Plan, planOf, type QueueOptions } from './options.js';

export type Handler<T> = (job: Job<T>) => unknown;

export type BunQueueEvents = {
  /** This instance leads from now on. `term` grows with every change of leader. */
  leader: [term: number];
  follower: [reason: string];
  jobAdded: [jobId: string];
  jobActive: [jobId: string];
  jobProgress: [jobId: string, progress: JobProgress];
  jobCompleted: [jobId: string, result: Any];
  jobFailed: [jobId: string, error: Error];
  jobRemoved: [jobId: string];
  /** The job's worker has died. Emitted on every instance that listens. */
  jobStalled: [jobId: string];
  error: [error: Error];
};

const CAP_RETRY_MS = 1000;

export class Queue<T = Any> extends ClosingEmitter<BunQueueEvents> {
  readonly name: string;
  /** The core queue behind this one: named locks, `getLock` and everything else that bun-queue has no name for. */
  readonly core: CoreQueue;
  readonly #plan: Plan;
  #worker: Worker | undefined;
  #log: QueueEvents | undefined;
  /** Resolves when the store has recorded the limit of all instances. No job runs here before that. */
  readonly #capped: Promise<void> | undefined;
  readonly #leaving = new AbortController();
  #closing: Promise<void> | undefined;

  constructor(name: string, options?: QueueOptions) {
    super();
    this.name = name;
    this.#plan = planOf(options);
    this.core = new CoreQueue(this.#storedName, this.#plan.queue, FOREIGN_JOB_OPTIONS);
    this.core.on('error', (error) => void this.emit('error', error));
    this.core.on('stalled', (jobId) => void this.#emitFailure(jobId));
    this.core.on('removed', (jobId) => void this.emit('jobRemoved', jobId));
    this.core.on('leader', (term) => void this.emit('leader', term));
    this.core.on('follower', (reason) => void this.emit('follower', reason));
    super.on('newListener' as never, ((event: string | symbol) => void (event === 'jobStalled' && this.#listen())) as never);
    this.#capped = this.#applyCap();
  }

  /** True while this instance leads. Always false without an election. */
  get isLeader(): boolean {
    return this.core.leader?.isLeader ?? false;
  }

  /** Resolves when the store is reachable and every later event will be emitted. */
  async waitUntilReady(): Promise<void> {
    await this.core.waitUntilReady();
    await this.core.leader?.waitUntilReady();
    await this.#capped;
    await this.#log?.waitUntilReady();
    await this.#worker?.waitUntilReady();
  }

  /** `job.duplicate` is true if the id, or the deduplication id, was taken: nothing was added then. */
  async add(data: T, options: JobOptions = {}): Promise<Job<T>> {
    const job = (await this.core.add(this.name, data, jobOptionsOf(options))) as Job<T>;
    if (!job.duplicate) this.emit('jobAdded', job.id);
    return job;
  }

  /** Makes a schedule of jobs, or replaces the one with the same `jobId`. Returns its id. */
  scheduleCron(options: CronJobOptions<T>): Promise<string> {
    return scheduleCron(this.core, this.name, options);
  }

  /** Returns whether the schedule existed. */
  unscheduleCron(id: string): Promise<boolean> {
    return this.core.removeJobScheduler(id);
  }

  /** Runs up to `concurrency` jobs at once here; with `horizontalScaling`, never more than its workers have room for. */
  process(handler: Handler<T>): void;
  process(concurrency: number, handler: Handler<T>): void;
  process(...args: [Handler<T>] | [number, Handler<T>]): void {
    if (this.#closing !== undefined) throw closedError(`Queue "${this.name}"`);
    if (this.#worker !== undefined)
      throw new HoldfastError('ALREADY_RUNNING', `Queue "${this.name}" has a handler already: one process() per queue.`);
    const { maxConcurrency } = this.#plan;
    const [wished, handler] = args.length === 1 ? [maxConcurrency ?? 1, args[0]] : args;
    if (typeof handler !== 'function') throw invalidOption('handler', handler, 'a function (job) => result');
    const concurrency = Math.min(checkInteger('concurrency', wished, { min: 1 }), maxConcurrency ?? wished);
    this.#worker = this.#startWorker(handler, concurrency);
  }

  async getJob(jobId: string | number): Promise<Job<T> | null> {
    return ((await this.core.getJob(String(jobId))) as Job<T> | undefined) ?? null;
  }

  async getJobs(status: JobType, start = 0, end = -1): Promise<Job<T>[]> {
    return (await this.core.getJobs([status], start, end)) as Job<T>[];
  }

  getJobCounts(): Promise<Record<string, number>> {
    return this.core.getJobCounts();
  }

  async removeJob(jobId: string | number): Promise<void> {
    await (await this.getJob(jobId))?.remove();
  }

  pause(): Promise<void> {
    return this.core.pause();
  }

  resume(): Promise<void> {
    return this.core.resume();
  }

  /** Removes the waiting and the delayed jobs. */
  empty(): Promise<void> {
    return this.core.drain(true);
  }

  /** Returns the living instances, and which of them leads. */
  getInstances(): Promise<Instance[]> {
    return this.core.getInstances();
  }

  async ping(): Promise<boolean> {
    await this.core.isPaused();
    return true;
  }

  /** Hands over leadership at once, and waits for running jobs. */
  close(): Promise<void> {
    this.#leaving.abort();
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await Promise.all([this.core.leader?.close(), this.#worker?.close(), this.#log?.close(), this.#capped]);
    } finally {
      await this.core.close();
    }
  }

  #startWorker(handler: Handler<T>, concurrency: number): Worker {
    const run = async (job: Job<T>): Promise<unknown> => {
      const { timeout } = job.opts as JobOptions;
      return timeout === undefined ? handler(job) : within(timeout, Promise.resolve(handler(job)));
    };
    const options = { ...this.#plan.worker, concurrency, autorun: this.#capped === undefined };
    const worker = new Worker(this.#storedName, run as never, options);
    worker.on('error', (error) => void this.emit('error', error));
    worker.on('active', (job) => void this.emit('jobActive', job.id));
    worker.on('progress', (job, progress) => void this.emit('jobProgress', job.id, progress as JobProgress));
    worker.on('completed', (job, result) => void this.emit('jobCompleted', job.id, result));
    worker.on('failed', (job, error) => {
      // The job is gone, so it has no id to report.
      if (job === undefined) this.emit('error', error);
      else this.emit('jobFailed', job.id, error);
    });
    if (this.#capped !== undefined) void this.#capped.then(() => this.#begin(worker));
    return worker;
  }

  #begin(worker: Worker): void {
    // The worker emits the reason itself.
    if (this.#closing === undefined) worker.run().catch(() => undefined);
  }

  #listen(): void {
    if (this.#log !== undefined || this.#closing !== undefined) return;
    const { connection } = this.#plan.queue;
    this.#log = new QueueEvents(this.#storedName, connection === undefined ? {} : { connection });
    this.#log.on('error', (error) => void this.emit('error', error));
    this.#log.on('stalled', ({ jobId }) => void this.emit('jobStalled', jobId));
  }

  /** Emits the failure of a job over the stall limit that the queue's own sweep found: no worker emits it. */
  async #emitFailure(jobId: string): Promise<void> {
    try {
      const job = await this.getJob(jobId);
      if (job?.failedReason === STALLED_REASON) this.emit('jobFailed', jobId, new Error(STALLED_REASON));
    } catch (error) {
      this.emit('error', toError(error));
    }
  }

  #applyCap(): Promise<void> | undefined {
    const { globalConcurrency } = this.#plan;
    return globalConcurrency === undefined ? undefined : this.#cap(globalConcurrency);
  }

  async #cap(globalConcurrency: number): Promise<void> {
    while (!this.#leaving.signal.aborted) {
      try {
        return await this.core.setGlobalConcurrency(globalConcurrency);
      } catch (error) {
        this.emit('error', toError(error));
        await sleep(CAP_RETRY_MS, undefined, { signal: this.#leaving.signal }).catch(() => undefined);
      }
    }
  }

  get #storedName(): string {
    return storedName(this.name, this.#plan.prefix);
  }
}
