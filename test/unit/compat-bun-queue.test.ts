// holdfast/bun-queue: bun-queue's names and arguments, on a store in memory.
import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue, type QueueOptions } from '../../src/compat/bun-queue/index.js';
import { openStore } from '../../src/store/open.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';

function newQueue(options: QueueOptions = {}, connection = `memory:${randomUUID()}`): Queue {
  const queue = new Queue('work', { connection, ...options });
  onTestFinished(() => queue.close());
  return queue;
}

const next = (queue: EventEmitter, event: string): Promise<unknown[]> =>
  new Promise((resolve) => queue.once(event, (...args: unknown[]) => resolve(args)));

describe('options of a bun-queue', () => {
  test.each<[QueueOptions, object]>([
    [{ distributedLock: false }, { code: 'OPTION_UNSUPPORTED' }],
    [{ maxStalledJobRetries: -1 }, { code: 'INVALID_OPTION', option: 'maxStalledJobRetries' }],
    [{ stalledJobCheckInterval: Number.NaN }, { code: 'INVALID_OPTION', option: 'stalledJobCheckInterval' }],
    [{ stalledJobCheckInterval: 0 }, { code: 'INVALID_OPTION', option: 'stalledJobCheckInterval' }],
    [
      { horizontalScaling: { enabled: true, maxWorkersPerInstance: 0 } },
      { code: 'INVALID_OPTION', option: 'horizontalScaling.maxWorkersPerInstance' },
    ],
    [
      { horizontalScaling: { enabled: true, jobsPerWorker: 1.5 } },
      { code: 'INVALID_OPTION', option: 'horizontalScaling.jobsPerWorker' },
    ],
    [
      { horizontalScaling: { enabled: true, globalConcurrency: 0 } },
      { code: 'INVALID_OPTION', option: 'horizontalScaling.globalConcurrency' },
    ],
    [{ defaultDeadLetterOptions: {} } as QueueOptions, { code: 'OPTION_UNSUPPORTED', option: 'defaultDeadLetterOptions' }],
  ])('refuses %j at once', (options, error) => {
    expect(() => new Queue('work', { connection: 'memory:', ...options })).toThrow(expect.objectContaining(error));
  });

  test('limiter lets max jobs start within its window, and the others wait', async () => {
    const queue = newQueue({ limiter: { max: 2, duration: 600_000 } });
    for (const n of [1, 2, 3]) await queue.add({ n });
    const done = new Promise<void>((resolve) => {
      let left = 2;
      queue.on('jobCompleted', () => void ((left -= 1) === 0 && resolve()));
    });
    queue.process(5, () => undefined);
    await done;
    expect(await queue.core.getRateLimitTtl(2)).toBeGreaterThan(300_000);
    expect(await queue.getJobCounts()).toMatchObject({ completed: 2, waiting: 1, active: 0 });
  });

  test('allow 0 retries of a stalled job when maxStalledJobRetries is 0, and 3 by default', () => {
    expect(newQueue({ maxStalledJobRetries: 0 }).core.opts.maxStalledCount).toBe(0);
    expect(newQueue().core.opts.maxStalledCount).toBe(3);
  });

  test.each(['dependsOn', 'deadLetter', 'cron'])('refuses the job option %s by name', async (option) => {
    await expect(newQueue().add({}, { [option]: {} })).rejects.toMatchObject({ code: 'OPTION_UNSUPPORTED', option });
  });
});

