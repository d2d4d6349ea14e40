// The part of a Queue or Worker that the jobs which it returned use.
import type { BackoffStrategy } from '../job/backoff.js';
import type { JobLock } from '../job/lock.js';
import type { ClaimedJob } from '../job/record.js';
import type { KeepOption } from '../job/options.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { HoldfastError } from '../errors.js';
import type { Store } from '../store/contract/index.js';

export interface JobContext {
  readonly name: string;
  readonly prefix: string;
  /** The name of the queue in the store. */
  readonly stored: string;
  /** Returns the open store. */
  ready(): Promise<Store>;
  /** Sends the outcome of a run to the store. With `fetchNext`, a context with a session claims the next job in the same call. */
  settle(outcome: Outcome, fetchNext: boolean): Promise<{ status: SettleStatus; next?: ClaimedJob | undefined }>;
  /** The worker's settings.backoffStrategy, if any. */
  readonly backoffStrategy?: BackoffStrategy | undefined;
  /** The worker's defaults for finished jobs without such options of their own. */
  readonly removeOnComplete?: KeepOption | undefined;
  readonly removeOnFail?: KeepOption | undefined;
  /** Takes the lock of a waiting job for this context's lockDuration. Returns undefined if the lock is held or the job does not wait. */
  take?(jobId: string): Promise<{ job: ClaimedJob; lock: JobLock } | undefined>;
  /** Extends a lock of this context, so that its trust deadline moves too. Without this method the store is called directly. */
  extend?(jobId: string, token: string, durationMs: number): Promise<boolean>;
  /** Returns the lock of a job that `settle` claimed. */
  lockFor?(claimed: ClaimedJob): JobLock;
  /** A handle of this context reported progress; for the context's own listeners. */
  progressed?(job: { readonly id: string }, progress: JobProgress): void;
  /** The run with this token has recorded a step. Tests set it, to interrupt the run. */
  stepRecorded?: ((token: string, name: string) => void) | undefined;
  /** Ends the run with this token as a shutdown does. */
  interrupt?(token: string, error: HoldfastError): void;
  /** The run with this token has completed its job in a transaction of the user, which may still roll back. */
  completing?(token: string, completing: { outcome: Outcome; value: unknown }): void;
  /** A handle of this context removed its job. */
  removed?(jobId: string): void;
}

export type { BackoffStrategy } from '../job/backoff.js';

export type JobProgress = number | string | boolean | object;

/** The key of the job context on a Queue or Worker. A symbol, so that neither users nor their subclasses see the property. */
export const JOB_CONTEXT = Symbol('jobContext');

/** A Queue or Worker, or the context of one. */
export type ContextSource = JobContext | { readonly [JOB_CONTEXT]: JobContext };

export function contextOf(source: ContextSource): JobContext {
  return JOB_CONTEXT in source ? source[JOB_CONTEXT] : source;
}
