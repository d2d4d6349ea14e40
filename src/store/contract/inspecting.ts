// Reading jobs, counts, locks and sessions. Nothing here changes the store.
import type { JobRecord } from '../../job/record.js';
import type { StoredState } from '../../job/state.js';
import type { Cap } from './control.js';
import type { EventsReply } from './events.js';
import type { LockInfo, NamedLockInfo, OwnedLock } from './locks.js';
import type { SessionInfo } from './sessions.js';

export interface Inspecting {
  /** One entry per id, in order. Large jobs may cut the reply to the first ids (at least one): ask for the others again. */
  jobs(queue: string, jobIds: string[]): Promise<(JobRecord | undefined)[]>;
  /** Positions `start` to `end` (inclusive, -1 = last) of the named lists, one list after the other. */
  list(queue: string, query: ListQuery): Promise<ListReply>;
  status(queue: string): Promise<QueueStatus>;
  /** `count` is the number of all rows. Large rows may cut the reply to the first of the range (at least one). */
  logs(
    queue: string,
    jobId: string,
    range: { start: number; end: number; asc: boolean },
  ): Promise<{ logs: string[]; count: number }>;
  /** Events after `after` in order; without it, none, but `last` is where the log ends now. */
  events(queue: string, after: number | undefined, limit: number): Promise<EventsReply>;
  /** The lock of an active job. */
  lockOf(queue: string, jobId: string): Promise<LockInfo | undefined>;
  namedLocks(queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]>;
  sessions(queue: string): Promise<SessionInfo[]>;
  /** What the store thinks that a session holds: for reconciling after lost replies. */
  owned(queue: string, session: string): Promise<OwnedLock[]>;
}

/** 'prioritized' lists waiting jobs with a priority, 'waiting' those without. */
export type ListName = StoredState | 'prioritized';

export interface ListQuery {
  lists: ListName[];
  start: number;
  end: number;
  /**
   * Waiting: claim order, or the reverse. Those that wait for their key (it is taken, or another one of it comes first) come last, or,
   * in a store that finds out only when it claims, stand where they would if it were free.
   * Delayed: by due time. Active, finished: by when they came there.
   */
  asc: boolean;
}

export interface ListReply {
  jobs: JobRecord[];
  /** True when the reply was cut at REPLY_BYTES, so that jobs of the range are missing at its end. */
  more: boolean;
}

export interface QueueStatus {
  paused: boolean;
  counts: Record<ListName, number>;
  limitedMs?: number;
  cap?: Cap;
}
