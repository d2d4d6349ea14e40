// Renews any number of locks, given by job id and token, with one timer and one call per tick: for people who take jobs by hand
// (worker.getNextJob) and want them kept. Workers do not need it for the jobs that they run themselves.
import { HoldfastError, toError } from '../errors.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { within } from '../runtime/within.js';

export interface LockManagerContext {
  name?: string;
  /** One call for all; answers the ids that could not be extended. A Worker has it. */
  extendJobLocks(jobIds: string[], tokens: string[], duration: number): Promise<string[]>;
}

export interface LockManagerOptions {
  lockDuration?: number;
  lockRenewTime?: number;
  onLocksRenewed?(renewed: { count: number; jobIds: string[] }): unknown;
  /** These are lost and no longer tracked. */
  onLockRenewalFailed?(jobIds: string[]): unknown;
  /** A call failed or was not answered, and is made again at the next tick; or a callback threw. */
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

  /** Idempotent. */
  start(): void {
    if (this.#running) return;
    this.#running = true;
    this.#timer = setInterval(() => this.#tick(), this.lockRenewTime).unref();
  }

  /** Idempotent. Waits for a renewal that is under way, unless that hangs. The locks then end on their own. */
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

  /** Tracks a lock under its job's id. With `createController`, its signal fires when the lock is lost. */
  trackJob(jobId: string, token: string, since: number = Date.now(), createController = false): AbortController | undefined {
    const controller = createController ? new AbortController() : undefined;
    this.#tracked.set(jobId, { token, since, controller });
    return controller;
  }

  /** Call it when the finish of the job was acknowledged, not before. */
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

  /** All tracked locks in one call; joins the one that is under way. Never rejects. */
  renew(): Promise<void> {
    return (this.#renewing ??= this.#begin());
  }

  #begin(): Promise<void> {
    const renewing = this.#renewTracked().finally(() => {
      if (this.#renewing === renewing) this.#renewing = undefined;
    });
    return renewing;
  }

  /** A call that hangs does not keep the next from being made, or the locks would end in silence. */
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
      // Whoever was untracked, or tracked anew under another token, meanwhile is none of this tick's business.
      const current = sent.filter(([jobId, tracked]) => this.#tracked.get(jobId) === tracked);
      const jobIds = current.map(([jobId]) => jobId).filter((jobId) => !failed.has(jobId));
      if (jobIds.length > 0) this.#tell(() => this.#options.onLocksRenewed?.({ count: jobIds.length, jobIds }));
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
    this.#tell(() => this.#options.onLockRenewalFailed?.(lost.map(([jobId]) => jobId)));
  }

  #tell(callback: () => unknown): void {
    guard(callback, (thrown) => this.#report(toError(thrown)));
  }

  /** Never in silence: without a listener, or with one that throws, the console is told. */
  #report(error: Error): void {
    const { onError = console.error } = this.#options;
    guard(() => onError(error), console.error);
  }
}

/** Callbacks may be async: what they reject with must not end the process. */
function guard(callback: () => unknown, failed: (thrown: unknown) => void): void {
  try {
    Promise.resolve(callback()).catch(failed);
  } catch (thrown) {
    failed(thrown);
  }
}
