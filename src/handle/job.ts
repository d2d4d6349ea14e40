// Job: the live handle of one job, returned by queues, workers and getters. It shows the job as last seen and sends writes and moves to
// the store. A change that the store refuses leaves its fields unchanged. It must never retry, renew or decide about locks: its job
// context does that. A handle from a worker carries the lock of its run, and sends the token with every write.
import { type JobLock, NO_LOCK } from '../job/lock.js';
import { checkGivenId, jobKey } from '../job/names.js';
import type { LostBy } from '../job/lost-by.js';
import type { JobsOptions } from '../job/options.js';
import type { Outcome } from '../job/outcome.js';
import type { JobRecord } from '../job/record.js';
import type { Any } from '../job/typing.js';
import { type FinishedState, type JobState, visibleState } from '../job/state.js';
import { checkInteger } from '../runtime/check.js';
import { JobSnapshot } from './job-snapshot.js';
import { DECODED_AT_ONCE, decodedOnUse, ENCODED, shown, showPlain } from './fields.js';
import { contextOf, type ContextSource, type JobContext, type JobProgress } from './job-context.js';
import * as children from './children.js';
import type { ParentKeys } from './children.js';
import { type JobJson, type JobView, jsonOf, partsOf, unaddedRecord } from './json.js';
import { cancelJob, type CancelOptions } from './cancel.js';
import * as moves from './moves.js';
import type { RemoveOptions } from './removal.js';
import { listSteps, RunSteps, type StepContext, type StepInfo, type WaitForOptions } from './steps.js';
import { type FinishSource, waitUntilFinished } from './waiting.js';
import * as writes from './writes.js';

/** The job that a dead letter is a copy of. */
export interface LetterOrigin {
  /** `prefix:queue:id`. */
  key: string;
  id: string;
  failedReason: string;
  attemptsMade: number;
  /** In ms since the epoch, on the store's clock. */
  failedOn: number;
}

export interface JobExtras {
  lock?: JobLock | undefined;
  /** The user's own name for the lock's token (`getNextJob('my-token')`). */
  alias?: string | undefined;
  duplicate?: boolean;
  /** The value that `add` got, which the handle shows as in BullMQ. Undefined: the record's value. */
  data?: unknown;
}

/** The part of a Queue that `create` uses. */
export interface JobMaker {
  add(name: Any, ...args: Any): Promise<Job>;
  addBulk(jobs: Any): Promise<Job[]>;
}

/** For workers: the store has accepted the outcome of the job's run. Not a method, because users must not call it. */
export let showSettled: (job: Job, outcome: Outcome) => void;

/** For workers: the run of the job was ended while its handler goes on. */
export let showCutShort: (job: Job) => void;

/** For sandboxes: the steps of the run of the job, in two halves. */
export let runStepsOf: (job: Job) => Pick<RunSteps, 'begin' | 'record'>;

/** For workers: true if a call of `step`, `sleep` or `waitFor`, or a write of the handle, has not ended. */
export let hasOpenCalls: (job: Job) => boolean;

/** For workers: the recorded steps that the run of the job has not asked for. Undefined if the run has used no step. */
export let unaskedSteps: (job: Job) => Promise<string[]> | undefined;

/** For workers: the sleep or wait that has ended the run of the job. */
export let suspensionOf: (job: Job) => string | undefined;

export class Job<Data = Any, Result = Any, Name extends string = string> {
  static {
    showSettled = (job, outcome) => job.#snapshot.settled(outcome);
    showCutShort = (job) => {
      job.#snapshot.isCutShort = true;
    };
    runStepsOf = (job) => job.#steps;
    hasOpenCalls = (job) => job.#runSteps?.forgotten === true || job.#snapshot.openWrites > 0;
    unaskedSteps = (job) => job.#runSteps?.unasked();
    suspensionOf = (job) => job.#runSteps?.suspension;
  }

