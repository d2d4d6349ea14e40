// Renews any number of locks, given by job id and token, with one timer and one call per tick. For callers that take jobs by hand
// (worker.getNextJob) and want their locks renewed. Workers do not need it for the jobs that they run themselves.
import { HoldfastError, toError } from '../errors.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { within } from '../runtime/within.js';

export interface LockManagerContext {
  name?: string;
  /** Extends all locks in one call. Returns the ids of the jobs whose locks could not be extended. A Worker has this method. */
  extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]>;
}

export interface LockManagerOptions {
  /** How long each extension lasts, in ms. Default 30,000; at least 2. */
  lockDuration?: number;
  /** Time between two renewals, in ms. Default half of `lockDuration`; must be below it. */
  lockRenewTime?: number;
  onLocksRenewed?(renewed: { count: number; jobIds: string[] }): unknown;
  /** These locks are lost and no longer tracked. */
  onLockRenewalFailed?(jobIds: string[]): unknown;
  /** A call failed or got no reply in time, and is retried at the next tick; or a callback threw. Default: console.error. */
  onError?(error: Error): unknown;
}

const NAMES = new OptionNames<LockManagerOptions>({
  of: 'lock manager',
  known: { lockDuration: true, lockRenewTime: true, onLocksRenewed: true, onLockRenewalFailed: true, onError: true },
});

interface Tracked {
  token: string;
  since: number;
  controller: AbortController | undefined;
}

export class LockManager {
  readonly lockDuration: number;
  readonly lockRenewTime: number;
  readonly #context: LockManagerContext;
  readonly #options: LockManagerOptions;
  readonly #tracked = new Map<string, Tracked>();
  #timer: NodeJS.Timeout | undefined;
  #running = false;
  #renewing: Promise<void> | undefined;

  constructor(context: LockManagerContext, options: LockManagerOptions = {}) {
    if (typeof context?.extendJobLocks !== 'function') {
      throw invalidOption('extendJobLocks', context?.extendJobLocks, 'a function that renews locks; a Worker has one');
    }
    this.#context = context;
    this.#options = NAMES.checked(options);
    this.lockDuration = checkInteger('lockDuration', options.lockDuration ?? 30_000, { min: 2, max: MAX_TIMER_MS });
    const renewTime = options.lockRenewTime ?? Math.floor(this.lockDuration / 2);
    this.lockRenewTime = checkInteger('lockRenewTime', renewTime, { min: 1, max: this.lockDuration - 1 });
  }

  /** Starts the timer. Idempotent. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#timer = setInterval(() => this.#tick(), this.lockRenewTime).unref();
  }

  /** Stops renewing; the locks then expire on their own. Waits for a renewal under way, at most `lockRenewTime`. Idempotent. */
  async close(): Promise<void> {
    this.#running = false;
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#renewing !== undefined) {
      await within(this.lockRenewTime, this.#renewing);
      this.#renewing = undefined;
    }
    this.#tracked.clear();
  }

  stop(): Promise<void> {
    return this.close();
  }

  isRunning(): boolean {
    return this.#running;
  }

  /** Tracks a lock under its job's id. With `createController`, returns a controller whose signal aborts when the lock is lost. */
  trackJob(jobId: string, token: string, since: number = Date.now(), createController = false): AbortController | undefined {
    const controller = createController ? new AbortController() : undefined;
    this.#tracked.set(jobId, { token, since, controller });
    return controller;
  }

  /** Stops tracking a lock. Call it after the store has acknowledged the end of the job, not before. */
  untrackJob(jobId: string): void {
    this.#tracked.delete(jobId);
  }

  isTracked(jobId: string): boolean {
    return this.#tracked.has(jobId);
  }

  getActiveJobCount(): number {
    return this.#tracked.size;
  }

  getTrackedJobIds(): string[] {
    return [...this.#tracked.keys()];
  }

  cancelJob(jobId: string, reason?: string): boolean {
    const controller = this.#tracked.get(jobId)?.controller;
    controller?.abort(reason);
    return controller !== undefined;
  }

  cancelAllJobs(reason?: string): void {
    for (const jobId of this.#tracked.keys()) this.cancelJob(jobId, reason);
  }

  /** Renews all tracked locks in one call, or joins the call under way. Never rejects. */
  renew(): Promise<void> {
    return (this.#renewing ??= this.#begin());
  }

  #begin(): Promise<void> {
    const renewing = this.#renewTracked().finally(() => {
      if (this.#renewing === renewing) this.#renewing = undefined;
    });
    return renewing;
  }

  /** Renews at each tick, even while a call hangs: otherwise the locks would expire without a report. */
  #tick(): void {
    if (this.#renewing !== undefined) {
      const message = `Renewing locks was not answered for ${this.lockRenewTime} ms; it is tried again.`;
      this.#report(new HoldfastError('TIMEOUT', message, { retryable: true }));
      this.#renewing = undefined;
    }
    void this.renew();
  }

  async #renewTracked(): Promise<void> {
    const sent = [...this.#tracked];
    if (sent.length === 0) return;
    try {
      const failed = new Set(
        await this.#context.extendJobLocks(
          sent.map(([jobId]) => jobId),
          sent.map(([, { token }]) => token),
          this.lockDuration,
        ),
      );
      // Skip locks that were untracked during the call, or tracked again under another token: the reply is not about them.
      const current = sent.filter(([jobId, tracked]) => this.#tracked.get(jobId) === tracked);
      const jobIds = current.map(([jobId]) => jobId).filter((jobId) => !failed.has(jobId));
      if (jobIds.length > 0) this.#notify(() => this.#options.onLocksRenewed?.({ count: jobIds.length, jobIds }));
      this.#lose(current.filter(([jobId]) => failed.has(jobId)));
    } catch (error) {
      this.#report(toError(error));
    }
  }

  #lose(lost: [string, Tracked][]): void {
    if (lost.length === 0) return;
    for (const [jobId, { controller }] of lost) {
      this.#tracked.delete(jobId);
      controller?.abort(new HoldfastError('LOCK_LOST', `lock lost: job ${jobId}: its lock could not be extended`, { jobId }));
    }
    this.#notify(() => this.#options.onLockRenewalFailed?.(lost.map(([jobId]) => jobId)));
  }

  #notify(callback: () => unknown): void {
    guard(callback, (thrown) => this.#report(toError(thrown)));
  }

  /** Reports an error. Without a listener, or if the listener throws, the error goes to the console. */
  #report(error: Error): void {
    const { onError = console.error } = this.#options;
    guard(() => onError(error), console.error);
  }
}

/** Calls a callback that may be async: a rejection must not end the process. */
function guard(callback: () => unknown, failed: (thrown: unknown) => void): void {
  try {
    Promise.resolve(callback()).catch(failed);
  } catch (thrown) {
    failed(thrown);
  }
}
