// Bull's Queue on top of the core. It makes one core Queue and, when needed, one Worker (`process`), one Worker for jobs taken by hand
// (`getNextJob`) and one QueueEvents (`global:…`, `job.finished`). Only names and arguments are decided here: the core decides what a job
// may do and which owner holds it.
import { closedError, type HoldfastError, toError } from '../../errors.js';
import { QueueEvents } from '../../events/queue-events.js';
import { Job as CoreJob } from '../../handle/job.js';
import type { JobsOptions } from '../../job/options.js';
import { storedName } from '../../job/names.js';
import type { Any } from '../../job/typing.js';
import type { CleanType } from '../../queue/cleaning.js';
import { Queue as CoreQueue } from '../../queue/queue.js';
import { STALLED_REASON } from '../../store/contract/index.js';
import { Worker } from '../../worker/worker.js';
import { GLOBAL, emitGlobally } from './events.js';
import { DEFAULT_NAME, type DoneCallback } from './handlers.js';
import { BullGetters, type JobId } from './getters.js';
import { Job, type JobQueue } from './job.js';
import { FOREIGN_JOB_OPTIONS, groupOf, type JobOptions, jobOptionsOf, type Plan, planOf, type QueueOptions } from './options.js';
import { Processing } from './processing.js';
import { coreRepeatOf, type RepeatOptions } from './repeat.js';

type QueuedJob<T> = Job<T, Queue<T>>;
/** (job) => result, or (job, done) => void. */
type Handler<T> = (job: QueuedJob<T>, done: DoneCallback) => unknown;
export interface BulkJob<T> {
  name?: string;
  data: T;
  opts?: JobOptions;
}

