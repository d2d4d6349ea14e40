// S2 in Bull's shape: locks taken by hand, with workers of other processes beside them.
import { describe, expect, test } from 'vitest';
import type { Job, Queue } from 'holdfast/bull';
import type { WorkerProcess } from '../support/processes/worker-process.js';
import { newScene } from '../support/scenes/scene.js';
import { bullProcess, bullQueue, COMPAT_ENGINES } from '../support/scenes/compat-scene.js';
import { until } from '../support/wait/until.js';

/** Two worker processes, each busy with a job that lasts until they are told 'finish'. */
async function busyWorkers(scene: Parameters<typeof bullProcess>[0], queue: Queue): Promise<WorkerProcess[]> {
  const workers = [bullProcess(scene), bullProcess(scene)];
  await Promise.all(workers.map((worker) => worker.moment('ready')));
  await queue.addBulk([{ data: { hold: true } }, { data: { hold: true } }]);
  await Promise.all(workers.map((worker) => worker.moment('started')));
  return workers;
}

/** The function of the document, word for word. */
async function manuallyProcessJob(
  queue: Queue,
  jobId: string,
  customProcessing: (data: unknown) => Promise<unknown>,
): Promise<void> {
  const job = await queue.getJob(jobId);
  if (!job) throw new Error('Job not found');
  const lock = await job.takeLock();
  if (!lock) throw new Error('Job is already being processed');
  try {
    const result = await customProcessing(job.data);
    await job.moveToCompleted(result, false);
  } catch (error) {
    await job.moveToFailed({ message: (error as Error).message }, false);
    throw error;
  } finally {
    await job.releaseLock();
  }
}

const runsOf = (workers: WorkerProcess[], jobId: string): number =>
  workers.reduce((sum, worker) => sum + worker.all('started', (moment) => moment['jobId'] === jobId).length, 0);

