// The verb `change` of the memory store: it moves or removes jobs from outside a run, by their ids or by a selection.
import { type ChangeStatus, movedList, replyById, replyToSelection } from '../change-reply.js';
import { isFinished } from '../../job/state.js';
import type { Change, ChangeReply, Notice, Selection } from '../contract/index.js';
import { MARK } from '../marks.js';
import { sendBack } from './dead-letter.js';
import { ownAgain } from './state/deduplication.js';
import { childReopened, unlink, waitingForThisAlone } from './family.js';
import { leave, remove } from './leave.js';
import { failCancelled, isCancelled } from './state/fail.js';
import { isNext } from './state/owing.js';
import { FROM, putDelayed, putWaiting, reopen } from './state/moves.js';
import { select } from './select.js';
import { giveBack } from './state/stall.js';
import type { QueueState, StoredJob, StoredLock } from './state/queue-state.js';

type Removal = Extract<Change, { kind: 'remove' }>;

export function change(queue: QueueState, target: string[] | Selection, what: Change, now: number): ChangeReply {
  if (!Array.isArray(target)) return replyToSelection(changeSelected(queue, target, what, now), target);
  if (what.kind === 'revoke') return replyById(target, revoke(queue, target, what.reason, now));
  return replyById(
    target,
    target.map((id) => changeOne(queue, id, what, now)),
  );
}

function changeSelected(queue: QueueState, selection: Selection, what: Change, now: number): string[] {
  const list = movedList(what, selection);
  const lists = 'from' in what || what.kind === 'promote' ? (list === undefined ? [] : [list]) : selection.lists;
  const jobs = select(queue, { ...selection, lists }, what, now);
  if (what.kind === 'send') return jobs.filter((job) => send(queue, job, what.to, now)).map(({ id }) => id);
  for (const job of jobs) {
    if (what.kind === 'remove') removeSelected(queue, job, what, now);
    else if (what.kind === 'cancel') cancel(queue, job, what.reason, now);
    else sendToWaiting(queue, job, what, now);
  }
  if (what.kind === 'remove') queue.log.record('cleaned', undefined, { count: jobs.length });
  return jobs.map(({ id }) => id);
}

function changeOne(queue: QueueState, jobId: string, what: Exclude<Change, { kind: 'revoke' }>, now: number): ChangeStatus {
  const job = queue.jobs.get(jobId);
  if (job === undefined) return 'missing';
  switch (what.kind) {
    case 'retry':
      if (job.state !== what.from) return 'state';
      if (what.fromStep !== undefined && job.steps?.get(what.fromStep) === undefined) return 'noStep';
      if (what.fromStep !== undefined) job.steps?.dropFrom(what.fromStep);
      sendToWaiting(queue, job, what, now);
      return 'done';
    case 'promote':
      if (job.state !== 'delayed') return 'state';
      sendToWaiting(queue, job, what, now);
      return 'done';
    case 'delay':
      if (job.state !== 'delayed') return 'state';
      leave(queue, job);
      putDelayed(queue, job, what.delayMs, now);
      queue.log.record('delayed', job.id, { delay: Math.ceil(job.at) });
      return 'done';
    case 'priority':
      changePriority(queue, job, what.priority, what.lifo);
      return 'done';
    case 'remove':
      if (job.lock !== undefined) return 'locked';
      if (isNext(job)) return 'scheduled';
      queue.log.record('removed', jobId, FROM[job.state]);
      remove(queue, job, now, what);
      return 'done';
    case 'send':
      if (job.lock !== undefined) return 'locked';
      return send(queue, job, what.to, now) ? 'done' : 'state';
    case 'unlink':
      return unlink(queue, job, what.child, now) ? 'done' : 'state';
    case 'cancel':
      if (isFinished(job.state)) return 'state';
      cancel(queue, job, what.reason, now);
      return 'done';
  }
}

/** An active job keeps its lock until its run ends. */
function cancel(queue: QueueState, job: StoredJob, reason: string, now: number): void {
  if (job.lock === undefined) {
    failCancelled(queue, job, reason, now);
    return;
  }
  if (isCancelled(job)) return;
  job.marks |= MARK.cancelled;
  job.extras = { ...job.extras, cancelled: reason };
  notify(job.lock, 'cancelled', reason);
}

function notify({ session, token, order: fence, job }: StoredLock, kind: Notice['kind'], reason: string): void {
  session.notices.push({ number: ++session.lastNotice, kind, jobId: job.id, token, fence, reason });
}

/** Returns false if the job is no letter. */
function send(queue: QueueState, job: StoredJob, to: string, now: number): boolean {
  const origin = job.extras?.origin;
  if (origin === undefined) return false;
  queue.log.record('removed', job.id, FROM[job.state]);
  remove(queue, job, now);
  sendBack(queue, job, origin, to, now);
  return true;
}

function removeSelected(queue: QueueState, job: StoredJob, what: Removal, now: number): void {
  // A parent may be selected beside its child, and is gone then.
  if (!queue.jobs.has(job.id)) return;
  const parents = what.parentToo === true ? waitingForThisAlone(queue, job) : [];
  for (const parent of parents) remove(queue, parent, now);
  // A job that is its own parent is gone now.
  if (queue.jobs.has(job.id)) remove(queue, job, now, what);
}

/** A job that is not waiting stores the priority until it waits. */
function changePriority(queue: QueueState, job: StoredJob, priority: number, lifo: boolean): void {
  const waiting = job.state === 'waiting';
  if (waiting) leave(queue, job);
  job.priority = priority;
  if (waiting) putWaiting(queue, job, lifo);
}

export function sendToWaiting(queue: QueueState, job: StoredJob, what: Change, now: number): void {
  const from = FROM[job.state];
  leave(queue, job);
  if (job.finishedOn !== undefined) {
    reopen(job);
    if (job.marks !== 0) {
      ownAgain(queue, job, now);
      childReopened(queue, job);
    }
  }
  putWaiting(queue, job, false);
  if (what.kind === 'retry' && what.resetAttemptsMade) job.attemptsMade = 0;
  if (what.kind === 'retry' && what.resetAttemptsStarted) job.attemptsStarted = 0;
  queue.log.record('waiting', job.id, from);
}

/** Hands back all jobs together, so they wait in the order in which the caller named them. */
function revoke(queue: QueueState, jobIds: string[], reason: string, now: number): ChangeStatus[] {
  const taken = new Set<StoredJob>();
  const statuses = jobIds.map((jobId): ChangeStatus => {
    const job = queue.jobs.get(jobId);
    if (job === undefined) return 'missing';
    if (job.lock === undefined || taken.has(job)) return 'state';
    notify(job.lock, 'revoked', reason);
    taken.add(job);
    return 'done';
  });
  giveBack(queue, [...taken], now);
  return statuses;
}
