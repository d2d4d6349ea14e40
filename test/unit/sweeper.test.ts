import { HoldfastError } from '../../src/errors.js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ProbeReply } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { lookEveryMs, nextLookMs } from '../../src/maintenance/probe-interval.js';
import { Sweeper, type SweeperOptions, SWEPT_AT_ONCE } from '../../src/maintenance/sweeper.js';
import { takeTime, type Time } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let time: Time;
let inner: MemoryStore;
let store: FaultyStore;
let sweeper: Sweeper;
let stalled: string[];
let errors: string[];

class Hinting extends MemoryStore {
  override readonly capabilities = {
    engine: 'hinting',
    shared: false,
    durable: false,
    crashHints: true,
    inline: false,
    transactions: false,
  };
  found: ProbeReply = { sessions: 1 };
  override async probe(): Promise<ProbeReply> {
    return this.found;
  }
}

beforeEach(() => {
  time = takeTime();
  inner = new MemoryStore({ clock: time.clock });
  store = new FaultyStore(inner);
  stalled = [];
  errors = [];
});

afterEach(() => {
  store.clear();
  sweeper.stop();
  vi.useRealTimers();
});

function begin(options: Partial<SweeperOptions> = {}): void {
  sweeper = new Sweeper({
    store,
    queue: 'q',
    intervalMs: 1000,
    onSwept: (reply) => stalled.push(...reply.stalled, ...reply.failed),
    onUndone: () => undefined,
    onError: ({ message }) => errors.push(message),
    ...options,
  });
  sweeper.start();
}

