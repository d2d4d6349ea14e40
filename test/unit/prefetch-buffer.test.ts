// Which jobs that were claimed ahead have waited too long. The test makes the ticks itself.
import { afterEach, expect, test, vi } from 'vitest';
import { PrefetchBuffer, type WaitingJob } from '../../src/worker/prefetch-buffer.js';

const ticks: (() => void)[] = [];
vi.mock('../../src/runtime/timers.js', () => ({
  setTimeout: (tick: () => void) => {
    ticks.push(tick);
    return tick;
  },
  clearTimeout: (timer: () => void) => void ticks.splice(ticks.indexOf(timer), 1),
}));
afterEach(() => {
  ticks.length = 0;
});

function tick(): void {
  expect(ticks).toHaveLength(1);
  ticks.shift()?.();
}

const waiting = (): WaitingJob => ({ claimed: {}, lock: {} }) as WaitingJob;

function newBuffer(): { buffer: PrefetchBuffer; stale: () => number } {
  let times = 0;
  const buffer = new PrefetchBuffer(() => (times += 1));
  return { buffer, stale: () => times };
}

test('a job that was there at two ticks has waited too long', () => {
  const { buffer, stale } = newBuffer();
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
  tick();
  expect(stale()).toBe(1);
});

test('a job that was added after the first tick survives the second, when the older ones have begun', () => {
  const { buffer, stale } = newBuffer();
  const older = [waiting(), waiting(), waiting()] as const;
  for (const job of older) buffer.add(job);
  tick();
  expect(buffer.next()).toBe(older[0]);
  expect(buffer.delete(older[1].lock)).toBe(true);
  expect(buffer.next()).toBe(older[2]);
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
  tick();
  expect(stale()).toBe(1);
});

test('an empty buffer has no timer, and jobs that are handed back are not counted as old', () => {
  const { buffer, stale } = newBuffer();
  buffer.add(waiting());
  buffer.add(waiting());
  tick();
  expect(buffer.takeBeyond(0)).toHaveLength(2);
  expect(ticks).toHaveLength(0);
  buffer.add(waiting());
  tick();
  expect(stale()).toBe(0);
});
