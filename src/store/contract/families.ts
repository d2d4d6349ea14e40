// Work that crosses queues: families, whose parents wait for their children, and dead letters.
import type { JobRef, LinkState } from '../../job/family.js';

export type { Instruction, JobRef, LinkState, ParentLink } from '../../job/family.js';

/*
 * The rule of dead letters. A job with `deadLetter` that fails for good, by an outcome or by a sweep, sends a letter to that queue in the
 * same step: a job with the same name, data, options and timestamp, whose `origin` says where it comes from. Its id is `letterId` with the
 * fence of the run that failed. `change` with `send` removes letters that are not locked and adds their jobs to the queue `to`.
 * The job has its old id, or that of the letter if the old one is taken.
 *
 * The rule of families. A parent has one link for each child, in its own queue. A child names its parents. What a call means for a job of another
 * queue is a message: the store writes it in the same step as the change that causes it, and delivers it in that step or after it. A
 * message never touches a token, and a call that is refused (lost, missing) sends none.
 * - `add` makes the links. A call in which a job has `parents` is added as a whole or not at all: if a parent does not exist (noParent) or
 *   a child that exists has another living parent (otherParent, unless `shares` is set), the other jobs of the call are `refused`. A parent
 *   stands before its children in the call. A child that exists already gets the parent: its link is processed at once if it has
 *   completed, and follows its instruction at once if it has failed.
 * - A job with `waitsForChildren` is in `waiting-children` until no link is pending, and goes on at once if there is none after the call.
 * - A child that completes, fails for good or is removed sends each parent the instruction of that end: the link gets its state, its text
 *   (the result or the reason of the failure) and, if the parent waits for children, may release it. A removal changes pending links
 *   alone. A failure without an instruction leaves the link pending. A finished child that is retried makes its link pending again.
 * - A released parent goes to the front of waiting, or to delayed if it was added with a delay, which counts from then. A doomed parent
 *   goes to the front of waiting, also from delayed, and its record names the child (`doomedBy`): the worker that claims it fails it without a run. A parent
 *   that is active or finished keeps its state.
 * - `settle`: a parent with a failed link cannot complete (unsuccessful), nor one with a pending link (pending); nothing is changed then.
 *   The outcome `children` moves the parent to waiting-children if a link is pending (with `child`: that link), without an attempt.
 *   Otherwise the status is ready, and the owner keeps its lock.
 * - `change`: `remove` with `children` also takes the parent from each child, and removes a child that has no other parent and is not
 *   locked, with its own children. Without it the children stay. With `parentToo`, which a selection alone heeds, a parent in the same
 *   queue is removed when its last pending child is; the parents of that parent are released as by any removal. `unlink` deletes a pending link and takes the parent from that child. A parent in waiting-children can be removed.
 */
export interface Families {
  /**
   * Delivers up to `limit` messages that this queue sends, or that other queues send to it, the oldest of each sender first. Atomic for each
   * message and idempotent: any number of callers may run it. A store that delivers in the step that sends has nothing to relay. Claims and
   * probes say `undone` while there is something to relay.
   */
  relay(queue: string, limit: number): Promise<RelayReply>;
  /** Returns the links of a job in the given states, from `after` on, in a stable order, with the number of links of each state. */
  children(queue: string, jobId: string, query: ChildrenQuery): Promise<ChildrenReply>;
}

export interface RelayReply {
  delivered: number;
  /** True if messages are left. */
  more: boolean;
}

export interface ChildrenQuery {
  states: LinkState[];
  /** The `next` of the page before. Absent: from the first link on. */
  after?: string;
  limit: number;
}

export interface ChildrenReply {
  counts: Record<LinkState, number>;
  links: Link[];
  /** Set if links may follow. */
  next?: string;
}

export interface Link {
  child: JobRef;
  state: LinkState;
  /** The result of the child as JSON text (processed), or the reason of its failure (failed, ignored). */
  text?: string;
}
