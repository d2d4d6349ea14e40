// S3-4, S3-8, S3-9: several instances on one queue.
import type { Instance } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/acceptance-moments.js';
import { WorkerProcess } from '../support/acceptance-process.js';
import { LOCK_ENGINES, newScene, type Scene, work } from '../support/acceptance-scene.js';

const SHORT = { lockDuration: 1500, lockRenewTime: 200, stalledInterval: 200, crashGraceMs: 200 };

function instance({ url: connection }: Scene, options: object): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection, options: { ...SHORT, ...options } });
}

async function listed({ queue }: Scene, isSo: (instances: Instance[]) => boolean): Promise<Instance[]> {
  return eventually('the list of instances to say so', async () => {
    const instances = await queue.getInstances();
    return isSo(instances) ? instances : undefined;
  });
}

describe.each(LOCK_ENGINES)('S3 instances on %s', (engine) => {
  test('S3-4 two instances share a global limit; one is killed: the other takes over; the living can be listed', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    await queue.setGlobalConcurrency(6);
    const [a, b] = ['eu:1', 'eu:2'].map((instanceId) => instance(scene, { instanceId, concurrency: 4, maxStalledCount: 10 }));
    await Promise.all([a?.moment('ready'), b?.moment('ready')]);
    await queue.addBulk(Array.from({ length: 30 }, () => ({ name: 'hold', data: {} })));
    const both = await listed(scene, (instances) => instances.reduce((sum, { running }) => sum + running, 0) === 6);
    expect(both.map(({ id }) => id).toSorted()).toEqual(['eu:1', 'eu:2']);
    for (const each of both) {
      expect(each).toMatchObject({ workers: 1, slots: 4, leader: false });
      expect(each.running).toBeGreaterThanOrEqual(2);
      expect([a?.pid, b?.pid]).toContain(each.pid);
    }
    // Never more, however long one looks.
    for (let look = 0; look < 20; look += 1) expect(await queue.getActiveCount()).toBeLessThanOrEqual(6);
    a?.kill('SIGKILL');
    // Its own four: what the instance that is left is willing to run.
    const left = await listed(scene, (instances) => instances.length === 1 && instances[0]?.running === 4);
    expect(left[0]).toMatchObject({ id: 'eu:2', pid: b?.pid });
    expect(await queue.getActiveCount()).toBe(4);
    // (N) Without the limit, a third instance brings as many as it is willing to run.
    await queue.removeGlobalConcurrency();
    instance(scene, { instanceId: 'eu:3', concurrency: 20 });
    await eventually('more to run', async () => (await queue.getActiveCount()) === 24);
  });

  test('S3-4 an instance that is paused offers no slots', async () => {
    const scene = await newScene(engine);
    const paused = instance(scene, { concurrency: 4 });
    await listed(scene, ([only]) => only?.slots === 4 && only.workers === 1);
    paused.send('pause');
    await listed(scene, ([only]) => only?.slots === 0 && only.workers === 0);
    paused.send('resume');
    await listed(scene, ([only]) => only?.slots === 4);
  });

  test('S3-4 two living processes with the same instanceId are told so, both', async () => {
    const scene = await newScene(engine);
    const twins = [1, 2].map(() => instance(scene, { instanceId: 'twin' }));
    for (const twin of twins) {
      const told = await twin.moment('error', ({ args }) => (args as [{ code?: string }])[0].code === 'INSTANCE_TAKEN');
      expect(told['args']).toMatchObject([{ message: expect.stringContaining('"twin"') }]);
    }
    expect(new Set((await scene.queue.getInstances()).map(({ pid }) => pid))).toEqual(new Set(twins.map(({ pid }) => pid)));
  });

  test('S3-8 parallel jobs on one product with a lock key: the counter ends exact; (N) it does not without', async () => {
    const scene = await newScene(engine);
    const stock: Record<string, number> = { keyed: 0, free: 0 };
    const take = async ({ name }: { name: string }): Promise<void> => {
      const before = stock[name] ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 2));
      stock[name] = before + 1;
    };
    for (let worker = 0; worker < 2; worker += 1) work(scene, take, { concurrency: 10 });
    const jobs = Array.from({ length: 50 }, () => [{ name: 'keyed', opts: { lockKey: 'product-7' } }, { name: 'free' }]).flat();
    await scene.queue.addBulk(jobs);
    await eventually('all to end', async () => (await scene.queue.getCompletedCount()) === 100);
    expect(stock['keyed']).toBe(50);
    expect(stock['free']).toBeLessThan(50);
  });

  test('S3-8 with several processes: two runs with one key never overlap', async () => {
    const scene = await newScene(engine);
    const processes = [1, 2, 3].map(() => instance(scene, { concurrency: 4 }));
    await scene.queue.addBulk(
      Array.from({ length: 20 }, () => ({ name: 'sleep', data: { ms: 5 }, opts: { lockKey: 'product-7' } })),
    );
    await eventually('all to end', async () => (await scene.queue.getCompletedCount()) === 20);
    const ended = await eventually('all ends to be heard of', async () => {
      const moments = processes.flatMap((each) => each.all('ended'));
      return moments.length === 20 ? moments : undefined;
    });
    const runs = processes
      .flatMap((each) => each.all('started'))
      .map(({ at, jobId }) => ({ from: at, to: ended.find((end) => end['jobId'] === jobId)?.at ?? 0 }))
      .toSorted((a, b) => a.from - b.from);
    runs.slice(1).forEach(({ from }, index) => expect(from).toBeGreaterThanOrEqual(runs[index]?.to ?? 0));
  });

  test('S3-9 the same jobId added twice: one job, the running job untouched, the second add says so', async () => {
    const scene = await newScene(engine);
    const worker = instance(scene, {});
    const first = await scene.queue.add('hold', { n: 1 }, { jobId: 'nightly' });
    await worker.moment('started');
    const second = await scene.queue.add('hold', { n: 2 }, { jobId: 'nightly' });
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    worker.send('finish');
    await worker.moment('completed');
    expect(worker.all('started')).toHaveLength(1);
    expect(await scene.queue.getJob('nightly')).toMatchObject({ data: { n: 1 }, attemptsMade: 1 });
    expect(await scene.queue.count()).toBe(0);
  });
});
