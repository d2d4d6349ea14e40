// S3-4, S3-8, S3-9: several instances on one queue.
import type { Instance } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { LOCK_ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const SHORT = { lockDuration: paced(1500), lockRenewTime: paced(200), stalledInterval: 200, crashGraceMs: 200 };

function instance({ url: connection }: Scene, options: object): WorkerProcess {
  return new WorkerProcess({ queue: 'work', connection, options: { ...SHORT, ...options } });
}

async function listed({ queue }: Scene, isSo: (instances: Instance[]) => boolean): Promise<Instance[]> {
  return until('the list of instances to say so', async () => {
    const instances = await queue.getInstances();
    return isSo(instances) ? instances : undefined;
  });
}

/** Jobs that have begun and not ended there, as far as is known here. */
function runningIn(process: WorkerProcess): unknown[] {
  const ended = new Set(process.all('ended').map(({ jobId }) => jobId));
  return process
    .all('started')
    .map(({ jobId }) => jobId)
    .filter((jobId) => !ended.has(jobId));
}

/** How many handlers ran side by side at most. All processes read the same clock. */
function mostAtOnce(processes: WorkerProcess[]): number {
  const steps = processes
    .flatMap((process) => [...process.all('started'), ...process.all('ended')])
    // Ends first: a slot that came free in the same moment may be used again.
    .toSorted((one, other) => one.at - other.at || (one.event === 'ended' ? -1 : 1));
  let running = 0;
  let most = 0;
  for (const { event } of steps) {
    running += event === 'started' ? 1 : -1;
    most = Math.max(most, running);
  }
  return most;
}

describe.each(oneInThisRun(LOCK_ENGINES))('S3 instances on %s', (engine) => {
  test('S3-4 two instances share a global limit, and one takes over when the other is killed; live ones are listed', async () => {
    const scene = await newScene(engine);
    const { queue } = scene;
    await queue.setGlobalConcurrency(6);
    const options = { concurrency: 4, maxStalledCount: 10 };
    const [a, b] = [instance(scene, { instanceId: 'eu:1', ...options }), instance(scene, { instanceId: 'eu:2', ...options })];
    await Promise.all([a.moment('ready'), b.moment('ready')]);
    // While jobs come and go: both run some, neither ever more than four, both together never more than six. One of them may begin late.
    let short = 0;
    await until('both to run jobs at the same time', async () => {
      short += (await queue.addBulk(Array.from({ length: 60 }, () => ({ name: 'sleep', data: { ms: 25 } })))).length;
      await until('the short ones to end', async () => a.all('ended').length + b.all('ended').length === short);
      return mostAtOnce([a, b]) > 4;
    });
    for (const each of [a, b]) expect(mostAtOnce([each])).toBeLessThanOrEqual(4);
    expect(mostAtOnce([a, b])).toBeLessThanOrEqual(6);
    // While jobs stay: both have slots, and the list says so.
    const { length } = await queue.addBulk(Array.from({ length: 12 }, () => ({ name: 'hold', data: {} })));
    const both = await listed(scene, (instances) => instances.reduce((sum, { running }) => sum + running, 0) === 6);
    expect(both.map(({ id }) => id).toSorted()).toEqual(['eu:1', 'eu:2']);
    for (const each of both) {
      expect(each).toMatchObject({ workers: 1, slots: 4, leader: false, pid: each.id === 'eu:1' ? a.pid : b.pid });
      expect(each.running).toBeGreaterThanOrEqual(2);
      expect(each.running).toBeLessThanOrEqual(4);
    }
    // One is killed: it is off the list, and the other runs what it ran, within its own four.
    await until('all starts to be heard of', async () => runningIn(a).length + runningIn(b).length === 6);
    const orphans = runningIn(a);
    a.kill('SIGKILL');
    await a.exited;
    const left = await listed(scene, (instances) => instances.length === 1 && instances[0]?.running === 4);
    expect(left[0]).toMatchObject({ id: 'eu:2', pid: b.pid });
    expect(await queue.getActiveCount()).toBe(4);
    b.send('finish');
    await until('all to end', async () => (await queue.getCompletedCount()) === short + length);
    const takenOver = new Set(b.all('ended').map(({ jobId }) => jobId));
    for (const id of orphans) expect(takenOver).toContain(id);
    expect(mostAtOnce([b])).toBeLessThanOrEqual(4);
    expect((await queue.getInstances()).map(({ id }) => id)).toEqual(['eu:2']);
  });

  test('S3-4 (N) without the limit, two instances run as many jobs as they have slots', async () => {
    const scene = await newScene(engine);
    for (const instanceId of ['eu:1', 'eu:2']) instance(scene, { instanceId, concurrency: 4 });
    await scene.queue.addBulk(Array.from({ length: 10 }, () => ({ name: 'hold', data: {} })));
    await until('eight to run', async () => (await scene.queue.getActiveCount()) === 8);
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

  test('S3-4 two living processes with the same instanceId both emit an error', async () => {
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
    await until('all to end', async () => (await scene.queue.getCompletedCount()) === 100);
    expect(stock['keyed']).toBe(50);
    expect(stock['free']).toBeLessThan(50);
  });

  test('S3-8 two runs with one key never overlap in several processes', async () => {
    const scene = await newScene(engine);
    const processes = [1, 2, 3].map(() => instance(scene, { concurrency: 4 }));
    await scene.queue.addBulk(
      Array.from({ length: 20 }, () => ({ name: 'sleep', data: { ms: 5 }, opts: { lockKey: 'product-7' } })),
    );
    await until('all to end', async () => (await scene.queue.getCompletedCount()) === 20);
    const ended = await until('all ends to be heard of', async () => {
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
