// Control from outside a run: pause, limits, and writes to jobs.
import type { SettleStatus } from '../../job/outcome.js';

export interface Control {
  /**
   * Changes settings of the queue, from the next claim on. All given fields change in one step; an absent field leaves its setting as it is.
   * A repetition sets the same values again, and counts `blockedMs` from then.
   * Events: `paused` or `resumed`, if that has changed.
   */
  configure(queue: string, settings: QueueSettings): Promise<void>;
  /** Writes to a job, by its owner (with token) or from outside (without). */
  write(queue: string, writes: Write[]): Promise<WriteReply[]>;
  /** Forgets what `ForgetTarget` names. A repetition changes nothing. Returns the number of removed events for `events`, else 0. */
  forget(queue: string, what: ForgetTarget): Promise<number>;
}

export interface QueueSettings {
  paused?: boolean;
  /** Blocks all claims for this duration from now; 0 ends the block, and the current window of a rate limit. */
  blockedMs?: number;
  /** Bounds the active jobs of the queue; null removes the bound. */
  cap?: Cap | null;
}

/**
 * The cap of a queue. A session that finishes and claims in one step must not starve the others. So each living session with `slots`
 * has an equal share of `maxActive` (rounded down, at least 1, at most its `slots`). A claim above its own share leaves the unused
 * shares of the others free. If there are more sessions than places, the first claims take them. See `roomUnderCap` in job/cap.ts.
 */
export interface Cap {
  maxActive: number;
}

export type ForgetTarget =
  /**
   * An emptied queue: events, pause, limits, cap, the counter of job ids. Fences and the ids of events go on growing. Sessions and named
   * locks stay.
   */
  | { all: true }
  /** All events except about this many of the newest. */
  | { events: number }
  /**
   * The last calls of a producer that makes no more calls. The producer may ask for this only if each call got its reply at the first try,
   * so that no repetition can still arrive. The store forgets all other producers by their age.
   */
  | { caller: string };

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
