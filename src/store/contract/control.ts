// Changes from outside a run: pause, limits, writes, moves and removals.
import type { SettleStatus } from '../../job/outcome.js';
import type { StoredState } from '../../job/state.js';

export interface Control {
  pause(queue: string, paused: boolean): Promise<void>;
  /** Stops claims of this queue for `durationMs` from now; 0 ends the limit. */
  limit(queue: string, durationMs: number): Promise<void>;
  /** Bounds the active jobs of the queue, from the next claim on; undefined removes the cap. */
  cap(queue: string, cap: Cap | undefined): Promise<void>;
  /** Writes to a job, by its owner (with token) or from outside (without). */
  write(queue: string, writes: Write[]): Promise<WriteReply[]>;
  /** Moves jobs from outside, without a token. */
  change(queue: string, changes: Change[]): Promise<ChangeStatus[]>;
  /** Removes jobs with all that belongs to them. A locked job stays. */
  remove(queue: string, jobIds: string[]): Promise<RemoveStatus[]>;
  /**
   * Removes up to `limit` unlocked jobs in one of `states`, oldest first; returns their ids. Call until it returns fewer. A `limit` of 0 only
   * records that a clean is over: one that found nothing, or one whose jobs were removed by their ids.
   */
  clear(queue: string, selection: Selection): Promise<string[]>;
  /** Moves up to `limit` jobs from one of failed, completed, delayed to waiting; returns how many. Call until it returns fewer. */
  requeue(queue: string, selection: Selection): Promise<number>;
  /**
   * Forgets an emptied queue: events, pause, limits, cap, the counter of job ids. Fences and the ids of events go on growing. Sessions
   * and named locks stay.
   */
  forget(queue: string): Promise<void>;
  /** Keeps about the newest `keep` events; returns how many were removed. */
  trimEvents(queue: string, keep: number): Promise<number>;
}

/**
 * The cap of a queue. A session that finishes and claims in one step must not starve the others. So each living session with `slots`
 * has an equal share of `maxActive` (rounded down, at least 1, at most its `slots`). A claim above its own share leaves the unused
 * shares of the others free. If there are more sessions than places, the first claims take them. See `roomUnderCap` in job/cap.ts.
 */
export interface Cap {
  maxActive: number;
}

/** Selects by state and, for finished jobs, by age since they finished (for others since they were added). */
export interface Selection {
  states: StoredState[];
  olderThanMs?: number;
  limit: number;
  /** For a clear with the limit 0: how many jobs the caller has removed by their ids. */
  removed?: number;
}

export type Write = { jobId: string; token?: string } & (
  | { kind: 'data'; data: string }
  | { kind: 'progress'; progress: string }
  /** `keep` newest rows stay. */
  | { kind: 'log'; row: string; keep?: number }
  | { kind: 'clearLogs'; keep?: number }
);

export interface WriteReply {
  status: SettleStatus;
  /** For logs: the number of rows that the job has now. */
  count?: number;
}

export type Change = { jobId: string } & (
  | { kind: 'retry'; from: 'completed' | 'failed'; resetAttemptsMade: boolean; resetAttemptsStarted: boolean }
  | { kind: 'promote' }
  | { kind: 'delay'; delayMs: number }
  | { kind: 'priority'; priority: number; lifo: boolean }
);

/** state: the job is not in a state that the change starts from; nothing changed. */
export type ChangeStatus = 'done' | 'missing' | 'state';

export type RemoveStatus = 'done' | 'missing' | 'locked';
