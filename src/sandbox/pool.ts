// The threads or processes of one worker, all with the same file. A job takes one, and gives it back when its run is over. A child that
// failed to load is ended and never used. While the file is not known to load, only one child is started at a time, and after three
// failures in a row at most one per pause: a broken file must not start a storm of processes.
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { deferred } from '../runtime/deferred.js';
import { clearInterval, performance, setInterval, sleep } from '../runtime/timers.js';
import { HeldLock } from '../session/held-lock.js';
import { Child, startChild } from './child.js';
import { childFile } from './child-file.js';
import type { PoolOptions } from './options.js';
import { isShared } from './process-carrier.js';

const FAILURES_UNTIL_PAUSE = 3;
const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 60_000;
/** How long handlers may go on after a forced close. */
const FORCED_GRACE_MS = 500;
/** The shortest time between two checks of idle children, in ms. */
const LEAST_LOOK_MS = 10;

export interface PoolSettings {
  file: string;
  queue: string;
  options: PoolOptions;
  onError(error: Error): void;
}

export class ChildPool {
  readonly #settings: PoolSettings;
  readonly #entry: string;
  readonly #free: Child[] = [];
  readonly #children = new Set<Child>();
  /** The file has loaded, and has not failed to load since. */
  #loads = false;
  #failures = 0;
  #starting = 0;
  /** The start of the only child that may be starting. */
  #trial: Promise<void> | undefined;
  /** Aborted when the pool closes: it ends the pauses. */
  readonly #closing = new AbortController();
  #look: NodeJS.Timeout | undefined;

  constructor(settings: PoolSettings) {
    this.#settings = settings;
    this.#entry = childFile(settings.options.entry);
  }

