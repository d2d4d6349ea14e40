// Which jobs that were claimed ahead have waited too long. The test makes the ticks itself.
import { afterEach, expect, test, vi } from 'vitest';
import { SessionMemory } from '../../src/session/session-memory.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { now } from '../../src/session/trust.js';
import { PrefetchBuffer, type WaitingJob } from '../../src/worker/prefetch-buffer.js';

const ticks: (() => void)[] = [];
vi.mock('../../src/runtime/timers.js', () => ({
  setTimeout: (tick: () => void) => {
    ticks.push(tick);
    return tick;
  },
  clearTimeout: (timer: () => void) => void ticks.splice(ticks.indexOf(timer), 1),
}));
afterEach(() => {
  ticks.length = 0;
});

function tick(): void {
  expect(ticks).toHaveLength(1);
  ticks.shift()?.();
}

const clock = new ManualClock();
const newSession = (): { memory: SessionMemory; clock: ManualClock } => ({ memory: new SessionMemory(), clock });
const waiting = (session = newSession()): WaitingJob =>
  ({ claimed: {}, lock: { session }, isAhead: true }) as unknown as WaitingJob;

function newBuffer(): { buffer: PrefetchBuffer; stale: () => number; watched: () => number } {
  let times = 0;
  let sessions = 0;
  const buffer = new PrefetchBuffer(
    () => (times += 1),
    () => (sessions += 1),
  );
  return { buffer, stale: () => times, watched: () => sessions };
}

test('a job that was there at two ticks has waited too long', () => {
  const { buffer, stale } = newBuffer();
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
  tick();
  expect(stale()).toBe(1);
});

test('a job that was added after the first tick survives the second, when the older ones have begun', () => {
  const { buffer, stale } = newBuffer();
  const older = [waiting(), waiting(), waiting()] as const;
  for (const job of older) buffer.add(job);
  tick();
  expect(buffer.next()).toBe(older[0]);
  expect(buffer.delete(older[1].lock)).toBe(true);
  expect(buffer.next()).toBe(older[2]);
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
  tick();
  expect(stale()).toBe(1);
});

test('an empty buffer has no timer, and jobs that are handed back are not counted as old', () => {
  const { buffer, stale } = newBuffer();
  buffer.add(waiting());
  buffer.add(waiting());
  tick();
  expect(buffer.takeBeyond(0)).toHaveLength(2);
  expect(ticks).toHaveLength(0);
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
});

test('the memory of the session says when the buffer was looked at last, until it is empty', () => {
  const { buffer, watched } = newBuffer();
  const session = newSession();
  for (let job = 0; job < 3; job += 1) buffer.add(waiting(session));
  expect(session.memory.aheadAt).toBe(now(clock));
  clock.advance(20);
  tick();
  expect(session.memory.aheadAt).toBe(now(clock));
  while (buffer.next() !== undefined);
  tick();
  expect(session.memory.aheadAt).toBeUndefined();
  expect(ticks).toHaveLength(0);
  expect(watched()).toBe(1);
});

test('the next session has its own time, and the one before has none', () => {
  const { buffer, watched } = newBuffer();
  const [before, after] = [newSession(), newSession()];
  buffer.add(waiting(before));
  buffer.add(waiting(after));
  expect([before.memory.aheadAt, after.memory.aheadAt]).toEqual([undefined, now(clock)]);
  buffer.takeBeyond(0);
  expect(after.memory.aheadAt).toBeUndefined();
  expect(watched()).toBe(2);
});
