// A lock as the sandbox of its worker reads it: in a thread from the worker's memory, in a process from messages.
import { expect, test } from 'vitest';
import { systemClock } from '../../src/runtime/clock.js';
import { HeldLock } from '../../src/session/held-lock.js';
import { SeenSession } from '../../src/session/seen-session.js';
import { moment, now } from '../../src/session/trust.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

/** The same lock, as a thread of the worker has it. */
function inThread(lock: HeldLock): { seen: HeldLock; ownEnd: Int32Array } {
  const ownEnd = new Int32Array(new SharedArrayBuffer(8));
  const { slot, words, block } = lock.share(ownEnd);
  const session = new SeenSession('q', slot, { words, slots: [block] });
  const job = { id: lock.jobId, token: lock.token, fence: lock.fence };
  return { seen: new HeldLock({ session, job, seen: { ownEnd, timed: lock.timed }, onGrown: () => undefined }), ownEnd };
}

test('a thread reads that the lock of its job is held, and that it is lost', async () => {
  const lock = lockOn(await openSession(60_000));
  const { seen } = inThread(lock);
  expect([seen.held, seen.expiresAt > Date.now() + 50_000]).toEqual([true, true]);
  lock.lose('taken by an operator');
  expect(seen.held).toBe(false);
});

test('a thread whose slot went to the lock of another job does not take that for its own', async () => {
  const session = await openSession(60_000);
  const lock = lockOn(session);
  const { seen } = inThread(lock);
  lock.release();
  const next = new HeldLock({ session, job: { id: 'next', token: 't', fence: lock.fence + 1 }, onGrown: () => undefined });
  expect([next.held, seen.held]).toEqual([true, false]);
});

test('a thread stops trusting when the session of its worker is lost, and leaves the memory of the worker alone', async () => {
  const session = await openSession(60_000);
  const lock = lockOn(session);
  const { seen } = inThread(lock);
  (seen.session as SeenSession).lost();
  (seen.session as SeenSession).trust(99, 0);
  seen.release();
  expect([lock.held, session.memory.alive]).toEqual([true, true]);
  const again = inThread(lock).seen;
  session.memory.markLost();
  expect(again.held).toBe(false);
});

test('a thread reads the end that an extension gave to its lock, and a shorter one at once', async () => {
  const lock = lockOn(await openSession(60_000), { durationMs: 30_000, sentAt: now(systemClock) });
  const { seen, ownEnd } = inThread(lock);
  expect(Math.round(seen.trustedForMs() / 1000)).toBe(29);
  lock.extend(now(systemClock), 90_000);
  expect(Math.round(seen.trustedForMs() / 1000)).toBe(89);
  lock.shorten(now(systemClock), 10_000);
  expect(seen.trustedForMs()).toBeLessThan(10_000);
  // The words belong to another job now.
  lock.share(undefined);
  const before = [...ownEnd];
  lock.extend(now(systemClock), 90_000);
  expect([...ownEnd]).toEqual(before);
});

test('a process trusts its lock until the moment that it was told, and not after word of the loss', () => {
  const job = { id: '1', token: 't', fence: 5 };
  const make = (forMs: number): { session: SeenSession; lock: HeldLock } => {
    const session = new SeenSession('q', 0);
    session.trust(5, moment(systemClock.monotonic() + forMs));
    const ownEnd = new Int32Array(new SharedArrayBuffer(8));
    return { session, lock: new HeldLock({ session, job, seen: { ownEnd, timed: false }, onGrown: () => undefined }) };
  };
  const over = make(-1);
  expect(over.lock.held).toBe(false);
  over.session.trust(5, moment(systemClock.monotonic() + 60_000));
  expect(over.lock.held).toBe(false);
  const lost = make(60_000);
  expect(lost.lock.held).toBe(true);
  lost.session.lost();
  expect(lost.lock.held).toBe(false);
});

test('a process may trust a lock for as long as its worker at most', async () => {
  const session = await openSession(60_000);
  const lock = lockOn(session);
  expect(Math.round(lock.sureForMs() / 1000)).toBe(59);
  session.memory.startConfirming(moment(systemClock.monotonic() + 2000));
  expect(lock.sureForMs()).toBeLessThanOrEqual(2000);
  lock.lose('taken');
  expect(lock.sureForMs()).toBe(0);
});
