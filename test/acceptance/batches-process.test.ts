// A process that dies or is frozen in the middle of a batch: what it had settled stays, the rest runs elsewhere, and it can change nothing any more.
import { describe, expect, test } from 'vitest';
import { freeze } from '../support/processes/freeze.js';
import type { Moment } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { LOCK_ENGINES, newScene, type Scene, work, type Working } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const LOCKS = { lockDuration: paced(1000), lockRenewTime: paced(250), stalledInterval: 200, crashGraceMs: 200 };

interface Halfway {
  first: string;
  rest: string[];
  process: WorkerProcess;
}

/** A process that has settled the first job of a batch of four, and holds the others. */
async function halfway(scene: Scene): Promise<Halfway> {
  const jobs = await scene.queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'job' })));
  const [first = '', ...rest] = jobs.map(({ id }) => id);
  const { connection } = scene;
  const process = new WorkerProcess(
    { queue: 'work', connection, options: { name: 'batcher', batch: { size: 4 }, ...LOCKS } as object },
    'batch-worker.mjs',
  );
  expect((await process.moment('started'))['ids']).toEqual([first, ...rest]);
  await until('the first is settled', async () => (await scene.queue.getJobState(first)) === 'completed');
  return { first, rest, process };
}

const rival = (scene: Scene): Working => work(scene, () => ({ by: 'rival' }), { name: 'rival', concurrency: 4, ...LOCKS });

async function allByRival({ queue }: Scene, { first, rest }: Halfway): Promise<void> {
  await until('all are completed', async () => (await queue.getCompletedCount()) === 4);
  expect(await queue.getJob(first)).toMatchObject({ returnvalue: { by: 'batcher' }, attemptsStarted: 1, stalledCounter: 0 });
  for (const id of rest) {
    expect(await queue.getJob(id)).toMatchObject({ returnvalue: { by: 'rival' }, attemptsStarted: 2, stalledCounter: 1 });
  }
}

describe.each(LOCK_ENGINES)('on %s', (engine) => {
  test('S7-5 after a SIGKILL inside a batch, only the jobs that were not settled run again', async () => {
    const scene = await newScene(engine);
    const batch = await halfway(scene);
    batch.process.kill('SIGKILL');
    await batch.process.exited;
    rival(scene);
    await allByRival(scene, batch);
  });

  test('a process that was frozen inside a batch sees it aborted, and its late results are refused', async () => {
    const scene = await newScene(engine);
    const batch = await halfway(scene);
    await freeze(batch.process, scene);
    rival(scene);
    await allByRival(scene, batch);
    batch.process.thaw();
    expect(await batch.process.moment('aborted')).toMatchObject({ reason: 'LOCK_LOST', pending: 0 });
    const refused = (moment: Moment): boolean => (moment['args'] as { code?: string }[])[0]?.code === 'LOCK_LOST';
    await until('three results are refused', async () => batch.process.all('error', refused).length === 3);
    expect(batch.process.all('completed')).toHaveLength(1);
    await allByRival(scene, batch);
  });

  test('the control: a process that is neither killed nor frozen keeps its batch beside a rival', async () => {
    const scene = await newScene(engine);
    const { rest, process } = await halfway(scene);
    const { log } = rival(scene);
    await log.moment('ready');
    const other = await scene.queue.add('job', {});
    await until('the rival works', async () => (await other.getState()) === 'completed');
    for (const id of rest) expect(await scene.queue.getJobState(id)).toBe('active');
    expect(process.all('aborted')).toEqual([]);
    expect(log.all('stalled')).toEqual([]);
  });
});
