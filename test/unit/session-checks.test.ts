// Where a server may take a living process for dead, whoever holds locks asks whether it does. Until when an answer counts, what is asked,
// and what follows when none comes.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HeldLock } from '../../src/session/held-lock.js';
import { LockTable } from '../../src/session/lock-table.js';
import { RenewalLoop } from '../../src/renewal/renewal-loop.js';
import { Session } from '../../src/session/session.js';
import { now } from '../../src/session/trust.js';
import type { SessionCheck, SessionRef } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { lockOn } from '../support/scenes/locks.js';
import { takeTime, type Time } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

const LOCK_MS = 30_000;
const GRACE_MS = 2000;
/** A twentieth of the grace. */
const TRUST_MS = GRACE_MS - 100;
/** Of the time that passes here. */
const STEP_MS = 10;

/** Its hints look at connections, as those of a server. */
class Server extends MemoryStore {
  override readonly capabilities = {
    engine: 'server',
    shared: false,
    durable: false,
    crashHints: true,
    fallibleHints: true,
    inline: false,
    transactions: false,
  };
  suspects = false;
  hasNotice = false;
  override async checkSessions(sessions: SessionRef[]): Promise<SessionCheck[]> {
    return sessions.map(() => ({ unsuspected: !this.suspects, noticed: this.hasNotice }));
  }
}

let time: Time;
let server: Server;
let store: FaultyStore;
let loop: RenewalLoop;
let lost: string[];

beforeEach(() => {
  time = takeTime();
  server = new Server({ clock: time.clock });
  store = new FaultyStore(server);
  loop = new RenewalLoop(store, time.clock);
  lost = [];
});

afterEach(() => {
  store.clear();
  loop.stop();
  vi.useRealTimers();
});

async function keep(graceMs = GRACE_MS, durationMs = LOCK_MS): Promise<Session> {
  const session = await Session.open(store, { queue: 'q', name: 'n', durationMs, maxStalls: 1, graceMs }, time.clock);
  const renewMs = durationMs / 2;
  const ignored = () => undefined;
  const plan = { queue: 'q', id: session.id, durationMs, renewMs, sweepMs: 0, graceMs: session.graceMs, maxBlockedMs: 0 };
  const told = { onRenewed: ignored, onNoticed: ignored, onLost: ignored, onError: ignored };
  loop.add({ plan, memory: session.memory, ...told }, renewMs);
  return session;
}

/** A lock that is watched as those of workers are: what ends its trust ends it. */
function watched(session: Session): HeldLock {
  const lock = lockOn(session);
  const table = new LockTable({ onLost: (locks) => lost.push(...locks.map(({ jobId }) => jobId)) });
  expect(table.track(lock)).toBe(true);
  return lock;
}

test('checks for suspicion four times in a grace while a lock is held, and not otherwise', async () => {
  const session = await keep();
  await time.pass(10_000);
  expect(store.calls('checkSessions')).toBe(0);
  session.granted(now(time.clock));
  const lock = watched(session);
  await time.pass(10_000);
  expect(store.calls('checkSessions')).toBe(20);
  expect(lock.held).toBe(true);
  lock.release();
  await time.pass(10_000);
  expect(store.calls('checkSessions')).toBe(20);
});

test('turns held false a margin before the grace is over without a reply, and aborts nothing', async () => {
  const session = await keep();
  const lock = watched(session);
  // The last answer is to the question at 2000.
  await time.pass(2000);
  store.on('checkSessions', { fault: 'fail' });
  await time.pass(TRUST_MS - STEP_MS);
  expect(lock.held).toBe(true);
  await time.pass(STEP_MS);
  expect(lock.held).toBe(false);
  expect(lock.trusted).toBe(true);
  // Its renewal is due at 15 s, and its trust ends at 29 s.
  await time.pass(24_000);
  expect(lock.signal.aborted).toBe(false);
  expect(lost).toEqual([]);
});

test('lets remainingMs end with the last reply to a suspicion check, as held does', async () => {
  const lock = watched(await keep());
  await time.pass(2000);
  store.on('checkSessions', { fault: 'fail' });
  expect(lock.remainingMs).toBe(TRUST_MS);
  await time.pass(TRUST_MS - STEP_MS);
  expect(lock.remainingMs).toBe(STEP_MS);
  expect(() => lock.assert()).not.toThrow();
  await time.pass(STEP_MS);
  expect(lock.remainingMs).toBe(0);
  expect(() => lock.assert()).toThrow(/did not confirm/);
  expect(lock.signal.aborted).toBe(false);
});

