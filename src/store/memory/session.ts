import { HoldfastError } from '../../errors.js';
import type { NewSession, Renewal, RenewReply, SweepReply } from '../contract.js';
import { setEnd } from './moves.js';
import { giveBack, stall } from './stall.js';
import { byFence, type QueueState, type StoredLock, StoredSession } from './state.js';

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
  const held = session.held();
  const jobs = held.map(({ job }) => job);
  if (charged) stall(queue, held, now);
  else giveBack(queue, jobs);
}

export function sweep(queue: QueueState, limit: number, now: number): SweepReply {
  for (const session of queue.sessions.values()) {
    if (session.open && session.expiresAt <= now) end(queue, session);
  }
  const { dead, more } = findDead(queue, limit, now);
  return { ...stall(queue, dead.sort(byFence), now), more };
}

/** It no longer renews nor claims; its locks stay until they are given back or swept. */
function end(queue: QueueState, session: StoredSession): void {
  session.open = false;
  if (session.locks === 0) queue.sessions.delete(session.id);
}

/** Locks of ended sessions and locks whose own end has passed, which they lose here. Looks at no living one. */
function findDead(queue: QueueState, limit: number, now: number): { dead: StoredLock[]; more: boolean } {
  const dead: StoredLock[] = [];
  for (const session of queue.sessions.values()) {
    if (session.open) continue;
    // The newest first: when the rest follows in later bites, the oldest will be in front.
    for (let lock = session.bound.last; lock !== undefined; lock = lock.before) {
      if (dead.length >= limit) return { dead, more: true };
      dead.push(lock);
    }
  }
  for (let lock = queue.lockEnds.first; lock !== undefined && lock.at <= now; lock = queue.lockEnds.first) {
    // A session that outlived the extension keeps the lock alive by itself again.
    const living = !lock.timed && lock.session.open;
    if (!living && dead.length >= limit) return { dead, more: true };
    setEnd(queue, lock, Number.POSITIVE_INFINITY);
    if (!living) dead.push(lock);
  }
  return { dead, more: false };
}
