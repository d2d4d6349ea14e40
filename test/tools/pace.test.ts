// Durations of tests follow the machine: they never shrink, and grow when others want the processor.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import { measurePace, PACE, paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';
import { sleep, until } from '../support/wait/until.js';

test('never shortens a duration, and returns a whole number', () => {
  expect(PACE).toBeGreaterThanOrEqual(1);
  for (const ms of [1, 150, 1000]) {
    expect(paced(ms)).toBeGreaterThanOrEqual(ms);
    expect(Number.isInteger(paced(ms))).toBe(true);
  }
});

test('grows the pace beside busy processes, within bounds', async () => {
  const neighbours = Array.from({ length: 4 * cpus().length }, () =>
    spawn(process.execPath, ['-e', 'console.log("busy"); for (;;);'], { stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  onTestFinished(async () => {
    await Promise.all(
      neighbours.map((neighbour) => {
        neighbour.kill('SIGKILL');
        return once(neighbour, 'close');
      }),
    );
  });
  await Promise.all(neighbours.map(({ stdout }) => once(stdout, 'data')));
  const pace = measurePace();
  expect(pace).toBeGreaterThan(1);
  expect(pace).toBeLessThanOrEqual(8);
});

test('a stopwatch counts what this process waits for or computes, and no pause of the machine', async () => {
  // A pause that falls into a wait is left out as well, so the stopwatch may count too little, and never too much.
  await until('a wait without a pause', async () => {
    const took = stopwatch();
    await sleep(50);
    return took() > 40;
  });
  const computing = stopwatch();
  for (const before = process.cpuUsage().user; process.cpuUsage().user - before < 100_000; );
  expect(computing()).toBeGreaterThan(80);
  const [pausing, began] = [stopwatch(), performance.now()];
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
  expect(performance.now() - began).toBeGreaterThan(390);
  expect(pausing()).toBeLessThan(100);
});

test('waiting for a moment goes on after the second that vitest gives it', async () => {
  const begun = performance.now();
  await vi.waitFor(() => expect(performance.now() - begun).toBeGreaterThan(1100));
  await expect.poll(() => performance.now() - begun).toBeGreaterThan(2300);
});
