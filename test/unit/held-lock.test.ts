import { expect, test } from 'vitest';
import { lockNotHeld } from '../../src/job/lock.js';
import { now, trustUntil } from '../../src/session/trust.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

test('ends held with the trust in the session, whatever the wall clock does', async () => {
  const clock = new ManualClock();
  const lock = lockOn(await openSession(1000, clock));
  clock.stepWall(-3_600_000);
  expect(lock.held).toBe(true);
  clock.stepWall(7_200_000);
  expect(lock.held).toBe(true);
  clock.advance(949);
  expect(lock.held).toBe(true);
  clock.advance(1);
  expect(lock.held).toBe(false);
});

test('keeps held false once it was read as false, even if a renewal comes late', async () => {
  const clock = new ManualClock();
  const session = await openSession(1000, clock);
  const lock = lockOn(session);
  clock.advance(2000);
  expect(lock.held).toBe(false);
  session.memory.extendTrust(trustUntil(now(clock), 1000));
  expect(lock.held).toBe(false);
  expect(lock.trustedForMs()).toBeLessThanOrEqual(0);
});

test('does not lose a lock by a lapse that was not read before the store accepted a renewal', async () => {
  const clock = new ManualClock();
  const session = await openSession(1000, clock);
  const lock = lockOn(session);
  clock.advance(2000);
  session.memory.extendTrust(trustUntil(now(clock), 1000));
  expect(lock.held).toBe(true);
});

test('ends a timed lock at its own expiry, not with its session', async () => {
  const clock = new ManualClock();
  const session = await openSession(10_000, clock);
  const lock = lockOn(session, { durationMs: 1000, sentAt: now(clock) });
  clock.advance(950);
  expect(session.trustedForMs()).toBeGreaterThan(0);
  expect(lock.held).toBe(false);
});

test('trusts the newest extension, also a shorter one', async () => {
  const clock = new ManualClock();
  const lock = lockOn(await openSession(1000, clock));
  lock.extend(now(clock), 60_000);
  lock.extend(now(clock), 2000);
  clock.advance(1900);
  expect(lock.held).toBe(false);
});

test('keeps an extended lock beyond its session, until its own expiry', async () => {
  const clock = new ManualClock();
  const session = await openSession(1000, clock);
  const lock = lockOn(session);
  lock.extend(now(clock), 5000);
  session.memory.markLost();
  clock.advance(4000);
  expect(lock.held).toBe(true);
  clock.advance(1000);
  expect(lock.held).toBe(false);
});

test('keeps trust after an extension by a month', async () => {
  const clock = new ManualClock();
  const lock = lockOn(await openSession(1000, clock), { durationMs: 1000, sentAt: now(clock) });
  lock.extend(now(clock), 30 * 24 * 3600 * 1000);
  clock.advance(3_600_000);
  expect(lock.held).toBe(true);
});

test('loses tens of thousands of locks at once in linear time', async () => {
  const session = await openSession(60_000);
  const locks = Array.from({ length: 20_000 }, () => lockOn(session));
  const before = process.cpuUsage();
  for (const lock of locks) lock.lose('test');
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000, 'ms of processor time').toBeLessThan(1000);
  expect(locks.some((lock) => lock.held)).toBe(false);
});

test('counts remainingMs down to 0 with the trust in the session, and lets a renewal raise it', async () => {
  const clock = new ManualClock();
  const session = await openSession(1000, clock);
  const lock = lockOn(session);
  expect(lock.remainingMs).toBe(950);
  clock.advance(900);
  expect(lock.remainingMs).toBe(50);
  session.memory.extendTrust(trustUntil(now(clock), 1000));
  expect(lock.remainingMs).toBe(950);
  clock.advance(950);
  expect(lock.remainingMs).toBe(0);
  session.memory.extendTrust(trustUntil(now(clock), 1000));
  expect(lock.remainingMs).toBe(0);
});

test('counts remainingMs of a timed or extended lock to its own expiry', async () => {
  const clock = new ManualClock();
  const timed = lockOn(await openSession(10_000, clock), { durationMs: 1000, sentAt: now(clock) });
  expect(timed.remainingMs).toBe(950);
  const pinned = lockOn(await openSession(1000, clock));
  pinned.extend(now(clock), 5000);
  expect(pinned.remainingMs).toBe(4750);
});

test('throws LOCK_LOST in assert once the lock is not certainly held, and not before', async () => {
  const clock = new ManualClock();
  const session = await openSession(1000, clock);
  const [late, lost, released] = [lockOn(session), lockOn(session), lockOn(session)];
  for (const lock of [late, lost, released]) expect(() => lock.assert()).not.toThrow();
  lost.lose('an operator took it');
  expect(() => lost.assert()).toThrow(
    expect.objectContaining({ code: 'LOCK_LOST', jobId: lost.jobId, cause: lost.signal.reason }),
  );
  expect(lost.remainingMs).toBe(0);
  released.release();
  expect(() => released.assert()).toThrow(/given up/);
  expect(released.remainingMs).toBe(0);
  clock.advance(950);
  expect(() => late.assert()).toThrow(expect.objectContaining({ code: 'LOCK_LOST', queue: session.queue, jobId: late.jobId }));
  expect(() => lockNotHeld('token', 1).assert()).toThrow(expect.objectContaining({ code: 'LOCK_LOST' }));
});
