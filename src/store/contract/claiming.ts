// Jobs go out to workers, with their locks.
import type { ClaimedJob } from '../../job/record.js';

export interface Claiming {
  /**
   * Moves up to `count` jobs from waiting to active and grants their locks in the same step. Delayed jobs that are due come to
   * waiting first, also in a queue that is paused, limited or full; many of them may take several claims. Order: priority (0 first), then front to back.
   * Of jobs with the same `lockKey`, one at a time is active, on whichever session: the others stay waiting, hold up nobody behind
   * them, and keep their places, so that the first of them stands where it always stood once the key is free. A key is free again
   * when its job leaves active, however that happens.
   * With a cap (`cap`), no more jobs of the queue than it says are active; see `Cap` for how sessions share them.
   * The same session and seq again: the same jobs, with the same tokens, as far as they are still owned under that seq.
   * Stops at REPLY_BYTES of job data, and sets `more` if that kept it from a further job.
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
   * Only these, in this order, as far as they wait (delayed ones once they are due) and their keys are free. Pause, limit and cap do
   * not hold them back, but they count under limit and cap as other claims do.
   */
  jobIds?: string[];
  /** Goes to `processedBy`. */
  by?: string;
  /** The locks get an end of their own instead of living as long as the session (skipLockRenewal, manual processing). */
  timedMs?: number;
  /** At most `max` claims of this queue per window, whoever claims. */
  limit?: { max: number; durationMs: number };
}

export interface ClaimReply {
  jobs: ClaimedJob[];
  /** False: the session has expired or never was; nothing was claimed. */
  sessionAlive: boolean;
  paused: boolean;
  /** When time alone brings the next change: a delayed job falls due (also in a paused queue), or a rate limit ends. */
  nextInMs?: number;
  /** Set while the queue is rate limited. */
  limitedMs?: number;
  /** True when nothing is left waiting after this claim. */
  drained: boolean;
  /** True when the claim stopped at REPLY_BYTES: the caller may claim again at once. */
  more?: boolean;
}
