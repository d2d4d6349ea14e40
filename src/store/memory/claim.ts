import { roomUnderCap } from '../../job/cap.js';
import { nextFence, tokenOf } from '../../job/lock.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ClaimReply, ClaimRequest } from '../contract.js';
import { FROM, putActive, putWaiting, setEnd, take } from './moves.js';
import { claimedOf } from './record.js';
import { type QueueState, type StoredJob, StoredLock, type StoredSession } from './state.js';

export function claim(queue: QueueState, request: ClaimRequest, now: number): ClaimReply {
  const session = queue.sessions.get(request.session);
  const sessionAlive = session?.isAlive(now) === true;
  const jobs = sessionAlive ? claimFor(queue, session, request, now) : [];
  const limitedMs = Math.ceil(queue.rate.remainingMs(request.limit, now));
  const reply: ClaimReply = { jobs, sessionAlive, paused: queue.paused, drained: !anyWaiting(queue, now) };
  const nextAt = queue.delayed.first?.at;
  if (limitedMs > 0) reply.limitedMs = limitedMs;
  // No time that passes makes a job of a paused queue claimable.
  if (queue.paused) return reply;
  if (limitedMs > 0) reply.nextInMs = limitedMs;
  else if (nextAt !== undefined) reply.nextInMs = Math.max(0, Math.ceil(nextAt - now));
  return reply;
}

/** Waiting, or delayed and due. */
export function anyWaiting(queue: QueueState, now: number): boolean {
  return queue.waiting.size > 0 || (queue.delayed.first?.at ?? Number.POSITIVE_INFINITY) <= now;
}

function claimFor(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number): ClaimedJob[] {
  // A call that was carried out already, or a straggler that its caller gave up on: it may see what it got, never get more.
  if (request.seq <= session.lastSeq(request.lane)) return claimedUnder(session, request.seq);
  session.called(request.seq, request.lane);
  const jobs = request.jobIds === undefined ? claimFirst(queue, session, request, now) : claimById(queue, session, request, now);
  queue.rate.use(jobs.length, request.limit, now);
  // After those that fell due, whichever of them was named first.
  for (const { id } of jobs) queue.log.tell('active', id, FROM.waiting);
  return jobs;
}

function claimFirst(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number): ClaimedJob[] {
  const room = queue.paused ? 0 : queue.rate.room(request.limit, now);
  const jobs: ClaimedJob[] = [];
  if (room === 0) return jobs;
  // Also when the cap leaves no room: a due job that stayed delayed would look claimable by time alone.
  moveDue(queue, now);
  const count = Math.min(request.count, room, capRoom(queue, session, now));
  for (let job = queue.waiting.first; job !== undefined && jobs.length < count; job = queue.waiting.first) {
    jobs.push(grant(queue, job, session, request, now));
  }
  return jobs;
}

function claimById(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number): ClaimedJob[] {
  const { jobIds = [], count } = request;
  const jobs: ClaimedJob[] = [];
  for (const id of jobIds) {
    const job = queue.jobs.get(id);
    if (job === undefined || jobs.length >= count) continue;
    if (job.state === 'delayed' && job.at <= now) promote(queue, job);
    if (job.state === 'waiting' && queue.waiting.isFree(job.lockKey)) jobs.push(grant(queue, job, session, request, now));
  }
  return jobs;
}

function capRoom(queue: QueueState, session: StoredSession, now: number): number {
  if (queue.cap === undefined) return Number.POSITIVE_INFINITY;
  const living = [...queue.sessions.values()].filter((other) => other.isAlive(now));
  const others = living.filter((other) => other !== session).map(({ slots, locks }) => ({ slots, active: locks }));
  return roomUnderCap(queue.cap.maxActive, queue.active.size, { slots: session.slots, active: session.locks }, others);
}

function claimedUnder(session: StoredSession, seq: number): ClaimedJob[] {
  const locks = session.held().filter((lock) => lock.seq === seq);
  return locks.map(claimedOf);
}

function moveDue(queue: QueueState, now: number): void {
  for (let job = queue.delayed.first; job !== undefined && job.at <= now; job = queue.delayed.first) {
    promote(queue, job);
  }
}

function promote(queue: QueueState, job: StoredJob): void {
  take(queue, job);
  putWaiting(queue, job, false);
  queue.log.tell('waiting', job.id, FROM.delayed);
}

function grant(
  queue: QueueState,
  job: StoredJob,
  session: StoredSession,
  { seq, by, timedMs }: ClaimRequest,
  now: number,
): ClaimedJob {
  const fence = nextFence(queue.lastFence, now);
  queue.lastFence = fence;
  const lock = new StoredLock(job, session, tokenOf(session.id, fence), fence, seq, Math.floor(now), timedMs !== undefined);
  take(queue, job);
  putActive(queue, job, lock);
  if (timedMs !== undefined) setEnd(queue, lock, now + timedMs);
  job.attemptsStarted++;
  job.processedOn = lock.since;
  job.processedBy = by;
  return claimedOf(lock);
}
