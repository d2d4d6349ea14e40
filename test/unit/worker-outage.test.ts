import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Outage } from '../../src/store/client/outage.js';
import { OutageReport } from '../../src/runtime/outage-report.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

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

test('reports an outage that lasts again, with growing pauses', () => {
  outage.asked();
  const seen: number[] = [];
  for (let second = 0; second < 600; second += 1) {
    const before = told.length;
    outage.failed(unavailable());
    if (told.length > before) seen.push(second);
    vi.advanceTimersByTime(1000);
  }
  expect(seen).toEqual([0, 30, 90, 210, 450]);
  outage.answered();
  expect(over).toEqual([600_000]);
});

test('counts an outage from the call that failed first', () => {
  outage.asked();
  vi.advanceTimersByTime(3000);
  outage.failed(unavailable());
  vi.advanceTimersByTime(1000);
  outage.asked();
  outage.failed(new HoldfastError('STORE_READONLY', 'a replica'));
  vi.advanceTimersByTime(500);
  outage.answered();
  expect(over).toEqual([4500]);
});

test('reports each reason once per outage, however often a call fails', () => {
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

test('reports a call without a reply for 5 s once, as an outage until its reply', () => {
  outage.asked();
  vi.advanceTimersByTime(4_990);
  expect(told).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(['TIMEOUT']);
  expect(report.inOutage).toBe(true);
  outage.answered();
  expect(report.inOutage).toBe(false);
});

test('does not count a reply as late that arrived while the loop was blocked', () => {
  outage.asked();
  // The timer that is due fires first; the answer is read in the same turn.
  vi.advanceTimersByTime(4_750);
  outage.answered();
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
});

test('reports nothing after a call has ended, and leaves no timer', () => {
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

test('reports an outage once for all parts that share it', () => {
  const other = new Outage(report);
  for (const each of [outage, other]) {
    each.asked();
    each.failed(unavailable());
  }
  expect(told).toEqual(['STORE_UNAVAILABLE']);
});

test('reports the end of an outage once, with its length', () => {
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
