// Queue adds jobs, reads them, locks them by hand and operates the queue. It connects the add batcher, the getters, the lock client and the
// cleaning to one store, which workers share. It must never run a job: queue and worker meet in the store.
import { HoldfastError } from '../errors.js';
import { StoreAccess } from '../handle/access.js';
import { JOB_CONTEXT, type JobContext, type JobProgress } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import { cancelJob, type CancelOptions } from '../handle/cancel.js';
import { checkRemoveOptions, removeJob, type RemoveOptions } from '../handle/removal.js';
import type { JobOf, NamedJob } from '../handle/typed-job.js';
import { encodeProgress, encodeRow } from '../handle/writes.js';
import { checkDeduplicationId } from '../job/deduplication.js';
import { checkGivenId, type QueueNames, queueNames } from '../job/names.js';
import type { DefaultJobOptions, JobsOptions } from '../job/options.js';
import type { NewJob } from '../job/record.js';
import type { Any, DataIn, NameIn, ResultIn } from '../job/typing.js';
import { LockClient } from '../lock/lock-client.js';
import type { CheckedSessionOptions } from '../session/session-options.js';
import { Leader } from '../lock/leader.js';
import { checkBoolean, checkInteger, invalidOption } from '../runtime/check.js';
import { checkTelemetry, Tracing } from '../runtime/telemetry.js';
import type { AddReply, Extension, JobWrite } from '../store/contract/index.js';
import { leaseStore, type StoreLease } from '../store/open.js';
import { readJobs } from '../store/client/read-on.js';
import { cancelJobs, type CancelJobsOptions, sendSignal } from './cancelling.js';
import * as cleaning from './cleaning.js';
import { Drafts, recordOf } from './draft.js';
import { AddBatcher } from './add-batcher.js';
import { parcelsOf } from './parcels.js';
import { atPlace, type GivenJob, splitBulk } from './bulk.js';
import { repeatedOf } from './repeat-option.js';
import { redrive, type RedriveOptions } from './redrive.js';
import { type RedisClient, redisClientOf } from './redis-client.js';
import { Results } from './results.js';
import { Schedulers } from './schedulers.js';
import { QueueSchedules } from './scheduling.js';
import { tracedAdd, tracedAddBulk } from './traced-add.js';
import {
  type AddOptions,
  checkQueueOptions,
  type CheckedQueueOptions,
  checkTransaction,
  type QueueOptions,
  type TransactionOption,
  BULK_NAMES,
} from './queue-options.js';

/** Data may be left out if it may be undefined. */
type AddArguments<D> = undefined extends D ? [data?: D, opts?: AddOptions] : [data: D, opts?: AddOptions];

export type BulkJob<T, R, N extends string> = {
  [K in NameIn<T, R, N>]: { name: K; opts?: JobsOptions } & (undefined extends DataIn<T, R, K>
    ? { data?: DataIn<T, R, K> }
    : { data: DataIn<T, R, K> });
}[NameIn<T, R, N>];

/** The last three types have no effect: programs that were written for BullMQ may name them. */
export class Queue<
  T = Any,
  R = Any,
  N extends string = string,
  _Data = unknown,
  _Result = unknown,
  _Name extends string = string,
