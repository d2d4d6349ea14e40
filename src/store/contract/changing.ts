// Moving and removing jobs from outside a run.
import type { JobRef } from '../../job/family.js';
import type { FinishedState } from '../../job/state.js';
import type { ListName } from './inspecting.js';

export interface Changing {
  /**
   * Makes one change to many jobs from outside, without a token: jobs by their ids, or unlocked jobs that match a selection.
   * A list of ids is one atomic step. A selection may take several steps; each job is changed in one of them.
   * A repetition finds the jobs that are not changed yet. By id, it returns `missing` or `state` for the others.
   * A selection removes jobs of any list; `retry` and `promote` pass over lists that they do not start from.
   * Records the events of each job; `remove` by selection records `cleaned` instead (the file `events`).
   */
  change(queue: string, target: Selection, change: BulkChange): Promise<ChangeReply>;
  change(queue: string, target: string[], change: Change): Promise<ChangeReply>;
}

/** Selects unlocked jobs, one list after the other, the oldest of each list first. `cancel` selects active jobs too. */
export interface Selection {
  lists: ListName[];
  /** Only jobs that finished, last started or were added (the first that is known) at least this long ago. */
  olderThanMs?: number;
  limit: number;
}

export type Change =
  /**
   * Moves a finished job to waiting. Its attempts count on unless they are reset. With `fromStep`, only by id, the job loses the step of this
   * name and all later ones (`noStep`: it has no such step, and nothing was changed).
   */
  | { kind: 'retry'; from: FinishedState; resetAttemptsMade: boolean; resetAttemptsStarted: boolean; fromStep?: string }
  /** Moves a delayed job to waiting. */
  | { kind: 'promote' }
  /** Lets a delayed job fall due this long from now. */
  | { kind: 'delay'; delayMs: number }
  /** Moves a waiting job to the back (with `lifo`: the front) of its new priority. Any other job stores the priority until it waits. */
  | { kind: 'priority'; priority: number; lifo: boolean }
  /** Removes a job that is not locked and not the next job of a schedule, with all that belongs to it. */
  | { kind: 'remove'; children?: boolean; parentToo?: boolean }
  /** Sends dead letters back: see the file `families`. `state`: the job is no letter. */
  | { kind: 'send'; to: string }
  /** Parts a parent from a child that is pending. `state`: there is no such link. */
  | { kind: 'unlink'; child: JobRef }
  /**
   * Takes the lock of an active job away. The jobs move to the front of waiting in the given order, which does not count as a stall. The
   * sessions learn of it with their next renewal.
   */
  | { kind: 'revoke'; reason: string }
  /**
   * Cancels a job that has not finished. A job that is not active fails with the reason in this step (its removeOnFail applies); no attempt
   * counts, and a schedule owes its next job. An active job keeps its lock, and is `cancelled` from now on: its session gets a notice,
   * and its run ends the job. A completion counts. If the job would wait again in any way (retry, delay, release, return, children, revoke,
   * a stall, the end of its session), it fails with the reason of the cancel instead. A cancelled job sends no letter.
   * `changed` names jobs that were cancelled before too, and nothing changes for them; a selection passes over them.
   */
  | { kind: 'cancel'; reason: string };

/** The changes that a selection accepts. */
export type BulkChange = Extract<Change, { kind: 'retry' | 'promote' | 'remove' | 'send' | 'cancel' }>;

export interface ChangeReply {
  /** The ids of the changed jobs, in order. */
  changed: string[];
  /** The ids that the call left unchanged, in order. Empty for a selection. */
  others: Unchanged[];
  /** For a selection: the call stopped at its limit, so more jobs may match. */
  more: boolean;
}

export interface Unchanged {
  jobId: string;
  /**
   * state: the job is in no state that the change starts from. locked: `remove` leaves active jobs. scheduled: `remove` leaves the next
   * job of a schedule. noStep: `retry` names a step that the job does not have.
   */
  status: 'missing' | 'state' | 'locked' | 'scheduled' | 'noStep';
}
