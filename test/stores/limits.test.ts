// The limits of a queue as users of BullMQ know them, on every store: global rate, global concurrency, the limiter of workers, rateLimit
// and RateLimitError, and how they meet.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { MAX_DELAY_MS, MAX_TIMER_MS } from '../../src/runtime/check.js';
import type { Store } from '../../src/store/contract/index.js';
import type { WorkerOptions } from '../../src/worker/options.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { newGate } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

/** A window that no test outlives. */
const LONG_MS = 600_000;
const BAD: unknown[] = [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '5', null, {}, [5]];

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

interface Started {
  connection: Store;
  name: string;
  queue: Queue;
  /** The jobs in the order of their starts; `at` is on the clock of the store, which measures the windows. */
  starts: { name: string; at: number }[];
  work(options?: WorkerOptions, handler?: (job: Job, worker: Worker) => unknown): Worker;
}

async function start(engine: Engine): Promise<Started> {
  const { inner: connection, queue: name } = await scene(engine);
  const starts: Started['starts'] = [];
  return {
    connection,
    name,
    starts,
    queue: kept(new Queue(name, { connection })),
    work: (options = {}, handler = () => undefined) => {
      const run = async (job: Job): Promise<unknown> => {
        starts.push({ name: job.name, at: job.processedOn ?? 0 });
        return handler(job, worker);
      };
      const worker: Worker = new Worker(name, run, { connection, ...options });
      return kept(worker);
    },
  };
}

const jobs = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `job ${n}`, data: {} }));
const refusal = (option: string) => ({ code: 'INVALID_OPTION', option });

