import { expect, test } from 'vitest';
import { between, marginOf, moment, now, trustUntil } from '../../src/session/trust.js';
import { MAX_TIMER_MS } from '../../src/runtime/check.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

test('ends trust before the store lets another owner in, for any duration', () => {
  for (const durationMs of [2, 10, 30, 1000, 30_000, 3_600_000, MAX_TIMER_MS]) {
    const lasts = between(moment(0), trustUntil(moment(0), durationMs));
    expect(lasts, `${durationMs}`).toBeLessThan(durationMs);
    expect(lasts, `${durationMs}`).toBeGreaterThan(0);
    expect(marginOf(durationMs)).toBeLessThanOrEqual(1000);
  }
});

test('compares deadlines across the wrap-around of 32 bits', () => {
  const clock = new ManualClock({ monotonicMs: 2 ** 31 - 100 });
  const until = trustUntil(now(clock), 1000);
  expect(between(now(clock), until)).toBe(950);
  clock.advance(500);
  expect(between(now(clock), until)).toBe(450);
  clock.advance(2 ** 32);
  expect(between(now(clock), until)).toBe(450);
  clock.advance(500);
  expect(between(now(clock), until)).toBe(-50);
});

test('trusts a duration beyond 32 bits for as long as 32 bits can express', () => {
  const century = 100 * 365 * 24 * 3600 * 1000;
  for (const durationMs of [2 ** 31, 2 ** 31 + 5000, 2 ** 32 + 1, century]) {
    expect(between(moment(7), trustUntil(moment(7), durationMs))).toBeGreaterThan(24 * 24 * 3600 * 1000);
  }
});
