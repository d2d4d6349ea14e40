// A Worker claims jobs of one queue from the store, runs the processor on them and settles their outcomes. This class is the worker's
// public face and does none of its work: stations.ts makes and connects the parts that do. A worker must never change a job without its
// token, nor forget one that the store has not acknowledged: without `prefetch` its slot is taken until then; with it, at most `prefetch`
// jobs are in hand beyond the slots.
import { randomUUID } from 'node:crypto';
import { toError } from '../errors.js';
import { Job } from '../handle/job.js';
import { JOB_CONTEXT, type JobContext } from '../handle/job-context.js';
import type { JobHandlers, JobOf, JobProcessor, PlainProcessor, Processor } from '../handle/typed-job.js';
import { queueNames } from '../job/names.js';
import { RateLimitError } from '../job/signals.js';
import type { IfMapped } from '../job/typing.js';
import { checkBoolean, checkInteger, MAX_TIMER_MS } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import type { ChildPool } from '../sandbox/pool.js';
import { sandboxOf } from '../sandbox/sandbox.js';
import type { Store } from '../store/contract/index.js';
import * as controls from './controls.js';
import type { AnyWorkerEmitter, PlainListeners, WorkerEvents } from './events.js';
import type { WorkerHealth } from './health.js';
import type { LockMonitor } from './lock-monitor.js';
import {
  type BatchWorkerOptions,
  checkWorkerOptions,
  type CheckedWorkerOptions,
  type GetNextJobOptions,
  NEXT_JOB_NAMES,
  type WorkerOptions,
} from './options.js';
import type { BatchProcessor } from './batch.js';
import { batchProcessorOf, processorOf } from './processor.js';
import { type CloseOptions, stopTaking } from './shutdown.js';
import { openStore, startOrRefuse } from './startup.js';
import { makeStations, type Stations } from './stations.js';

// BullMQ's defaults, so that its programs keep compiling.
// oxlint-disable-next-line typescript/no-explicit-any
export class Worker<Data = any, Result = any, Name extends string = string> extends ClosingEmitter<
  WorkerEvents<Data, Result, Name>,
  PlainListeners<Data, Result, Name>
