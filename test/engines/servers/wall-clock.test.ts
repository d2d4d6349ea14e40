// Processes whose wall clock is wrong, for tests of clock skew.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShiftedClock, wallClockShiftedBy } from '../../support/servers/wall-clock.js';

// Says what its clocks show, in the process and in a thread, and how long two kinds of waiting for 50 ms took.
const PROGRAM = `
  import { Worker, parentPort, isMainThread } from 'node:worker_threads';
  const clocks = () => ({ now: Date.now(), date: new Date().getTime(), text: Date.parse(Date()), monotonic: Number(process.hrtime.bigint()) / 1e6 });
  if (!isMainThread) parentPort.postMessage(clocks());
  else {
    const start = process.hrtime.bigint();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const waited = Number(process.hrtime.bigint() - start) / 1e6;
    new Worker(new URL(import.meta.url)).on('message', (thread) => process.send({ main: clocks(), thread, waited }));
  }
`;

interface Clocks {
  now: number;
  date: number;
  text: number;
  monotonic: number;
}

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-clock-'));
  writeFileSync(join(folder, 'clocks.mjs'), PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function clocksOf(
  shifted: Pick<ShiftedClock, 'env' | 'execArgv'>,
): Promise<{ main: Clocks; thread: Clocks; waited: number }> {
  const child = fork(join(folder, 'clocks.mjs'), [], shifted);
  const ended = new Promise((resolve) => child.once('close', resolve));
  const message = await new Promise((resolve) => child.once('message', resolve));
  await ended;
  return message as { main: Clocks; thread: Clocks; waited: number };
}

const MINUTES = 60_000;

describe.each([
  ['whatever is there', undefined],
  ['the preload', 'preload'],
] as const)('by %s', (_, by) => {
  test.each([5, -5])(
    'the wall clock is %i minutes off in the process and its threads, the monotonic clock is right',
    async (minutes) => {
      const shifted = await wallClockShiftedBy(minutes * MINUTES, by);
      if (by !== undefined) expect(shifted.by).toBe(by);
      const { main, thread, waited } = await clocksOf(shifted);
      // What lies between the two looks: a process that starts and ends.
      const near = (shown: number, right: number): void => expect(Math.abs(shown - right)).toBeLessThan(20_000);
      for (const clocks of [main, thread]) {
        for (const shown of [clocks.now, clocks.date, clocks.text]) near(shown, Date.now() + minutes * MINUTES);
        near(clocks.monotonic, Number(process.hrtime.bigint()) / 1e6);
      }
      expect(waited).toBeGreaterThan(95);
      expect(waited).toBeLessThan(20_000);
    },
  );
});