> extends QueueSchedules<T, R, N> {
  readonly name: string;
  /** `prefix:name`. */
  readonly qualifiedName: string;
  readonly opts: Readonly<CheckedQueueOptions>;
  /** Set with the option `leaderElection`. */
  readonly leader: Leader | undefined;
  readonly #context: JobContext;
  readonly #lease: StoreLease;
  readonly #access: StoreAccess;
  readonly #addBatcher: AddBatcher;
  readonly #drafts: Drafts;
  readonly #results: Results;
  readonly #tracing: Tracing | undefined;
  protected readonly schedulers: Schedulers;
  #lockClient: LockClient | undefined;

  /** `foreign`: job options that the caller implements itself; used by the entries for other libraries. */
  constructor(name: string, opts: QueueOptions = {}, foreign?: ReadonlySet<string>) {
    super();
    this.opts = checkQueueOptions(opts);
    const names = queueNames(name, this.opts.prefix);
    this.name = names.name;
    this.qualifiedName = names.qualified;
    this.#drafts = new Drafts(names, opts.defaultJobOptions, foreign);
    const onError = (error: Error): void => void this.emit('error', error);
    this.leader = this.#standForElection();
    this.#lease = leaseStore(opts.connection, onError);
    this.#access = new StoreAccess(`Queue "${name}"`, this.#lease, onError);
    const { addTimeoutMs: timeoutMs } = this.opts;
    const onRecovered = (outageMs: number): void => void this.emit('recovered', outageMs);
    this.#addBatcher = new AddBatcher({ queue: names.stored, open: () => this.#access.open(), timeoutMs, onError, onRecovered });
    this.#context = this.#makeContext(names);
    const strategy = this.opts.settings?.repeatStrategy;
    const add = async (job: NewJob): Promise<Job> => (await this.#added([job], await this.#addBatcher.add([job]), []))[0] as Job;
    this.schedulers = new Schedulers({ context: this.#context, drafts: this.#drafts, strategy, add });
    const telemetry = checkTelemetry(opts.telemetry);
    this.#tracing = telemetry === undefined ? undefined : new Tracing(telemetry, this.name, onError);
    this.#results = new Results(names.name, opts, onError);
  }

  /** The part of this queue that its jobs use. */
  get [JOB_CONTEXT](): JobContext {
    return this.#context;
  }

  get defaultJobOptions(): DefaultJobOptions {
    return this.#drafts.defaults;
  }

  /** The ioredis client of a Redis store. Read it anew for each use: after an outage it is another one. Do not close it yourself. */
  get client(): Promise<RedisClient> {
    return this.store.then((store) => redisClientOf(store, 'queue.client'));
  }

  /** Set after `close` was called. */
  get closing(): Promise<void> | undefined {
    return this.#access.closing;
  }

  /**
   * Resolves when the store has stored the job. If the jobId exists, or the deduplication id is taken, nothing is added:
   * the job that is there is returned, and its `duplicate` is true.
   * In a `transaction` it resolves when the job is part of it: others see the job after the commit.
   */
  add(name: N, data: T, opts?: AddOptions): Promise<Job<T, R, N>>;
  add<K extends NameIn<T, R, N>>(name: K, ...args: AddArguments<DataIn<T, R, K>>): Promise<NamedJob<T, R, N, K>>;
  add(name: string, data?: unknown, opts?: AddOptions): Promise<unknown> {
    if (this.#tracing === undefined) return this.#addOne(name, data, opts);
    const { name: queue, defaultJobOptions: defaults } = this;
    return tracedAdd(this.#tracing, { queue, name, opts, defaults }, (own) => this.#addOne(name, data, own));
  }

  async #addOne(name: string, data: unknown, opts: AddOptions | undefined): Promise<Job> {
    const repeated = repeatedOf(name, data, opts);
    if (repeated !== undefined) return (await this.schedulers.upsert(repeated)) as Job;
    const transaction = checkTransaction(opts?.transaction);
    const own = transaction === undefined ? opts : { ...opts, transaction: undefined };
    const jobs = [this.#draft(name, data, own)];
    const [job] = await this.#added(jobs, await this.#addBatcher.add(jobs, transaction), [data], transaction);
    return job as Job;
  }

  /**
   * Adds the job and resolves with its result. Rejects with JOB_FINISHED if the job fails for good, and with TIMEOUT after `timeoutMs`
   * (default: no limit); the job goes on then. If the jobId exists, it waits for that job.
   */
  async addAndWait<K extends NameIn<T, R, N>>(
    name: K,
    data: DataIn<T, R, K>,
    opts: JobsOptions = {},
    timeoutMs?: number,
  ): Promise<ResultIn<T, R, K>> {
    if (this.closing !== undefined) throw this.#access.closed();
    const { transaction, repeat } = (opts ?? {}) as AddOptions;
    if (repeat !== undefined) throw invalidOption('repeat', repeat, 'left out: a schedule has no single result');
    if (transaction !== undefined)
      throw invalidOption('transaction', transaction, 'left out: the job cannot run before its commit');
    const add = this.add as (name: string, data: unknown, opts?: AddOptions) => Promise<Job>;
    return (await this.#results.of(() => add.call(this, name, data, opts), timeoutMs)) as ResultIn<T, R, K>;
  }

  /**
   * Adds all jobs or, if one is not valid, none. More than 1,000 jobs or 8 MB go in several steps, on Redis more than 150 unless all are
   * bare (no id, delay, priority …): atomic only in a `transaction`.
   */
  addBulk(jobs: BulkJob<T, R, N>[], opts: TransactionOption = {}): Promise<JobOf<T, R, N>[]> {
    if (this.#tracing === undefined) return this.#addAll(jobs, opts);
    const { name: queue, defaultJobOptions: defaults } = this;
    return tracedAddBulk(this.#tracing, { queue, jobs, defaults }, (traced) => this.#addAll(traced, opts));
  }

  async #addAll(jobs: BulkJob<T, R, N>[], opts: TransactionOption): Promise<JobOf<T, R, N>[]> {
    const within = checkTransaction(BULK_NAMES.checked(opts).transaction);
    const { plain, places, repeated } = splitBulk(jobs, within);
    const drafts = plain.map(({ name, data, opts: own }, n) =>
      atPlace(places[n] ?? 0, (path) => this.#draft(name, data, own, `${path}.opts`)),
    );
    for (const [place, one] of repeated) atPlace(place, () => this.schedulers.check(one));
    const added = await this.#addParcels(drafts, plain, within);
    // A job with the option `repeat` is the next job of its schedule.
    for (const [index, one] of repeated) added.splice(index, 0, (await this.schedulers.upsert(one)) as Job);
    return added as JobOf<T, R, N>[];
  }

  async #addParcels(drafts: NewJob[], given: readonly GivenJob[], within: object | undefined): Promise<Job[]> {
    const added: Job[] = [];
    const most = this.#addBatcher.mostAtOnce(drafts);
    for (const parcel of parcelsOf(drafts, typeof most === 'number' ? most : await most)) {
      const data = given.slice(added.length, added.length + parcel.length).map((job) => job.data);
      try {
        added.push(...(await this.#added(parcel, await this.#addBatcher.add(parcel, within), data, within)));
      } catch (error) {
        throw added.length === 0 || within !== undefined ? error : halfway(error, added.length, drafts.length);
      }
    }
    return added;
  }

  async pause(): Promise<void> {
    await (await this.store).configure(this.#context.stored, { paused: true });
    this.emit('paused');
  }

  async resume(): Promise<void> {
    await (await this.store).configure(this.#context.stored, { paused: false });
    this.emit('resumed');
  }

  /** Returns 1 if this call removed the job; 0 if there is no such job, or its lock is held. */
  async remove(jobId: string, opts: RemoveOptions = {}): Promise<number> {
    checkRemoveOptions(opts);
    if ((await removeJob(await this.store, this.#context.stored, checkGivenId(jobId), opts)) !== 'done') return 0;
    this.emit('removed', jobId);
    return 1;
  }

  /** Removes the waiting jobs, and with `delayed` the delayed ones too. */
  async drain(delayed = false): Promise<void> {
    await cleaning.drain(await this.store, this.#context.stored, checkBoolean('delayed', delayed));
  }

  /** Removes jobs of one type that are at least `grace` ms old, at most `limit` (0: all). Returns their ids. */
  async clean(grace: number, limit: number, type: cleaning.CleanType = 'completed'): Promise<string[]> {
    const jobIds = await cleaning.clean(await this.store, this.#context.stored, grace, limit, type);
    this.emit('cleaned', jobIds, type === 'waiting' ? 'wait' : type);
    return jobIds;
  }

  async retryJobs(opts: cleaning.RequeueOptions = {}): Promise<void> {
    await cleaning.retryJobs(await this.store, this.#context.stored, opts);
  }

  async promoteJobs(opts: { count?: number } = {}): Promise<void> {
    await cleaning.promoteJobs(await this.store, this.#context.stored, opts);
  }

  /** Removes the queue with everything that belongs to it. */
  async obliterate(opts: cleaning.ObliterateOptions = {}): Promise<void> {
    await cleaning.obliterate(await this.store, this.#context.stored, opts);
  }

  /**
   * Sends dead letters of this queue back to the queues of their jobs, or to `to`: the oldest first, at most `count` (default: all). Returns
   * how many were sent. A letter that a worker runs stays.
   */
  async redrive(opts: RedriveOptions = {}): Promise<number> {
    return redrive(await this.store, this.#context, opts);
  }

  /**
   * Cancels a job, in whatever process it runs. A job that does not run fails at once with the reason. A run gets its signal aborted within about
   * a second, with an error of the code CANCELLED; if the handler completes nevertheless, that counts. Otherwise the job fails, and it never
   * runs again unless it is retried by hand. Returns false if the job has finished or does not exist.
   */
  async cancel(jobId: string, reason?: string, opts: CancelOptions = {}): Promise<boolean> {
    return cancelJob(await this.store, this.#context.stored, checkGivenId(jobId), reason, opts);
  }

  /** Cancels all jobs that match, each as `cancel` does. Returns how many. */
  async cancelJobs(opts: CancelJobsOptions = {}): Promise<number> {
    return cancelJobs(await this.store, this.#context.stored, opts);
  }

  /**
   * Sends a signal to a job, for its `job.waitFor(name)`. It is kept until the job asks for it. A name can be sent once: returns false if the
   * job has a signal of this name with other data already, or has waited for it in vain.
   */
  async signal(jobId: string, name: string, data?: unknown): Promise<boolean> {
    return sendSignal(await this.store, this.#context, checkGivenId(jobId), name, data);
  }

  async updateJobProgress(jobId: string, progress: JobProgress): Promise<void> {
    await this.#write('updateJobProgress', { kind: 'progress', jobId, progress: encodeProgress(jobId, progress) });
    this.emit('progress', jobId, progress);
  }

  /** Returns how many log rows the job has now. */
  async addJobLog(jobId: string, row: string, keepLogs?: number): Promise<number> {
    const keep = keepLogs === undefined ? {} : { keep: checkInteger('keepLogs', keepLogs) };
    return this.#write('addJobLog', { kind: 'log', jobId, row: encodeRow(row), ...keep });
  }

  /** Frees a deduplication id, and drops the job that is kept for it. Returns how many ids were freed: 1 or 0. */
  async removeDeduplicationKey(id: string): Promise<number> {
    return (await this.store).forget(this.#context.stored, { deduplication: [checkDeduplicationId(id)] });
  }

  /** Returns how many events were removed. */
  async trimEvents(maxLength: number): Promise<number> {
    return (await this.store).forget(this.#context.stored, { events: checkInteger('maxLength', maxLength) });
  }

  async waitUntilReady(): Promise<void> {
    await this.store;
  }

  /** Returns `prefix:name:type`: a name for people and logs, in the form of BullMQ's keys. Stores keep jobs under other keys. */
  toKey(type: string): string {
    return `${this.qualifiedName}:${type}`;
  }

  /**
   * Waits for the adds under way and for the work of `lock` to end. Locks that were taken with `takeLock` are released. Jobs that were
   * taken by hand go back to waiting: neither an attempt nor a stall counts.
   */
  close(): Promise<void> {
    return this.#access.close(async () => {
      await this.leader?.close();
      await this.#results.close();
      await this.#lockClient?.close();
      await this.#addBatcher.close();
    });
  }

  /** Created when the first lock is taken: most queues never take one. */
  protected get lockClient(): LockClient {
    if (this.closing !== undefined) throw this.#access.closed();
    this.#lockClient ??= new LockClient({
      queue: this.#context.stored,
      name: 'queue',
      lease: this.#lease,
      sessionOptions: this.opts,
      strategy: this.opts.settings?.repeatStrategy,
      onStalled: (lost) => {
        for (const { jobId, lostBy } of lost) this.emit('stalled', jobId, lostBy);
      },
      onError: (error) => void this.emit('error', error),
    });
    return this.#lockClient;
  }

  protected get sessionOptions(): CheckedSessionOptions {
    return this.opts;
  }

  /** `path`: where the options stand in the arguments of the caller. */
  #draft(name: unknown, data: unknown, opts: JobsOptions | undefined, path?: string): NewJob {
    if (this.closing !== undefined) throw this.#access.closed();
    return this.#drafts.make(name, data, opts, path);
  }

  /** Makes the handles of added jobs. `given`: the data of each job as the caller passed it. */
  async #added(jobs: NewJob[], replies: AddReply[], given: readonly unknown[], transaction?: object): Promise<Job[]> {
    const existing = replies.some(({ status }) => status !== 'added') ? await this.#existing(replies) : undefined;
    const handles = jobs.map((job, index) => {
      const { id, status } = replies[index] as AddReply;
      const duplicate = status !== 'added';
      const found = existing?.get(id);
      return found === undefined
        ? new Job(this.#context, recordOf(job, id), { duplicate, data: given[index] })
        : new Job(this.#context, found, { duplicate });
    });
    // A queue cannot know whether the user's transaction is committed, so it emits nothing for it.
    if (transaction === undefined && this.listenerCount('waiting') > 0) this.#emitWaiting(handles);
    return handles;
  }

  /** Reads the existing jobs of duplicates. The add itself is done: if they cannot be read, the handle shows the given values instead. */
  async #existing(replies: AddReply[]): Promise<Map<string, NonNullable<ConstructorParameters<typeof Job>[1]>>> {
    const ids = replies.filter(({ status }) => status !== 'added').map(({ id }) => id);
    const records = await this.#access
      .open()
      .then((store) => readJobs(store, this.#context.stored, ids))
      .catch(() => []);
    return new Map(records.flatMap((record) => (record === undefined ? [] : [[record.id, record]])));
  }

  #emitWaiting(jobs: Job[]): void {
    for (const job of jobs) if (!job.duplicate && job.delay === 0) this.emit('waiting', job as JobOf<T, R, N>);
  }

  async #write(action: string, write: JobWrite): Promise<number> {
    const jobId = checkGivenId(write.jobId);
    const [reply] = await (await this.store).write(this.#context.stored, [write]);
    if (reply?.status === 'done') return reply.count ?? 0;
    throw new HoldfastError('JOB_MISSING', `${action}: job ${jobId} of queue "${this.name}" does not exist (any more).`, {
      jobId,
      queue: this.name,
    });
  }

  async #extend(extension: Extension): Promise<boolean> {
    if (this.#lockClient?.holdsJob(extension.token) === true)
      return (await this.#lockClient.jobs.extend([extension]))[0] === 'done';
    return (await (await this.#access.ready()).extend(this.#context.stored, [extension]))[0] === 'done';
  }

  #standForElection(): Leader | undefined {
    const { leaderElection = false, connection, instanceId, prefix } = this.opts;
    if (leaderElection === false) return undefined;
    const leader = new Leader(this.name, {
      prefix,
      ...(instanceId === undefined ? {} : { instanceId }),
      ...(leaderElection === true ? {} : leaderElection),
      ...(connection === undefined ? {} : { connection }),
    });
    leader.on('leader', (term) => void this.emit('leader', term));
    leader.on('follower', (reason) => void this.emit('follower', reason));
    leader.on('stalled', (jobId, lostBy) => void this.emit('stalled', jobId, lostBy));
    leader.on('error', (error) => void this.emit('error', error));
    return leader;
  }

  #makeContext({ name, prefix, stored }: QueueNames): JobContext {
    return {
      name,
      prefix,
      stored,
      ready: () => this.#access.ready(),
      take: (jobId) => this.lockClient.jobs.takeById(jobId),
      settle: async (outcome) => {
        if (this.#lockClient?.holdsJob(outcome.token) === true)
          return { status: (await this.#lockClient.jobs.settle(outcome)).status };
        const { results } = await (await this.#access.ready()).settle(this.#context.stored, [outcome]);
        return { status: results[0] ?? 'missing' };
      },
      extend: (jobId, token, durationMs) => this.#extend({ jobId, token, durationMs }),
      progressed: (job, progress) => void this.emit('progress', job.id, progress),
      removed: (jobId) => void this.emit('removed', jobId),
    };
  }
}

function halfway(error: unknown, done: number, all: number): unknown {
  if (!(error instanceof HoldfastError)) return error;
  const { code, retryable, message } = error;
  return new HoldfastError(code, `The first ${done} of ${all} jobs were added. For the rest: ${message}`, {
    retryable,
    cause: error,
  });
}