export class Queue<T = Any> extends BullGetters<QueuedJob<T>> implements JobQueue {
  readonly name: string;
  /** The first part of lock keys. */
  readonly keyPrefix: string;
  readonly #plan: Plan;
  readonly core: CoreQueue;
  /** One object per job, so that a processor and the listeners of its job see the same one. */
  readonly #jobs = new WeakMap<CoreJob, QueuedJob<T>>();
  readonly #processing: Processing<QueuedJob<T>>;
  #byHand: Worker | undefined;
  #log: QueueEvents | undefined;
  #closing: Promise<void> | undefined;
  #closed: (() => void) | undefined;
  readonly #ended = new Promise<void>((resolve) => {
    this.#closed = resolve;
  });

  constructor(name: string, url?: string | QueueOptions, opts?: QueueOptions) {
    super();
    this.name = name;
    this.#plan = planOf(url, opts);
    this.keyPrefix = this.#plan.prefix ?? 'bull';
    this.core = new CoreQueue(this.#storedName, this.#plan.queue, FOREIGN_JOB_OPTIONS);
    this.#processing = new Processing({
      queue: this.#storedName,
      worker: this.#plan.worker,
      emitter: this,
      wrap: (job) => this.wrap(job),
      stalled: (jobId) => void this.#emitStalled(jobId, false),
    });
    this.core.on('error', (error) => void this.emit('error', error));
    this.core.on('stalled', (jobId) => void this.#emitStalled(jobId, true));
    this.core.on('waiting', (job) => void this.emit('waiting', job.id, null));
    super.on(
      'newListener' as never,
      ((event: string | symbol) => {
        if (this.#closing === undefined && typeof event === 'string' && event.startsWith(GLOBAL)) this.finishes();
      }) as never,
    );
  }

  async isReady(): Promise<this> {
    await this.core.waitUntilReady();
    await this.#log?.waitUntilReady();
    await this.#processing.ready();
    return this;
  }

  /** Registers a handler. Resolves when the queue is closed. */
  process(handler: Handler<T>): Promise<void>;
  process(concurrency: number, handler: Handler<T>): Promise<void>;
  process(name: string, handler: Handler<T>): Promise<void>;
  process(name: string, concurrency: number, handler: Handler<T>): Promise<void>;
  process(...args: unknown[]): Promise<void> {
    if (this.#closing !== undefined) throw this.#isClosed();
    this.#processing.add(args);
    return this.#ended;
  }

  add(data: T, opts?: JobOptions): Promise<QueuedJob<T>>;
  add(name: string, data: T, opts?: JobOptions): Promise<QueuedJob<T>>;
  async add(...args: unknown[]): Promise<QueuedJob<T>> {
    const [name, data, opts = {}] = typeof args[0] === 'string' ? args : [DEFAULT_NAME, ...args];
    return this.#added(await this.core.add(name as never, data as never, this.#jobOptions(data, opts as JobOptions)));
  }

  async addBulk(jobs: BulkJob<T>[]): Promise<QueuedJob<T>[]> {
    const bulk = jobs.map(({ name = DEFAULT_NAME, data, opts = {} }) => ({ name, data, opts: this.#jobOptions(data, opts) }));
    return (await this.core.addBulk(bulk as never)).map((job) => this.#added(job));
  }

  #jobOptions(data: unknown, opts: JobOptions): JobsOptions {
    return { ...groupOf(this.#plan, data), ...jobOptionsOf(opts) };
  }

  /** Removes the schedule that `add` made with this name and these `repeat` options. */
  removeRepeatable(repeat: RepeatOptions): Promise<void>;
  removeRepeatable(name: string, repeat: RepeatOptions): Promise<void>;
  async removeRepeatable(...args: [RepeatOptions] | [string, RepeatOptions]): Promise<void> {
    const [name, repeat] = args.length === 1 ? [DEFAULT_NAME, args[0]] : args;
    await this.core.removeRepeatable(name, coreRepeatOf(repeat));
  }

  /** `key`: of `getRepeatableJobs`. */
  async removeRepeatableByKey(key: string): Promise<void> {
    await this.core.removeRepeatableByKey(key);
  }

  /** With `isLocal`, only this instance takes no more jobs. Its running jobs are awaited unless `doNotWaitActive`. */
  async pause(isLocal = false, doNotWaitActive = false): Promise<void> {
    if (isLocal) await this.#processing.pause(doNotWaitActive);
    else await this.core.pause();
    this.emit('paused');
  }

  async resume(isLocal = false): Promise<void> {
    if (isLocal) this.#processing.resume();
    else await this.core.resume();
    this.emit('resumed');
  }

  async isPaused(isLocal = false): Promise<boolean> {
    return isLocal ? this.#processing.paused : this.core.isPaused();
  }

  /** Removes the waiting and the delayed jobs. */
  empty(): Promise<void> {
    return this.core.drain(true);
  }
  async clean(grace: number, type: CleanType = 'completed', limit = 0): Promise<string[]> {
    const jobIds = await this.core.clean(grace, limit, type);
    this.emit('cleaned', jobIds, type);
    return jobIds;
  }
  retryJobs(opts: { count?: number } = {}): Promise<void> {
    return this.core.retryJobs(opts);
  }
  obliterate(opts: { force?: boolean; count?: number } = {}): Promise<void> {
    return this.core.obliterate(opts);
  }

  /** Takes the next job for processing by hand. Its lock lasts for `lockDuration` unless `extendLock` extends it. */
  async getNextJob(): Promise<QueuedJob<T> | undefined> {
    if (this.#closing !== undefined) throw this.#isClosed();
    this.#byHand ??= this.#workByHand();
    const job = await this.#byHand.getNextJob();
    return job === undefined ? undefined : this.wrap(job);
  }

  /** Builds the next job from the return value of `moveToCompleted` of a job from `getNextJob`. */
  nextJobFromJobData(jobData: Any, jobId?: JobId): QueuedJob<T> | null {
    if (this.#byHand === undefined || jobData === null || jobData === undefined) return null;
    return new Job(this, CoreJob.fromJSON(this.#byHand, jobData, jobId === undefined ? undefined : String(jobId)));
  }

  /** Resolves when the jobs that run in this instance now have ended. The instance goes on taking others. */
  async whenCurrentJobsFinished(): Promise<void> {
    await this.#processing.finished();
  }

  /** Waits for running jobs. With `doNotWaitJobs`, in this or in a later call, it does not wait for them. */
  close(doNotWaitJobs = false): Promise<void> {
    this.#closing ??= this.#close();
    if (doNotWaitJobs) {
      void this.#processing.close(true);
      void this.#byHand?.close(true);
    }
    return this.#closing;
  }

  /** The event log, for `job.finished` and the global events. */
  finishes(): QueueEvents {
    if (this.#log === undefined) {
      if (this.#closing !== undefined) throw this.#isClosed();
      const { connection } = this.#plan.queue;
      this.#log = new QueueEvents(this.#storedName, connection === undefined ? {} : { connection });
      this.#log.on('error', (error) => void this.emit('error', error));
      emitGlobally(this.#log, (event, args) => void this.emit(event as 'error', ...(args as [Error])));
    }
    return this.#log;
  }

  emitProgress(job: Job<T>, progress: unknown): void {
    this.emit('progress', job as QueuedJob<T>, progress);
  }

  emitRemoved(job: Job<T>): void {
    this.emit('removed', job as QueuedJob<T>);
  }

  async #close(): Promise<void> {
    try {
      await Promise.all([this.#processing.close(false), this.#byHand?.close(), this.#log?.close()]);
    } finally {
      await this.core.close();
      this.#closed?.();
    }
  }

  /** Emits 'stalled', or only 'failed' for a job over the stall limit, as Bull does. A worker that finds such a job emits it itself. */
  async #emitStalled(jobId: string, withFailure: boolean): Promise<void> {
    try {
      const job = await this.getJob(jobId);
      if (job === null) return;
      if (job.failedReason !== STALLED_REASON) this.emit('stalled', job);
      else if (withFailure) this.emit('failed', job, new Error(STALLED_REASON), 'active');
    } catch (error) {
      this.emit('error', toError(error));
    }
  }

  #workByHand(): Worker {
    const worker = new Worker(this.#storedName, null, this.#plan.worker);
    worker.on('error', (error) => void this.emit('error', error));
    return worker;
  }

  #added(job: CoreJob): QueuedJob<T> {
    if (job.duplicate) this.emit('duplicated', job.id);
    return this.wrap(job);
  }

  protected wrap(job: CoreJob): QueuedJob<T> {
    const known = this.#jobs.get(job) ?? new Job(this, job);
    this.#jobs.set(job, known);
    return known;
  }

  get #storedName(): string {
    return storedName(this.name, this.#plan.prefix);
  }

  #isClosed(): HoldfastError {
    return closedError(`Queue "${this.name}"`);
  }
}
