// S7-1: deduplication between processes: many that add one id at once, and an owner that is killed.
import { describe, expect, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { LOCK_ENGINES, newScene, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const SHORT = { lockDuration: paced(1500), lockRenewTime: paced(200), stalledInterval: 200, crashGraceMs: 200 };

interface Added {
  id: string;
  duplicate: boolean;
}

/** Five processes add ten jobs each at the same moment; returns what they were told. */
async function addFromFive({ url: connection }: Scene, opts: object): Promise<Added[]> {
  const producers = Array.from({ length: 5 }, () => new WorkerProcess({ queue: 'work', connection }, 'producer.mjs'));
  await Promise.all(producers.map((producer) => producer.moment('ready')));
  const jobs = JSON.stringify(Array.from({ length: 10 }, () => ({ name: 'echo', data: {}, opts })));
  for (const producer of producers) producer.send(jobs);
  const told = await Promise.all(producers.map((producer) => producer.moment('added')));
  return told.flatMap((moment) => moment['jobs'] as Added[]);
}

describe.each(LOCK_ENGINES)('S7 deduplication on %s', (engine) => {
  test('S7-1 fifty adds at once from five processes make one job, and fifty jobs without the id', async () => {
    const scene = await newScene(engine);
    const added = await addFromFive(scene, { deduplication: { id: 'a' } });
    expect(added).toHaveLength(50);
    expect(new Set(added.map(({ id }) => id)).size).toBe(1);
    expect(added.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await scene.queue.count()).toBe(1);
    expect(await scene.queue.getDeduplicationJobId('a')).toBe(added[0]?.id);
    // The negative control.
    const plain = await addFromFive(scene, {});
    expect(new Set(plain.map(({ id }) => id)).size).toBe(50);
    expect(await scene.queue.count()).toBe(51);
  });

  test('S7-1 an owner whose process is killed keeps its id, and its draft follows when it has failed', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    const [first, second] = [1, 2].map(
      (n) => () =>
        new WorkerProcess({ queue: 'work', connection: scene.url, options: { ...SHORT, maxStalledCount: 1, name: `w${n}` } }),
    ) as [() => WorkerProcess, () => WorkerProcess];
    const add = (data: object) => queue.add('hold', data, { deduplication: { id: 'a', keepLastIfActive: true } });
    const owner = await add({ n: 1 });
    const doomed = first();
    await doomed.moment('started');
    expect((await add({ n: 2 })).id).toBe(owner.id);
    doomed.kill('SIGKILL');
    // The job waits again and runs elsewhere: this is no end, so the id stays taken and the draft stays a draft.
    const heir = second();
    await heir.moment('started');
    expect([await queue.getDeduplicationJobId('a'), await queue.count()]).toEqual([owner.id, 0]);
    expect((await add({ n: 3 })).id).toBe(owner.id);
    // It dies again, over the limit: the job fails, and the last draft takes its place in the same step.
    heir.kill('SIGKILL');
    const last = first();
    const run = await last.moment('started');
    expect(run['jobId']).not.toBe(owner.id);
    expect(await owner.getState()).toBe('failed');
    expect(await queue.getDeduplicationJobId('a')).toBe(run['jobId']);
    expect((await queue.getJob(run['jobId'] as string))?.data).toEqual({ n: 3 });
    last.send('finish');
    await until('the id to be free', async () => (await queue.getDeduplicationJobId('a')) === null);
    expect(await queue.getJobCounts('completed', 'failed', 'waiting')).toEqual({ completed: 1, failed: 1, waiting: 0 });
  });
});
