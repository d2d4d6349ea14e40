// A Worker claims jobs of one queue from the store, runs the processor on them and settles their outcomes. This class connects its parts
// and does none of their work: SessionOwner (the session), SessionCalls (numbered calls to the store), Health (their progress), StoreLoop
// (claim and settle), Runner (the processor), Runs (jobs from claim to acknowledgement), LockTable (held locks), LockEvents (their
// events), ManualJobs (getNextJob). It must never change a job without its token, nor forget one that the store has not acknowledged:
// without `prefetch` its slot is taken until then; with it, at most `prefetch` jobs are in hand beyond the slots.
import { HoldfastError, toError } from '../errors.js';
import { renewers } from '../background/renewers.js';
import { Job } from '../handle/job.js';
import { JOB_CONTEXT, type JobContext } from '../handle/job-context.js';
import { queueNames } from '../job/names.js';
import { NO_LOCK } from '../job/lock.js';
import type { IfMapped } from '../job/typing.js';
import { RateLimitError } from '../job/signals.js';
import { SessionCalls, type ClaimTerms } from '../store/client/session-calls.js';
import type { HeldLock } from '../session/held-lock.js';
import { LockMonitor } from './lock-monitor.js';
import { LockTable } from '../session/lock-table.js';
import { ManualJobs } from '../lock/manual-jobs.js';
import type { Session } from '../session/session.js';
import { SessionOwner } from '../session/session-owner.js';
import { checkBoolean, checkInteger, MAX_TIMER_MS } from '../runtime/check.js';
import { systemClock } from '../runtime/clock.js';
import { Emitter } from '../runtime/emitter.js';
import { within } from '../runtime/within.js';
import { batchOf } from '../store/capabilities.js';
import type { Store } from '../store/contract/index.js';
import { leaseStore, type StoreLease } from '../store/open.js';
import { type AnsweredCall, type ClaimRef, StoreLoop } from './store-loop.js';
import { Health, type WorkerHealth, type WorkerState } from './health.js';
import {
  checkConcurrency,
  checkPrefetch,
  checkWorkerOptions,
  type CheckedWorkerOptions,
  type GetNextJobOptions,
  NEXT_JOB_NAMES,
  type WorkerOptions,
} from './options.js';
import { processorOf } from './processor.js';
import { Runner } from './runner.js';
import { Runs } from './runs.js';
import { Slots } from './slots.js';
import type { JobHandlers, JobOf, JobProcessor, PlainProcessor, Processor } from '../handle/typed-job.js';
import type { AnyWorkerEmitter, PlainListeners, WorkerEvents } from './events.js';
import { LockEvents } from './lock-events.js';
import { clearInterval, clearTimeout, setInterval, setTimeout } from '../runtime/timers.js';

/**
 * How long the first claim waits for the lock thread, in ms. A handler that blocks the event loop at once leaves its locks to a thread
 * that may not run yet; on a busy machine the thread's start takes longer than a short lock lasts. After this wait the event loop renews,
 * as without a thread. Locks that last at least twice as long survive such a start, so their worker does not wait: its first job would
 * start a quarter to three quarters of a second later on a busy machine.
 */
const RENEWER_PATIENCE_MS = 3000;
/** A store may take this long to reply, in ms, however short the locks are. */
const MIN_HANG_MS = 1000;
const CLOSE_TOLD_AFTER_MS = 5000;
const CLOSE_TOLD_JOBS = 10;
/** Number of lock durations between two checks of what the store holds for a worker. */
const RECONCILED_AFTER = 4;

// BullMQ's defaults, so that its programs keep compiling.
// oxlint-disable-next-line typescript/no-explicit-any
export class Worker<Data = any, Result = any, Name extends string = string> extends Emitter<
  WorkerEvents<Data, Result, Name>,
  PlainListeners<Data, Result, Name>