describe('process of a bun-queue', () => {
  test('runs jobs and emits events with their ids', async () => {
    const queue = newQueue({ distributedLock: true });
    const told: unknown[][] = [];
    const events = ['jobAdded', 'jobActive', 'jobProgress', 'jobCompleted', 'jobFailed', 'jobRemoved'] as const;
    for (const event of events) queue.on(event, (...args: unknown[]) => told.push([event, ...args]));
    queue.process(async (job) => {
      await job.updateProgress(50);
      if (job.data.fail) throw new Error('no');
      return { ok: true };
    });
    const completed = next(queue, 'jobCompleted');
    const good = await queue.add({});
    await completed;
    const failed = next(queue, 'jobFailed');
    const bad = await queue.add({ fail: true });
    await failed;
    await queue.removeJob(bad.id);
    expect(told).toEqual([
      ['jobAdded', good.id],
      ['jobActive', good.id],
      ['jobProgress', good.id, 50],
      ['jobCompleted', good.id, { ok: true }],
      ['jobAdded', bad.id],
      ['jobActive', bad.id],
      ['jobProgress', bad.id, 50],
      ['jobFailed', bad.id, expect.objectContaining({ message: 'no' })],
      ['jobRemoved', bad.id],
    ]);
    expect(await queue.getJob(bad.id)).toBeNull();
    expect((await queue.getJob(good.id))?.returnvalue).toEqual({ ok: true });
    expect(await queue.getJobs('completed')).toHaveLength(1);
  });

  test.each([
    ['what process() asks for', 3, undefined, 3],
    ['one without it', undefined, undefined, 1],
    ['what its workers have room for, if that is less', 5, { enabled: true, maxWorkersPerInstance: 2, jobsPerWorker: 1 }, 2],
    [
      'all that its workers have room for, by default',
      undefined,
      { enabled: true, maxWorkersPerInstance: 2, jobsPerWorker: 2 },
      4,
    ],
    ['what process() asks for when scaling is off', 3, { enabled: false, maxWorkersPerInstance: 1, jobsPerWorker: 1 }, 3],
  ])('runs as many jobs at once as: %s', async (_what, concurrency, horizontalScaling, expected) => {
    const queue = newQueue(horizontalScaling === undefined ? {} : { horizontalScaling });
    let running = 0;
    let most = 0;
    const handler = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const jobs = Array.from({ length: 12 }, (_, n) => n);
    let left = jobs.length;
    const done = new Promise<void>((resolve) => queue.on('jobCompleted', () => void ((left -= 1) === 0 && resolve())));
    for (const n of jobs) await queue.add({ n });
    if (concurrency === undefined) queue.process(handler);
    else queue.process(concurrency, handler);
    await done;
    expect(most).toBe(expected);
  });

  test('accepts one handler, which must be a function', () => {
    const queue = newQueue();
    expect(() => queue.process('no' as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'handler' }));
    queue.process(async () => undefined);
    expect(() => queue.process(async () => undefined)).toThrow(expect.objectContaining({ code: 'ALREADY_RUNNING' }));
  });
});

describe('add of a bun-queue', () => {
  test('adds nothing under an id that exists, and says so', async () => {
    const queue = newQueue();
    const added: unknown[] = [];
    queue.on('jobAdded', (jobId) => added.push(jobId));
    expect((await queue.add({ n: 1 }, { jobId: 'daily' })).duplicate).toBe(false);
    const again = await queue.add({ n: 2 }, { jobId: 'daily' });
    expect(again.duplicate).toBe(true);
    expect(again.data).toEqual({ n: 1 });
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 1 });
    expect(added).toEqual(['daily']);
  });
});

