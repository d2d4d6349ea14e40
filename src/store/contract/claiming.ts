// Claiming jobs for a session, with their locks.
import type { ClaimedJob } from '../../job/record.js';
import type { Rate } from './control.js';

export interface Claiming {
  /**
   * Moves up to `count` jobs from waiting to active and grants their locks in the same step. Delayed jobs that are due move to
   * waiting first, also in a queue that is paused, limited or full. If many are due, this may take several claims.
   * Order: priority (0 first), then front to back.
   * Of the jobs with the same lock key, at most one is active, across all sessions. The others stay waiting, keep their places, and do not
   * delay the jobs behind them. A key is free again when its job leaves active, for any reason.
   * In a queue with groups, claims take turns between them: the file `groups` has the rule. The order of the jobs in the reply is that of the
   * turns.
   * With a cap (`configure`), at most that many jobs of the queue are active; `Cap` says how sessions share them.
   * A repetition with the same session and seq returns the same jobs with the same tokens, if they are still owned under that seq.
   * The claim stops at REPLY_BYTES of job data, and sets `more` if a further job was left out for that reason. A store may also bound the
   * groups without room or jobs that one claim passes, and the groups that one claim lets back into line. If limits were changed for many
   * groups, or the rests of many groups end at once, this may take several claims.
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
   * Claims only these, in this order, if they wait (or are delayed and due), their keys are free and their groups have a place. Pause,
   * limit and cap of the queue and the rates of groups do not apply to them, but they count there as other claims do.
   */
  jobIds?: string[];
  /** The store writes it to `processedBy`. */
  by?: string;
  /** The locks expire after this time instead of with the session (skipLockRenewal, manual processing). */
  timedMs?: number;
  /**
   * A limit like the rate of the queue (`configure`), for claims that carry it. If the queue has a rate too, the `max` of the queue and the
   * `durationMs` of the claim apply.
   */
  limit?: Rate;
}

export interface ClaimReply {
  jobs: ClaimedJob[];
  /** False: the session has expired or never existed; nothing was claimed. */
  sessionAlive: boolean;
  paused: boolean;
  /**
   * Until the next change by time alone: a delayed job is due (also in a paused queue), a rate limit ends, or the block or window of a
   * group ends that is not paused and has a waiting job and a free place.
   */
  nextInMs?: number;
  /** Set while a block, or a full window, stops claims. `nextInMs` counts both. */
  limitedMs?: number;
  /** True when nothing is left waiting after this claim. */
  drained: boolean;
  /** True when the claim stopped at REPLY_BYTES, or had passed many groups without room or jobs: the caller may claim again at once. */
  more?: boolean;
  /**
   * True while a schedule is owing, apart from those that the claimed jobs carry as `debt`, or there is something to relay: any worker may
   * advance the schedule, and call `relay`.
   */
  undone?: true;
}
