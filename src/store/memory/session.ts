// The session verbs of the memory store: open, renew, close, sweep and probe.
import { HoldfastError } from '../../errors.js';
import type { NewSession, ProbeReply, Renewal, RenewReply, SweepReply, SessionEnd } from '../contract/index.js';
import { sweepReply } from '../swept.js';
import { end, setEnd } from './moves.js';
import { freeNames } from './named-lock.js';
import { giveBack, type Lost, stall } from './stall.js';
import { byFence, type QueueState, StoredSession } from './state.js';

export function openSession(queue: QueueState, session: NewSession, now: number): void {
  if (queue.sessions.has(session.id)) {
    throw new HoldfastError('STORE_FAILED', `Session ${session.id} was opened before: give every session an id of its own.`, {
      queue: session.queue,
    });
  }
  const opened = new StoredSession(session, Math.floor(now), now + session.durationMs);
  queue.sessions.set(session.id, opened);
  queue.expiries.push(opened);
  queue.isUsed = true;
}

export function renew(queue: QueueState, renewal: Renewal, now: number): RenewReply {
  const session = queue.sessions.get(renewal.id);
  if (session?.open !== true) return { alive: false, notices: [] };
  session.expiresAt = now + session.durationMs;
  session.renewals++;
  if (renewal.slots !== undefined && renewal.slots !== session.slots) {
    session.slots = renewal.slots;
    queue.wake.signal();
  }
  const unseen = session.notices.findIndex(({ number }) => number > renewal.acked);
  session.notices.splice(0, unseen === -1 ? session.notices.length : unseen);
  return { alive: true, notices: session.notices.map((notice) => ({ ...notice })) };
}

export function closeSession(queue: QueueState, id: string, how: SessionEnd, now: number): void {
  const session = queue.sessions.get(id);
  if (session === undefined) return;
  endAndShare(queue, session);
  const held = session.held();
  const jobs = held.map(({ job }) => job);
  const lost = held.map((lock): Lost => ({ lock, found: 'exit' }));
  if (how === 'crashed') stall(queue, lost, now);
  else giveBack(queue, jobs);
  freeNames(queue, session, Number.POSITIVE_INFINITY);
}

export function sweep(queue: QueueState, limit: number, now: number): SweepReply {
  endExpired(queue, now);
  const { dead, more } = findDead(queue, limit, now);
  dead.sort((a, b) => byFence(a.lock, b.lock));
  const swept = stall(queue, dead, now);
  return sweepReply(swept, more || freeDeadNames(queue, limit - dead.length));
}

/** Returns the number of open sessions. It suspects no session, because all sessions live in this process and end with it. */
export function probe(queue: QueueState): ProbeReply {
  let sessions = 0;
  for (const session of queue.sessions.values()) if (session.open) sessions += 1;
  return { sessions };
}

export function isLiving(queue: QueueState, id: string, now: number): boolean {
  const session = queue.sessions.get(id);
  return session?.open === true && session.expiresAt > now;
}

/** Releases up to `limit` named locks and places in line of ended sessions. Returns whether more are left. */
function freeDeadNames(queue: QueueState, limit: number): boolean {
  let left = limit;
  for (const session of queue.ended) {
    left -= freeNames(queue, session, left);
    if (session.holds.size + session.places.size > 0) return true;
  }
  return false;
}

/**
 * Ends all expired sessions. A renewal does not touch the heap. When a renewed session reaches its old expiry, this function moves
 * it to its new expiry: once for all renewals since. Checking every session instead took 15 µs with ten thousand sessions.
 */
function endExpired(queue: QueueState, now: number): void {
  const { expiries } = queue;
  for (let session = expiries.first; session !== undefined && session.at <= now; session = expiries.first) {
    expiries.remove(session);
    session.at = session.expiresAt;
    if (session.at <= now) endAndShare(queue, session);
    else expiries.push(session);
  }
}

function endAndShare(queue: QueueState, session: StoredSession): void {
  end(queue, session);
  // Other sessions may use its share of the cap now.
  queue.wake.signal();
}

/** Finds locks of ended sessions, and locks whose own end has passed; the latter lose that end here. Visits no living lock. */
function findDead(queue: QueueState, limit: number, now: number): { dead: Lost[]; more: boolean } {
  const dead: Lost[] = [];
  for (const session of queue.ended) {
    // Take the newest locks first. The rest follows in later batches, which go to the front, so the oldest job ends up first.
    for (let lock = session.bound.last; lock !== undefined; lock = lock.before) {
      if (dead.length >= limit) return { dead, more: true };
      dead.push({ lock, found: 'session-expired' });
    }
  }
  for (let lock = queue.lockEnds.first; lock !== undefined && lock.at <= now; lock = queue.lockEnds.first) {
    // A session that outlived the extension keeps its lock alive again.
    const living = !lock.timed && lock.session.open;
    if (!living && dead.length >= limit) return { dead, more: true };
    setEnd(queue, lock, Number.POSITIVE_INFINITY);
    if (!living) dead.push({ lock, found: lock.timed ? 'lock-expired' : 'session-expired' });
  }
  return { dead, more: false };
}