  static readonly #onUse = {
    data: decodedOnUse('data', (job: Job) => job.#snapshot),
    opts: decodedOnUse('opts', (job: Job) => job.#snapshot),
    progress: decodedOnUse('progress', (job: Job) => job.#snapshot),
    returnvalue: decodedOnUse('returnvalue', (job: Job) => job.#snapshot),
    stacktrace: decodedOnUse('stacktrace', (job: Job) => job.#snapshot),
  };

  readonly #snapshot: JobSnapshot;
  /** Made when the run uses its first step. */
  #runSteps: RunSteps | undefined;
  // `declare`, because a field that is defined before it is assigned would be defined twice.
  declare readonly id: string;
  declare readonly name: Name;
  declare readonly queueName: string;
  /** May be set, which changes only this handle; `updateData` changes the job. */
  declare data: Data;
  declare readonly opts: JobsOptions;
  declare readonly progress: JobProgress;
  /** null until the job has completed, and if the processor returned nothing. May be set, which changes only this handle. */
  declare returnvalue: Result;
  /** Undefined until an attempt has failed; typed as in BullMQ. */
  declare readonly failedReason: string;
  /** One for each failed attempt, newest last. */
  declare readonly stacktrace: string[];
  declare readonly delay: number;
  declare readonly priority: number;
  declare readonly timestamp: number;
  declare readonly processedOn: number | undefined;
  declare readonly finishedOn: number | undefined;
  declare readonly processedBy: string | undefined;
  declare readonly attemptsMade: number;
  declare readonly attemptsStarted: number;
  declare readonly stalledCounter: number;
  /** The process that lost the job last without an outcome, and how that was found. Stays when the job runs again or finishes. */
  declare readonly lostBy: LostBy | undefined;
  /** The token of this run, or the one given to `getNextJob`. */
  declare readonly token: string | undefined;
  /** True if `discard` was called. */
  declare readonly discarded: boolean;
  /** The id of the option `deduplication`. Stays when the id is free again. */
  declare readonly deduplicationId: string | undefined;
  /** The id of the option `group`. */
  declare readonly gid: string | undefined;
  /** The id of the schedule that made the job. */
  declare readonly repeatJobKey: string | undefined;
  /** The first parent of the job, with the qualified name of its queue. */
  declare readonly parent: ParentKeys | undefined;
  /** `prefix:queue:id` of the first parent. */
  declare readonly parentKey: string | undefined;
  /** True if `add` added nothing, because this job has the jobId or the deduplication id. */
  declare readonly duplicate: boolean;

  /** Makes a handle of a job without adding it. */
  constructor(queue: ContextSource, name: Name, data: Data, opts?: JobsOptions, id?: string);
  /** For queues and workers. */
  constructor(context: JobContext, record: JobRecord, extras?: JobExtras);
  /** Sets always the same fields in the same order, so that all handles have one shape. */
  constructor(source: ContextSource, job: JobRecord | Name, extras: unknown = {}, unchecked?: JobsOptions, id?: string) {
    const isAdded = typeof job !== 'string';
    const context = isAdded ? (source as JobContext) : contextOf(source);
    const record = isAdded ? job : unaddedRecord(context, job, extras, unchecked, id);
    const { lock = NO_LOCK, alias, duplicate = false, data: given } = (isAdded ? extras : { data: extras }) as JobExtras;
    const snapshot = new JobSnapshot(this, context, record, lock, alias);
    this.#snapshot = snapshot;
    // A processor reads the data, and the end of its run reads the options. Behind an accessor, data that is read costs a run in memory
    // 0.3 of 1.7 µs more; data that is not read costs as much less. Many other handles are never read.
    const atOnce = lock === NO_LOCK ? 0 : DECODED_AT_ONCE;
    this.id = record.id;
    this.name = record.name as Name;
    this.queueName = context.name;
    const data = given === undefined ? shown.data(record.data, atOnce) : given;
    if (data === ENCODED) Object.defineProperty(this, 'data', Job.#onUse.data);
    else this.data = data as Data;
    const opts = shown.opts(record.opts, atOnce);
    if (opts === ENCODED) Object.defineProperty(this, 'opts', Job.#onUse.opts);
    else this.opts = opts;
    const progress = shown.progress(record.progress, atOnce);
    if (progress === ENCODED) Object.defineProperty(this, 'progress', Job.#onUse.progress);
    else this.progress = progress;
    const returnvalue = shown.returnvalue(record.returnvalue, atOnce);
    if (returnvalue === ENCODED) Object.defineProperty(this, 'returnvalue', Job.#onUse.returnvalue);
    else this.returnvalue = returnvalue as Result;
    const stacktrace = shown.stacktrace(record.stacktrace, atOnce);
    if (stacktrace === ENCODED) Object.defineProperty(this, 'stacktrace', Job.#onUse.stacktrace);
    else this.stacktrace = stacktrace;
    showPlain(this, record);
    this.token = alias ?? snapshot.token;
    this.discarded = false;
    this.deduplicationId = record.deduplicationId;
    this.gid = record.group;
    this.repeatJobKey = record.scheduleId;
    this.parent = undefined;
    this.parentKey = undefined;
    if (record.parents !== undefined) children.showParent(this, record.parents);
    this.duplicate = duplicate;
  }

  static async create(queue: JobMaker, name: string, data?: unknown, opts?: JobsOptions): Promise<Job> {
    return queue.add(name, data, opts);
  }

  static async createBulk(queue: JobMaker, jobs: { name: string; data?: unknown; opts?: JobsOptions }[]): Promise<Job[]> {
    return queue.addBulk(jobs);
  }

  static async fromId<D = Any, R = Any, N extends string = string>(
    queue: ContextSource,
    id: string,
  ): Promise<Job<D, R, N> | undefined> {
    const context = contextOf(queue);
    const [record] = (await (await context.ready()).jobs(context.stored, [checkGivenId(id)])).jobs;
    return record === undefined ? undefined : new Job<D, R, N>(context, record);
  }

  /** Makes a handle from the result of `asJSON`, or from the next job that `moveToCompleted` fetched; the latter has its lock. */
  static fromJSON<D = Any, R = Any, N extends string = string>(
    queue: ContextSource,
    json: Partial<Omit<JobJson, 'opts'>> & { opts?: string | object },
    id?: string,
  ): Job<D, R, N> {
    const context = contextOf(queue);
    const { record, lock, alias } = partsOf(context, json, id);
    return new Job<D, R, N>(context, record, { lock, alias });
  }

  get prefix(): string {
    return this.#snapshot.context.prefix;
  }
  get queueQualifiedName(): string {
    return `${this.prefix}:${this.queueName}`;
  }
  /** For a dead letter: the job that failed, and why. Undefined for other jobs. */
  get letterOf(): LetterOrigin | undefined {
    const { origin } = this.#snapshot.record;
    if (origin === undefined) return undefined;
    const { id, failedReason, attemptsMade, failedOn } = origin;
    return { key: jobKey(origin), id, failedReason, attemptsMade, failedOn };
  }

  /** Why the job will fail instead of running: a child of it has failed, whose failure fails its parent. */
  get deferredFailure(): string | undefined {
    const { doomedBy: child } = this.#snapshot.record;
    return child === undefined ? undefined : `child ${jobKey(child)} failed`;
  }
  get lock(): JobLock {
    return this.#snapshot.lock;
  }

  updateData(data: Data): Promise<void> {
    return writes.writeData(this.#snapshot, data);
  }

  updateProgress(progress: JobProgress): Promise<void> {
    return writes.writeProgress(this.#snapshot, progress, () => this.#snapshot.context.progressed?.(this, progress));
  }

  /** Returns how many log rows the job has now. */
  log(row: string): Promise<number> {
    return writes.writeLog(this.#snapshot, row);
  }

  clearLogs(keepLogs?: number): Promise<void> {
    return writes.clearLogs(this.#snapshot, keepLogs);
  }

  async getState(): Promise<JobState> {
    const { context, record } = this.#snapshot;
    const [now] = (await (await context.ready()).jobs(context.stored, [record.id])).jobs;
    return now === undefined ? 'unknown' : visibleState(now);
  }
  async isCompleted(): Promise<boolean> {
    return (await this.getState()) === 'completed';
  }
  async isFailed(): Promise<boolean> {
    return (await this.getState()) === 'failed';
  }
  async isDelayed(): Promise<boolean> {
    return (await this.getState()) === 'delayed';
  }
  async isWaiting(): Promise<boolean> {
    return (await this.getState()) === 'waiting';
  }
  async isActive(): Promise<boolean> {
    return (await this.getState()) === 'active';
  }
  async isWaitingChildren(): Promise<boolean> {
    return (await this.getState()) === 'waiting-children';
  }

  /** Resolves with the result. Rejects with JOB_FINISHED and the reason if the job fails, and with TIMEOUT after `ttl` ms. */
  async waitUntilFinished(queueEvents: FinishSource, ttl?: number): Promise<Result> {
    return (await waitUntilFinished(this.#snapshot, queueEvents, ttl)) as Result;
  }

  async remove(opts: RemoveOptions = {}): Promise<void> {
    await moves.remove(this.#snapshot, opts);
  }

  async retry(state: FinishedState = 'failed', opts: moves.RetryOptions = {}): Promise<void> {
    await moves.retry(this.#snapshot, state, opts);
  }

  async promote(): Promise<void> {
    await moves.promote(this.#snapshot);
  }

  async changeDelay(delay: number): Promise<void> {
    await moves.changeDelay(this.#snapshot, delay);
  }

  async changePriority(opts: moves.PriorityOptions): Promise<void> {
    await moves.changePriority(this.#snapshot, opts);
  }

  /** Frees the deduplication id of this job. Returns false if the id is free already, or if another job has it now. */
  async removeDeduplicationKey(): Promise<boolean> {
    return writes.freeDeduplicationId(this.#snapshot);
  }

  /**
   * Does a step of the work once: its result is recorded with the job, and later runs of the job get it without running `work`. A run that has
   * lost its lock records nothing. If the process dies between the effect of a step and its record, the step runs again, with the same
   * `key`. The result is JSON. A name can be used once in a run.
   */
  step<T>(name: string, work: (context: StepContext) => T | Promise<T>): Promise<T> {
    return forgettable(this.#steps.step(name, work));
  }

  /**
   * Hands the job back, and lets it run again after this time; that run passes the sleep. No attempt and no stall counts. It rejects with a
   * DelayedError, which the handler lets pass. Its slot is free meanwhile.
   */
  sleep(name: string, ms: number): Promise<void> {
    return forgettable(this.#steps.sleep(name, ms));
  }

  /**
   * Waits for `queue.signal(jobId, name, data)`, and returns the data. A signal that came before is found. Until the signal comes, the job is
   * delayed and its slot is free, as with `sleep`. Rejects with TIMEOUT after `timeoutMs`, on every run.
   */
  waitFor<D = unknown>(name: string, opts: WaitForOptions = {}): Promise<D> {
    return forgettable(this.#steps.waitFor(name, opts) as Promise<D>);
  }

  /** Returns what the runs of the job have recorded, in order. */
  async steps(): Promise<StepInfo[]> {
    return listSteps(this.#snapshot);
  }

  /**
   * Cancels the job, in whatever process it runs: see `queue.cancel`. Returns false if it has finished.
   */
  async cancel(reason?: string, opts: CancelOptions = {}): Promise<boolean> {
    const { context, record } = this.#snapshot;
    return cancelJob(await context.ready(), context.stored, record.id, reason, opts);
  }

  /**
   * Completes the job with its result in a `transaction` of yours, under the token of this run: your own writes and the completion are one. If
   * the lock is lost, it rejects, so that your transaction rolls back. Call it last in the transaction, once, and let the handler end after
   * the commit. If the handler ends normally and the transaction has not committed, the run fails with NOT_COMMITTED.
   */
  async complete(result: Result, opts: moves.CompleteOptions): Promise<void> {
    await moves.completeWithin(this.#snapshot, this, result, opts);
  }

  /** With `fetchNext`, a worker's job returns [json, id] of the next one: `Job.fromJSON(worker, json, id)`. */
  async moveToCompleted(value: Result, token?: string, fetchNext = true): Promise<moves.NextJob> {
    return moves.complete(this.#snapshot, this, value, token, fetchNext);
  }

  /** Retries the job if attempts are left, else fails it. */
  async moveToFailed(error: Error, token?: string, fetchNext = false): Promise<moves.NextJob> {
    return moves.fail(this.#snapshot, this, error, token, fetchNext);
  }

  /** `timestamp`: in ms since the epoch. In a processor, throw DelayedError afterwards. */
  async moveToDelayed(timestamp: number, token?: string): Promise<void> {
    await moves.delayUntil(this.#snapshot, timestamp, token);
  }

  /** Moves the job to the front of waiting. In a processor, throw WaitingError afterwards. */
  async moveToWait(token?: string): Promise<void> {
    await moves.handBack(this.#snapshot, token);
  }

  /**
   * Moves the job to waiting-children if a child of it has not ended; with `child`, if that one has not. Returns false if there is none: then
   * the handler goes on. In a processor, throw WaitingChildrenError after it returned true. No attempt counts.
   */
  async moveToWaitingChildren(token?: string, opts: children.WaitForChildrenOptions = {}): Promise<boolean> {
    return children.waitForChildren(this.#snapshot, token, opts);
  }

  /** Returns the results of the children that have completed, by their keys: `prefix:queue:id`. They outlive the children. */
  async getChildrenValues<V = Any>(): Promise<Record<string, V>> {
    return (await children.valuesOf(this.#snapshot)) as Record<string, V>;
  }

  /** Returns why children failed whose failures the job ignores, by their keys. */
  async getIgnoredChildrenFailures(): Promise<Record<string, string>> {
    return children.ignoredOf(this.#snapshot);
  }

  /** The same as `getIgnoredChildrenFailures`, under an older name. */
  async getFailedChildrenValues(): Promise<Record<string, string>> {
    return children.ignoredOf(this.#snapshot);
  }

  /** Returns the children by the states of their links. With options, pages of the states that they name. */
  async getDependencies(opts: children.DependenciesOptions = {}): Promise<children.Dependencies> {
    return children.dependenciesOf(this.#snapshot, opts);
  }

  /** Returns the numbers of children: of all states, or of those that are true in `opts`. */
  async getDependenciesCount(opts: children.DependencyStates = {}): Promise<children.DependencyCounts> {
    return children.countsOf(this.#snapshot, opts);
  }

  /** Parts this job from its parent, which no longer waits for it. Returns false if it has no parent, or has ended. */
  async removeChildDependency(): Promise<boolean> {
    return children.partFromParent(this.#snapshot);
  }

  /** Removes the children that have not started, with their own children. */
  async removeUnprocessedChildren(): Promise<void> {
    await children.removeUnprocessed(this.#snapshot);
  }

  get #steps(): RunSteps {
    this.#runSteps ??= new RunSteps(this.#snapshot);
    return this.#runSteps;
  }

  /** The name of this job's lock, for people and logs. */
  lockKey(): string {
    return `${this.queueName}:${this.id}:lock`;
  }

  /**
   * Takes the lock of a waiting job by hand, for the `lockDuration` of the queue. No worker runs the job meanwhile, and it comes back when
   * the lock expires. Returns the token, or false if the lock is held. Rejects with JOB_STATE or JOB_MISSING if the job cannot be taken.
   */
  async takeLock(): Promise<string | false> {
    return moves.takeLock(this.#snapshot);
  }

  /**
   * Hands the job back to the front of waiting; neither an attempt nor a stall counts. Also resolves if this handle has already moved the
   * job. Rejects with LOCK_LOST if the lock was lost before.
   */
  async releaseLock(): Promise<void> {
    await moves.releaseLock(this.#snapshot);
  }

  /** Returns 1: the lock lasts at least that long from now; 0: the lock is no longer ours. A job that came with its lock needs no token. */
  async extendLock(duration: number): Promise<number>;
  async extendLock(token: string, duration: number): Promise<number>;
  async extendLock(...args: [number] | [string, number]): Promise<number> {
    const [token, duration] =
      typeof args[0] === 'number' && args.length === 1 ? [undefined, args[0]] : (args as [string, number]);
    return moves.extendLock(this.#snapshot, token, checkInteger('duration', duration, { min: 1 }));
  }

  /** No further attempt follows, however this run fails. */
  discard(): void {
    (this as { discarded: boolean }).discarded = true;
  }

  /** Plain data with decoded payloads, for people and logs. */
  toJSON(): JobView<Data, Result, Name> {
    const { state: _state, lostBy: _text, ...record } = jsonOf(this.#snapshot.record);
    const { name, data, opts, progress, returnvalue, stacktrace, queueName, failedReason, lostBy, repeatJobKey } = this;
    const loss = lostBy === undefined ? {} : { lostBy };
    const origin = repeatJobKey === undefined ? {} : { repeatJobKey };
    return { ...record, ...loss, ...origin, name, data, opts, progress, returnvalue, stacktrace, failedReason, queueName };
  }

  /** Plain data with payloads as JSON text, for `Job.fromJSON`. */
  asJSON(): JobJson {
    return jsonOf(this.#snapshot.record);
  }

  [Symbol.for('nodejs.util.inspect.custom')](): JobView<Data, Result, Name> {
    return this.toJSON();
  }
}

/** A call that the handler does not await must not end the process by its rejection. The worker warns of such a call. */
function forgettable<T>(call: Promise<T>): Promise<T> {
  call.catch(() => undefined);
  return call;
}