test('counts a reply from before its request was sent, however late the reply comes', async () => {
  const session = await keep();
  const lock = watched(session);
  await time.pass(400);
  const slow = store.on('checkSessions', { fault: 'hold-reply', times: 1 });
  await time.pass(100 + TRUST_MS - 2 * STEP_MS);
  slow.release();
  await time.pass(STEP_MS);
  expect(lock.held).toBe(true);
  store.on('checkSessions', { fault: 'fail' });
  await time.pass(STEP_MS);
  expect(lock.held).toBe(false);
});

test('keeps held false for a handler that read it as false, while isSure may turn true again', async () => {
  const lock = watched(await keep());
  const silence = store.on('checkSessions', { fault: 'fail' });
  await time.pass(5000);
  expect([lock.isSure, lock.held]).toEqual([false, false]);
  silence.remove();
  await time.pass(1000);
  expect([lock.isSure, lock.held]).toEqual([true, false]);
  expect(lock.signal.aborted).toBe(false);
});

test('changes nothing by a silence during which held was not read', async () => {
  const lock = watched(await keep());
  const silence = store.on('checkSessions', { fault: 'fail' });
  await time.pass(5000);
  silence.remove();
  await time.pass(1000);
  expect(lock.held).toBe(true);
});

test('renews at once under suspicion, and counts the renewal as a reply', async () => {
  const lock = watched(await keep());
  server.suspects = true;
  await time.pass(3100);
  expect(store.calls('renew')).toBe(6);
  expect(lock.held).toBe(true);
  store.on('renew', { fault: 'fail' });
  await time.pass(GRACE_MS);
  expect(lock.held).toBe(false);
  expect(lost).toEqual([]);
});

test('counts a grant as a reply, so the first lock after an idle time is held at once', async () => {
  const session = await keep();
  // Its last renewal was ten seconds ago.
  await time.pass(55_000);
  expect(session.isConfirmed).toBe(false);
  const sentAt = now(time.clock);
  await time.pass(STEP_MS);
  session.granted(sentAt);
  store.on('checkSessions', { fault: 'fail' });
  const lock = watched(session);
  await time.pass(TRUST_MS - 2 * STEP_MS);
  expect(lock.held).toBe(true);
  await time.pass(STEP_MS);
  expect(lock.held).toBe(false);
});

test('keeps locks with their own expiry held without replies', async () => {
  const session = await keep();
  const timed = lockOn(session, { durationMs: LOCK_MS, sentAt: now(time.clock) });
  const pinned = lockOn(session);
  pinned.extend(now(time.clock), LOCK_MS);
  const plain = lockOn(session);
  store.on('checkSessions', { fault: 'fail' });
  await time.pass(5000);
  expect([timed.held, pinned.held, plain.held]).toEqual([true, true, false]);
});

test.each([
  ['a grace as long as the lock', { graceMs: LOCK_MS }],
  ['a grace too short to ask within it', { graceMs: 499 }],
])('%s needs no reply between renewals, and held ends with the trust in the session', async (_name, { graceMs }) => {
  store.on('checkSessions', { fault: 'fail' });
  const lock = watched(await keep(graceMs));
  await time.pass(14_000);
  expect(lock.held).toBe(true);
});

test('needs no reply between renewals of a store whose crash hints cannot be wrong', async () => {
  server.capabilities.fallibleHints = false;
  store.on('checkSessions', { fault: 'fail' });
  const lock = watched(await keep());
  await time.pass(14_000);
  expect(lock.held).toBe(true);
});

test('has one suspicion check in flight at most, and none after stop', async () => {
  const session = await keep();
  watched(session);
  const hung = store.on('checkSessions', { fault: 'hang', times: 1 });
  await time.pass(10_000);
  expect(store.calls('checkSessions')).toBe(1);
  hung.release();
  await time.pass(600);
  expect(store.calls('checkSessions')).toBe(2);
  loop.delete(session.id);
  await time.pass(5000);
  expect(store.calls('checkSessions')).toBe(2);
});

test.each([2000, 0])('renews at once when the store holds a notice, with a grace of %i ms', async (graceMs) => {
  watched(await keep(graceMs === 0 ? LOCK_MS : graceMs));
  await time.pass(700);
  const before = store.calls('renew');
  server.hasNotice = true;
  await time.pass(600);
  expect(store.calls('renew')).toBe(before + 1);
});