describe('horizontal scaling of a bun-queue', () => {
  const election = { heartbeatInterval: 50, leaderTimeout: 1000 };

  test('has one leader until it is closed, and lists both instances', async () => {
    const connection = `memory:${randomUUID()}`;
    const make = (instanceId: string): Queue =>
      newQueue({ horizontalScaling: { enabled: true, instanceId, leaderElection: election } }, connection);
    const first = make('a:1');
    const [term] = await next(first, 'leader');
    const second = make('a:2');
    await next(second, 'follower');
    expect([first.isLeader, second.isLeader]).toEqual([true, false]);
    const leads = next(second, 'leader');
    await first.close();
    expect((await leads)[0]).toBeGreaterThan(term as number);
    expect(await second.getInstances()).toMatchObject([{ id: 'a:2', leader: true }]);
  });

  test('hands leadership over at once on close, even while a job runs', async () => {
    const connection = `memory:${randomUUID()}`;
    const scaling = { horizontalScaling: { enabled: true, leaderElection: election } };
    const first = newQueue(scaling, connection);
    await next(first, 'leader');
    let open = (): void => undefined;
    const active = next(first, 'jobActive');
    first.process(() => new Promise<void>((resolve) => (open = resolve)));
    await first.add({});
    await active;
    const second = newQueue(scaling, connection);
    await next(second, 'follower');
    const leads = next(second, 'leader');
    const closing = first.close();
    await leads;
    expect(first.isLeader).toBe(false);
    open();
    await closing;
  });

  test('runs nothing before the global limit is in the store', async () => {
    const inner = await openStore(`memory:${randomUUID()}`);
    onTestFinished(() => inner.close());
    const store = new FaultyStore(inner);
    const refused = store.on('configure', { fault: 'fail', times: 1 });
    const queue = new Queue('work', { connection: store, horizontalScaling: { enabled: true, globalConcurrency: 1 } });
    onTestFinished(() => queue.close());
    const told = next(queue, 'error');
    let running = 0;
    let most = 0;
    queue.process(5, async () => {
      most = Math.max(most, (running += 1));
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    });
    let left = 5;
    const done = new Promise<void>((resolve) => queue.on('jobCompleted', () => void ((left -= 1) === 0 && resolve())));
    for (let n = 0; n < 5; n++) await queue.add({ n });
    await told;
    expect(refused.struck).toBe(1);
    expect(store.calls('claim')).toBe(0);
    await done;
    expect(most).toBe(1);
  });

  test('emits failed for a job over the stall limit that only a leader finds', async () => {
    const store = await openStore(`memory:${randomUUID()}`);
    onTestFinished(() => store.close());
    const queue = new Queue('work', {
      connection: store,
      stalledJobCheckInterval: 20,
      maxStalledJobRetries: 0,
      horizontalScaling: { enabled: true, leaderElection: election },
    });
    onTestFinished(() => queue.close());
    const { id } = await queue.add({});
    const owner = { host: 'elsewhere', pid: 1, name: 'gone', instance: 'gone' };
    await store.openSession({ queue: 'work', id: 'gone', owner, durationMs: 20, maxStalls: 0, slots: 1 });
    const failed = next(queue, 'jobFailed');
    await store.claim('work', { session: 'gone', seq: 1, count: 1 });
    expect(await failed).toEqual([id, expect.objectContaining({ message: 'job stalled more than allowable limit' })]);
  });
});

test('refuses calls after close', async () => {
  const queue = newQueue();
  expect(await queue.ping()).toBe(true);
  await queue.close();
  await expect(queue.add({})).rejects.toMatchObject({ code: 'CLOSED' });
  expect(() => queue.process(async () => undefined)).toThrow(expect.objectContaining({ code: 'CLOSED' }));
});

describe('cron jobs of a bun-queue', () => {
  test('are made once for the same expression and data, run with their data, and can be removed', async () => {
    const queue = newQueue();
    const options = { cronExpression: '* * * * * *', timezone: 'UTC', data: { n: 1 } };
    const id = await queue.scheduleCron(options);
    expect(await queue.scheduleCron(options)).toBe(id);
    expect(await queue.scheduleCron({ ...options, data: { n: 2 } })).not.toBe(id);
    expect(await queue.scheduleCron({ cronExpression: '0 0 * * *', jobId: 'nightly', limit: 5 })).toBe('nightly');
    expect(await queue.core.getJobSchedulersCount()).toBe(3);
    expect(await queue.core.getJobScheduler('nightly')).toMatchObject({ pattern: '0 0 * * *', limit: 5, name: 'work' });
    const completed = next(queue, 'jobCompleted');
    queue.process((job) => job.data as unknown);
    expect(await completed).toEqual([expect.stringMatching(/^repeat:cron:/), { n: expect.any(Number) as number }]);
    expect([await queue.unscheduleCron('nightly'), await queue.unscheduleCron('nightly')]).toEqual([true, false]);
  });

  test('can be added with the option repeat, and refuse an expression that is none', async () => {
    const queue = newQueue();
    await queue.add({}, { repeat: { cron: '0 0 * * *', timezone: 'Asia/Tokyo' } });
    expect((await queue.core.getJobSchedulers())[0]).toMatchObject({ pattern: '0 0 * * *', tz: 'Asia/Tokyo' });
    const refused = queue.scheduleCron({ cronExpression: 'often' });
    await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'pattern' });
    expect(await queue.core.getJobSchedulersCount()).toBe(1);
  });
});