/** Jobs of an owner that never says a word again. */
async function deadJobs(count: number, durationMs: number): Promise<void> {
  const job = { name: 'j', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  await inner.add(
    'q',
    Array.from({ length: count }, () => job),
    { caller: `p-${count}`, seq: 1 },
  );
  await inner.openSession({
    queue: 'q',
    id: `gone-${count}`,
    owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
    durationMs,
    maxStalls: 1,
    slots: 1,
  });
  await inner.claim('q', { session: `gone-${count}`, seq: 1, count });
}

test('finds earlier deaths at its start, and later ones on its schedule', async () => {
  await deadJobs(1, 10);
  await time.pass(100);
  begin();
  await time.pass(10);
  expect(stalled).toHaveLength(1);
  await deadJobs(2, 10);
  await time.pass(900);
  expect(stalled).toHaveLength(1);
  await time.pass(100);
  expect(stalled).toHaveLength(3);
});

test('sweeps in chunks until nothing dead is left, in one pass', async () => {
  await deadJobs(250, 10);
  await time.pass(100);
  begin();
  await time.pass(10);
  expect(stalled).toHaveLength(250);
  expect(store.calls('sweep')).toBe(250 / SWEPT_AT_ONCE);
});

test('reports an error, and makes the next pass on time', async () => {
  store.on('sweep', { fault: 'fail', times: 1 });
  await deadJobs(1, 10);
  await time.pass(100);
  begin();
  await time.pass(10);
  expect(errors).toHaveLength(1);
  await time.pass(1000);
  expect(stalled).toHaveLength(1);
});

test('does not overlap passes, and reports one that hangs and goes on', async () => {
  const hung = store.on('sweep', { fault: 'hang', times: 1 });
  await deadJobs(1, 10);
  begin();
  await time.pass(5000);
  expect(store.calls('sweep')).toBe(1);
  await time.pass(30_000);
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain('did not answer');
  expect(stalled).toHaveLength(1);
  // Its late answer brings nothing twice.
  hung.release();
  await time.pass(10);
  expect(stalled).toHaveLength(1);
});

test('sweeps when a suspected session ends, not a whole interval later', async () => {
  const hinting = new Hinting({ clock: time.clock });
  store = new FaultyStore(hinting);
  begin({ intervalMs: 60_000 });
  await time.pass(10);
  const before = store.calls('sweep');
  hinting.found = { sessions: 1, dueInMs: 300 };
  await time.pass(1000);
  hinting.found = { sessions: 1 };
  expect(store.calls('sweep')).toBe(before);
  await time.pass(330);
  expect(store.calls('sweep')).toBe(before + 1);
});

test('does not sweep at once for a session that ends beyond the longest timer', async () => {
  const hinting = new Hinting({ clock: time.clock });
  store = new FaultyStore(hinting);
  hinting.found = { sessions: 1, dueInMs: 2 ** 31 - 1 };
  begin({ intervalMs: 60_000 });
  await time.pass(5000);
  expect(store.calls('sweep')).toBe(1);
});

test('probes every second alone, and less often among many sessions', async () => {
  const hinting = new Hinting({ clock: time.clock });
  store = new FaultyStore(hinting);
  begin({ intervalMs: 60_000 });
  await time.pass(10_010);
  expect(store.calls('probe')).toBe(11);
  hinting.found = { sessions: 400 };
  await time.pass(1000);
  await time.pass(100_000);
  // After 50 to 150 seconds each.
  expect(store.calls('probe')).toBeGreaterThanOrEqual(12);
  expect(store.calls('probe')).toBeLessThanOrEqual(14);
});

test('probes again after it found an expired session, because others may be dead too', async () => {
  const hinting = new Hinting({ clock: time.clock });
  inner = hinting;
  store = new FaultyStore(hinting);
  hinting.found = { sessions: 10_000 };
  begin({ intervalMs: 1000 });
  await time.pass(10_000);
  expect(store.calls('probe')).toBe(1);
  hinting.found = { sessions: 1 };
  await deadJobs(1, 10);
  await time.pass(1000);
  expect(stalled).toHaveLength(1);
  expect(store.calls('probe')).toBe(2);
  await time.pass(3000);
  expect(store.calls('probe')).toBe(5);
});

test('probes about four times a second in all, for any number of sessions', () => {
  for (const sessions of [0, 1, 4]) expect(nextLookMs(sessions, 0.3)).toBe(1000);
  for (const sessions of [5, 40, 10_000]) {
    expect(sessions / lookEveryMs(sessions)).toBeCloseTo(4 / 1000);
    expect(nextLookMs(sessions, 0)).toBe(lookEveryMs(sessions) / 2);
    expect(nextLookMs(sessions, 1)).toBe(lookEveryMs(sessions) * 1.5);
  }
});

test('reports a probe that fails, and retries', async () => {
  store = new FaultyStore(new Hinting({ clock: time.clock }));
  store.on('probe', { fault: 'fail', times: 2 });
  begin();
  await time.pass(3100);
  expect(errors).toHaveLength(2);
  expect(store.calls('probe')).toBe(4);
});

test('reports each outage once, however often it probes', async () => {
  store = new FaultyStore(new Hinting({ clock: time.clock }));
  begin({ intervalMs: 60_000 });
  await time.pass(500);
  const down = store.on('probe', { fault: 'fail', times: 3 });
  await time.pass(4000);
  expect(down.struck).toBe(3);
  expect(errors).toHaveLength(1);
  store.on('probe', { fault: 'fail', times: 1 });
  await time.pass(1000);
  expect(errors).toHaveLength(2);
});

test('emits nothing after stop, also about calls in flight', async () => {
  await deadJobs(1, 10);
  await time.pass(100);
  const held = store.on('sweep', { fault: 'hold-reply', times: 1 });
  begin();
  await time.pass(10);
  sweeper.stop();
  expect(held.holding).toBe(1);
  held.release();
  await time.pass(5000);
  expect(stalled).toEqual([]);
  expect(store.calls('sweep')).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('makes no more calls after retiring, but reports what the last one found', async () => {
  await deadJobs(1, 10);
  await time.pass(100);
  const held = store.on('sweep', { fault: 'hold-reply', times: 1 });
  begin();
  await time.pass(10);
  sweeper.retire();
  held.release();
  await time.pass(5000);
  expect(stalled).toHaveLength(1);
  expect(store.calls('sweep')).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('sends no sweep before overdue renewals of this process have a reply', async () => {
  let answer = (): void => undefined;
  const renewed = new Promise<void>((resolve) => {
    answer = resolve;
  });
  begin({ beforeSweep: () => renewed });
  await time.pass(3000);
  expect(store.calls('sweep')).toBe(0);
  answer();
  await time.pass(10);
  expect(store.calls('sweep')).toBeGreaterThan(0);
});

test('the sweeper reports each probe that finds a schedule owing, and no other probe', async () => {
  const hinting = new Hinting({ clock: time.clock });
  store = new FaultyStore(hinting);
  let told = 0;
  begin({ intervalMs: 60_000, onUndone: () => void (told += 1) });
  await time.pass(3010);
  expect([store.calls('probe'), told]).toEqual([4, 0]);
  hinting.found = { sessions: 1, undone: true };
  await time.pass(2000);
  expect([store.calls('probe'), told]).toEqual([6, 2]);
  hinting.found = { sessions: 1 };
  await time.pass(2000);
  expect([store.calls('probe'), told]).toEqual([8, 2]);
});

test('asks for half of what a store could not do in time, and for a little more when it replies', async () => {
  const hinting = new Hinting({ clock: time.clock });
  inner = hinting;
  store = new FaultyStore(hinting);
  const limits: number[] = [];
  const error = new HoldfastError('TIMEOUT', 'too slow', { retryable: true });
  const tooMuch = store.on('sweep', { fault: 'fail', error, when: (_queue, limit) => (limits.push(limit), limit > 10) });
  const relays: number[] = [];
  store.on('relay', { fault: 'fail', error, when: (_queue, limit) => (relays.push(limit), limit > 10) });
  hinting.found = { sessions: 1, undone: true };
  await deadJobs(15, 10);
  await time.pass(100);
  begin();
  await time.pass(3_500);
  expect(limits.slice(0, 6)).toEqual([50, 25, 12, 6, 7, 8]);
  expect(stalled).toHaveLength(15);
  expect(relays.slice(0, 5)).toEqual([100, 50, 25, 12, 6]);
  tooMuch.remove();
  await deadJobs(60, 10);
  await time.pass(2000);
  expect(stalled).toHaveLength(75);
});
