import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Beat, BEAT_MS, Watchdog } from '../../src/background/watchdog.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let clock: ManualClock;
let main: Beat;
let watchdog: Watchdog;
let reports: number[];

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
  watchdog = new Watchdog(main.buffer, clock, (blockedMs) => reports.push(blockedMs));
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
