import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HeldLock } from '../../src/session/held-lock.js';
import { LockTable } from '../../src/session/lock-table.js';
import { now } from '../../src/session/trust.js';
import type { Notice } from '../../src/store/contract/index.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

const clock = new ManualClock();

/** Time passes for timers and for trust alike. */
function pass(ms: number): void {
  for (let left = ms; left > 0; left -= 10) {
    clock.advance(10);
    vi.advanceTimersByTime(10);
  }
}

function newTable(): { table: LockTable; told: string[] } {
  const told: string[] = [];
  const table = new LockTable({ onLost: (locks: HeldLock[]) => told.push(...locks.map(({ jobId }) => jobId)) });
  return { table, told };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

function noticeOf(kind: Notice['kind'], { jobId, token, fence }: HeldLock, reason: string): Notice {
  return { number: 1, kind, jobId, token, fence, reason };
}

test('reports each lost lock once, on time, and aborts its signal with the reason', async () => {
  const { table, told } = newTable();
  const lock = lockOn(await openSession(1000, clock));
  table.track(lock);
  pass(940);
  expect(told).toEqual([]);
  pass(40);
  expect(told).toEqual([lock.jobId]);
  expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', jobId: lock.jobId });
  pass(5000);
  table.notice([noticeOf('revoked', lock, 'again')]);
  expect(told).toEqual([lock.jobId]);
  table.stop();
});

test('reports a lock on time that ends sooner than all before it', async () => {
  const { table, told } = newTable();
  const long = lockOn(await openSession(1000, clock));
  long.extend(now(clock), 3_600_000);
  table.track(long);
  pass(1100);
  const short = lockOn(await openSession(1000, clock));
  table.track(short);
  pass(1000);
  expect(told).toEqual([short.jobId]);
  table.stop();
});

test('reports a shortened lock at its new end', async () => {
  const { table, told } = newTable();
  const session = await openSession(600_000, clock);
  const lock = lockOn(session, { durationMs: 600_000, sentAt: now(clock) });
  table.track(lock);
  table.extend(lock.token, now(clock), 1000);
  pass(1000);
  expect(told).toEqual([lock.jobId]);
  table.stop();
});

test('moves the end of a lock by a renewal in shared memory, without a message', async () => {
  const { table, told } = newTable();
  const session = await openSession(1000, clock);
  table.track(lockOn(session));
  for (let round = 0; round < 5; round += 1) {
    pass(500);
    session.memory.extendTrust(now(clock) + 950);
  }
  expect(told).toEqual([]);
  pass(1000);
  expect(told).toHaveLength(1);
  table.stop();
});

test('reports locks with one deadline together, and others at their own end', async () => {
  const { table, told } = newTable();
  const session = await openSession(10_000, clock);
  const first = lockOn(session);
  const second = lockOn(session);
  const timed = lockOn(session, { durationMs: 1000, sentAt: now(clock) });
  const other = lockOn(await openSession(2000, clock));
  for (const lock of [first, second, timed, other]) table.track(lock);
  pass(1000);
  expect(told).toEqual([timed.jobId]);
  pass(1000);
  expect(told).toEqual([timed.jobId, other.jobId]);
  pass(7300);
  expect(told).toHaveLength(2);
  pass(700);
  expect(told.slice(2)).toEqual([first.jobId, second.jobId]);
  table.stop();
});

test('watches a lock that is added after the table was stopped', async () => {
  const { table, told } = newTable();
  const session = await openSession(1000, clock);
  table.track(lockOn(session));
  table.stop();
  const late = lockOn(session);
  table.track(late);
  pass(1000);
  expect(told).toContain(late.jobId);
  table.stop();
});

test('does not report the lock of a run that has ended, because the store decides about its result', async () => {
  const { table, told } = newTable();
  const session = await openSession(1000, clock);
  const lock = lockOn(session);
  table.track(lock);
  lock.finishing = true;
  pass(2000);
  session.memory.markLost();
  table.loseSession(session, 'gone');
  expect(told).toEqual([]);
  expect(lock.signal.aborted).toBe(false);
  table.stop();
});

test('reports the locks of an ended session at once, except those with their own expiry', async () => {
  const { table, told } = newTable();
  const session = await openSession(10_000, clock);
  const bound = lockOn(session);
  const timed = lockOn(session, { durationMs: 2000, sentAt: now(clock) });
  const pinned = lockOn(session);
  pinned.extend(now(clock), 3000);
  for (const lock of [bound, timed, pinned]) table.track(lock);
  session.memory.markLost();
  table.loseSession(session, 'gone');
  expect(told).toEqual([bound.jobId]);
  pass(1920);
  expect(told).toEqual([bound.jobId, timed.jobId]);
  pass(1000);
  expect(told).toEqual([bound.jobId, timed.jobId, pinned.jobId]);
  table.stop();
});

test('does not add a lock that was revoked before the reply of its claim', async () => {
  const { table, told } = newTable();
  const session = await openSession(1000, clock);
  const taken = lockOn(session);
  const other = lockOn(session);
  table.notice([noticeOf('revoked', taken, 'revoked by an operator')]);
  expect(table.track(taken)).toBe(false);
  expect(table.track(other)).toBe(true);
  expect(table.jobIds()).toEqual([other.jobId]);
  expect(told).toEqual([]);
  table.stop();
});

test('adds a lock whose job was cancelled before the reply of its claim, and aborts its signal', async () => {
  const { table, told } = newTable();
  const lock = lockOn(await openSession(1000, clock));
  table.notice([noticeOf('cancelled', lock, 'cancelled: enough')]);
  expect(table.track(lock)).toBe(true);
  expect([lock.doomed, lock.held]).toEqual(['cancelled: enough', true]);
  expect(lock.signal.reason).toMatchObject({ code: 'CANCELLED', message: 'cancelled: enough', jobId: lock.jobId });
  expect(told).toEqual([]);
  table.stop();
});

test('keeps a lock whose job is cancelled, and aborts its signal with the reason', async () => {
  const { table, told } = newTable();
  const [lock, ending] = [lockOn(await openSession(1000, clock)), lockOn(await openSession(1000, clock))];
  for (const one of [lock, ending]) table.track(one);
  ending.finishing = true;
  table.notice([noticeOf('cancelled', lock, 'cancelled'), noticeOf('cancelled', ending, 'cancelled')]);
  expect([lock.held, lock.signal.aborted, ending.signal.aborted]).toEqual([true, true, false]);
  expect(told).toEqual([]);
  table.stop();
});

test('does not add a lock whose trust ended before it arrived', async () => {
  const { table } = newTable();
  const lock = lockOn(await openSession(1000, clock));
  pass(2000);
  expect(table.track(lock)).toBe(false);
  expect(table.size).toBe(0);
});

test('counts a renewal for the held locks of its session, not for lost, timed or other locks', async () => {
  const { table } = newTable();
  const session = await openSession(1000, clock);
  const [kept, lost] = [lockOn(session), lockOn(session)];
  const timed = lockOn(session, { durationMs: 1000, sentAt: now(clock) });
  const foreign = lockOn(await openSession(1000, clock));
  for (const lock of [kept, lost, timed, foreign]) table.track(lock);
  table.notice([noticeOf('revoked', lost, 'revoked by an operator')]);
  // Its handler has not ended yet.
  expect(table.size).toBe(4);
  expect(table.renewedJobIds(session)).toEqual([kept.jobId]);
  table.stop();
});

test('keeps the other locks, in their order, when one is untracked twice or while all are visited', async () => {
  const { table } = newTable();
  const session = await openSession(1000, clock);
  const locks = [1, 2, 3, 4].map(() => lockOn(session));
  for (const lock of locks) table.track(lock);
  const [first, second, third, fourth] = locks as [HeldLock, HeldLock, HeldLock, HeldLock];
  // A processor that settles its own job untracks the lock, and so does the end of its run.
  table.untrack(second);
  table.untrack(second);
  expect(table.locks()).toEqual([first, third, fourth]);
  expect(table.size).toBe(3);
  expect([first, second].map(({ token }) => table.get(token))).toEqual([first, undefined]);
  table.untrack(first);
  expect([first, third].map(({ token }) => table.get(token))).toEqual([undefined, third]);
  for (const lock of table.locks()) table.untrack(lock);
  expect(table.locks()).toEqual([]);
  table.stop();
});
