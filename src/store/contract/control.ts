// Control from outside a run: pause, limits, and writes to jobs.
import type { SettleStatus } from '../../job/outcome.js';
import type { RateLimit } from '../../job/rate.js';
import type { GroupRules, GroupSettings } from './groups.js';
import type { Step } from './steps.js';

export interface Control {
  /**
   * Changes settings of the queue, from the next claim on. All given fields change in one step; an absent field leaves its setting as it is.
   * A repetition sets the same values again, and counts `blockedMs` from then.
   * Events: `paused` or `resumed`, if that has changed.
   */
  configure(queue: string, settings: QueueSettings): Promise<void>;
  /**
   * Writes to a job, by its owner (with token) or from outside (without), or records an event of a user. With a `transaction` of the caller
   * (capability `transactions`), the writes take effect when it commits, or never.
   */
  write(queue: string, writes: Write[], transaction?: unknown): Promise<WriteReply[]>;
  /** Forgets what `ForgetTarget` names. A repetition changes nothing. Returns the number of removed events or entries, else 0. */
  forget(queue: string, what: ForgetTarget): Promise<number>;
}

export interface QueueSettings {
  paused?: boolean;
  /** Blocks all claims for this duration from now; 0 ends the block, and the current window of a rate limit. */
  blockedMs?: number;
  /** Bounds the active jobs of the queue; null removes the bound. */
  cap?: Cap | null;
  /** Bounds the claims of each window; null removes the bound. The current window stays open, with the claims that it has counted. */
  rate?: Rate | null;
  /** Counts the finished jobs of each minute from now on; null forgets the counts and stops counting. */
  metrics?: MetricsSetting | null;
  /** The limits of each group that has none of its own, as a whole; null removes them. */
  groups?: GroupRules | null;
  group?: GroupSettings;
}

/**
 * At most `max` claims of the queue per window, by all sessions together. The first claim opens the window, which ends `durationMs` later.
 * One window serves the rate of the queue and the limits of claims: see `ClaimRequest.limit`.
 */
export type Rate = RateLimit;

export interface MetricsSetting {
  /** How many whole minutes of each kind are kept. A repetition with another number keeps the counts. */
  points: number;
}

/**
 * The cap of a queue. A session that finishes and claims in one step must not starve the others. So each living session with `slots`
 * has an equal share of `maxActive` (rounded down, at least 1, at most its `slots`). A claim above its own share leaves the unused
 * shares of the others free. If there are more sessions than places, the first claims take them. `roomUnderCap` of
 * `holdfast/testing` computes this.
 */
export interface Cap {
  maxActive: number;
}

export type ForgetTarget =
  /**
   * An emptied queue: events, pause, limits, rate, cap, metrics, settings and turns of groups, entries of deduplication, schedules, the
   * counter of job ids. Fences and the ids of events go on growing. Sessions and named locks stay. The limits of all groups (`groups` of
   * QueueSettings) stay while a session is open: workers set them once per session, and rely on them until it ends.
   */
  | { all: true }
  /** All events except about this many of the newest. */
  | { events: number }
  /**
   * The last calls of a producer that makes no more calls. The producer may ask for this only if each call got its reply at the first try,
   * so that no repetition can still arrive. The store forgets all other producers by their age.
   */
  | { caller: string }
  /** The entries of these deduplication ids, with their drafts. With `ownedBy`: only entries that this job owns. Returns how many counted. */
  | { deduplication: string[]; ownedBy?: string };

export type Write = JobWrite | EventWrite;

export type JobWrite = { jobId: string; token?: string } & (
  | { kind: 'data'; data: string }
  | { kind: 'progress'; progress: string }
  /** `keep` newest rows stay. */
  | { kind: 'log'; row: string; keep?: number }
  | { kind: 'clearLogs'; keep?: number }
  /** Records a step, or without a token a signal: see the file `steps`. */
  | ({ kind: 'step' } & Step)
);

/** Records an event of a user. The caller has checked that its name is not an EventName. Its status is `done`. */
export interface EventWrite {
  kind: 'event';
  name: string;
  /** JSON text, which the event carries as `args`. */
  args: string;
}

export interface WriteReply {
  status: SettleStatus;
  /** For logs: the number of rows that the job has now. */
  count?: number;
  /** For a step that is `done`: the recorded value. */
  value?: string;
}
