// Bull's Job: a core job with Bull's names and arguments. It has no state of its own.
import { HoldfastError } from '../../errors.js';
import type { FinishSource } from '../../handle/waiting.js';
import type { Job as CoreJob } from '../../handle/job.js';
import type { JobLock } from '../../job/lock.js';
import type { Any } from '../../job/typing.js';
import type { JobOptions } from './options.js';
import { bullRepeatOf } from './repeat.js';

export type JobStatus = 'completed' | 'waiting' | 'active' | 'delayed' | 'failed' | 'paused';

/** The part of a queue that its jobs use. */
export interface JobQueue {
  readonly name: string;
  readonly keyPrefix: string;
  isPaused(): Promise<boolean>;
  emitProgress(job: Job<Any>, progress: unknown): void;
  emitRemoved(job: Job<Any>): void;
  finishes(): FinishSource;
}

export class Job<T = Any, Q extends JobQueue = JobQueue> {
  readonly queue: Q;
  readonly #job: CoreJob<T>;

  constructor(queue: Q, job: CoreJob<T>) {
    this.queue = queue;
    this.#job = job;
  }

  get id(): string {
    return this.#job.id;
  }
  get name(): string {
    return this.#job.name;
  }
  get data(): T {
    return this.#job.data;
  }
  set data(data: T) {
    this.#job.data = data;
  }
  get opts(): JobOptions & { attempts: number; delay: number } {
    const { opts } = this.#job;
    const { repeat: _, ...rest } = opts;
    return { ...rest, ...bullRepeatOf(opts), attempts: Math.max(1, opts.attempts ?? 1), delay: opts.delay ?? 0 };
  }
  get attemptsMade(): number {
    return this.#job.attemptsMade;
  }
  get delay(): number {
    return this.#job.delay;
  }
  get timestamp(): number {
    return this.#job.timestamp;
  }
  get processedOn(): number | undefined {
    return this.#job.processedOn;
  }
  get finishedOn(): number | undefined {
    return this.#job.finishedOn;
  }
  get failedReason(): string | undefined {
    return this.#job.failedReason;
  }
  get stacktrace(): string[] {
    return this.#job.stacktrace;
  }
  get returnvalue(): Any {
    return this.#job.returnvalue;
  }
  /** The lock of this handle: `held`, `fence`, `signal`. An addition of Holdfast. */
  get lock(): JobLock {
    return this.#job.lock;
  }
  /** True if `add` added nothing, because this job has the jobId or the deduplication id. An addition of Holdfast. */
  get duplicate(): boolean {
    return this.#job.duplicate;
  }

  progress(): Any;
  progress(value: unknown): Promise<void>;
  progress(...[value]: unknown[]): unknown {
    return value === undefined ? this.#job.progress : this.#report(value as number);
  }

  async #report(progress: number): Promise<void> {
    await this.#job.updateProgress(progress);
    this.queue.emitProgress(this, progress);
  }

  async update(data: T): Promise<void> {
    await this.#job.updateData(data);
  }

  log(row: string): Promise<number> {
    return this.#job.log(row);
  }

  /** Returns 'stuck', as Bull does, for a job that is in no list any more. */
  async getState(): Promise<JobStatus | 'stuck'> {
    const state = await this.#job.getState();
    if (state === 'unknown' || state === 'waiting-children') return 'stuck';
    if (state !== 'waiting' && state !== 'prioritized') return state;
    return (await this.queue.isPaused()) ? 'paused' : 'waiting';
  }
  isCompleted(): Promise<boolean> {
    return this.#job.isCompleted();
  }
  isFailed(): Promise<boolean> {
    return this.#job.isFailed();
  }
  isDelayed(): Promise<boolean> {
    return this.#job.isDelayed();
  }
  isActive(): Promise<boolean> {
    return this.#job.isActive();
  }
  async isWaiting(): Promise<boolean> {
    return (await this.getState()) === 'waiting';
  }
  async isPaused(): Promise<boolean> {
    return (await this.getState()) === 'paused';
  }
  async isStuck(): Promise<boolean> {
    return (await this.getState()) === 'stuck';
  }

  async remove(): Promise<void> {
    await this.#job.remove();
    this.queue.emitRemoved(this);
  }

  async retry(): Promise<void> {
    await this.#job.retry();
  }

  async discard(): Promise<void> {
    this.#job.discard();
  }

  async promote(): Promise<void> {
    await this.#job.promote();
  }

  /** Resolves with the job's result. Rejects with its reason if the job fails. */
  async finished(): Promise<Any> {
    return this.#job.waitUntilFinished(this.queue.finishes());
  }

  lockKey(): string {
    return `${this.queue.keyPrefix}:${this.queue.name}:${this.id}:lock`;
  }

  /** Returns the fence of this acquisition, or false if the lock is held. Workers do not run the job meanwhile. */
  async takeLock(): Promise<number | false> {
    return (await this.#job.takeLock()) === false ? false : this.#job.lock.fence;
  }

  async releaseLock(): Promise<void> {
    await this.#job.releaseLock();
  }

  /** Returns 1: the lock now ends after `duration` ms; 0: the lock is not, or no longer, ours. */
  extendLock(duration: number): Promise<number> {
    return this.#job.extendLock(duration);
  }

  /** For a job from `getNextJob`, also returns the next job unless `notFetch`, for `queue.nextJobFromJobData`. Other jobs fetch none. */
  async moveToCompleted(returnValue?: unknown, ignoreLock = false, notFetch = false): Promise<[Any, string] | null> {
    if (ignoreLock) await this.#lockIfFree('moveToCompleted');
    const [json, id] = await this.#job.moveToCompleted(returnValue, undefined, !notFetch);
    return json === undefined || id === undefined ? null : [json, id];
  }

  /** Retries the job if attempts are left, else fails it. */
  async moveToFailed(error: { message: string }, ignoreLock = false): Promise<null> {
    if (ignoreLock) await this.#lockIfFree('moveToFailed');
    await this.#job.moveToFailed(error as Error, undefined, false);
    return null;
  }

  toJSON(): Record<string, unknown> {
    const { id, name, data, opts, delay, timestamp, attemptsMade, failedReason, stacktrace, returnvalue } = this;
    const { finishedOn = null, processedOn = null } = this;
    const progress: unknown = this.#job.progress;
    return {
      id,
      name,
      data,
      opts,
      progress,
      delay,
      timestamp,
      attemptsMade,
      failedReason,
      stacktrace,
      returnvalue,
      finishedOn,
      processedOn,
    };
  }

  [Symbol.for('nodejs.util.inspect.custom')](): Record<string, unknown> {
    return this.toJSON();
  }

  /** "Ignoring the lock" means only that this handle need not hold one: a lock that another owner holds is never broken. */
  async #lockIfFree(action: string): Promise<void> {
    if (this.#job.lock.held || (await this.#job.takeLock()) !== false) return;
    const message = `${action}: the lock of job ${this.id} is held, and a held lock is never ignored. Wait until its run has ended.`;
    throw new HoldfastError('JOB_LOCKED', message, { jobId: this.id, queue: this.queue.name });
  }
}
