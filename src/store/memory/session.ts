// The session verbs of the memory store: open, renew and close.
import { HoldfastError } from '../../errors.js';
import type { NewSession, Renewal, RenewReply, SessionEnd } from '../contract/index.js';
import { end } from './state/moves.js';
import { freeNames } from './named-lock.js';
import { giveBack, type Lost, stall } from './state/stall.js';
import { type QueueState, StoredSession } from './state/queue-state.js';

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
  else giveBack(queue, jobs, now);
  freeNames(queue, session, Number.POSITIVE_INFINITY);
}

export function endAndShare(queue: QueueState, session: StoredSession): void {
  end(queue, session);
  // Other sessions may use its share of the cap now.
  queue.wake.signal();
}
