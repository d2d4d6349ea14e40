// What a Job needs of the Queue or Worker that handed it out.
import type { BackoffStrategy } from '../job/backoff.js';
import type { JobLock } from '../job/lock.js';
import type { ClaimedJob } from '../job/record.js';
import type { KeepOption } from '../job/options.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { Store } from '../store/contract/index.js';

export interface JobContext {
  readonly name: string;
  readonly prefix: string;
  /** The name of the queue in the store. */
  readonly stored: string;
  /** The opened store. */
  ready(): Promise<Store>;
  /** Tells the store how a run ended; with `fetchNext`, a home that holds a session claims the next job in the same call. */
  settle(outcome: Outcome, fetchNext: boolean): Promise<{ status: SettleStatus; next?: ClaimedJob | undefined }>;
  /** settings.backoffStrategy of the worker, if any. */
  readonly backoffStrategy?: BackoffStrategy | undefined;
  /** What a worker keeps of finished jobs that do not say it themselves. */
  readonly removeOnComplete?: KeepOption | undefined;
  readonly removeOnFail?: KeepOption | undefined;
  /** Takes the lock of a waiting job, for as long as this home's lockDuration says. Undefined: somebody has it, or it does not wait. */
  take?(jobId: string): Promise<{ job: ClaimedJob; lock: JobLock } | undefined>;
  /** Extends a lock of this home, so that its own trust in the lock grows too. Without it the store is asked directly. */
  extend?(jobId: string, token: string, durationMs: number): Promise<boolean>;
  /** The lock of a job that `settle` claimed. */
  lockFor?(claimed: ClaimedJob): JobLock;
  /** A handle of this home reported progress; for the home's own listeners. */
  progressed?(job: { readonly id: string }, progress: JobProgress): void;
  /** A handle of this home removed its job. */
  removed?(jobId: string): void;
}

export type { BackoffStrategy } from '../job/backoff.js';

export type JobProgress = number | string | boolean | object;

/** Queues and workers have a home; the static makers of Job take either. */
export function homeOf(source: JobContext | { readonly home: JobContext }): JobContext {
  return 'home' in source ? source.home : source;
}