describe.each(ENGINES)('limits on %s', (engine: Engine) => {
  test('setGlobalRateLimit is read back, in getMeta too, until it is removed', async () => {
    const { queue } = await start(engine);
    expect(await queue.getGlobalRateLimit()).toBeNull();
    await queue.setGlobalRateLimit(3, 5000);
    expect(await queue.getGlobalRateLimit()).toEqual({ max: 3, duration: 5000 });
    expect(await queue.getMeta()).toMatchObject({ max: 3, duration: 5000 });
    await queue.setGlobalRateLimit(Number.MAX_SAFE_INTEGER, MAX_TIMER_MS);
    expect(await queue.getGlobalRateLimit()).toEqual({ max: Number.MAX_SAFE_INTEGER, duration: MAX_TIMER_MS });
    await queue.removeGlobalRateLimit();
    await queue.removeGlobalRateLimit();
    expect(await queue.getGlobalRateLimit()).toBeNull();
    expect(Object.keys(await queue.getMeta())).toEqual(expect.not.arrayContaining(['max', 'duration']));
  });

  test('refuses rates, blocks and limits that cannot be meant, and writes nothing', async () => {
    const { queue } = await start(engine);
    for (const bad of [0, ...BAD, undefined]) {
      await expect(queue.setGlobalRateLimit(bad as number, 5)).rejects.toMatchObject(refusal('max'));
      await expect(queue.setGlobalRateLimit(5, bad as number)).rejects.toMatchObject(refusal('duration'));
      await expect(queue.setGlobalConcurrency(bad as number)).rejects.toMatchObject(refusal('concurrency'));
    }
    for (const bad of [...BAD, undefined])
      await expect(queue.rateLimit(bad as number)).rejects.toMatchObject(refusal('expireTimeMs'));
    for (const bad of BAD) await expect(queue.getRateLimitTtl(bad as number)).rejects.toMatchObject(refusal('maxJobs'));
    await expect(queue.setGlobalRateLimit(5, MAX_TIMER_MS + 1)).rejects.toMatchObject(refusal('duration'));
    await expect(queue.rateLimit(MAX_DELAY_MS + 1)).rejects.toMatchObject(refusal('expireTimeMs'));
    expect([await queue.getGlobalRateLimit(), await queue.getGlobalConcurrency(), await queue.getRateLimitTtl()]).toEqual([
      null,
      null,
      -2,
    ]);
  });

  test('running workers keep to a global rate from the call on, all of them together', async () => {
    const { queue, starts, work } = await start(engine);
    const workers = [work({ concurrency: 5 }), work({ concurrency: 5 })];
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    await queue.setGlobalRateLimit(3, LONG_MS);
    await queue.addBulk(jobs(10));
    await until('the jobs of the window', async () => (await queue.getCompletedCount()) === 3);
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(LONG_MS / 2);
    expect(await queue.getWaitingCount()).toBe(7);
    await queue.removeGlobalRateLimit();
    // The negative control: without the rate, the same workers run the rest.
    await until('all jobs', async () => (await queue.getCompletedCount()) === 10);
    expect(starts).toHaveLength(10);
  });

  test('a job that never ends does not block the next window', async () => {
    const { queue, starts, work } = await start(engine);
    const never = newGate();
    const duration = paced(150);
    await queue.setGlobalRateLimit(1, duration);
    work({ concurrency: 3 }, ({ name }) => (name === 'job 0' ? never.opened : undefined));
    await queue.addBulk(jobs(3));
    await until('all to start', () => starts.length === 3);
    const at = starts.map((one) => one.at);
    // Each of them opens a window of its own.
    for (const [n, time] of at.slice(1).entries()) expect(time - (at[n] ?? 0)).toBeGreaterThan(duration - 5);
    never.open();
  });

  test('getRateLimitTtl is -2 without a limit, 0 while a limit has room, and the rest of the window when it has none', async () => {
    const { queue, work } = await start(engine);
    expect([await queue.getRateLimitTtl(), await queue.getRateLimitTtl(5), await queue.getRateLimitTtl(0)]).toEqual([-2, 0, -2]);
    await queue.setGlobalRateLimit(3, LONG_MS);
    expect([await queue.getRateLimitTtl(), await queue.getRateLimitTtl(1)]).toEqual([0, 0]);
    work();
    await queue.addBulk(jobs(2));
    await until('both to finish', async () => (await queue.getCompletedCount()) === 2);
    expect([await queue.getRateLimitTtl(), await queue.getRateLimitTtl(3)]).toEqual([0, 0]);
    const left = await queue.getRateLimitTtl(2);
    expect(left).toBeGreaterThan(LONG_MS / 2);
    expect(left).toBeLessThanOrEqual(LONG_MS);
    await queue.removeGlobalRateLimit();
    // The window is still open, for limiters of workers.
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(LONG_MS / 2);
    expect([await queue.removeRateLimitKey(), await queue.removeRateLimitKey()]).toEqual([1, 0]);
    expect(await queue.getRateLimitTtl()).toBe(-2);
  });

  test('removeRateLimitKey ends a block and a window, and workers go on at once', async () => {
    const { queue, work } = await start(engine);
    await queue.rateLimit(LONG_MS);
    expect(await queue.getRateLimitTtl(1000)).toBeGreaterThan(LONG_MS / 2);
    await queue.setGlobalRateLimit(1, LONG_MS);
    await work().waitUntilReady();
    await queue.addBulk(jobs(2));
    expect(await queue.getWaitingCount()).toBe(2);
    expect(await queue.removeRateLimitKey()).toBe(1);
    await until('the first job', async () => (await queue.getCompletedCount()) === 1);
    await until('the window to be full', async () => (await queue.getRateLimitTtl()) > 0);
    expect(await queue.removeRateLimitKey()).toBe(1);
    await until('the second job', async () => (await queue.getCompletedCount()) === 2);
  });

  test('the max of the queue and the duration of the worker apply if both have a limit', async () => {
    const { queue, work } = await start(engine);
    await queue.setGlobalRateLimit(2, 1);
    work({ concurrency: 5, limiter: { max: 4, duration: LONG_MS } });
    await queue.addBulk(jobs(5));
    await until('the jobs of the window', async () => (await queue.getCompletedCount()) === 2);
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(LONG_MS / 2);
    await queue.removeGlobalRateLimit();
    // The window that both used stays open: the worker's own max leaves room for two more.
    await until('the jobs of the limiter', async () => (await queue.getCompletedCount()) === 4);
    expect(await queue.getWaitingCount()).toBe(1);
  });

  test('a worker without a limiter uses up the window of the workers that have one', async () => {
    const { queue, work } = await start(engine);
    const limited = work({ limiter: { max: 3, duration: LONG_MS } });
    await queue.addBulk(jobs(1));
    await until('the window to open', async () => (await queue.getCompletedCount()) === 1);
    await limited.pause();
    const free = work();
    await queue.addBulk(jobs(4));
    await until('the free worker to run them', async () => (await queue.getCompletedCount()) === 5);
    await free.pause();
    limited.resume();
    await queue.addBulk(jobs(1));
    expect(await queue.getRateLimitTtl(3)).toBeGreaterThan(LONG_MS / 2);
    expect(await queue.getWaitingCount()).toBe(1);
  });

  test('a worker closes quickly during a long window, and leaves the jobs waiting', async () => {
    const { queue, work } = await start(engine);
    await queue.setGlobalRateLimit(1, LONG_MS);
    const worker = work({ drainDelay: 600 });
    await queue.addBulk(jobs(3));
    await until('the window to be full', async () => (await queue.getRateLimitTtl()) > 0);
    const took = stopwatch();
    await worker.close();
    expect(took()).toBeLessThan(paced(2000));
    expect(await queue.getJobCounts('waiting', 'active')).toEqual({ waiting: 2, active: 0 });
  });

  test('a limit delays no job: they stay waiting, and delayed jobs still become due', async () => {
    const { queue, work } = await start(engine);
    await queue.rateLimit(LONG_MS);
    work();
    await queue.add('now', {});
    await queue.add('later', {}, { delay: 50 });
    await until('the delayed job to be due', async () => (await queue.getWaitingCount()) === 2);
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toEqual({ waiting: 2, delayed: 0, active: 0 });
  });

  test('isMaxed says whether the global concurrency is used up', async () => {
    const { queue, work } = await start(engine);
    const go = newGate();
    expect(await queue.isMaxed()).toBe(false);
    work({ concurrency: 5 }, () => go.opened);
    await queue.addBulk(jobs(3));
    await until('all to run', async () => (await queue.getActiveCount()) === 3);
    expect(await queue.isMaxed()).toBe(false);
    await queue.setGlobalConcurrency(4);
    expect(await queue.isMaxed()).toBe(false);
    await queue.setGlobalConcurrency(2);
    expect(await queue.isMaxed()).toBe(true);
    await queue.removeGlobalConcurrency();
    expect(await queue.isMaxed()).toBe(false);
    go.open();
  });

  test('RateLimitError puts a job back to its place by priority and age, counts a start and no attempt', async () => {
    const { queue, starts, work } = await start(engine);
    await queue.add('low', {}, { priority: 5 });
    await queue.add('high', {}, { priority: 1, attempts: 1 });
    await queue.add('high, younger', {}, { priority: 1 });
    const worker = work({}, async (_, self) => {
      if (starts.length > 1) return undefined;
      await self.rateLimit(LONG_MS);
      await queue.add('high, youngest', {}, { priority: 1 });
      throw Worker.RateLimitError();
    });
    await until('the job to be back', async () => (await queue.getPrioritizedCount()) === 4);
    expect(starts.map(({ name }) => name)).toEqual(['high']);
    const order = ['high', 'high, younger', 'high, youngest', 'low'];
    const [high, ...others] = await queue.getPrioritized();
    expect([high, ...others].map((job) => job?.name)).toEqual(order);
    expect(high).toMatchObject({ attemptsMade: 0, attemptsStarted: 1, stalledCounter: 0 });
    await queue.removeRateLimitKey();
    await until('all to finish', async () => (await queue.getCompletedCount()) === 4);
    expect(starts.map(({ name }) => name)).toEqual(['high', ...order]);
    expect(await queue.getJob(high?.id ?? '')).toMatchObject({ attemptsMade: 1, attemptsStarted: 2 });
    await worker.close();
  });

  test('RateLimitError works on a paused queue: the job waits until the queue resumes', async () => {
    const { queue, starts, work } = await start(engine);
    const [began, go] = [newGate(), newGate()];
    work({}, async (_, self) => {
      if (starts.length > 1) return 'done';
      began.open();
      await go.opened;
      await self.rateLimit(1);
      throw Worker.RateLimitError();
    });
    const job = await queue.add('first', {}, { attempts: 1 });
    await queue.add('second', {});
    await began.opened;
    await queue.pause();
    go.open();
    await until('the job to be back', async () => (await queue.getWaitingCount()) === 2);
    expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['first', 'second']);
    await queue.resume();
    await until('both to finish', async () => (await queue.getCompletedCount()) === 2);
    expect(starts.map(({ name }) => name)).toEqual(['first', 'first', 'second']);
    expect(await queue.getJob(job.id)).toMatchObject({ attemptsMade: 1, attemptsStarted: 2 });
  });

  test('a worker emits an error that names the job if the job is gone when it throws RateLimitError', async () => {
    const { queue, work } = await start(engine);
    const [began, go] = [newGate(), newGate()];
    const errors: Error[] = [];
    const worker = work({}, async () => {
      began.open();
      await go.opened;
      throw Worker.RateLimitError();
    });
    worker.on('error', (error) => errors.push(error));
    const { id } = await queue.add('doomed', {}, { jobId: 'doomed' });
    await began.opened;
    await queue.obliterate({ force: true });
    go.open();
    await until('the error', () => errors.length > 0);
    expect(errors.map(({ message }) => message)).toEqual([expect.stringContaining(id)]);
    expect(errors[0]).toMatchObject({ jobId: id });
    expect(await queue.getJob(id)).toBeUndefined();
  });
});

describe('the worker option limiter', () => {
  const make = (limiter: unknown) => new Worker('q', null, { connection: 'memory:', limiter } as WorkerOptions);
  test.each<[unknown, string]>([
    [null, 'limiter'],
    [5, 'limiter'],
    [{}, 'limiter.max'],
    [{ max: 0, duration: 5 }, 'limiter.max'],
    [{ max: 1.5, duration: 5 }, 'limiter.max'],
    [{ max: '1', duration: 5 }, 'limiter.max'],
    [{ max: 1 }, 'limiter.duration'],
    [{ max: 1, duration: 0 }, 'limiter.duration'],
    [{ max: 1, duration: Number.NaN }, 'limiter.duration'],
    [{ max: 1, duration: MAX_TIMER_MS + 1 }, 'limiter.duration'],
  ])('refuses %j and names %s', (limiter, option) => {
    expect(() => make(limiter)).toThrow(expect.objectContaining(refusal(option)));
  });
});
