// A job as a store keeps and returns it: plain values. Payloads stay JSON text on their whole way through the store.
import type { Origin } from './origin.js';
import type { Deduplication } from './deduplication.js';
import type { JobRef, ParentLink } from './family.js';
import type { ScheduleRecord } from './schedule-record.js';
import type { StoredState } from './state.js';

export interface JobRecord {
  id: string;
  name: string;
  /** JSON text. */
  data: string;
  /** JSON text of the given options, with the defaults merged in. */
  opts: string;
  state: StoredState;
  priority: number;
  /** The last delay of the job in ms; 0 if it is not delayed. */
  delay: number;
  /** When the producer made the job (producer's clock, or the `timestamp` option). Never compared with another time. */
  timestamp: number;
  attemptsMade: number;
  attemptsStarted: number;
  stalledCounter: number;
  /** JSON text of LostBy: the last owner that lost the job, if any. Stays when the job runs again or finishes. */
  lostBy?: string;
  /** In ms since the epoch, on the store's clock. */
  processedOn?: number;
  finishedOn?: number;
  /** Name of the worker that ran the job last. */
  processedBy?: string;
  /** JSON text. */
  returnvalue?: string;
  failedReason?: string;
  /** JSON text of string[]. */
  stacktrace?: string;
  /** JSON text. */
  progress?: string;
  /** The deduplication id that the job was added with. It stays when the job no longer owns the entry. */
  deduplicationId?: string;
  /** The schedule that made the job. It stays when the job is no longer its next job. */
  scheduleId?: string;
  /** The group that the job was added with. */
  group?: string;
  /** The parents that the job has now. */
  parents?: ParentLink[];
  /** A child failed whose failure fails this job: the worker that claims the job fails it, without a run. */
  doomedBy?: JobRef;
  /** The job is a dead letter of this job. */
  origin?: Origin;
  /** The queue that gets a letter when the job fails for good. */
  deadLetter?: string;
  /** The job has recorded steps. */
  hasSteps?: true;
  /** The name of the signal that a delayed job waits for. It may name an older one when the job is not delayed. */
  awaits?: string;
  /** Why the job was cancelled, while it is active. */
  cancelled?: string;
}

/** A job together with the lock that was granted in the same atomic step. */
export interface ClaimedJob extends JobRecord {
  token: string;
  fence: number;
  /** The schedule that this claim made owing, and the wall clock of the store: see `schedule`. */
  debt?: ScheduleRecord & { now: number };
}

/** The input of `add`. */
export interface NewJob {
  /** If absent, the store counts up from "1" per queue. */
  id?: string;
  name: string;
  data: string;
  opts: string;
  priority: number;
  delayMs: number;
  /** true: the job goes ahead of the waiting jobs with the same priority. */
  lifo: boolean;
  timestamp: number;
  /** Jobs with the same key run one at a time. */
  lockKey?: string;
  /** Claims take turns between groups. A job has a lock key or a group, not both. */
  group?: string;
  /** Several adds with one deduplication id make one job: see `add`. */
  deduplication?: Deduplication;
  /** Only in a slot of `schedule`: the schedule whose next job this is. */
  scheduleId?: string;
  /** The schedule that the job was made from by hand. It becomes the `scheduleId` of the record, but the job is not the next job. */
  triggeredBy?: string;
  /** The queue of the job, if it is not the one that the call names. Then the id is given. */
  queue?: string;
  parents?: ParentLink[];
  /** True: the job may have several parents, and gets these in addition if it exists. */
  shares?: boolean;
  /** The job waits for the jobs that name it as a parent, in the same call or later. */
  waitsForChildren?: boolean;
  /** The queue that gets a copy of the job, a letter, when the job fails for good. */
  deadLetter?: string;
  /** Only in letters. */
  origin?: Origin;
}

/** True if an owner may have lost the job: `lostBy` may name it. A recorded step sets the count of stalls to 0, but `lostBy` stays. */
export function hasStalled({ stalledCounter, hasSteps }: JobRecord): boolean {
  return stalledCounter > 0 || hasSteps === true;
}
