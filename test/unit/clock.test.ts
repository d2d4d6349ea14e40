// The monotonic clock of a thread: all threads and processes of a host read the same time.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { beginningOf, systemClock } from '../../src/runtime/clock.js';

/** Clocks that take 1 µs to read, of a thread that began at 5000 and is stopped for so long after these reads. */
function stoppedAfter(stops: Record<number, number>) {
  let [time, reads] = [5100, 0];
  const read = (from: number): number => {
    time += 0.001;
    const shown = time - from;
    time += stops[(reads += 1)] ?? 0;
    return shown;
  };
  return { host: () => read(0), sinceBeginning: () => read(5000), reads: () => reads };
}

test.each([
  ['before the host is asked', { 1: 60_000 }],
  ['after the host was asked', { 2: 60_000 }],
  ['at each of the first reads', { 1: 7, 2: 7, 4: 40, 5: 9, 7: 3 }],
])('a thread that is stopped %s knows when it began', (_when, stops) => {
  const { host, sinceBeginning } = stoppedAfter(stops);
  expect(beginningOf(host, sinceBeginning)).toBeCloseTo(5000, 1);
});

test('a thread that is stopped again and again takes the closest reads, and goes on', () => {
  const always = new Proxy({}, { get: (_, read) => 1 + (Number(read) % 97) });
  const { host, sinceBeginning, reads } = stoppedAfter(always);
  expect(Math.abs(beginningOf(host, sinceBeginning) - 5000)).toBeLessThan(4);
  expect(reads()).toBe(300);
});

test('another process reads the same time', () => {
  const before = systemClock.monotonic();
  const other = Number(execFileSync(process.execPath, ['-p', 'Number(process.hrtime.bigint()) / 1e6'], { encoding: 'utf8' }));
  const after = systemClock.monotonic();
  expect([before < other, other < after]).toEqual([true, true]);
});