> {
  readonly name: string;
  /** `prefix:name`. */
  readonly qualifiedName: string;
  readonly opts: CheckedWorkerOptions;
  /** Monitors the lock thread; undefined if locks are renewed on the event loop. */
  readonly lockManagerThread: LockMonitor | undefined;
  closing: Promise<void> | undefined;

  readonly #context: JobContext;
  readonly #lease: StoreLease;
  readonly #slots: Slots;
  readonly #table: LockTable;
  readonly #owner: SessionOwner;
  readonly #health: Health;
  readonly #calls: SessionCalls;
  readonly #storeLoop: StoreLoop;
  readonly #manual: ManualJobs;
  readonly #lockEvents: LockEvents;
  readonly #runs: Runs | undefined;
  #running: Promise<void> | undefined;
  #ended: (() => void) | undefined;
  #unwatch: (() => void) | undefined;
  /** Keeps the process alive while the worker is open, also while it is paused or only waits for a handler. */
  #alive: NodeJS.Timeout | undefined;
  #force: (() => void) | undefined;
  readonly #forced = new Promise<void>((resolve) => {
    this.#force = resolve;
  });
  #renewerKnown: (() => void) | undefined;
  /** Resolves when it is known where locks are renewed: the thread has renewed once, or the event loop will. */
  readonly #renewer = new Promise<void>((resolve) => {
    this.#renewerKnown = resolve;
  });
  #mayClaim = false;
  #paused = false;
  #readyTold = false;

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
  constructor(name: string, processor: Processor<Data, Result, Name>, options?: WorkerOptions);
  constructor(name: string, given?: unknown, options: WorkerOptions = {}) {
    super();
    this.opts = checkWorkerOptions(options);
    const names = queueNames(name, this.opts.prefix);
    this.name = names.name;
    this.qualifiedName = names.qualified;
    const queue = names.stored;
    const processor = processorOf(given, this.name);
    this.#lease = leaseStore(options.connection, (warning) => this.#report(warning));
    this.#slots = new Slots(this.opts.concurrency, this.opts.prefetch);
    this.#table = new LockTable({ onLost: (locks, reason) => this.#locksLost(locks, reason) });
    const onError = (error: Error): void => this.#report(error);
    const ready = (): Promise<Store> => this.#lease.ready();
    const { runRetryDelay: retryDelayMs, lockDuration, lockRenewTime, skipLockRenewal } = this.opts;
    this.#owner = new SessionOwner({
      queue,
      lease: this.#lease,
      name: this.opts.name,
      sessionOptions: this.opts,
      renewers,
      durationMs: lockDuration,
      renewMs: skipLockRenewal ? 0 : lockRenewTime,
      slots: this.opts.concurrency,
      listenerFor: (session) => this.#lockEvents.listenerFor(session),
      onError,
    });
    const hangMs = Math.max(MIN_HANG_MS, lockDuration);
    const idleMs = this.opts.drainDelay * 1000;
    const health = new Health({
      queue,
      clock: systemClock,
      slots: this.#slots,
      prefetched: () => this.prefetched,
      idleMs,
      renewMs: skipLockRenewal ? 0 : lockRenewTime,
      session: () => this.#owner.current,
      state: () => this.#state(),
      onBlocked: (blockedMs) => this.#lockEvents.blockedOnLoop(blockedMs),
    });
    this.#health = health;
    this.#calls = new SessionCalls({
      queue,
      who: 'worker',
      owner: this.#owner,
      health,
      ready,
      hangMs,
      retryDelayMs,
      onError,
      onRecovered: (outageMs) => this.emit('recovered', outageMs),
    });
    this.#storeLoop = new StoreLoop({
      calls: this.#calls,
      slots: this.#slots,
      wish: (count) => this.#wish(count),
      accept: (jobs, reply) => this.#runs?.accept(jobs, reply),
      queuePaused: () => this.#runs?.handBackAhead(),
      sessionGone: (session) => this.#sessionLost(session),
      strays: (call) => this.#calls.patiently(this.#strays(call), false),
      drained: () => this.emit('drained'),
      onError,
      reconcileMs: RECONCILED_AFTER * lockDuration,
      idleMs,
    });
    this.#manual = new ManualJobs({
      calls: this.#calls,
      owner: this.#owner,
      table: this.#table,
      ready,
      queue,
      lockDuration,
      by: this.opts.name,
      limiter: this.opts.limiter,
    });
    const { settings, removeOnComplete, removeOnFail, maxStartedAttempts } = this.opts;
    const rules = { backoffStrategy: settings?.backoffStrategy, removeOnComplete, removeOnFail };
    this.#context = {
      name: this.name,
      prefix: names.prefix,
      stored: names.stored,
      ...rules,
      ready,
      take: (jobId) => this.#manual.takeById(jobId),
      settle: (outcome, fetchNext) => this.#manual.settle(outcome, fetchNext),
      extend: async (jobId, token, durationMs) => (await this.#manual.extend([{ jobId, token, durationMs }]))[0] === 'done',
      lockFor: ({ token }) => this.#table.get(token) ?? NO_LOCK,
      progressed: (job, progress) => this.emit('progress', job as JobOf<Data, Result, Name>, progress),
    };
    this.lockManagerThread = this.opts.useDedicatedLockThread ? new LockMonitor(() => this.#table.jobIds()) : undefined;
    const emitter = this as unknown as AnyWorkerEmitter;
    this.#lockEvents = new LockEvents({
      context: this.#context,
      table: this.#table,
      monitor: this.lockManagerThread,
      emitter,
      maxBlockedMs: this.opts.maxBlockedMs,
      sessionLost: (session) => this.#sessionLost(session),
      wake: () => this.#storeLoop.wake(),
      threaded: (byThread) => {
        health.threaded(byThread);
        this.#renewerKnown?.();
      },
      inOutage: () => this.#calls.inOutage,
    });
    if (processor !== undefined) {
      this.#runs = new Runs({
        context: this.#context,
        runner: new Runner({ processor, rules, maxStartedAttempts }),
        slots: this.#slots,
        table: this.#table,
        owner: this.#owner,
        emitter,
        storeLoop: () => this.#storeLoop,
        timedMs: this.opts.skipLockRenewal ? lockDuration : undefined,
      });
    }
    if (this.opts.autorun && this.#runs !== undefined) this.run().catch(onError);
  }

  static RateLimitError(): RateLimitError {
    return new RateLimitError();
  }

  /** The part of this worker that its jobs use. */
  get [JOB_CONTEXT](): JobContext {
    return this.#context;
  }

  get concurrency(): number {
    return this.opts.concurrency;
  }

  /** Takes effect at once: more jobs are claimed, or none until enough have ended. If lowered, jobs claimed ahead are handed back. */
  set concurrency(value: number) {
    const lowered = checkConcurrency(value) < this.opts.concurrency;
    this.opts.concurrency = value;
    this.#slots.concurrency = value;
    this.#offer();
    if (lowered) this.#runs?.handBackAhead();
    else this.#runs?.beginNext();
    this.#storeLoop.wake();
  }

  get prefetch(): number {
    return this.opts.prefetch;
  }

  /** Takes effect at once. If lowered, surplus jobs are handed back. */
  set prefetch(value: number) {
    this.opts.prefetch = checkPrefetch(value);
    this.#slots.prefetch = value;
    this.#runs?.handBackAhead(value);
    this.#storeLoop.wake();
  }

  /** Jobs that were claimed ahead and have not started: locked for this worker, and not yet passed to its processor. */
  get prefetched(): number {
    return this.#runs?.ahead ?? 0;
  }

  isRunning(): boolean {
    return this.#running !== undefined && this.closing === undefined;
  }

  isPaused(): boolean {
    return this.#paused;
  }

  /**
   * True while the worker makes progress: the store replies, its locks are renewed, and free slots are used for claims. False at most
   * `drainDelay` plus three seconds after any of these has stopped. For probes: cheap, and never waits.
   */
  isHealthy(): boolean {
    return this.#health.isHealthy();
  }

  /** Returns the same with the reasons and the figures behind them. */
  health(): WorkerHealth {
    return this.#health.report();
  }

  #state(): WorkerState {
    if (this.closing !== undefined) return 'closing';
    if (this.#runs === undefined) return 'by hand';
    if (this.#running === undefined) return 'not started';
    return this.#paused ? 'paused' : 'running';
  }

  /** Resolves when the store and, if the worker runs, its session are open. Rejects with the reason if they cannot be opened. */
  async waitUntilReady(): Promise<Store> {
    const store = await this.#opened();
    if (this.isRunning()) await this.#owner.session();
    return store;
  }

  /** Claims and runs jobs until the worker is closed. The constructor calls it unless `autorun` is false. */
  async run(): Promise<void> {
    if (this.#runs === undefined) {
      throw new HoldfastError(
        'NO_PROCESSOR',
        `The worker of ${this.name} has no processor to run; pass one, or use getNextJob().`,
      );
    }
    if (this.closing !== undefined) throw closed(this.name);
    if (this.#running !== undefined) throw new HoldfastError('ALREADY_RUNNING', `The worker of ${this.name} is running already.`);
    this.#running = new Promise((resolve) => {
      this.#ended = resolve;
    });
    this.#alive = setInterval(() => undefined, MAX_TIMER_MS);
    this.#begin().catch((error: unknown) => this.#report(toError(error)));
    return this.#running;
  }

  async #opened(): Promise<Store> {
    const store = await this.#lease.ready();
    this.#health.opened(store);
    return store;
  }

  async #begin(): Promise<void> {
    // An empty call opens the store and the session, and is retried until they are open.
    try {
      await this.#calls.perform([]);
    } catch (error) {
      if (this.closing === undefined) throw error;
    }
    if (this.closing !== undefined) return;
    const store = await this.#opened();
    if (this.closing !== undefined) return;
    if (store.capabilities.inline) {
      this.#slots.concurrency = Number.MAX_SAFE_INTEGER;
      this.#slots.prefetch = 0;
    }
    this.#storeLoop.batch = batchOf(store.capabilities);
    this.#storeLoop.lanes = store.capabilities.lanes ?? 1;
    const woken = (): void => {
      this.#health.woken();
      this.#storeLoop.wake();
    };
    this.#unwatch = store.watch(this.#context.stored, woken, 'jobs');
    this.#tellReady();
    const { skipLockRenewal, lockDuration } = this.opts;
    if (!skipLockRenewal && lockDuration < 2 * RENEWER_PATIENCE_MS) await within(RENEWER_PATIENCE_MS, this.#renewer);
    this.#mayClaim = true;
    // A listener may have closed or paused the worker.
    if (this.isRunning() && !this.#paused) this.#storeLoop.startClaiming();
  }

  #tellReady(): void {
    if (this.#readyTold) return;
    this.#readyTold = true;
    this.emit('ready');
  }

  /** Claims no more jobs. Resolves when the running ones have ended, or at once with `doNotWaitActive`. */
  async pause(doNotWaitActive = false): Promise<void> {
    if (this.#paused) return;
    this.#paused = true;
    this.#offer();
    this.#stopTaking();
    if (!doNotWaitActive) await this.#storeLoop.idle();
    this.emit('paused');
  }

  #stopTaking(): void {
    this.#storeLoop.stopClaiming();
    this.#runs?.handBackAhead();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#offer();
    if (this.isRunning() && this.#mayClaim) this.#storeLoop.startClaiming();
    this.emit('resumed');
  }

  /**
   * Claims no more jobs, waits for the running ones (their locks are renewed meanwhile), settles them, and releases everything. With
   * `force`, in this or in a later call, it does not wait: the signals of handlers are aborted with SHUTDOWN, and their locks are no longer
   * renewed. A handler that throws then hands its job back; neither an attempt nor a stall counts. Results that come in time are still
   * settled, and jobs that are left when the process exits are handed back.
   */
  close(force = false): Promise<void> {
    // The close starts in a later microtask: listeners of `closing` must find it set, or one that closes again would never end.
    this.closing ??= Promise.resolve().then(() => this.#close());
    if (force) this.#force?.();
    return this.closing;
  }

  async #close(): Promise<void> {
    this.emit('closing', 'closing queue');
    this.#renewerKnown?.();
    this.#stopTaking();
    this.#manual.stop();
    this.#unwatch?.();
    // A store that has not replied for a whole lock duration has let the locks expire; waiting longer saves nothing.
    this.#calls.close(this.opts.lockDuration);
    const patience = setTimeout(() => this.#tellWaiting(), CLOSE_TOLD_AFTER_MS).unref();
    // With `force` the closing ends here, while the rest goes on in the background.
    await Promise.race([this.#letGo(), this.#forced.then(() => this.#abandon())]);
    clearTimeout(patience);
    this.lockManagerThread?.setRunning(false);
    this.#health.stop();
    clearInterval(this.#alive);
    this.#ended?.();
    this.emit('closed');
  }

  /** Warns once: a process that does not end should say why. */
  #tellWaiting(): void {
    const ids = this.#table.jobIds();
    const first = ids.slice(0, CLOSE_TOLD_JOBS).join(', ');
    const rest = ids.length > CLOSE_TOLD_JOBS ? ` and ${ids.length - CLOSE_TOLD_JOBS} more` : '';
    const what = ids.length > 0 ? `for the end of ${ids.length === 1 ? 'job' : 'jobs'} ${first}${rest}` : 'for the store';
    const message = `worker.close() of queue "${this.name}" still waits ${what}; worker.close(true) does not wait.`;
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_CLOSE_WAITS' });
  }

  async #abandon(): Promise<void> {
    for (const lock of this.#table.locks()) {
      const message = `The worker of ${this.name} shuts down: stop, and job ${lock.jobId} goes back to waiting.`;
      lock.withdraw(new HoldfastError('SHUTDOWN', message, { queue: this.name, jobId: lock.jobId }));
    }
    await this.#closingStep(this.#owner.retire());
  }

  async #letGo(): Promise<void> {
    // Calls under way must end first.
    await this.#calls.idle();
    await this.#manual.handBack();
    await this.#storeLoop.idle();
    await this.#calls.idle();
    this.#calls.end();
    this.#table.stop();
    await this.#closingStep(this.#owner.close());
    await this.#closingStep(this.#lease.release());
  }

  /** A step that fails or hangs is reported, and the next step is still made. */
  async #closingStep(step: Promise<void>): Promise<void> {
    try {
      await this.#calls.patiently(step, true);
    } catch (error) {
      this.#report(toError(error));
    }
  }

  disconnect(): Promise<void> {
    return this.close();
  }

  /** Takes the next job for processing by hand. Its own lock lasts for `lockDuration`; only `job.extendLock` extends it. */
  async getNextJob(token?: string, opts: GetNextJobOptions = {}): Promise<JobOf<Data, Result, Name> | undefined> {
    if (this.closing !== undefined) throw closed(this.name);
    const block = checkBoolean('block', NEXT_JOB_NAMES.checked(opts).block ?? true);
    const taken = await this.#manual.take(block ? this.opts.drainDelay * 1000 : 0);
    if (taken === undefined) return undefined;
    this.#manual.alias(taken.lock, token);
    return new Job(this.#context, taken.job, { lock: taken.lock, alias: token }) as JobOf<Data, Result, Name>;
  }

  /** For processing by hand: sweeps for dead sessions and expired locks every `stalledInterval`, as a running worker does by itself. */
  async startStalledCheckTimer(): Promise<void> {
    if (this.closing !== undefined) throw closed(this.name);
    await this.#owner.session();
  }

  /** No job of the queue starts, on any worker, for this many ms. Then throw `Worker.RateLimitError()` from the processor. */
  async rateLimit(ms: number): Promise<void> {
    const store = await this.#lease.ready();
    await store.limit(this.#context.stored, checkInteger('rateLimit', ms, { max: MAX_TIMER_MS }));
    if (ms > 0) this.#runs?.handBackAhead();
  }

  /** Extends locks by hand, all in one call. Returns the ids of the jobs whose locks are lost. */
  async extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const durationMs = checkInteger('duration', duration, { min: 1, max: MAX_TIMER_MS });
    const extensions = jobIds.map((jobId, index) => ({ jobId, token: tokens[index] ?? '', durationMs }));
    return this.#manual.extendAll(extensions);
  }

  /** Aborts the signal of a job that runs here. Returns false if the job does not run here. */
  cancelJob(jobId: string, reason: unknown = 'cancelled'): boolean {
    const locks = this.#table.find(jobId).filter((lock) => this.#runs?.isAhead(lock) !== true);
    for (const lock of locks) lock.cancel(reason);
    return locks.length > 0;
  }

  cancelAllJobs(reason: unknown = 'cancelled'): void {
    for (const lock of this.#table.locks()) if (this.#runs?.isAhead(lock) !== true) lock.cancel(reason);
  }

  /** Sets how many jobs this worker can run, for the sharing of a queue's global concurrency. */
  #offer(): void {
    this.#owner.slots = this.#paused ? 0 : this.#slots.concurrency;
  }

  #wish(count: number): ClaimTerms {
    const { name: by, limiter, skipLockRenewal, lockDuration } = this.opts;
    const wish: ClaimTerms = { count, by };
    if (limiter !== undefined) wish.limit = { max: limiter.max, durationMs: limiter.duration };
    if (skipLockRenewal) wish.timedMs = lockDuration;
    return wish;
  }

  /** All locks bound to the session are lost; locks with their own expiry stay. The next call opens a new session. */
  #sessionLost(session: Session): void {
    session.memory.markLost();
    this.#table.loseSession(session, 'the store has ended the session of this worker');
    this.#owner.drop(session);
  }

  #locksLost(locks: HeldLock[], reason: string): void {
    const own = locks.filter((lock) => !this.#manual.forget(lock) && this.#runs?.dropAhead(lock) !== true);
    if (own.length > 0) this.#lockEvents.lost(own, reason);
  }

  /** Returns unknown locks of calls up to this one that got a reply. Jobs of later calls may not have arrived yet. */
  async #strays({ session, seq }: AnsweredCall): Promise<ClaimRef[]> {
    const store = await this.#lease.ready();
    const unanswered = this.#calls.unanswered(session);
    const owned = await store.owned(this.#context.stored, session.id);
    const strays = owned.filter(
      (lock) => lock.seq <= seq && !unanswered.has(lock.seq) && this.#table.get(lock.token) === undefined,
    );
    return strays.map(({ jobId, token }) => ({ id: jobId, token }));
  }

  #report(error: Error): void {
    this.emit('error', error);
  }
}

function closed(name: string): HoldfastError {
  return new HoldfastError('CLOSED', `The worker of ${name} is closed; make a new one.`);
}