  /** BullMQ's shape: children that wait for a job, by the file. */
  get free(): Record<string, Child[]> {
    return { [this.#settings.file]: [...this.#free] };
  }

  /** BullMQ's shape: children that run a job, by their pids. */
  get retained(): Record<string, Child> {
    return Object.fromEntries([...this.#children].filter((child) => child.isBusy).map((child) => [child.pid, child]));
  }

  getFree(file: string): Child[] {
    return this.free[file] ?? [];
  }

  getAllFree(): Child[] {
    return [...this.#free];
  }

  /** Runs the job in a child. Resolves with the value of its handler. */
  async run(job: Job, signal: AbortSignal | undefined): Promise<unknown> {
    const child = this.#next() ?? (await this.#wait(job, signal));
    const ended = child.run(job, signal);
    // The next child gets ready while this one runs its last job.
    if (child.jobs >= this.#settings.options.maxJobsPerChild) {
      child.isRetired = true;
      this.#warm();
    }
    try {
      return await ended;
    } finally {
      this.#giveBack(child);
    }
  }

  /** Lets no job wait any longer for a file that does not load. Called when the worker begins to close. */
  stopWaiting(): void {
    this.#closing.abort();
  }

  /** Ends all children. It first aborts the signals of the jobs that they run. */
  async close(): Promise<void> {
    this.#closing.abort();
    clearInterval(this.#look);
    const children = [...this.#children];
    for (const child of children) {
      if (child.isBusy) child.hurry(FORCED_GRACE_MS);
      else void child.end();
    }
    await Promise.all(children.map((child) => child.gone));
  }

  #next(): Child | undefined {
    for (;;) {
      const child = this.#free.pop();
      if (child?.hasProcessExited() !== true) return child;
    }
  }

  /** Returns a child that has loaded the file. */
  async #wait(job: Job, signal: AbortSignal | undefined): Promise<Child> {
    const aborted = signal === undefined ? undefined : rejectedOnAbort(signal);
    try {
      for (;;) {
        const child = this.#next();
        if (child !== undefined) return child;
        if (this.#closing.signal.aborted) throw this.#closed(job);
        const starts = this.#loads ? this.#start() : (this.#trial ??= this.#try());
        await (aborted === undefined ? starts : Promise.race([starts, aborted.promise]));
      }
    } finally {
      aborted?.end();
    }
  }

  /** Starts one child, after a pause if the file failed to load several times. */
  async #try(): Promise<void> {
    try {
      if (this.#failures >= FAILURES_UNTIL_PAUSE) {
        await sleep(pauseAfter(this.#failures), this.#closing.signal);
        if (this.#closing.signal.aborted) return;
      }
      await this.#start();
    } finally {
      this.#trial = undefined;
    }
  }

  /** Starts a child, which is free when it has loaded the file. Rejects with the reason if it has not. */
  async #start(): Promise<void> {
    const { file, options, onError } = this.#settings;
    this.#starting += 1;
    try {
      const child = startChild(this.#entry, file, options, {
        threwLate: onError,
        retired: (retired) => this.#retire(retired),
        ended: (ended) => this.#ended(ended),
      });
      if (!(child instanceof Child)) throw child;
      this.#children.add(child);
      try {
        await child.loaded;
      } catch (error) {
        // The job that waits for it starts another one, or goes back because the worker closes.
        if (isShared(child.signalCode)) return;
        throw error;
      }
      this.#loads = true;
      this.#failures = 0;
      this.#keep(child);
    } catch (error) {
      this.#failed(error as HoldfastError);
      throw error;
    } finally {
      this.#starting -= 1;
    }
  }

  #failed(error: HoldfastError): void {
    this.#loads = false;
    this.#failures += 1;
    if (this.#failures !== FAILURES_UNTIL_PAUSE || this.#closing.signal.aborted) return;
    const { queue, onError } = this.#settings;
    const what = `${error.message} That was the ${FAILURES_UNTIL_PAUSE}rd time in a row.`;
    const next = `The worker of ${queue} tries again after pauses of up to ${LONGEST_PAUSE_MS / 1000} s; jobs fail meanwhile. Correct the file, or close the worker.`;
    onError(new HoldfastError('PROCESSOR_UNLOADABLE', `${what} ${next}`, { queue, cause: error.cause }));
  }

  #giveBack(child: Child): void {
    this.#keep(child);
    if (child.hasProcessExited()) this.#warm();
  }

  #keep(child: Child): void {
    if (this.#closing.signal.aborted || child.isRetired || child.hasProcessExited()) {
      this.#retire(child);
      return;
    }
    child.idleSince = performance.now();
    this.#free.push(child);
    const { maxIdleMs } = this.#settings.options;
    this.#look ??= setInterval(() => this.#endIdle(), Math.max(LEAST_LOOK_MS, maxIdleMs / 2)).unref();
  }

  #retire(child: Child): void {
    if (child.isBusy) return;
    this.#drop(child);
    void child.end();
  }

  #ended(child: Child): void {
    this.#children.delete(child);
    this.#drop(child);
  }

  #drop(child: Child): void {
    const index = this.#free.indexOf(child);
    if (index >= 0) this.#free.splice(index, 1);
  }

  /** Starts a child that is ready when the next job comes. */
  #warm(): void {
    if (this.#closing.signal.aborted || !this.#loads || this.#free.length > 0 || this.#starting > 0) return;
    // The failure is counted; the job that needs a child gets its own.
    this.#start().catch(() => undefined);
  }

  #endIdle(): void {
    const { maxIdleMs } = this.#settings.options;
    const now = performance.now();
    for (const child of [...this.#free]) if (now - child.idleSince >= maxIdleMs) this.#retire(child);
    if (this.#free.length > 0) return;
    clearInterval(this.#look);
    this.#look = undefined;
  }

  /** The job has not begun, so it goes back; neither an attempt nor a stall counts. */
  #closed({ id: jobId, lock }: Job): HoldfastError {
    const { queue } = this.#settings;
    const error = new HoldfastError('SHUTDOWN', `The worker of ${queue} was closed before job ${jobId} began.`, { queue, jobId });
    if (lock instanceof HeldLock) lock.withdraw(error);
    return error;
  }
}

function pauseAfter(failures: number): number {
  return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - FAILURES_UNTIL_PAUSE));
}

function rejectedOnAbort(signal: AbortSignal): { promise: Promise<never>; end(): void } {
  const { promise, reject } = deferred<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  return { promise, end: () => signal.removeEventListener('abort', abort) };
}
