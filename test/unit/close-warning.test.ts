// What a close() of a worker warns of when it waits for long.
import { expect, onTestFinished, test, vi } from 'vitest';
import { next, scene } from '../support/scenes/faulty-scene.js';
import { newGate } from '../support/wait/gate.js';
import { takeProcessTime } from '../support/wait/time.js';
import { until } from '../support/wait/until.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

function warnings(): Error[] {
  const seen: Error[] = [];
  const note = (warning: Error & { code?: string }): void => {
    if (warning.code === 'HOLDFAST_CLOSE_WAITS') seen.push(warning);
  };
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return seen;
}

test('a close() that waits warns for which jobs, once', async () => {
  const { add, worker } = await scene('memory');
  const told = warnings();
  const ids = [await add(), await add()];
  const finish = newGate();
  const { worker: watched } = worker(() => finish.opened, { concurrency: 2 });
  let active = 0;
  watched.on('active', () => (active += 1));
  await until('both to run', () => active === 2);
  const time = takeProcessTime();
  onTestFinished(() => void vi.useRealTimers());
  const closing = watched.close();
  await time.pass(4900);
  expect(told).toEqual([]);
  await time.pass(200);
  expect(told[0]?.message).toContain(`still waits for the end of jobs ${ids.join(', ')}; worker.close(true) does not wait`);
  finish.open();
  await time.until(closing);
  await time.pass(6000);
  expect(told).toHaveLength(1);
});

test('neither a short close() nor close(true) warns', async () => {
  const { add, worker } = await scene('memory');
  const told = warnings();
  await add();
  const time = takeProcessTime();
  onTestFinished(() => void vi.useRealTimers());
  const { worker: stuck } = worker(() => new Promise(() => undefined), { lockDuration: 500 });
  await next(stuck, 'active');
  await stuck.close(true);
  const { worker: idle } = worker(() => 'done');
  await next(idle, 'ready');
  await idle.close();
  await time.pass(6000);
  expect(told).toEqual([]);
});
