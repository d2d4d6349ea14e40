// When the lock thread gives back jobs that were claimed ahead. The test plays the worker, and is the thread's timer.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AheadWatch } from '../../src/background/ahead-watch.js';
import { SessionMemory } from '../../src/session/session-memory.js';
import { now } from '../../src/session/trust.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let clock: ManualClock;
let watch: AheadWatch;
let memory: SessionMemory;
let given: number[][];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  clock = new ManualClock();
  watch = new AheadWatch(clock);
  memory = new SessionMemory();
  given = [];
});

afterEach(() => {
  watch.stop();
  vi.useRealTimers();
});

/** Time passes. A worker that is not blocked notes the time. */
function pass(ms: number, isBlocked: boolean): void {
  for (let left = ms; left > 0; left -= 10) {
    clock.advance(10);
    if (!isBlocked) memory.aheadAt = now(clock);
    vi.advanceTimersByTime(10);
  }
}

/** As a worker does it with its first job that was claimed ahead. */
function claimAhead(fence: number): void {
  memory.occupy(fence, fence, true);
  memory.aheadAt = now(clock);
  if (memory.watch()) watch.add('s', memory, (fences) => given.push(fences));
}

test('the jobs of a worker that is not blocked stay', () => {
  claimAhead(1);
  pass(5000, false);
  expect(given).toEqual([]);
});

test('the jobs of a blocked worker are given back within 80 ms, once, and those that have begun stay', () => {
  claimAhead(1);
  claimAhead(2);
  claimAhead(3);
  memory.begin(2, 2);
  pass(50, true);
  expect(given).toEqual([]);
  pass(30, true);
  expect(given).toEqual([[1, 3]]);
  pass(1000, true);
  expect(given).toHaveLength(1);
});

test('a thread that did not run itself gives the worker time to go on', () => {
  claimAhead(1);
  pass(20, false);
  clock.advance(10_000);
  vi.advanceTimersByTime(20);
  expect(given).toEqual([]);
  pass(200, false);
  expect(given).toEqual([]);
});

test('a worker that has none for a second is no longer watched, and asks anew', () => {
  claimAhead(1);
  memory.vacate(1);
  memory.aheadAt = undefined;
  pass(500, true);
  expect(memory.isWatched).toBe(true);
  pass(1000, true);
  expect([memory.isWatched, vi.getTimerCount()]).toEqual([false, 0]);
  claimAhead(2);
  pass(100, true);
  expect(given).toEqual([[2]]);
});

test('a worker that claims ahead as its watch ends is watched on', () => {
  claimAhead(1);
  memory.aheadAt = undefined;
  vi.spyOn(memory, 'unwatch').mockImplementationOnce(() => {
    memory.aheadAt = now(clock);
    new SessionMemory(memory.buffers).unwatch();
  });
  pass(1020, true);
  expect([memory.isWatched, vi.getTimerCount()]).toEqual([true, 1]);
  pass(100, true);
  expect(given).toEqual([[1]]);
});

test('a session that was released is not watched', () => {
  claimAhead(1);
  watch.delete('s');
  pass(1000, true);
  expect([given, vi.getTimerCount()]).toEqual([[], 0]);
});
