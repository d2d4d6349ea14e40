// One run of a job, from the start of its handler to the store's acknowledgement of its outcome. Runs makes it.
import type { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { Linked } from '../runtime/linked-list.js';
import type { HeldLock } from '../session/held-lock.js';
import type { Substituted } from '../store/client/refusal.js';
import type { Delivery } from './outbox.js';
import type { RunEnd, RunListener } from './runner.js';
import type { TimeLimit } from './time-limit.js';

export interface RunOwner {
  /** The handler has ended. `delivers`: there is an outcome to settle. */
  ended(run: Run, delivers: boolean): void;
  /** The handler has ended after its job was handed back without it. */
  endedLate(run: Run, end: RunEnd): void;
  /** Returns the outcome to settle instead of one that the store refused. */
  substitute(run: Run, refusal: HoldfastError): Outcome | undefined;
  settled(run: Run, status: SettleStatus | 'unknown', error: Error | undefined): void;
}

/** One run and its delivery: one object instead of four closures for each job. */
export class Run implements RunListener, Delivery, Linked<Run> {
  /** Its neighbours among the running ones. */
  before: Run | undefined = undefined;
  after: Run | undefined = undefined;
  readonly job: Job;
  readonly lock: HeldLock;
  readonly #owner: RunOwner;
  end: RunEnd | undefined;
  /** Set before the run is delivered. */
  outcome!: Outcome;
  /** Set if the job or the worker has a `timeoutMs`. */
  limit: TimeLimit | undefined;

  constructor(owner: RunOwner, job: Job, lock: HeldLock) {
    this.#owner = owner;
    this.job = job;
    this.lock = lock;
  }

  get order(): number {
    return this.lock.fence;
  }

  /** The job was passed to the handler. */
  begun(): void {
    this.limit?.start();
  }

  /** The handler has ended. */
  ended(end: RunEnd): void {
    if (this.end === undefined) this.conclude(end);
    else this.#owner.endedLate(this, end);
  }

  /** The run is over, whether or not its handler has ended. */
  conclude(end: RunEnd): void {
    this.limit?.end();
    this.end = end;
    if (end.outcome !== undefined) this.outcome = end.outcome;
    this.#owner.ended(this, end.outcome !== undefined);
  }

  substitute(refusal: HoldfastError): Outcome | undefined {
    return this.#owner.substitute(this, refusal);
  }

  settled(status: SettleStatus | 'unknown', error?: Error, substituted?: Substituted): void {
    if (substituted !== undefined) this.end = endedInstead(this.end, substituted);
    this.#owner.settled(this, status, error);
  }
}

/**
 * Returns the end of a run whose outcome was substituted. A run that failed keeps its own error; a run that completed fails with the
 * store's reason.
 */
function endedInstead(end: RunEnd | undefined, { outcome, refusal }: Substituted): RunEnd {
  if (end?.event === 'failed') return { ...end, outcome };
  return {
    event: 'failed',
    outcome,
    error: new Error('reason' in outcome ? outcome.reason : refusal.message, { cause: refusal }),
  };
}
