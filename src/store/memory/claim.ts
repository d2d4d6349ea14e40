import { nextFence, tokenOf } from '../../job/lock.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ClaimReply, ClaimRequest } from '../contract.js';
import { FROM, putActive, putWaiting, setEnd, take } from './moves.js';
import { claimedOf } from './record.js';
import { type QueueState, type StoredJob, StoredLock, type StoredSession } from './state.js';

export function claim(queue: QueueState, request: ClaimRequest, now: number): ClaimReply {
  const session = queue.sessions.get(request.session);
  const sessionAlive = session?.open === true && session.expiresAt > now;
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
  if (request.seq <= session.seq) return claimedUnder(session, request.seq);
  session.seq = request.seq;
  const room = queue.paused ? 0 : queue.rate.room(request.limit, now);
  if (room === 0) return [];
  moveDue(queue, now);
  const count = Math.min(request.count, room);
  const jobs: ClaimedJob[] = [];
  for (let job = queue.waiting.first; job !== undefined && jobs.length < count; job = queue.waiting.first) {
    jobs.push(grant(queue, job, session, request, now));
  }
  queue.rate.use(jobs.length, request.limit, now);
  return jobs;
}

function claimedUnder(session: StoredSession, seq: number): ClaimedJob[] {
  const locks = session.held().filter((lock) => lock.seq === seq);
  return locks.map(claimedOf);
}

function moveDue(queue: QueueState, now: number): void {
  for (let job = queue.delayed.first; job !== undefined && job.at <= now; job = queue.delayed.first) {
    take(queue, job);
    putWaiting(queue, job, false);
    queue.log.tell('waiting', job.id, FROM.delayed);
  }
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
  queue.log.tell('active', job.id, FROM.waiting);
  return claimedOf(lock);
}
