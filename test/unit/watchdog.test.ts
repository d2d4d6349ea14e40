import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Beat, BEAT_MS, Watchdog } from '../../src/background/watchdog.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let clock: ManualClock;
let main: Beat;
let watchdog: Watchdog;
let reports: number[];
/** How often a block was seen while it lasted. */
let seen: number;

/** The thread runs; `beats` says whether the main loop does too. */
function run(ms: number, beats: boolean): void {
  for (let left = ms; left > 0; left -= BEAT_MS) {
    clock.advance(BEAT_MS);
    if (beats) main.beat();
    vi.advanceTimersByTime(BEAT_MS);
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  clock = new ManualClock();
  main = new Beat(clock);
  main.stop();
  reports = [];
  seen = 0;
  watchdog = new Watchdog(main.buffer, clock, {
    onBlocking: () => (seen += 1),
    onOver: (blockedMs, _endedAt, isLong) => {
      if (isLong) reports.push(blockedMs);
    },
  });
});

afterEach(() => {
  watchdog.stop();
  vi.useRealTimers();
});

test('reports no block while the loop beats', () => {
  run(10_000, true);
  expect(watchdog.blockedMs()).toBe(0);
  expect(reports).toEqual([]);
});

test('reports a block once, when it is over, with its whole length', () => {
  run(1000, true);
  run(6000, false);
  expect(watchdog.blockedMs()).toBeGreaterThanOrEqual(6000 - BEAT_MS);
  run(3000, true);
  expect(reports).toHaveLength(1);
  expect(reports[0]).toBeGreaterThanOrEqual(6000 - 2 * BEAT_MS);
  expect(reports[0]).toBeLessThanOrEqual(6000 + BEAT_MS);
  run(2000, false);
  run(1000, true);
  expect(reports).toHaveLength(2);
});

test('reports a block between two checks of the thread', () => {
  run(1000, true);
  run(3 * BEAT_MS, false);
  // Free again just before the next look of the thread.
  clock.advance(BEAT_MS - 1);
  main.beat();
  clock.advance(1);
  vi.advanceTimersByTime(BEAT_MS);
  expect(reports).toEqual([3 * BEAT_MS - 1]);
  run(2000, true);
  expect(reports).toHaveLength(1);
});

test('reports no block when the main loop beats first after a freeze of the process', () => {
  run(1000, true);
  clock.advance(60_000);
  main.beat();
  run(2000, true);
  expect(watchdog.blockedMs()).toBe(0);
  expect(reports).toEqual([]);
});

test('reports no block when the whole process was frozen', () => {
  run(1000, true);
  // SIGSTOP: neither beats nor looks.
  clock.advance(60_000);
  expect(watchdog.blockedMs()).toBe(0);
  run(500, true);
  expect(reports).toEqual([]);
});

test('reports only the time after a freeze when the loop stays blocked', () => {
  run(1000, true);
  clock.advance(60_000);
  run(3000, false);
  expect(watchdog.blockedMs()).toBeGreaterThanOrEqual(3000 - 2 * BEAT_MS);
  expect(watchdog.blockedMs()).toBeLessThanOrEqual(3000);
});

test('sees a block once while it lasts, and a later one again', () => {
  run(1000, true);
  run(BEAT_MS, false);
  expect(seen).toBe(0);
  run(4000, false);
  expect([seen, reports.length]).toEqual([1, 0]);
  run(1000, true);
  expect([seen, reports.length]).toEqual([1, 1]);
  run(4000, false);
  expect(seen).toBe(2);
});

test('sees no block in a freeze of the whole process', () => {
  run(1000, true);
  clock.advance(60_000);
  vi.advanceTimersByTime(BEAT_MS);
  main.beat();
  run(1000, true);
  expect(seen).toBe(0);
});

test('knows since the last beat whether a debugger is attached', () => {
  let attached = true;
  const debugged = new Beat(clock, () => attached);
  debugged.stop();
  const other = new Watchdog(debugged.buffer, clock, { onOver: () => undefined });
  other.stop();
  expect(other.isDebugged).toBe(true);
  attached = false;
  expect(other.isDebugged).toBe(true);
  debugged.beat();
  expect(other.isDebugged).toBe(false);
  expect(watchdog.isDebugged).toBe(false);
});
