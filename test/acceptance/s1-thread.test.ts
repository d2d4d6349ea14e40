// S1-8 with the lock thread in its place: jobs finish exactly when the thread renews their session.
import { DelayedError } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { FaultySides } from '../support/faults/faulty-thread.js';
import { monotonicNow } from '../support/wait/moments.js';
import { LOCK_ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const ROUNDS = 10;
const AT_ONCE = 100;

/** The jobs that the worker has not been told the end of, with their tokens. */
type Running = Map<string, string>;

/**
 * Finishes 1000 jobs. The replies to the finishes are held back until the thread has renewed: it finds jobs finished which the worker takes for
 * running. Then `tick` is called with those.
 */
async function race(scene: Scene, tick: (running: Running) => Promise<void> = async () => undefined) {
  const sides = new FaultySides(scene);
  const running: Running = new Map();
  const gates = Array.from({ length: ROUNDS }, () => newGate());
  const { worker, log } = work(
    sides,
    async (job, token) => {
      running.set(job.id, token);
      await gates[job.data.round]?.opened;
      if (!job.data.delayed) return 'done';
      // Not every end of a run is a finish. These few go to the store one by one.
      await job.moveToDelayed(Date.now() + 3_600_000, token);
      running.delete(job.id);
      throw new DelayedError();
    },
    { concurrency: AT_ONCE, lockDuration: paced(6000), lockRenewTime: paced(60), skipStalledCheck: true },
  );
  worker.on('completed', ({ id }) => void running.delete(id));
  await sides.threadRenews();
  await until('the worker to know', async () => worker.health().lockThread === 'thread');
  const onLoop = sides.count('called', 'loop', 'renew');
  let ticks = 0;
  for (const [round, gate] of gates.entries()) {
    const opts = { removeOnComplete: round % 2 === 1 };
    await scene.queue.addBulk(
      Array.from({ length: AT_ONCE }, (_, index) => ({ name: 'raced', data: { round, delayed: index % 50 === 0 }, opts })),
    );
    await until('all to run', async () => running.size === AT_ONCE);
    await sides.strike('loop', 'settle', { fault: 'hold-reply' });
    gate.open();
    while (running.size > 0) {
      await until('a finish that the worker is not told of', async () => (await scene.queue.getActiveCount()) < running.size);
      await sides.answered('thread', 'renew', monotonicNow());
      await tick(running);
      ticks += 1;
      const before = running.size;
      await sides.release('loop');
      await until('the worker to be told', async () => running.size < before);
    }
    await sides.heal('loop');
  }
  expect(sides.count('called', 'loop', 'renew'), 'the thread alone renews').toBe(onLoop);
  expect(ticks).toBeGreaterThanOrEqual(ROUNDS);
  return log;
}

describe.each(LOCK_ENGINES)('S1-8 with the thread on %s', (engine) => {
  test('S1-8 1000 jobs that finish exactly at a tick of the thread: no false "lost"', async () => {
    const scene = await newScene(engine);
    const log = await race(scene);
    expect(log.all('lockRenewalFailed')).toEqual([]);
    expect(log.all('error')).toEqual([]);
    expect(log.all('completed')).toHaveLength(980);
    expect(await scene.queue.getJobCounts('completed', 'failed', 'active', 'delayed')).toEqual({
      completed: 490,
      failed: 0,
      active: 0,
      delayed: 20,
    });
  });

  test('S1-8 (N) a manager that takes every refused extension for a loss reports finished jobs as lost', async () => {
    const scene = await newScene(engine);
    const lost = new Set<string>();
    await race(scene, async (running) => {
      const extensions = Array.from(running, ([jobId, token]) => ({ jobId, token, durationMs: 60_000 }));
      const statuses = await scene.store.extend('work', extensions);
      extensions.forEach(({ jobId }, index) => statuses[index] !== 'done' && lost.add(jobId));
    });
    expect(lost.size).toBeGreaterThan(ROUNDS);
  });
});
