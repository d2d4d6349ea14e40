// Control from outside a run: pause, limits, and writes to jobs.
import type { SettleStatus } from '../../job/outcome.js';

export interface Control {
  pause(queue: string, paused: boolean): Promise<void>;
  /** Stops claims of this queue for `durationMs` from now; 0 ends the limit. */
  limit(queue: string, durationMs: number): Promise<void>;
  /** Bounds the active jobs of the queue, from the next claim on; undefined removes the cap. */
  cap(queue: string, cap: Cap | undefined): Promise<void>;
  /** Writes to a job, by its owner (with token) or from outside (without). */
  write(queue: string, writes: Write[]): Promise<WriteReply[]>;
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
