// Calls the user's processor for one job and converts what it does (return, throw, throw something odd, move the job itself) to an
// outcome. It never calls the store and never throws.
import { HoldfastError, toError } from '../errors.js';
import type { Job } from '../handle/job.js';
import { refusedByChildren } from '../job/family-refusal.js';
import type { Outcome } from '../job/outcome.js';
import { isSignal, UnrecoverableError } from '../job/signals.js';
import { blockedOutcome, completedOutcome, failedOutcome, substituteOutcome, type VerdictRules } from '../job/verdict.js';
import type { HeldLock } from '../session/held-lock.js';
import { show } from '../runtime/check.js';

type AnyProcessor = (job: Job, token: string, signal?: AbortSignal) => unknown;

/** How a run ended, and which event the worker emits after the store has accepted the outcome. */
export type RunEnd =
  | { event: 'completed'; outcome: Outcome; value: unknown }
  | { event: 'failed'; outcome: Outcome; error: Error }
  /** The worker was closed while the job ran. */
  | { event: 'interrupted'; outcome: Outcome; error: Error }
  | { event: 'none'; outcome: Outcome }
  /**
   * The processor has moved the job itself. `returned`: it returned after that. `error`: what it threw after that, unless that only says that
   * it has moved the job.
   */
  | { event: 'none'; outcome: undefined; returned?: boolean; error?: Error };

/** The names of the errors with which a processor says that it has moved its job. */
const MOVED: ReadonlySet<string> = new Set(['DelayedError', 'WaitingError', 'WaitingChildrenError', 'RateLimitError']);

export interface RunListener {
  /** Called when the job is passed to the processor, if `run` did not pass it at once. */
  begun?(): void;
  ended(end: RunEnd): void;
}

export interface RunnerOptions {
  processor: (job: Job, token: string, signal?: AbortSignal) => unknown;
  rules: VerdictRules;
  maxStartedAttempts: number | undefined;
}

export class Runner {
  readonly #processor: AnyProcessor;
  readonly #rules: VerdictRules;
  readonly #maxStartedAttempts: number;
  readonly #takesSignal: boolean;
  /** False if the runner emits `active` itself, when a job begins. */
  readonly beginsAtOnce: boolean = true;

  constructor({ processor, rules, maxStartedAttempts = Number.POSITIVE_INFINITY }: RunnerOptions) {
    this.#processor = processor;
    this.#takesSignal = takesSignal(processor);
    this.#rules = rules;
    this.#maxStartedAttempts = maxStartedAttempts;
  }

  /**
   * Runs the processor. Never calls the listener before this method has returned. Written without `async`, which costs a frame and two more
   * promises per job: with one object per run (see Runs), a worker in memory allocates 2,700 bytes a job, store included, instead of 3,300.
   */
  run(job: Job, lock: HeldLock, listener: RunListener): void {
    let returned: unknown;
    try {
      this.checkStarts(job, lock);
      returned = this.#takesSignal ? this.#processor(job, lock.token, lock.signal) : this.#processor(job, lock.token);
    } catch (thrown) {
      this.endThrown(job, lock, thrown, listener);
      return;
    }
    void Promise.resolve(returned).then(
      (value) => this.endReturned(job, lock, value, listener),
      (thrown: unknown) => this.endThrown(job, lock, thrown, listener),
    );
  }

  /** How many jobs that were passed to `run` have not begun. A job begins at once here; a subclass may let jobs wait. */
  get waiting(): number {
    return 0;
  }

  isWaiting(_lock: HeldLock): boolean {
    return false;
  }

  /** Takes out the jobs that have not begun, or one of them. They will never begin. */
  takeWaiting(_lock?: HeldLock): HeldLock[] {
    return [];
  }

  /** All jobs of a claim were passed to `run`. `more`: the store may have more of them now. Returns false if the waiting ones cannot begin. */
  gathered(_more?: boolean): boolean {
    return true;
  }

