// Durations of tests follow the machine: they never shrink, and grow when others want the processor.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { expect, onTestFinished, test, vi } from 'vitest';
import { measurePace, PACE, paced } from '../support/wait/pace.js';

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

test('waiting for a moment goes on after the second that vitest gives it', async () => {
  const begun = performance.now();
  await vi.waitFor(() => expect(performance.now() - begun).toBeGreaterThan(1100));
  await expect.poll(() => performance.now() - begun).toBeGreaterThan(2300);
});
