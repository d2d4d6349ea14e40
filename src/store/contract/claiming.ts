// Claiming jobs for a session, with their locks.
import type { ClaimedJob } from '../../job/record.js';

export interface Claiming {
  /**
   * Moves up to `count` jobs from waiting to active and grants their locks in the same step. Delayed jobs that are due move to
   * waiting first, also in a queue that is paused, limited or full. If many are due, this may take several claims.
   * Order: priority (0 first), then front to back.
   * Of the jobs with one `lockKey`, at most one is active, across all sessions. The others stay waiting, keep their places, and do not
   * delay the jobs behind them. A key is free again when its job leaves active, for any reason.
   * With a cap (`configure`), at most that many jobs of the queue are active; `Cap` says how sessions share them.
   * A repetition with the same session and seq returns the same jobs with the same tokens, if they are still owned under that seq.
   * The claim stops at REPLY_BYTES of job data, and sets `more` if a further job was left out for that reason.
   */
  claim(queue: string, request: ClaimRequest): Promise<ClaimReply>;
}

export interface ClaimRequest {
  session: string;
  /** The `seq` of the worker's call, and its lane; shared with `settle` when both happen in one call. */
  seq: number;
  lane?: number;
  count: number;
  /**
   * Claims only these, in this order, if they wait (or are delayed and due) and their keys are free. Pause, limit and cap do not apply
   * to them, but they count under limit and cap as other claims do.
   */
  jobIds?: string[];
  /** The store writes it to `processedBy`. */
  by?: string;
  /** The locks expire after this time instead of with the session (skipLockRenewal, manual processing). */
  timedMs?: number;
  /** At most `max` claims of this queue per window, by all sessions together. */
  limit?: { max: number; durationMs: number };
}

export interface ClaimReply {
  jobs: ClaimedJob[];
  /** False: the session has expired or never existed; nothing was claimed. */
  sessionAlive: boolean;
  paused: boolean;
  /** Until the next change by time alone: a delayed job is due (also in a paused queue), or a rate limit ends. */
  nextInMs?: number;
  /** Set while the queue is rate limited. */
  limitedMs?: number;
  /** True when nothing is left waiting after this claim. */
  drained: boolean;
  /** True when the claim stopped at REPLY_BYTES: the caller may claim again at once. */
  more?: boolean;
}
