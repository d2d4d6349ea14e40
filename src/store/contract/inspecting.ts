// Reading jobs, counts, locks and sessions. Nothing here changes the store.
import type { JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import type { Cap } from './control.js';
import type { EventsReply } from './events.js';
import type { LockInfo, NamedLockInfo, OwnedLock } from './locks.js';
import type { SessionInfo } from './sessions.js';

export interface Inspecting {
  /**
   * Returns up to `limit` names of queues, in the order of their UTF-8 bytes, from the first name after `after` on. Lists at least the
   * queues to which jobs were added, or in which sessions were opened. A queue may stay listed when it is empty or forgotten.
   */
  queues(limit: number, after?: string): Promise<string[]>;
  /** Returns jobs by their ids, one entry per id, in order; undefined for an id that no job has. */
  jobs(queue: string, jobIds: string[]): Promise<JobsReply>;
  /** Returns the jobs at positions `start` to `end` (inclusive, -1 = last) of the named lists, one list after the other. */
  jobs(queue: string, query: ListQuery): Promise<JobsReply<JobRecord>>;
  status(queue: string): Promise<QueueStatus>;
  /** `count` is the number of all rows. Large rows may cut the reply to the first of the range (at least one). */
  logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): Promise<{ logs: string[]; count: number }>;
  /** Returns the events after `after`, in order. Without `after` it returns none, and `last` is the end of the log. */
  events(queue: string, after: number | undefined, limit: number): Promise<EventsReply>;
  /** Returns the locks of jobs, one entry per id, in order; undefined for a job that is not active. */
  locks(queue: string, query: { jobIds: string[] }): Promise<(LockInfo | undefined)[]>;
  /** Returns named locks, one entry per name, in order; undefined for a lock without a holder. */
  locks(queue: string, query: { names: string[] }): Promise<(NamedLockInfo | undefined)[]>;
  /** Returns the locks of jobs that a session owns, in the order of their claims, so that a worker can reconcile after lost replies. */
  locks(queue: string, query: { session: string }): Promise<OwnedLock[]>;
  sessions(queue: string): Promise<SessionInfo[]>;
}

/** 'prioritized' lists waiting jobs with a priority, 'waiting' those without. */
export type ListName = StoredState | 'prioritized';

export interface ListQuery {
  lists: ListName[];
  start: number;
  end: number;
  /**
   * Waiting: claim order, or the reverse. Jobs that wait for their key (it is taken, or another job of the key comes first) come last. A
   * store that checks keys only in a claim lists them as if the key were free.
   * Delayed: by due time. Active, finished: by the time at which they came there.
   */
  asc: boolean;
}

export interface JobsReply<J extends JobRecord | undefined = JobRecord | undefined> {
  jobs: J[];
  /** True when the reply was cut at REPLY_BYTES, so that the last of the requested jobs are missing: ask for them again. */
  more: boolean;
}

export interface QueueStatus {
  paused: boolean;
  counts: Record<ListName, number>;
  limitedMs?: number;
  cap?: Cap;
}
