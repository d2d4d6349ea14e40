// S7-3: groups of jobs: fair turns, at most so many active per group also while processes die, and a rate per group.
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, LOCK_ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const SHORT = { lockDuration: paced(1500), lockRenewTime: paced(200), stalledInterval: 200, crashGraceMs: 200 };
const LARGE = 10_000;

describe.each(ENGINES)('S7-3 turns of groups on %s', (engine) => {
  test('S7-3 groups with 10 jobs and 1 job are done before a hundredth of a group with 10,000', async () => {
    const scene = await newScene(engine);
    await fill(scene, (id) => ({ group: { id } }));
    // Of the large group, each of the ten slots may have one in hand.
    expect(await largeBefore(scene)).toBeLessThan(LARGE / 100);
  });

  test('S7-3 without groups the same jobs wait for the 10,000', async () => {
    const scene = await newScene(engine);
    await fill(scene, () => ({}));
    expect(await largeBefore(scene)).toBe(LARGE);
  });

  test('S7-3 a group has its own rate, and the others are not held up', async () => {
    const scene = await newScene(engine);
    const [durationMs, max] = [paced(1000), 3];
    const starts: number[] = [];
    let others = 0;
    await scene.queue.addBulk(Array.from({ length: 8 }, () => ({ name: 'x', data: {}, opts: { group: { id: 'limited' } } })));
    await scene.queue.addBulk(Array.from({ length: 50 }, (_, n) => ({ name: 'x', data: {}, opts: { group: { id: `g${n}` } } })));
    const group = { limit: { max, duration: durationMs } };
    const handler = (job: { gid?: string | undefined; processedOn?: number | undefined }): void => {
      // On the clock of the store, which measures the windows.
      if (job.gid === 'limited') starts.push(job.processedOn ?? 0);
      else others += 1;
    };
    work(scene, handler, { concurrency: 10, group });
    await until('the other groups to be done', () => others === 50);
    expect(starts.length).toBeLessThanOrEqual(max);
    await until('the limited group to be done', () => starts.length === 8);
    starts.sort((a, b) => a - b);
    for (let first = 0; first + max < starts.length; first += max) {
      expect((starts[first + max] ?? 0) - (starts[first] ?? 0)).toBeGreaterThan(durationMs - 5);
    }
  });
});

describe.each(oneInThisRun(LOCK_ENGINES))('S7-3 limits of groups on %s', (engine) => {
  test('S7-3 no more than two jobs of a group are active while worker processes are killed', async () => {
    const scene = await newScene(engine);
    const most = await mostActive(scene, { group: { concurrency: 2 } });
    expect(most).toBe(2);
  });

  test('S7-3 without the limit more jobs of the group are active', async () => {
    const scene = await newScene(engine);
    expect(await mostActive(scene, {})).toBeGreaterThan(2);
  });
});

/** Adds 10,000 jobs, then 10, then 1, with these options. */
async function fill({ queue }: Scene, opts: (id: string) => object): Promise<void> {
  const sizes = { large: LARGE, small: 10, tiny: 1 };
  for (const [id, count] of Object.entries(sizes)) {
    await queue.addBulk(
      Array.from({ length: count }, () => ({ name: id, data: {}, opts: { ...opts(id), removeOnComplete: true } })),
    );
  }
}

/** Returns how many jobs of the large group had started when the last of the other jobs was done. */
async function largeBefore(scene: Scene): Promise<number> {
  let [large, others, before] = [0, 0, Number.NaN];
  const { worker } = work(
    scene,
    ({ name }) => {
      if (name === 'large') large += 1;
      else if ((others += 1) === 11) before = large;
    },
    { concurrency: 10 },
  );
  await until('the small groups to be done', () => !Number.isNaN(before), 60_000);
  await worker.close(true);
  return before;
}

const isBusy = (worker: WorkerProcess): boolean => worker.all('active').length > worker.all('completed').length;

/** Lets worker processes hold jobs of one group and kills some of them. Returns the most jobs that were active at once. */
async function mostActive({ url: connection, queue, store }: Scene, options: object): Promise<number> {
  await queue.addBulk(
    Array.from({ length: 40 }, () => ({ name: 'sleep', data: { ms: 300 }, opts: { group: { id: 'g' }, attempts: 3 } })),
  );
  let most = 0;
  const look = async (): Promise<void> => {
    const { counts } = await store.status('work');
    most = Math.max(most, counts.active, await queue.getGroupActiveCount('g'));
  };
  const start = (): WorkerProcess =>
    new WorkerProcess({ queue: 'work', connection, options: { ...SHORT, concurrency: 5, maxStalledCount: 9, ...options } });
  const workers = [start(), start(), start()];
  for (let kills = 0; kills < 4; kills += 1) {
    const victim = await until('a worker to run a job', () => workers.find(isBusy));
    await look();
    victim.kill('SIGKILL');
    await victim.exited;
    workers.splice(workers.indexOf(victim), 1, start());
    await look();
  }
  await until(
    'all jobs to end',
    async () => {
      await look();
      return (await queue.getCompletedCount()) === 40;
    },
    60_000,
  );
  expect(await queue.getGroupActiveCount('g')).toBe(0);
  return most;
}
