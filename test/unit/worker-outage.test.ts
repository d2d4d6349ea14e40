import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Outage } from '../../src/lock/outage.js';

let told: string[];
let outage: Outage;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  outage = new Outage((error) => told.push(error instanceof HoldfastError ? error.code : error.message));
});

afterEach(() => {
  vi.useRealTimers();
});

const unavailable = (): HoldfastError => new HoldfastError('STORE_UNAVAILABLE', 'gone', { retryable: true });

test('however often a call fails, each reason is told once, and again in the next outage', () => {
  outage.asked();
  for (const error of [unavailable(), unavailable(), new HoldfastError('STORE_READONLY', 'a replica'), unavailable()])
    outage.failed(error);
  expect(told).toEqual(['STORE_UNAVAILABLE', 'STORE_READONLY']);
  expect(outage.isTold).toBe(true);
  outage.answered();
  expect(outage.isTold).toBe(false);
  outage.asked();
  outage.failed(unavailable());
  expect(told).toHaveLength(3);
});

test('a call that is not answered for 5 s is told once, and is an outage until it is answered', () => {
  outage.asked();
  vi.advanceTimersByTime(4_990);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(['TIMEOUT']);
  expect(outage.isTold).toBe(true);
  outage.answered();
  expect(outage.isTold).toBe(false);
});

test('an answer that was there when a blocked loop went on is not late', () => {
  outage.asked();
  // The timer that is due fires first; the answer is read in the same turn.
  vi.advanceTimersByTime(4_750);
  outage.answered();
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
});

test('nothing is told and no timer is left after a call was answered or given up', () => {
  outage.asked();
  outage.answered();
  outage.asked();
  outage.givenUp();
  expect(vi.getTimerCount()).toBe(0);
});
