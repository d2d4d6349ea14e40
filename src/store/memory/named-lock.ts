// The verbs `acquire` and `letGo` of the memory store: named locks and the lines of lock waiters. The sweep calls `freeNames`.
import { nextFence } from '../../job/lock.js';
import type { LetGoStatus, LockGrant, LockRequest, NamedLockRef } from '../contract/index.js';
import { end, forgetEnded } from './state/moves.js';
import { type Hold, type Place, type QueueState, StoredName, type StoredSession } from './state/queue-state.js';

export function acquire(queue: QueueState, wish: LockRequest, now: number): LockGrant {
  const session = queue.sessions.get(wish.session);
  if (session?.isAlive(now) !== true) return { status: 'gone' };
  const name = queue.names.get(wish.name) ?? new StoredName(wish.name);
  forgetLapsed(queue, name, now);
  const holder = name.hold?.session.isAlive(now) === true ? name.hold : undefined;
  if (holder?.token === wish.token) return { status: 'held', fence: holder.fence };
  const line = kept(name, now);
  const place = line.findIndex(({ token }) => token === wish.token);
  const ahead = place === -1 ? line.length : place;
  if (holder === undefined && ahead === 0) return grant(queue, name, session, wish.token, now);
  if (wish.keepPlaceMs > 0) keepPlace(queue, name, session, wish, now);
  else if (name.line.has(wish.token)) letGo(queue, wish, now);
  const endsInMs = holder === undefined ? undefined : Math.ceil(holder.session.expiresAt - now);
  return { status: 'taken', ahead, ...(endsInMs !== undefined && { endsInMs }) };
}

export function letGo(queue: QueueState, { name, token }: NamedLockRef, now: number): LetGoStatus {
  const known = queue.names.get(name);
  if (known === undefined) return 'missing';
  forgetLapsed(queue, known, now);
  const place = known.line.get(token);
  const holds = known.hold?.token === token;
  if (holds) drop(queue, known);
  leaveLine(queue, place);
  if (!holds && place === undefined) return 'missing';
  queue.wake.signal();
  return 'done';
}

/** Returns the places in line that count. The place of an expired session does not count until the session is renewed. */
export function kept(name: StoredName, now: number): Place[] {
  return [...name.line.values()].filter(({ keptUntil, session }) => keptUntil > now && session.isAlive(now));
}

/** Releases up to `limit` named locks and places in line of a session. Returns how many it released. */
export function freeNames(queue: QueueState, session: StoredSession, limit: number): number {
  let freed = 0;
  for (const { name } of session.holds) {
    if (freed >= limit) break;
    drop(queue, name);
    freed++;
  }
  for (const place of session.places) {
    if (freed >= limit) break;
    leaveLine(queue, place);
    freed++;
  }
  if (freed > 0) queue.wake.signal();
  return freed;
}

function grant(queue: QueueState, name: StoredName, session: StoredSession, token: string, now: number): LockGrant {
  // The previous holder's session has expired. End it, because a late renewal would make the previous holder trust its lock again.
  if (name.hold !== undefined) end(queue, name.hold.session);
  drop(queue, name);
  leaveLine(queue, name.line.get(token));
  const fence = nextFence(queue.lastFence, now);
  const hold: Hold = { name, token, session, fence, since: Math.floor(now) };
  queue.lastFence = fence;
  queue.names.set(name.name, name);
  name.hold = hold;
  session.holds.add(hold);
  return { status: 'held', fence };
}

function keepPlace(
  queue: QueueState,
  name: StoredName,
  session: StoredSession,
  { token, keepPlaceMs }: LockRequest,
  now: number,
): void {
  const keptUntil = now + keepPlaceMs;
  const known = name.line.get(token);
  if (known !== undefined) {
    known.keptUntil = keptUntil;
    return;
  }
  const place: Place = { name, token, session, keptUntil };
  queue.names.set(name.name, name);
  name.line.set(token, place);
  session.places.add(place);
}

function forgetLapsed(queue: QueueState, name: StoredName, now: number): void {
  for (const place of name.line.values()) if (place.keptUntil <= now) leaveLine(queue, place);
}

/** Releases the named lock, whether its session is alive or not. */
function drop(queue: QueueState, name: StoredName): void {
  const { hold } = name;
  if (hold === undefined) return;
  name.hold = undefined;
  hold.session.holds.delete(hold);
  forgetEnded(queue, hold.session);
  forgetUnused(queue, name);
}

function leaveLine(queue: QueueState, place: Place | undefined): void {
  if (place === undefined) return;
  place.name.line.delete(place.token);
  place.session.places.delete(place);
  forgetEnded(queue, place.session);
  forgetUnused(queue, place.name);
}

function forgetUnused(queue: QueueState, name: StoredName): void {
  if (name.hold === undefined && name.line.size === 0) queue.names.delete(name.name);
}
