// S8-5: a handler that blocks its event loop for longer than its time limit. The blocked worker is in a process of its own.
import { describe, expect, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { oneInThisRun } from '../support/run/matrix.js';
import { newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { messageOf, type Moment } from '../support/wait/moments.js';
import { until } from '../support/wait/until.js';

const isRefusal = (moment: Moment): boolean => messageOf(moment).includes('Could not settle');

const spinner = (scene: Scene, useDedicatedLockThread: boolean) =>
  new WorkerProcess({
    queue: 'work',
    connection: scene.connection,
    options: { name: 'spinner', lockDuration: paced(20_000), timeoutGraceMs: 50, useDedicatedLockThread },
  });

describe.each(oneInThisRun(SHARED_ENGINES))('S8-5 on %s: the handler spins for longer than its timeoutMs', (engine) => {
  test('the lock thread ends its run in time, and its late result is refused', async () => {
    const scene = await newScene(engine);
    const first = spinner(scene, true);
    // A first job, so that the thread runs.
    await scene.queue.add('echo', {});
    await first.moment('completed');
    const { id } = await scene.queue.add('spin', { ms: paced(4500) }, { timeoutMs: 200 });
    await until('the job to fail', async () => (await scene.queue.getJobState(id)) === 'failed');
    expect(
      first.all('ended').filter(({ jobId }) => jobId === id),
      'the handler still spins',
    ).toEqual([]);
    expect((await scene.queue.getJob(id))?.failedReason).toBe('timed out after 200 ms');
    expect((await first.moment('ended', ({ jobId }) => jobId === id))['held']).toBe(false);
    expect(messageOf(await first.moment('error', isRefusal))).toContain(`job ${id}`);
    expect(await scene.queue.getJobState(id)).toBe('failed');
  });

  test('(N) without the thread the run goes on until the handler ends', async () => {
    const scene = await newScene(engine);
    const first = spinner(scene, false);
    const { id } = await scene.queue.add('spin', { ms: paced(2500) }, { timeoutMs: 200 });
    await first.moment('started');
    const { at } = await first.moment('ended');
    expect(at).toBeGreaterThan(0);
    await until('the job to end', async () => !['active', 'waiting'].includes(await scene.queue.getJobState(id)));
    expect(first.all('ended')).toHaveLength(1);
  });
});
