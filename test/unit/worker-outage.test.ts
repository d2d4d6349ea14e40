import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Outage } from '../../src/store/client/outage.js';
import { OutageReport } from '../../src/runtime/outage-report.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/process-timers.js'));

let told: string[];
let over: number[];
let report: OutageReport;
let outage: Outage;

beforeEach(() => {
  vi.useFakeTimers();
  told = [];
  over = [];
  report = new OutageReport(
    (error) => told.push(error instanceof HoldfastError ? error.code : error.message),
    (outageMs) => over.push(outageMs),
  );
  outage = new Outage(report);
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
  expect(report.inOutage).toBe(true);
  outage.answered();
  expect(report.inOutage).toBe(false);
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
  expect(report.inOutage).toBe(true);
  outage.answered();
  expect(report.inOutage).toBe(false);
});

test('an answer that was there when a blocked loop went on is not late', () => {
  outage.asked();
  // The timer that is due fires first; the answer is read in the same turn.
  vi.advanceTimersByTime(4_750);
  outage.answered();
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
});

test('nothing is told after a call was answered or given up, and no timer is left in the end', () => {
  outage.asked();
  outage.answered();
  outage.asked();
  outage.givenUp();
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
  outage.asked();
  outage.givenUp();
  outage.end();
  expect(vi.getTimerCount()).toBe(0);
});

test('of those who share what was told, one tells it', () => {
  const other = new Outage(report);
  for (const each of [outage, other]) {
    each.asked();
    each.failed(unavailable());
  }
  expect(told).toEqual(['STORE_UNAVAILABLE']);
});

test('the end of an outage is told once, with its length, and not without one', () => {
  outage.answered();
  expect(over).toEqual([]);
  outage.asked();
  outage.failed(unavailable());
  vi.advanceTimersByTime(1500);
  outage.failed(new HoldfastError('STORE_READONLY', 'a replica'));
  new Outage(report).answered();
  outage.answered();
  expect(over).toEqual([1500]);
  expect(report.inOutage).toBe(false);
});
