import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LazyTimer } from '../../src/runtime/lazy-timer.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let over: number[];
let began: number;
let timer: LazyTimer;

beforeEach(() => {
  vi.useFakeTimers();
  over = [];
  began = performance.now();
  timer = new LazyTimer(() => over.push(performance.now() - began));
});

afterEach(() => {
  timer.end();
  vi.useRealTimers();
});

test('fires in time, once', () => {
  timer.start(1000);
  vi.advanceTimersByTime(999);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(10_000);
  expect(over).toEqual([1000]);
  expect(timer.isRunning).toBe(false);
});

test('never fires after it was stopped', () => {
  timer.start(1000);
  vi.advanceTimersByTime(500);
  timer.stop();
  vi.advanceTimersByTime(10_000);
  expect(over).toEqual([]);
});

test('counts from the last start when it is restarted', () => {
  timer.start(1000);
  vi.advanceTimersByTime(900);
  timer.stop();
  timer.start(1000);
  vi.advanceTimersByTime(950);
  expect(over).toEqual([]);
  vi.advanceTimersByTime(60);
  expect(over).toHaveLength(1);
  expect(over[0]).toBeGreaterThanOrEqual(1900);
});

test('fires after the shorter time when a longer one was set before', () => {
  timer.start(60_000);
  timer.start(10);
  vi.advanceTimersByTime(11);
  expect(over).toHaveLength(1);
});

test('uses one timer of the loop for any number of starts, and none when it has ended', () => {
  for (let n = 0; n < 100; n += 1) {
    timer.start(1000);
    timer.stop();
  }
  expect(vi.getTimerCount()).toBe(1);
  timer.end();
  expect(vi.getTimerCount()).toBe(0);
});

test('keeps the process alive while it runs, and not after it was stopped', () => {
  vi.useRealTimers();
  const alive = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const real = new LazyTimer(() => undefined);
  const before = alive();
  real.start(60_000);
  expect(alive()).toBe(before + 1);
  real.stop();
  expect(alive()).toBe(before);
  real.start(60_000);
  expect(alive()).toBe(before + 1);
  real.end();
  expect(alive()).toBe(before);
});
