// Puts a job into a place. Every verb takes a job out of one place (leave.ts) and puts it into another within one call. No other
// file changes the places or `state`.
import type { FinishedState } from '../../../job/state.js';
import type { QueueState, StoredJob, StoredLock, StoredSession } from './queue-state.js';

/** Fields of events that record only the previous state of the job. All such events share these objects. */
export const FROM = {
  waiting: { prev: 'waiting' },
  delayed: { prev: 'delayed' },
  active: { prev: 'active' },
  completed: { prev: 'completed' },
  failed: { prev: 'failed' },
  'waiting-children': { prev: 'waiting-children' },
} as const;

export function putWaiting(queue: QueueState, job: StoredJob, front: boolean): void {
  job.state = 'waiting';
  queue.waiting.add(job, front);
}

export function putDelayed(queue: QueueState, job: StoredJob, delayMs: number, now: number): void {
  job.state = 'delayed';
  job.delay = delayMs;
  job.at = now + delayMs;
  queue.delayed.push(job);
}

/** The job keeps the delay that begins when its children have ended. */
export function putParent(queue: QueueState, job: StoredJob, delayMs: number): void {
  job.state = 'waiting-children';
  job.delay = delayMs;
  queue.parents.pushBack(job);
}

export function putActive(queue: QueueState, job: StoredJob, lock: StoredLock): void {
  job.state = 'active';
  job.lock = lock;
  queue.active.pushBack(job);
  queue.waiting.setTaken(job, true);
  lock.session.bound.pushBack(lock);
}

export function putFinished(queue: QueueState, job: StoredJob, state: FinishedState, now: number): void {
  job.state = state;
  job.finishedOn = Math.floor(now);
  queue.finished[state].pushBack(job);
  queue.finishes++;
  queue.metrics?.[state].add(now);
}

/** Resets a finished job to one that has not run. Its attempts, stack trace and logs stay. */
export function reopen(job: StoredJob): void {
  job.finishedOn = undefined;
  job.clearFinisher();
  job.processedOn = undefined;
  job.returnvalue = undefined;
  job.failedReason = undefined;
}

/** Gives a lock its own end. An infinite end removes the lock's own end and binds the lock to its session again. */
export function setEnd(queue: QueueState, lock: StoredLock, at: number): void {
  detach(queue, lock);
  lock.at = at;
  if (at === Number.POSITIVE_INFINITY) {
    lock.session.bound.pushBack(lock);
  } else {
    lock.session.ending.pushBack(lock);
    queue.lockEnds.push(lock);
  }
}

export function unlock(queue: QueueState, lock: StoredLock): void {
  detach(queue, lock);
  lock.job.lock = undefined;
  forgetEnded(queue, lock.session);
}

/** Ends a session: it can no longer renew or claim. Its locks and places in line stay until they are handed back or swept. */
export function end(queue: QueueState, session: StoredSession): void {
  session.open = false;
  if (session.slot !== -1) queue.expiries.remove(session);
  queue.ended.add(session);
  forgetEnded(queue, session);
}

/** Deletes an ended session once it holds no lock and no place in line. */
export function forgetEnded(queue: QueueState, session: StoredSession): void {
  if (session.open || !session.empty) return;
  queue.ended.delete(session);
  queue.sessions.delete(session.id);
}

function detach(queue: QueueState, lock: StoredLock): void {
  if (lock.slot === -1) {
    lock.session.bound.remove(lock);
  } else {
    lock.session.ending.remove(lock);
    queue.lockEnds.remove(lock);
  }
}
