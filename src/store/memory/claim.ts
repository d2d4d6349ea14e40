// The verb `claim` of the memory store: moves waiting jobs to active and grants their locks. `settle` calls it too.
import { roomUnderCap } from '../../job/cap.js';
import { nextFence, tokenOf } from '../../job/lock.js';
import { limitOfClaim } from '../../job/rate.js';
import type { ClaimedJob } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import { leave } from './leave.js';
import { FROM, putActive, putWaiting, setEnd } from './state/moves.js';
import { claimedOf } from './record.js';
import { started } from './state/owing.js';
import { type QueueState, type StoredJob, StoredLock, type StoredSession } from './state/queue-state.js';

interface Claimed {
  jobs: ClaimedJob[];
  more: boolean;
}

export function claim(queue: QueueState, request: ClaimRequest, now: number): ClaimReply {
  const session = queue.sessions.get(request.session);
  const sessionAlive = session?.isAlive(now) === true;
  const claimed: Claimed = { jobs: [], more: false };
  if (sessionAlive) claimFor(queue, session, request, now, claimed);
  const limitedMs = Math.ceil(queue.limits.remainingMs(limitOfClaim(queue.rate, request.limit), now));
  const reply: ClaimReply = { jobs: claimed.jobs, sessionAlive, paused: queue.paused, drained: !anyWaiting(queue, now) };
  if (claimed.more) reply.more = true;
  const { owing } = queue.schedules;
  if (owing > 0 && owing > claimed.jobs.filter(({ debt }) => debt !== undefined).length) reply.undone = true;
  const nextAt = nextChange(queue, now);
  if (limitedMs > 0) reply.limitedMs = limitedMs;
  if (limitedMs > 0 && !queue.paused) reply.nextInMs = limitedMs;
  if (nextAt !== undefined)
    reply.nextInMs = Math.min(reply.nextInMs ?? Number.POSITIVE_INFINITY, Math.max(0, Math.ceil(nextAt - now)));
  return reply;
}

/** Returns when a delayed job is due or the rest of a group ends, whichever comes first. */
function nextChange(queue: QueueState, now: number): number | undefined {
  const { groups } = queue.waiting;
  groups.advance(now);
  const restEndsAt = queue.paused ? undefined : groups.restEndsAt;
  const dueAt = queue.delayed.first?.at;
  return restEndsAt === undefined || dueAt === undefined ? (restEndsAt ?? dueAt) : Math.min(restEndsAt, dueAt);
}

/** True if a job is waiting, or is delayed and due. */
export function anyWaiting(queue: QueueState, now: number): boolean {
  return queue.waiting.size > 0 || (queue.delayed.first?.at ?? Number.POSITIVE_INFINITY) <= now;
}

function claimFor(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number, claimed: Claimed): void {
  // The store has already carried out this call, or the caller gave up on it. Return the jobs it got, and never claim more for it.
  if (request.seq <= session.lastSeq(request.lane)) {
    claimed.jobs = claimedUnder(session, request.seq);
    return;
  }
  session.called(request.seq, request.lane);
  if (request.jobIds === undefined) claimFirst(queue, session, request, now, claimed);
  else claimById(queue, session, request, now, claimed);
  queue.limits.use(claimed.jobs.length, limitOfClaim(queue.rate, request.limit), now);
  // The 'active' events come after all 'waiting' events of jobs that fell due, in whichever order the caller named the jobs.
  for (const { id } of claimed.jobs) queue.log.record('active', id, FROM.waiting);
}

function claimFirst(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number, claimed: Claimed): void {
  // Move due jobs even if there is no room for a claim. A due job that stayed delayed would make `nextInMs` 0, although time alone
  // makes nothing claimable.
  moveDue(queue, now);
  const room = queue.paused ? 0 : queue.limits.room(limitOfClaim(queue.rate, request.limit), now);
  if (room === 0) return;
  const { jobs } = claimed;
  const { groups } = queue.waiting;
  groups.advance(now);
  const count = Math.min(request.count, room, capRoom(queue, session, now));
  let bytes = 0;
  while (jobs.length < count) {
    const job = queue.waiting.first;
    if (job === undefined) return;
    bytes += job.data.length;
    if (bytes > REPLY_BYTES && jobs.length > 0) {
      claimed.more = true;
      return;
    }
    jobs.push(grant(queue, job, session, request, now));
    groups.tookTurn(job);
  }
}

function claimById(queue: QueueState, session: StoredSession, request: ClaimRequest, now: number, claimed: Claimed): void {
  const { jobIds = [], count } = request;
  const { jobs } = claimed;
  let bytes = 0;
  for (const id of jobIds) {
    const job = queue.jobs.get(id);
    if (job === undefined || jobs.length >= count || claimed.more) continue;
    if (job.state === 'delayed' && job.at <= now) promote(queue, job);
    if (job.state !== 'waiting' || !queue.waiting.isFree(job)) continue;
    bytes += job.data.length;
    if (bytes > REPLY_BYTES && jobs.length > 0) claimed.more = true;
    else jobs.push(grant(queue, job, session, request, now));
  }
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
  leave(queue, job);
  putWaiting(queue, job, false);
  queue.log.record('waiting', job.id, FROM.delayed);
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
  leave(queue, job);
  putActive(queue, job, lock);
  if (timedMs !== undefined) setEnd(queue, lock, now + timedMs);
  if (job.group !== undefined) queue.waiting.groups.use(job.group, now);
  job.attemptsStarted++;
  job.processedOn = lock.since;
  job.processedBy = by;
  const claimed = claimedOf(lock);
  if (job.marks !== 0) started(queue, job, claimed);
  return claimed;
}
