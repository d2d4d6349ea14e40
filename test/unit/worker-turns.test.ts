// Handlers that work without waiting for anything: the event loop has its turn between them, so that timers, sockets and the renewal of
// locks on a store in memory go on.
import { expect, onTestFinished, test } from 'vitest';
import { scene } from '../support/scenes/faulty-scene.js';
import { newGate } from '../support/wait/gate.js';

const JOBS = 20;
/** Longer than what a worker takes of a turn of the loop. */
const WORK_MS = 15;

function work(): void {
  const end = performance.now() + WORK_MS;
  while (performance.now() < end);
}

test.each([
  ['memory', 1, 0],
  ['memory', 5, 0],
  ['memory', 5, 5],
  ['sqlite', 1, 0],
  ['sqlite', 5, 0],
] as const)('of a backlog on %s, at concurrency %i and prefetch %i', async (engine, concurrency, prefetch) => {
  const part = await scene(engine);
  const job = { name: 'job', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
  const jobs = Array.from({ length: JOBS }, () => job);
  await part.inner.add(part.queue, jobs, { caller: 'p', seq: 1 });
  let turn = 0;
  const count = (): void => {
    turn += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  onTestFinished(() => clearImmediate(next));
  const begun = new Map<number, number>();
  const done = newGate();
  let finished = 0;
  const { worker } = part.worker(
    () => {
      begun.set(turn, (begun.get(turn) ?? 0) + 1);
      work();
    },
    { concurrency, prefetch },
  );
  worker.on('completed', () => {
    finished += 1;
    if (finished === JOBS) done.open();
  });
  await done.opened;
  // Two where the worker goes on in the same turn of the loop in which it had left off.
  expect(Math.max(...begun.values())).toBeLessThanOrEqual(2);
});
