import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SessionPlan } from '../../src/session/renewer.js';
import { RenewalLoop, type Renewed } from '../../src/renewal/renewal-loop.js';
import { Session } from '../../src/session/session.js';
import type { Notice } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { takeTime, type Time } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

interface Kept {
  session: Session;
  told: { renewed: number; lost: number; revoked: Notice[]; errors: string[] };
}

let time: Time;
let inner: MemoryStore;
let store: FaultyStore;
let loop: RenewalLoop;

beforeEach(() => {
  time = takeTime();
  inner = new MemoryStore({ clock: time.clock });
  store = new FaultyStore(inner);
  loop = new RenewalLoop(store, time.clock);
});

afterEach(() => {
  store.clear();
  loop.stop();
  vi.useRealTimers();
});

async function keep(renewMs = 1000, firstInMs = renewMs, extra: Partial<Renewed> = {}): Promise<Kept> {
  const durationMs = 2 * renewMs;
  const session = await Session.open(store, { queue: 'q', name: 'n', durationMs, maxStalls: 1 }, time.clock);
  const told: Kept['told'] = { renewed: 0, lost: 0, revoked: [], errors: [] };
  const plan: SessionPlan = { queue: 'q', id: session.id, durationMs, renewMs, sweepMs: 0, graceMs: 0, maxBlockedMs: 0 };
  const renewed: Renewed = {
    plan,
    memory: session.memory,
    onRenewed: () => (told.renewed += 1),
    onNoticed: (notices) => told.revoked.push(...notices),
    onLost: () => (told.lost += 1),
    onError: ({ message }) => told.errors.push(message),
    ...extra,
  };
  loop.add(renewed, firstInMs);
  return { session, told };
}

test('renews all sessions in one call, also those that started at different moments', async () => {
  const kept = [await keep()];
  await time.pass(150);
  kept.push(await keep());
  await time.pass(80);
  kept.push(await keep());
  await time.pass(3100);
  expect(store.calls('renew')).toBe(3);
  for (const { session, told } of kept) {
    expect(told).toMatchObject({ renewed: 3, lost: 0, errors: [] });
    expect(session.trustedForMs()).toBeGreaterThan(1000);
  }
});

test('renews a session with a short interval before one with a long interval', async () => {
  const slow = await keep(10_000);
  const fast = await keep(100);
  await time.pass(1000);
  expect(fast.told.renewed).toBeGreaterThanOrEqual(9);
  expect(slow.told.renewed).toBe(0);
  await time.pass(9100);
  expect(slow.told.renewed).toBe(1);
});

test('trusts from before the call was sent, not from its reply', async () => {
  const { session } = await keep(1000);
  const held = store.on('renew', { fault: 'hold-reply', times: 1 });
  await time.pass(1010);
  await time.pass(700);
  held.release();
  await time.pass(10);
  // 2000 from the sending, less the margin of 100, less the 710 that have passed since.
  expect(session.trustedForMs()).toBeLessThanOrEqual(2000 - 100 - 700);
  expect(session.trustedForMs()).toBeGreaterThan(2000 - 100 - 800);
});

test('reports each failed renewal, and retries soon', async () => {
  const { told } = await keep(1000, 0);
  const outage = store.on('renew', { fault: 'fail' });
  await time.pass(1200);
  expect(outage.struck).toBeGreaterThanOrEqual(4);
  expect(told.errors).toHaveLength(outage.struck);
  expect(told.renewed).toBe(0);
  outage.remove();
  await time.pass(300);
  expect(told.renewed).toBe(1);
});

test('reports a renewal that hangs, goes on with others, and ignores its late reply', async () => {
  const { session, told } = await keep(1000, 0);
  const hung = store.on('renew', { fault: 'hang', times: 1 });
  await time.pass(3000);
  expect(told.errors).toEqual(['The store did not answer a lock renewal in time.']);
  expect(told.renewed).toBeGreaterThanOrEqual(2);
  const trust = session.trustedUntil;
  hung.release();
  await time.pass(10);
  expect(session.trustedUntil).toBe(trust);
  expect(told.lost).toBe(0);
});

test('reports a renewal that hangs and then fails once', async () => {
  const failing = () =>
    new Promise<never>((_, reject) => void setTimeout(() => reject(new Error('the connection was lost')), 2500));
  vi.spyOn(inner, 'renew').mockImplementationOnce(failing);
  const { told } = await keep(1000, 0);
  await time.pass(4000);
  expect(told.errors).toEqual(['The store did not answer a lock renewal in time.']);
  expect(told.renewed).toBeGreaterThanOrEqual(2);
});

test('reports a session that the store has ended once, and never renews it again', async () => {
  const { session, told } = await keep(1000, 0);
  const other = await keep(1000, 0);
  await inner.closeSessions([{ queue: 'q', id: session.id }], 'closed');
  await time.pass(3000);
  expect(told.lost).toBe(1);
  expect(session.memory.alive).toBe(false);
  expect(session.trustedForMs()).toBe(0);
  expect(other.told.lost).toBe(0);
  expect(other.told.renewed).toBeGreaterThanOrEqual(3);
  expect(loop.size).toBe(1);
});

test('reports a revocation once, even if its reply is lost or repeated', async () => {
  const { session, told } = await keep(1000, 0);
  const job = { name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  await inner.add('q', [job, job], { caller: 'p', seq: 1 });
  const { jobs } = await inner.claim('q', { session: session.id, seq: 1, count: 2 });
  for (const [slot, { fence }] of jobs.entries()) session.memory.occupy(slot, fence);
  await inner.change('q', [jobs[0]?.id ?? ''], { kind: 'revoke', reason: 'an operator' });
  store.on('renew', { fault: 'drop-reply', times: 1 });
  await time.pass(3500);
  expect(told.revoked).toMatchObject([{ jobId: jobs[0]?.id, reason: 'an operator' }]);
  expect(session.memory.holds(0)).toBe(false);
  expect(session.memory.holds(1)).toBe(true);
});

test('ignores the reply for a session that was released while the call was in flight', async () => {
  const { session, told } = await keep(1000, 0);
  const held = store.on('renew', { fault: 'hold-reply', times: 1 });
  await time.pass(10);
  loop.delete(session.id);
  await inner.closeSessions([{ queue: 'q', id: session.id }], 'closed');
  held.release();
  await time.pass(3000);
  expect(told).toEqual({ renewed: 0, lost: 0, revoked: [], errors: [] });
  expect(store.calls('renew')).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('skips a session that may not be renewed, and renews it again later', async () => {
  let allowed = false;
  const blocked = await keep(1000, 0, { mayRenew: () => allowed });
  const free = await keep(1000, 0);
  await time.pass(2100);
  expect(blocked.told.renewed).toBe(0);
  expect(free.told.renewed).toBe(3);
  allowed = true;
  await time.pass(1000);
  expect(blocked.told.renewed).toBe(1);
});

test('renews again before catchUp resolves when the process was frozen during a renewal', async () => {
  const { session } = await keep();
  const held = store.on('renew', { fault: 'hold-reply', times: 1 });
  await time.pass(1000);
  expect(held.holding).toBe(1);
  const caughtUp = loop.catchUp();
  // No timer fires meanwhile: nothing of this process runs.
  time.clock.advance(5000);
  expect(session.trustedForMs()).toBeLessThan(0);
  held.release();
  await caughtUp;
  expect(store.calls('renew')).toBe(2);
  expect(session.trustedForMs()).toBeGreaterThan(0);
});
