import { HoldfastError } from '../../errors.js';
import type { NewSession, Renewal, RenewReply, SweepReply } from '../contract.js';
import { setEnd } from './moves.js';
import { giveBack, stall } from './stall.js';
import { type QueueState, type StoredLock, StoredSession } from './state.js';

export function openSession(queue: QueueState, session: NewSession, now: number): void {
  if (queue.sessions.has(session.id)) {
    throw new HoldfastError('STORE_FAILED', `Session ${session.id} was opened before: give every session an id of its own.`, {
      queue: session.queue,
    });
  }
  queue.sessions.set(session.id, new StoredSession(session, Math.floor(now), now + session.durationMs));
}

export function renew(queue: QueueState, renewal: Renewal, now: number): RenewReply {
  const session = queue.sessions.get(renewal.id);
  if (session?.open !== true) return { alive: false, revoked: [] };
  session.expiresAt = now + session.durationMs;
  session.renewals++;
  const unseen = session.revocations.findIndex(({ number }) => number > renewal.acked);
  session.revocations.splice(0, unseen === -1 ? session.revocations.length : unseen);
  return { alive: true, revoked: session.revocations.map((revocation) => ({ ...revocation })) };
}

export function closeSession(queue: QueueState, id: string, charged: boolean, now: number): void {
  const session = queue.sessions.get(id);
  if (session === undefined) return;
  end(queue, session);
  for (const lock of session.held()) {
    if (charged) stall(queue, lock, now);
    else giveBack(queue, lock.job);
  }
}

export function sweep(queue: QueueState, limit: number, now: number): SweepReply {
  for (const session of queue.sessions.values()) {
    if (session.open && session.expiresAt <= now) end(queue, session);
  }
  const reply: SweepReply = { stalled: [], failed: [], more: false };
  for (const lock of deadLocks(queue, now)) {
    reply.more = reply.stalled.length + reply.failed.length >= limit;
    if (reply.more) break;
    reply[stall(queue, lock, now)].push(lock.job.id);
  }
  return reply;
}

/** It no longer renews nor claims; its locks stay until they are given back or swept. */
function end(queue: QueueState, session: StoredSession): void {
  session.open = false;
  if (session.locks === 0) queue.sessions.delete(session.id);
}

/**
 * Locks of ended sessions and locks whose own end has passed; looks at no living one. Each must be gone before the next is
 * asked for. A session's newest comes first: put at the front one by one, its jobs wait again in the order of their claims.
 */
function* deadLocks(queue: QueueState, now: number): Generator<StoredLock> {
  for (const session of queue.sessions.values()) {
    if (session.open) continue;
    for (let lock = session.bound.last; lock !== undefined; lock = session.bound.last) yield lock;
  }
  for (let lock = queue.lockEnds.first; lock !== undefined && lock.at <= now; lock = queue.lockEnds.first) {
    // A session that outlived the extension: the lock lives as long as its session again.
    if (!lock.timed && lock.session.open) setEnd(queue, lock, Number.POSITIVE_INFINITY);
    else yield lock;
  }
}
