// Reading jobs, counts, locks and sessions. Nothing here changes the store.
import type { JobRecord } from '../../job/record.js';
import type { FinishedState, StoredState } from '../../job/state.js';
import type { Cap, Rate } from './control.js';
import type { EventsReply } from './events.js';
import type { GroupQuery, GroupsFound } from './groups.js';
import type { LockInfo, NamedLockInfo, OwnedLock } from './locks.js';
import type { ScheduleQuery, SchedulesFound } from './scheduling.js';
import type { SessionInfo } from './sessions.js';
import type { StepsFound, StepsQuery } from './steps.js';

export interface Inspecting {
  /**
   * Returns up to `limit` names of queues, in the order of their UTF-8 bytes, from the first name after `after` on. Lists at least the
   * queues to which jobs were added, or in which sessions were opened. A queue may stay listed when it is empty or forgotten.
   */
  queues(limit: number, after?: string): Promise<string[]>;
  /** Returns jobs by their ids, one entry per id, in order; undefined for an id that no job has. */
  jobs(queue: string, jobIds: string[]): Promise<JobsReply>;
  /** Returns the jobs at positions `start` to `end` (inclusive, -1 = last) of each named list, one list after the other. */
  jobs(queue: string, query: ListQuery): Promise<JobsReply<JobRecord>>;
  /** Returns the waiting jobs of a group at these positions, in the order in which claims in turn take them, or in the reverse. */
  jobs(queue: string, query: GroupJobsQuery): Promise<JobsReply<JobRecord>>;
  /** Returns the steps of a job. */
  jobs(queue: string, query: StepsQuery): Promise<StepsFound>;
  status(queue: string, ask?: StatusQuery): Promise<QueueStatus>;
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
  /** Positions of each list: `start: 1, end: 2` of two lists asks for two jobs of the first and two of the second. */
  start: number;
  end: number;
  /**
   * Waiting: claim order, or the reverse. Jobs that wait for their key (it is taken, or another job of the key comes first) and all jobs
   * of groups come last, by priority and then front to back.
   * Delayed: by due time. Active, finished: by the time at which they came there.
   */
  asc: boolean;
}

/** `start` and `end` as in ListQuery. */
export interface GroupJobsQuery {
  group: string;
  start: number;
  end: number;
  asc: boolean;
}

export interface JobsReply<J extends JobRecord | undefined = JobRecord | undefined> {
  jobs: J[];
  /** True when the reply was cut at REPLY_BYTES, so that the last of the requested jobs are missing: ask for them again. */
  more: boolean;
}

export interface StatusQuery {
  /** Deduplication ids whose owners the reply names. */
  deduplication?: string[];
  schedules?: ScheduleQuery;
  /** Priorities whose waiting jobs the reply counts. 0: the jobs without a priority. */
  priorities?: number[];
  /** The minutes at positions `start` to `end` (inclusive, -1 = last) of one kind, the newest first. */
  metrics?: { kind: FinishedState; start: number; end: number };
  groups?: GroupQuery;
}

/** The finished jobs of one kind: completed, or failed for good, in whichever way. Minutes are those of `finishedOn`. */
export interface QueueMetrics {
  /** All since the queue counts. */
  count: number;
  /** The last minute in which a job finished, in minutes since the epoch, and its jobs so far. Absent before the first job. */
  current?: { minute: number; count: number };
  /** The whole minutes before `current` that the query asks for, without gaps, from the first minute with a finished job on. */
  points: number[];
  /** The number of all points that are kept. */
  total: number;
}

export interface QueueStatus {
  paused: boolean;
  counts: Record<ListName, number>;
  /** Set while a block stops all claims. */
  blockedMs?: number;
  /** Set while a window is open: the claims that it has counted. */
  window?: { used: number; endsInMs: number };
  rate?: Rate;
  cap?: Cap;
  /** Present if the query asks for it, in order. */
  priorities?: number[];
  /** Present if the query asks for it and the queue counts. */
  metrics?: QueueMetrics;
  /** The job that owns the entry of each id, in order; undefined if no entry counts. Present if the query asks for it. */
  deduplication?: (string | undefined)[];
  /** Present if the query asks for it. */
  schedules?: SchedulesFound;
  /** Present if the query asks for it. */
  groups?: GroupsFound;
}
