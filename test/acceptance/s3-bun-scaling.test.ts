// S3 in bun-queue's shape: many instances, their slots under one limit, and the one that leads.
import type { Instance } from 'holdfast';
import type { QueueOptions } from 'holdfast/bun-queue';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { monotonicNow } from '../support/wait/moments.js';
import type { WorkerProcess } from '../support/processes/worker-process.js';
import { newScene } from '../support/scenes/scene.js';
import { bunProcess, bunQueue, COMPAT_ENGINES } from '../support/scenes/compat-scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const BEAT_MS = paced(300);
const TIMEOUT_MS = paced(1500);
const ELECTION = { heartbeatInterval: BEAT_MS, leaderTimeout: TIMEOUT_MS };

function scaled(scaling: NonNullable<QueueOptions['horizontalScaling']>): QueueOptions {
  return {
    lockDuration: paced(2000),
    stalledJobCheckInterval: 300,
    horizontalScaling: { enabled: true, leaderElection: ELECTION, ...scaling },
  };
}

async function instances(process: WorkerProcess): Promise<Instance[]> {
  const before = process.all('instances').length;
  process.send('instances');
  await until('the list of instances', async () => process.all('instances').length > before);
  return process.all('instances')[before]?.['instances'] as Instance[];
}

describe.each(oneInThisRun(COMPAT_ENGINES))('S3 in bun-queue’s shape on %s', (engine) => {
  test('S3-4 two instances of four workers under a limit of six: both get slots; one killed, the other takes over', async () => {
    const scene = await newScene(engine);
    const four = (instanceId: string): QueueOptions & { concurrency: number } => ({
      ...scaled({ instanceId, maxWorkersPerInstance: 4, jobsPerWorker: 1, globalConcurrency: 6 }),
      concurrency: 100,
    });
    const [one, two] = [bunProcess(scene, four('one')), bunProcess(scene, four('two'))];
    await Promise.all([one.moment('ready'), two.moment('ready')]);
    const queue = bunQueue(scene);
    const running = (process: WorkerProcess): number => process.all('started').length - process.all('ended').length;
    const most = { one: 0, two: 0, all: 0 };
    let added = 0;
    // One of them may begin late.
    await until('both to run jobs at the same time', async () => {
      added += (await Promise.all(Array.from({ length: 40 }, () => queue.add({ do: 'sleep', ms: 60 })))).length;
      await until('all are completed', async () => {
        const active = (await queue.getJobCounts())['active'] ?? 0;
        most.all = Math.max(most.all, active);
        for (const instance of await queue.getInstances()) {
          if (instance.id === 'one' || instance.id === 'two') most[instance.id] = Math.max(most[instance.id], instance.running);
        }
        return (await queue.getJobCounts())['completed'] === added;
      });
      return most.all > 4 && [one, two].every((process) => process.all('started').length > 0);
    });
    expect(most.all).toBeLessThanOrEqual(6);
    expect(most.one).toBeLessThanOrEqual(4);
    expect(most.two).toBeLessThanOrEqual(4);
    expect(
      (await instances(one)).map(({ id, slots, workers }) => ({ id, slots, workers })).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    ).toEqual([
      { id: 'one', slots: 4, workers: 1 },
      { id: 'two', slots: 4, workers: 1 },
    ]);
    // Both are busy, one is killed: what it ran is run by the other, never more than four at once.
    const jobs = await Promise.all(Array.from({ length: 6 }, () => queue.add({ do: 'hold' })));
    await until('six are running', async () => running(one) + running(two) === 6);
    expect(Math.max(running(one), running(two))).toBeLessThanOrEqual(4);
    one.kill('SIGKILL');
    await until('four are running in the other', async () => running(two) === 4);
    two.send('finish');
    await until('all are completed', async () => (await queue.getJobCounts())['completed'] === added + jobs.length);
    await until('the dead instance is off the list', async () => (await instances(two)).every(({ id }) => id !== 'one'));
  });

  test('S3-4 (N) without a limit two instances of four workers run eight jobs at once', async () => {
    const scene = await newScene(engine);
    const processes = ['one', 'two'].map((instanceId) =>
      bunProcess(scene, { ...scaled({ instanceId, maxWorkersPerInstance: 4, jobsPerWorker: 1 }), concurrency: 100 }),
    );
    await Promise.all(processes.map((process) => process.moment('ready')));
    const queue = bunQueue(scene);
    await Promise.all(Array.from({ length: 10 }, () => queue.add({ do: 'hold' })));
    await until('eight are running', async () => (await queue.getJobCounts())['active'] === 8);
    for (const process of processes) process.send('finish');
    await until('all are completed', async () => (await queue.getJobCounts())['completed'] === 10);
  });

  test('S3-5 when the leader is killed, the other instance leads in time, under a higher term', async () => {
    const scene = await newScene(engine);
    const first = bunProcess(scene, scaled({ instanceId: 'a:1' }));
    const { term } = await first.moment('leader');
    const second = bunProcess(scene, scaled({ instanceId: 'a:2' }));
    await second.moment('follower');
    expect(second.all('leader')).toEqual([]);
    expect((await instances(second)).map(({ id, leader }) => `${id} ${leader ? 'leads' : 'follows'}`)).toEqual([
      'a:1 leads',
      'a:2 follows',
    ]);
    const took = stopwatch();
    first.kill('SIGKILL');
    const succeeded = await second.moment('leader');
    const tookMs = took();
    console.log(`S3-5 on ${engine}: a new leader ${Math.round(tookMs)} ms after the kill`);
    // Without the end of the old term it would never lead.
    expect(tookMs).toBeLessThan(TIMEOUT_MS + BEAT_MS + paced(1500));
    expect(succeeded['term']).toBeGreaterThan(term as number);
  });

  test('S3-5 a leader that was frozen past its timeout emits follower first, and never leads under its old term', async () => {
    const scene = await newScene(engine);
    const first = bunProcess(scene, scaled({ instanceId: 'first' }));
    const { term } = await first.moment('leader');
    const second = bunProcess(scene, scaled({ instanceId: 'second' }));
    await second.moment('follower');
    await first.moment('led');
    await first.freeze();
    const succeeded = await second.moment('leader');
    await second.moment('led');
    const thawedAt = monotonicNow();
    first.thaw();
    await first.moment('follower', ({ at }) => at > thawedAt);
    const acted = first.all('led', ({ at }) => at > thawedAt);
    expect(acted, first.toString()).toEqual([]);
    expect(succeeded['term']).toBeGreaterThan(term as number);
    const terms = [...first.all('leader'), ...second.all('leader')].map((moment) => moment['term']);
    expect(new Set(terms).size).toBe(terms.length);
  });

  test('S3-5 a leader that is closed hands over at once', async () => {
    const scene = await newScene(engine);
    // A timeout that nobody wants to wait for.
    const patient = scaled({ leaderElection: { heartbeatInterval: 5000, leaderTimeout: 60_000 } });
    const first = bunProcess(scene, patient);
    await first.moment('leader');
    const second = bunProcess(scene, patient);
    await second.moment('follower');
    first.send('close');
    await first.moment('closed');
    const took = stopwatch();
    await second.moment('leader');
    expect(took()).toBeLessThan(paced(1000));
  });

  test('S3-5 two instances with the same id both emit an error, and only one of them leads', async () => {
    const scene = await newScene(engine);
    const twins = [1, 2].map(() => bunProcess(scene, { ...scaled({ instanceId: 'twin' }), concurrency: 1 }));
    for (const twin of twins) await twin.moment('error', ({ code }) => code === 'INSTANCE_TAKEN');
    expect(twins.flatMap((twin) => twin.all('leader'))).toHaveLength(1);
    expect(twins.flatMap((twin) => twin.all('follower'))).toHaveLength(1);
  });
});