describe.each(COMPAT_ENGINES)('S2 in Bull’s shape on %s', (engine) => {
  test('S2-4 no worker runs a waiting job that is processed by hand, but workers run the next one', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const workers = await busyWorkers(scene, queue);
    const [mine, next] = (await queue.addBulk([{ data: 'mine' }, { data: {} }])) as [Job, Job];
    await manuallyProcessJob(queue, mine.id, async (data) => {
      // Now they want whatever waits.
      for (const worker of workers) worker.send('finish');
      await until('a worker has run the next job', async () => next.isCompleted());
      expect(await queue.core.getLock(mine.id)).toMatchObject({ owner: { pid: process.pid } });
      return `${String(data)} by hand`;
    });
    expect(await queue.getJob(mine.id)).toMatchObject({ returnvalue: 'mine by hand', attemptsMade: 1 });
    expect(await mine.isCompleted()).toBe(true);
    expect(runsOf(workers, mine.id)).toBe(0);
    expect(runsOf(workers, next.id)).toBe(1);
  });

  test('S2-4 (N) the same job that is not taken is run by a worker', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const workers = await busyWorkers(scene, queue);
    const job = await queue.add({});
    for (const worker of workers) worker.send('finish');
    await until('it has run', async () => job.isCompleted());
    expect(runsOf(workers, job.id)).toBe(1);
  });

  test('S2-4 finishing by hand leaves the next waiting job where it is', async () => {
    const queue = bullQueue(await newScene(engine));
    const [mine, next] = (await queue.addBulk([{ data: 1 }, { data: 2 }])) as [Job, Job];
    await manuallyProcessJob(queue, mine.id, async () => 'done');
    expect(await next.getState()).toBe('waiting');
    expect(await queue.getJobCounts()).toMatchObject({ completed: 1, waiting: 1, active: 0 });
  });

  test('S2-4 an error in the work fails the job and is rethrown, and other takers were refused', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const other = bullQueue(scene);
    const job = await queue.add({});
    const failing = manuallyProcessJob(queue, job.id, async () => {
      await expect(manuallyProcessJob(other, job.id, async () => 'stolen')).rejects.toThrow('Job is already being processed');
      throw new Error('the original error');
    });
    await expect(failing).rejects.toThrow(/^the original error$/);
    expect(await queue.getJob(job.id)).toMatchObject({ failedReason: 'the original error' });
    expect(await job.isFailed()).toBe(true);
    expect(await queue.core.getLock(job.id)).toBeUndefined();
  });

  test('S2-6 a lock that was lost meanwhile cannot be released, and stays with its new owner', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene);
    const thief = bullProcess(scene);
    await thief.moment('ready');
    // Its worker is busy, so that only its hand takes the job.
    await queue.add({ hold: true });
    await thief.moment('started');
    const job = await queue.add({});
    const lock = await job.takeLock();
    await scene.store.change('work', [job.id], { kind: 'revoke', reason: 'an operator' });
    thief.send(`take ${job.id}`);
    const { lock: stolen } = await thief.moment('taken');
    expect(stolen).toBeGreaterThan(lock as number);
    await expect(job.releaseLock()).rejects.toThrow(`Could not release lock for job ${job.id}`);
    expect(await job.extendLock(60_000)).toBe(0);
    await expect(job.moveToCompleted('too late')).rejects.toMatchObject({ code: 'LOCK_LOST' });
    const held = await queue.core.getLock(job.id);
    expect(held).toMatchObject({ fence: stolen, owner: { pid: thief.pid } });
    expect(held?.endsInMs).toBeLessThan(30_100);
    // (N) One that was not lost is released without a word.
    const kept = await queue.add({});
    await kept.takeLock();
    await kept.releaseLock();
    expect(await queue.core.getLock(kept.id)).toBeUndefined();
  });

  test('S2-9 settings of the queue decide how long locks last and how often they are renewed', async () => {
    const scene = await newScene(engine);
    const queue = bullQueue(scene, { settings: { lockDuration: 20_000 } });
    const often = bullProcess(scene, { settings: { lockDuration: 3000, lockRenewTime: 100 } });
    const seldom = bullProcess(scene, { settings: { lockDuration: 6000 } });
    await Promise.all([often.moment('ready'), seldom.moment('ready')]);
    await queue.addBulk([{ data: { hold: true } }, { data: { hold: true } }]);
    await Promise.all([often.moment('started'), seldom.moment('started')]);
    const sessionOf = async ({ pid }: WorkerProcess) => {
      const found = (await scene.store.sessions('work')).find(({ owner, slots }) => owner.pid === pid && slots > 0);
      return found ?? { renewals: 0 };
    };
    const since = performance.now();
    const [oftenBefore, seldomBefore] = [(await sessionOf(often)).renewals, (await sessionOf(seldom)).renewals];
    await until('ten renewals', async () => (await sessionOf(often)).renewals >= oftenBefore + 10);
    // Every three seconds unless told, and once when its thread takes over.
    const seldomAfter = (await sessionOf(seldom)).renewals;
    expect(seldomAfter - seldomBefore).toBeLessThanOrEqual((performance.now() - since) / 3000 + 2);
    expect(await sessionOf(often)).toMatchObject({ durationMs: 3000 });
    expect(await sessionOf(seldom)).toMatchObject({ durationMs: 6000 });
    const byHand = await queue.add({});
    await byHand.takeLock();
    const ends = (await queue.core.getLock(byHand.id))?.endsInMs;
    expect(ends).toBeGreaterThan(15_000);
    // Stores round to milliseconds.
    expect(ends).toBeLessThan(20_100);
    await byHand.releaseLock();
  });

  test('S2-9 a lock taken by hand ends when settings say, and its job comes back', async () => {
    const scene = await newScene(engine);
    const holder = bullQueue(scene, { settings: { lockDuration: 500 } });
    const job = await holder.add({});
    await job.takeLock();
    const worker = bullProcess(scene, { settings: { stalledInterval: 100 } });
    await worker.moment('started', (moment) => moment['jobId'] === job.id);
    expect(job.lock.held).toBe(false);
    await expect(job.releaseLock()).rejects.toThrow('Could not release lock');
  });
});
