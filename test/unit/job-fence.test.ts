// A fence only grows: also on a store that has lost its last ones, because none that was given before can lie above the clock.
import { expect, it } from 'vitest';
import { nextFence, tokenOf } from '../../src/job/lock.js';

it('makes a fence greater than the last one, many times within a microsecond', () => {
  let last = 0;
  for (let n = 0; n < 100; n += 1) {
    const next = nextFence(last, 1000);
    expect(next).toBeGreaterThan(last);
    last = next;
  }
});

it('makes a fence no less than the store clock in microseconds, even if the last fence is lost', () => {
  const given = nextFence(nextFence(0, 1000), 1000.5);
  // A failover has lost both, and time has passed.
  expect(nextFence(0, 1001)).toBeGreaterThan(given);
  expect(nextFence(0, 1001)).toBeGreaterThanOrEqual(1_001_000);
});

it('makes growing fences while the clock stands still or goes back', () => {
  expect(nextFence(2_000_000, 1000)).toBe(2_000_001);
});

it('makes tokens of the session and the fence', () => {
  expect(tokenOf('s', 7)).toBe('s:7');
});