  /** Throws if the job was cancelled or started too often, or a child of it failed whose failure fails it. */
  protected checkStarts(job: Job, lock: HeldLock): void {
    if (lock.doomed !== undefined) throw new UnrecoverableError(lock.doomed);
    const { deferredFailure } = job;
    if (deferredFailure !== undefined) throw new UnrecoverableError(deferredFailure);
    if (job.attemptsStarted > this.#maxStartedAttempts) throw new UnrecoverableError('job started more than allowable limit');
  }

  /** Returns how a run ends whose completion the store refused because of its children. */
  async refusedByChildren(job: Job, lock: HeldLock, status: 'pending' | 'unsuccessful'): Promise<RunEnd> {
    const error = refusedByChildren(job.id, status, 'moveToFinished', job.queueName);
    return this.#thrown(job, lock, error).catch((broken: unknown) => unreadable(job, lock, broken));
  }

  /** Returns how a run ends whose handler has completed the job in a transaction that has not committed. */
  async uncommitted(job: Job, lock: HeldLock): Promise<RunEnd> {
    const message = `job.complete was called, but its transaction has not committed. Let the handler throw when it rolls back.`;
    const error = new HoldfastError('NOT_COMMITTED', message, { jobId: job.id, queue: job.queueName });
    return this.#thrown(job, lock, error).catch((broken: unknown) => unreadable(job, lock, broken));
  }

  /** Returns how a run ends whose handler has not ended in time. */
  async timedOut(job: Job, lock: HeldLock, error: HoldfastError): Promise<RunEnd> {
    return this.#thrown(job, lock, error).catch((broken: unknown) => unreadable(job, lock, broken));
  }

  /** Returns how the lock thread ends a run whose handler blocks this event loop. */
  blockedOutcome(job: Job, lock: HeldLock, error: HoldfastError): Outcome {
    try {
      return blockedOutcome(job, lock.token, error, this.#rules);
    } catch (broken) {
      return unreadable(job, lock, broken).outcome;
    }
  }

  /** Returns an outcome to settle instead of one that the store refuses for good. */
  substitute(job: Job, outcome: Outcome, refusal: HoldfastError): Outcome | undefined {
    return substituteOutcome(job, outcome, refusal, this.#rules);
  }

  protected endReturned(job: Job, lock: HeldLock, value: unknown, listener: RunListener): void {
    let end: RunEnd;
    try {
      end = this.#returned(job, lock, value);
    } catch (thrown) {
      this.endThrown(job, lock, thrown, listener);
      return;
    }
    listener.ended(end);
  }

  protected endThrown(job: Job, lock: HeldLock, thrown: unknown, listener: RunListener): void {
    void this.#thrown(job, lock, thrown)
      .catch((broken: unknown) => unreadable(job, lock, broken))
      .then((end) => listener.ended(end));
  }

  #returned(job: Job, lock: HeldLock, value: unknown): RunEnd {
    // A batch that returns may have caught what ended the run of one job: the others go on.
    if (lock.settled) return { event: 'none', outcome: undefined, returned: this.beginsAtOnce };
    if (lock.completing !== undefined) return { event: 'completed', ...lock.completing };
    const outcome = completedOutcome(job, lock.token, value, this.#rules);
    return outcome.kind === 'failed'
      ? { event: 'failed', outcome, error: new Error(outcome.reason) }
      : { event: 'completed', outcome, value };
  }

  async #thrown(job: Job, lock: HeldLock, thrown: unknown): Promise<RunEnd> {
    const error = toError(thrown);
    if (lock.settled) return { event: 'none', outcome: undefined, ...(MOVED.has(error.name) ? {} : { error }) };
    // After a shutdown or a lost lock, the error does not use up an attempt: the job goes back and runs again.
    if (lock.withdrawn || isSignal(error, 'RateLimitError') || isOwnLoss(error, lock)) {
      return released(job, lock);
    }
    // A cancelled job does not run again.
    let rules = lock.doomed === undefined ? this.#rules : { ...this.#rules, final: true };
    // DelayedError and WaitingError say that the processor has moved the job. If it has not, they are failures like any other.
    const why = cancelWhy(error, lock.cancelReason);
    if (why !== undefined) rules = { ...rules, why };
    return { event: 'failed', outcome: await failedOutcome(job, lock.token, error, rules), error };
  }
}

function released({ id: jobId }: Job, lock: HeldLock): RunEnd {
  const outcome: Outcome = { kind: 'release', jobId, token: lock.token };
  const reason: unknown = lock.withdrawn ? lock.signal.reason : undefined;
  const isShutdown = reason instanceof HoldfastError && reason.code === 'SHUTDOWN';
  return isShutdown ? { event: 'interrupted', outcome, error: reason } : { event: 'none', outcome };
}

/** True for the error of `job.lock.assert()`. */
function isOwnLoss(error: Error, lock: HeldLock): boolean {
  return error instanceof HoldfastError && error.code === 'LOCK_LOST' && error.jobId === lock.jobId && !lock.held;
}

/**
 * Returns what the reason of a failure says of the cancellation: aborted timers and streams throw errors that do not name it. The error itself
 * stays that of the handler, because listeners compare its class, message and fields; it gets `cancelReason`.
 */
function cancelWhy(error: Error, reason: unknown): string | undefined {
  if (reason === undefined || reason === error) return undefined;
  if (Object.isExtensible(error))
    Object.defineProperty(error, 'cancelReason', { value: reason, configurable: true, writable: true });
  const why = reason instanceof Error ? reason.message : typeof reason === 'string' ? reason : show(reason);
  if (why === '' || String(error.message).includes(why)) return undefined;
  // Our own errors say what happened; the reason of a caller says only why.
  return why === 'cancelled' || reason instanceof HoldfastError ? why : `cancelled: ${why}`;
}

/** The end of a run whose error, or whose job options, cannot be read. The run needs an end, or it would keep its slot for ever. */
function unreadable({ id }: Job, { token }: HeldLock, broken: unknown): RunEnd & { outcome: Outcome } {
  const why = broken instanceof HoldfastError ? broken.message : 'what it threw cannot be read';
  const error = new Error(`The run of job ${id} failed: ${why}`, { cause: broken });
  return {
    event: 'failed',
    outcome: { kind: 'failed', jobId: id, token, reason: error.message, stacktrace: '[]', keep: {} },
    error,
  };
}

/** The head of an arrow function without parameters. It has no `arguments` either. */
const TAKES_NOTHING = /^(async\s*)?\(\s*\)\s*=>/;

/**
 * True if the processor declares a third parameter, or none: then it may pass all its arguments on. Others get no AbortSignal, because making
 * one takes about as long as the rest of an empty run: 3 µs of a worker that spends 11 to 14 on a job at concurrency 100.
 */
export function takesSignal(processor: (...args: never[]) => unknown): boolean {
  if (processor.length > 0) return processor.length >= 3;
  return !TAKES_NOTHING.test(Function.prototype.toString.call(processor));
}
