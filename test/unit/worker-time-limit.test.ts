// The time limit of one run: abort, grace, end, and the later end by the lock thread.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { HoldfastError } from '../../src/errors.js';
import type { HeldLock } from '../../src/session/held-lock.js';
import { TimeLimit } from '../../src/worker/time-limit.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let lock: HeldLock;
let events: string[];
let threadMs: number;
let limit: TimeLimit;

beforeEach(async () => {
  vi.useFakeTimers();
  lock = lockOn(await openSession(600_000));
  events = [];
  threadMs = Number.NaN;
  limit = new TimeLimit(lock, {
    timeoutMs: 5000,
    graceMs: 2000,
    onStart(inMs, { code }) {
      threadMs = inMs;
      events.push(`start ${code}`);
    },
    onEnd: () => void events.push('end'),
    onOver: ({ message }) => void events.push(message),
  });
  lock.signal.addEventListener('abort', () => events.push(`abort ${(lock.signal.reason as HoldfastError).code}`));
});

afterEach(() => {
  limit.end();
  lock.session.memory.markLost();
  vi.useRealTimers();
});

test('aborts the signal when the time is over, and ends the run after the grace', () => {
  limit.start();
  vi.advanceTimersByTime(4999);
  expect(events).toEqual(['start TIMEOUT']);
  vi.advanceTimersByTime(1);
  expect(events).toEqual(['start TIMEOUT', 'abort TIMEOUT']);
  vi.advanceTimersByTime(1999);
  expect(events).toHaveLength(2);
  vi.advanceTimersByTime(1);
  expect(events.slice(2)).toEqual(['timed out after 5000 ms']);
});

test('lets the lock thread end the run later than the event loop would', () => {
  limit.start();
  expect(threadMs).toBeGreaterThan(7000);
});

test.each([4999, 6999])('does nothing more after the run has ended, after %i ms', (ms) => {
  limit.start();
  vi.advanceTimersByTime(ms);
  limit.end();
  const before = [...events];
  vi.advanceTimersByTime(60_000);
  expect(events).toEqual(before);
  expect(before.at(-1)).toBe('end');
});
