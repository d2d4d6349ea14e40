import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { now } from '../../src/lock/trust.js';
import { BEAT_MS, Watchdog } from '../../src/lock/watchdog.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/process-timers.js'));

let clock: ManualClock;
let beat: Int32Array;
let watchdog: Watchdog;
let reports: number[];

/** The thread runs; `main` says whether the main loop does too. */
function run(ms: number, main: boolean): void {
  for (let left = ms; left > 0; left -= BEAT_MS) {
    clock.advance(BEAT_MS);
    if (main) Atomics.store(beat, 0, now(clock));
    vi.advanceTimersByTime(BEAT_MS);
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  clock = new ManualClock();
  const buffer = new SharedArrayBuffer(4);
  beat = new Int32Array(buffer);
  Atomics.store(beat, 0, now(clock));
  reports = [];
  watchdog = new Watchdog(buffer, clock, (blockedMs) => reports.push(blockedMs));
});

afterEach(() => {
  watchdog.stop();
  vi.useRealTimers();
});

test('a loop that beats is not blocked', () => {
  run(10_000, true);
  expect(watchdog.blockedMs()).toBe(0);
  expect(reports).toEqual([]);
});

test('a block is reported once, when it is over, with its whole length', () => {
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

test('a process that was frozen as a whole was not blocked', () => {
  run(1000, true);
  // SIGSTOP: neither beats nor looks.
  clock.advance(60_000);
  expect(watchdog.blockedMs()).toBe(0);
  run(500, true);
  expect(reports).toEqual([]);
});

test('a loop that stays blocked after the freeze is blamed only for the time after it', () => {
  run(1000, true);
  clock.advance(60_000);
  run(3000, false);
  expect(watchdog.blockedMs()).toBeGreaterThan(2000);
  expect(watchdog.blockedMs()).toBeLessThanOrEqual(3000);
});