> {
  /** A name of this worker alone, as in BullMQ. */
  readonly id: string = randomUUID();
  readonly name: string;
  /** `prefix:name`. */
  readonly qualifiedName: string;
  readonly opts: CheckedWorkerOptions;
  /** Monitors the lock thread; undefined if locks are renewed on the event loop. */
  readonly lockManagerThread: LockMonitor | undefined;
  closing: Promise<void> | undefined;
  readonly #stations: Stations;

  // The type decides whether Data is a map of job names. Inside a generic function that is undecided: there, and for BullMQ's parameters,
  // the second overload applies.
  constructor(
    name: IfMapped<Data, Result, string>,
    processor?: JobProcessor<Data, Result, Name> | JobHandlers<Data, Result, Name> | null,
    options?: WorkerOptions,
  );
  constructor(
    name: string,
    processor?: PlainProcessor<Data, Result, Name> | JobHandlers<Data, Result, Name> | null,
    options?: WorkerOptions,
  );
  /** `file`: the path or URL of a file that exports a processor, which runs in threads or child processes. */
  constructor(name: string, file: string | URL, options?: WorkerOptions);
  constructor(name: string, processor: BatchProcessor<Data, Result, Name>, options: BatchWorkerOptions);
  // The compiler reports a mistake against the last overload, so that one takes every processor but a batch's.
  constructor(name: string, processor: Processor<Data, Result, Name> | JobHandlers<Data, Result, Name>, options?: WorkerOptions);
  constructor(name: string, given?: unknown, options: WorkerOptions | BatchWorkerOptions = {}) {
    super();
    this.opts = checkWorkerOptions(options);
    const names = queueNames(name, this.opts.prefix);
    this.name = names.name;
    this.qualifiedName = names.qualified;
    const sandbox = sandboxOf(given, this.opts, this.name, (error) => void this.emit('error', error));
    const processor =
      sandbox?.handler ?? (this.opts.batch === undefined ? processorOf(given, this.name) : batchProcessorOf(given));
    this.#stations = makeStations(this as unknown as AnyWorkerEmitter, names, this.opts, processor, sandbox?.pool);
    this.lockManagerThread = this.#stations.context.monitor;
    if (this.opts.autorun && processor !== undefined) this.run().catch((error: unknown) => this.#reportRun(error));
  }

  static RateLimitError(): RateLimitError {
    return new RateLimitError();
  }

  /** The part of this worker that its jobs use. */
  get [JOB_CONTEXT](): JobContext {
    return this.#stations.jobContext;
  }

  /** The threads or processes of a processor in a file. */
  get childPool(): ChildPool | undefined {
    return this.#stations.childPool;
  }

  get concurrency(): number {
    return this.opts.concurrency;
  }

  /** Takes effect at once: more jobs are claimed, or none until enough have ended. If lowered, jobs claimed ahead are handed back. */
  set concurrency(value: number) {
    controls.setConcurrency(this.#stations, value);
  }

  get prefetch(): number {
    return this.opts.prefetch;
  }

  /** Takes effect at once. If lowered, surplus jobs are handed back. */
  set prefetch(value: number) {
    controls.setPrefetch(this.#stations, value);
  }

  /** Jobs that were claimed ahead and have not started: locked for this worker, and not yet passed to its processor. */
  get prefetched(): number {
    return this.#stations.runs?.ahead ?? 0;
  }

  isRunning(): boolean {
    return this.#stations.context.lifecycle.isRunning;
  }

  isPaused(): boolean {
    return this.#stations.context.lifecycle.isPaused;
  }

  /**
   * True while the worker makes progress: the store replies, its locks are renewed, and free slots are used for claims. False at most
   * `drainDelay` plus three seconds after any of these has stopped. For probes: cheap, and never waits.
   */
  isHealthy(): boolean {
    return this.#stations.context.health.isHealthy();
  }

  /** Returns the same with the reasons and the figures behind them. */
  health(): WorkerHealth {
    return this.#stations.context.health.report();
  }

  /**
   * Resolves when the store and the worker's session are open, and a running worker may claim. Rejects with the reason if they cannot be
   * opened, or if the store refuses a setting of the worker.
   */
  async waitUntilReady(): Promise<Store> {
    const { context } = this.#stations;
    const store = await openStore(context);
    if (!context.lifecycle.isClosing) await context.owner.session();
    await context.lifecycle.untilAttached();
    return store;
  }

  /**
   * Claims and runs jobs until the worker is closed. The constructor calls it unless `autorun` is false. If the store refuses a setting of
   * the worker, it rejects with the reason, which is also emitted as `error`, and the worker takes no job.
   */
  async run(): Promise<void> {
    const ended = this.#stations.context.lifecycle.run();
    controls.offerSlots(this.#stations);
    void startOrRefuse(this.#stations);
    return ended;
  }

  /** Claims no more jobs. Resolves when the running ones have ended, or at once with `doNotWaitActive`. */
  async pause(doNotWaitActive = false): Promise<void> {
    if (!this.#stations.context.lifecycle.pause()) return;
    controls.offerSlots(this.#stations);
    stopTaking(this.#stations);
    if (!doNotWaitActive) await this.#stations.storeLoop.idle();
    this.emit('paused');
  }

  resume(): void {
    const { context, storeLoop } = this.#stations;
    if (!context.lifecycle.resume()) return;
    controls.offerSlots(this.#stations);
    if (context.lifecycle.state === 'running') storeLoop.startClaiming();
    this.emit('resumed');
  }

  /**
   * Claims no more jobs, waits for the running ones (their locks are renewed meanwhile), settles them, and releases everything. With
   * `force`, in this or in a later call, it does not wait: the signals of handlers are aborted with SHUTDOWN, and their locks are no longer
   * renewed. A handler that throws then hands its job back; neither an attempt nor a stall counts. Results that come in time are still
   * settled, and jobs that are left when the process exits are handed back.
   *
   * With `timeoutMs`, in this or in a later call, it waits for so long. Then the signals of handlers are aborted with SHUTDOWN, and their
   * jobs go back to waiting, where another worker gets them at once; neither an attempt nor a stall counts, and `interrupted` is emitted.
   * A handler that goes on for a second after that loses its lock: the store refuses what it writes, and its result is not sent.
   */
  close(force: boolean | CloseOptions = false): Promise<void> {
    const closing = controls.close(this.#stations, force);
    if (this.#stations.context.lifecycle.isClosing) this.closing = closing;
    return closing;
  }

  disconnect(): Promise<void> {
    return this.close();
  }

  /** Takes the next job for processing by hand. Its own lock lasts for `lockDuration`; only `job.extendLock` extends it. */
  async getNextJob(token?: string, opts: GetNextJobOptions = {}): Promise<JobOf<Data, Result, Name> | undefined> {
    const { context, jobContext, manual } = this.#stations;
    context.lifecycle.checkOpen();
    const block = checkBoolean('block', NEXT_JOB_NAMES.checked(opts).block ?? true);
    await context.queueSetup.set();
    const taken = await manual.take(block ? this.opts.drainDelay * 1000 : 0, token);
    if (taken === undefined) return undefined;
    return new Job(jobContext, taken.job, { lock: taken.lock, alias: token }) as JobOf<Data, Result, Name>;
  }

  /** For processing by hand: sweeps for dead sessions and expired locks every `stalledInterval`, as a running worker does by itself. */
  async startStalledCheckTimer(): Promise<void> {
    const { lifecycle, owner } = this.#stations.context;
    lifecycle.checkOpen();
    await owner.session();
  }

  /** No job of the queue starts, on any worker, for this many ms. Then throw `Worker.RateLimitError()` from the processor. */
  async rateLimit(ms: number): Promise<void> {
    await controls.rateLimit(this.#stations, ms);
  }

  /** No job of the group of this job starts, on any worker, for this many ms. Then throw `Worker.RateLimitError()` from the processor. */
  async rateLimitGroup(job: controls.GroupedJob, ms: number): Promise<void> {
    await controls.rateLimitGroup(this.#stations, job, ms);
  }

  /** Extends locks by hand, all in one call. Returns the ids of the jobs whose locks are lost. */
  async extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const durationMs = checkInteger('duration', duration, { min: 1, max: MAX_TIMER_MS });
    const extensions = jobIds.map((jobId, index) => ({ jobId, token: tokens[index] ?? '', durationMs }));
    return this.#stations.manual.extendAll(extensions);
  }

  /**
   * Aborts the signal of a job that runs here, with the reason. Its run fails if the handler throws, and is retried if attempts are left;
   * `queue.cancel` reaches any process, and cancels for good. Returns false if the job does not run here.
   */
  cancelJob(jobId: string, reason?: unknown): boolean {
    return controls.cancelRuns(this.#stations, jobId, reason);
  }

  cancelAllJobs(reason?: unknown): void {
    controls.cancelRuns(this.#stations, undefined, reason);
  }

  /** A refused start is emitted already. */
  #reportRun(error: unknown): void {
    if (error !== this.#stations.context.lifecycle.refusal) this.emit('error', toError(error));
  }
}
