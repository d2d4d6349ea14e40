// S8-4 and S8-7 between processes: runs that die after each step, and cancels of jobs in processes that never hear of them.
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { LOCK_ENGINES, newScene, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import type { Moment } from '../support/wait/moments.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const STEPS = 5;

/** Starts a process that dies at this point of its run, and returns what it did. */
async function runUntilDeath(scene: Scene, death?: { step: number; at: 'record' | 'effect' }): Promise<Moment[]> {
  const options = { lockDuration: paced(1000), stalledInterval: 100, maxStalledCount: 1 };
  const mortal = new WorkerProcess({ queue: 'work', connection: scene.connection, options }, 'step-worker.mjs');
  await mortal.moment('ready');
  if (death !== undefined) mortal.send(death as unknown as string);
  await (death === undefined ? mortal.moment('completed') : mortal.exited);
  return mortal.all('effect');
}

describe.each(oneInThisRun(LOCK_ENGINES))('S8-7 on %s: the process is killed after each step', (engine) => {
  test('recorded steps do not run again, and the job completes although each of its runs died', async () => {
    const scene = await newScene(engine);
    const effects: Moment[] = [];
    await scene.queue.pause();
    const { id } = await scene.queue.add('order', { steps: STEPS });
    for (let step = 0; step < STEPS; step += 1) {
      const dying = runUntilDeath(scene, { step, at: 'record' });
      await scene.queue.resume();
      effects.push(...(await dying));
    }
    effects.push(...(await runUntilDeath(scene)));
    expect(effects.map(({ name }) => name)).toEqual(Array.from({ length: STEPS }, (_, n) => `step ${n}`));
    expect(new Set(effects.map(({ key }) => key)).size).toBe(STEPS);
    const job = await scene.queue.getJob(id);
    expect(job).toMatchObject({ returnvalue: 'all done', attemptsMade: 1, attemptsStarted: STEPS + 1 });
    expect((await job?.steps())?.map(({ value }) => value)).toEqual([0, 1, 4, 9, 16]);
  });

  test('a step whose process died between its effect and its record runs again with the same key and a greater fence', async () => {
    const scene = await newScene(engine);
    await scene.queue.pause();
    await scene.queue.add('order', { steps: 2 });
    const dying = runUntilDeath(scene, { step: 1, at: 'effect' });
    await scene.queue.resume();
    const first = (await dying).at(-1);
    const [second] = await runUntilDeath(scene);
    expect([first?.['name'], second?.['name']]).toEqual(['step 1', 'step 1']);
    expect(second?.['key']).toBe(first?.['key']);
    expect(second?.['fence']).toBeGreaterThan(first?.['fence'] as number);
  });

  test('(N) the same work without steps is done again, and the job fails after its stalls', async () => {
    const scene = await newScene(engine);
    await scene.queue.pause();
    const { id } = await scene.queue.add('order', { steps: STEPS, plain: true });
    const effects: Moment[] = [];
    for (const step of [1, 3]) {
      const dying = runUntilDeath(scene, { step, at: 'record' });
      await scene.queue.resume();
      effects.push(...(await dying));
    }
    expect(effects.filter(({ name }) => name === 'step 0')).toHaveLength(2);
    const sweeper = work(scene, async () => 'never', { lockDuration: paced(1000), stalledInterval: 100, maxStalledCount: 1 });
    await until('the job to fail', async () => (await scene.queue.getJobState(id)) === 'failed');
    expect(sweeper.log.all('active')).toEqual([]);
  });
});

describe.each(oneInThisRun(SHARED_ENGINES))('S8-4 on %s: the job runs in another process', (engine) => {
  test('a cancel aborts its signal within about a second, and the job fails with the reason', async () => {
    const scene = await newScene(engine);
    const options = { name: 'far', lockDuration: paced(30_000) };
    const far = new WorkerProcess({ queue: 'work', connection: scene.connection, options });
    const { id } = await scene.queue.add('holdUntilAborted', {}, { attempts: 3 });
    const { at: startedAt } = await far.moment('started');
    expect(await scene.queue.cancel(id, 'the customer left')).toBe(true);
    const aborted = await far.moment('aborted');
    expect(aborted['reason']).toBe('cancelled: the customer left');
    expect(aborted['held']).toBe(true);
    expect(aborted.at - startedAt).toBeLessThan(paced(3000));
  });

  test('a cancel survives the death of a process that never heard of it, and no worker starts the job again', async () => {
    const scene = await newScene(engine);
    const options = { name: 'far', lockDuration: paced(1000) };
    const far = new WorkerProcess({ queue: 'work', connection: scene.connection, options });
    const { id } = await scene.queue.add('spin', { ms: 600_000 }, { attempts: 3 });
    await far.moment('started');
    expect(await scene.queue.cancel(id, 'too late')).toBe(true);
    far.kill('SIGKILL');
    await far.exited;
    const near = work(scene, async () => 'never', { lockDuration: paced(1000), stalledInterval: 100 });
    await until('the job to fail', async () => (await scene.queue.getJobState(id)) === 'failed');
    expect((await scene.queue.getJob(id))?.failedReason).toBe('cancelled: too late');
    expect(near.log.all('active')).toEqual([]);
  });

  test('(N) a job that was not cancelled runs again after the same death', async () => {
    const scene = await newScene(engine);
    const far = new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { name: 'far', lockDuration: paced(1000) },
    });
    const { id } = await scene.queue.add('spin', { ms: 600_000 });
    await far.moment('started');
    far.kill('SIGKILL');
    await far.exited;
    const near = work(scene, async () => 'again', { lockDuration: paced(1000), stalledInterval: 100 });
    await near.log.moment('completed');
    expect((await scene.queue.getJob(id))?.returnvalue).toBe('again');
  });
});
