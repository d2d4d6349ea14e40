// Metrics and the text for Prometheus as users of BullMQ know them, on every store. Minutes pass on memory alone, under fake timers: the
// conformance suite lets them pass on the others.
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { UnrecoverableError } from '../../src/job/signals.js';
import { MetricsTime } from '../../src/queue/metrics.js';
import { Queue } from '../../src/queue/queue.js';
import type { MetricsOptions } from '../../src/worker/options.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

const NONE = { meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 };
const MINUTE_MS = 60_000;

const run = async ({ name }: { name: string }): Promise<void> => {
  if (name === 'hopeless') throw new UnrecoverableError('no');
  if (name === 'failing') throw new Error('no');
};

describe.each(ENGINES)('metrics on %s', (engine: Engine) => {
  async function start(metrics?: MetricsOptions) {
    const { inner: connection, queue: name, store } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const worker = kept(new Worker(name, run, { connection, ...(metrics === undefined ? {} : { metrics }) }));
    return { connection, name, queue, worker, store };
  }

  test.each<MetricsOptions | undefined>([undefined, {}, { maxDataPoints: 0 }])(
    'are not counted with metrics: %j',
    async (metrics) => {
      const { queue, connection, name } = await start(metrics);
      await queue.add('x', {});
      await until('the job to finish', async () => (await queue.getCompletedCount()) === 1);
      expect(await queue.getMetrics('completed')).toEqual(NONE);
      expect((await connection.status(name, { metrics: { kind: 'completed', start: 0, end: -1 } })).metrics).toBeUndefined();
    },
  );

  test('count completed jobs and jobs that failed for good, not attempts', async () => {
    const { queue } = await start({ maxDataPoints: MetricsTime.ONE_HOUR });
    await queue.addBulk([
      { name: 'x', data: {} },
      { name: 'x', data: {}, opts: { removeOnComplete: true } },
      { name: 'failing', data: {}, opts: { attempts: 3 } },
      { name: 'hopeless', data: {}, opts: { attempts: 3 } },
    ]);
    await until('all to finish', async () => (await queue.getFailedCount()) === 2 && (await queue.count()) === 0);
    await until('all to be counted', async () => (await queue.getMetrics('completed')).meta.count === 2);
    const [completed, failed] = [await queue.getMetrics('completed'), await queue.getMetrics('failed')];
    expect([completed.meta.count, failed.meta.count]).toEqual([2, 2]);
    expect([completed.meta.prevTS % MINUTE_MS, completed.meta.prevTS > Date.now() - 600_000]).toEqual([0, true]);
    // Only if the test crossed the end of a minute is there a point.
    expect(completed.count).toBe(completed.data.length);
    expect(completed.data.reduce((sum, point) => sum + point, 0)).toBe(completed.meta.prevCount);
  });

  test('are switched on by a worker whose jobs are taken by hand', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const worker = kept(new Worker(name, null, { connection, metrics: { maxDataPoints: 5 } }));
    await queue.add('x', {});
    const job = await worker.getNextJob('mine');
    await job?.moveToCompleted('done', 'mine', false);
    expect((await queue.getMetrics('completed')).meta.count).toBe(1);
  });

  test('are switched on after an outage, which the worker reports once, and no job is claimed before', async () => {
    const { queue: name, store, inner: connection } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    store.on('configure', { fault: 'fail', times: 2 });
    await queue.add('x', {});
    const worker = kept(new Worker(name, run, { connection: store, metrics: { maxDataPoints: 5 } }));
    const errors: Error[] = [];
    worker.on('error', (error) => errors.push(error));
    await until('the job to be counted', async () => (await queue.getMetrics('completed')).meta.count === 1);
    expect([errors.length, store.calls('configure')]).toEqual([1, 3]);
  });

  test('getMetrics refuses kinds and positions that it cannot read', async () => {
    const { queue } = await start();
    for (const bad of ['waiting', '', 5, null, undefined])
      await expect(queue.getMetrics(bad as 'failed')).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'type' });
    for (const bad of [1.5, Number.NaN, '0', null, 2 ** 53]) {
      const refused = (option: string) => ({ code: 'INVALID_OPTION', option });
      await expect(queue.getMetrics('completed', bad as number)).rejects.toMatchObject(refused('start'));
      await expect(queue.getMetrics('completed', 0, bad as number)).rejects.toMatchObject(refused('end'));
    }
  });

  test('getCountsPerPriority counts waiting jobs in one call, also of a paused queue', async () => {
    const { inner: connection, queue: name, store } = await scene(engine);
    const queue = kept(new Queue(name, { connection: store }));
    await queue.pause();
    await queue.addBulk([0, 0, 1, 5, 5, 5].map((priority) => ({ name: 'x', data: {}, opts: { priority } })));
    const before = store.calls('status');
    expect(await queue.getCountsPerPriority([5, 0, 1, 2, 5])).toEqual({ 5: 3, 0: 2, 1: 1, 2: 0 });
    expect(store.calls('status') - before).toBe(1);
    expect(await queue.getCountsPerPriority([])).toEqual({});
    for (const bad of [[-1], [1.5], ['0'], 'all', null])
      await expect(queue.getCountsPerPriority(bad as number[])).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    expect((await connection.status(name)).counts).toMatchObject({ waiting: 2, prioritized: 4 });
  });

  test('exportPrometheusMetrics prints a gauge by state and two counters, with the labels of the caller', async () => {
    const { queue, name } = await start({ maxDataPoints: 5 });
    await queue.addBulk([
      { name: 'x', data: {} },
      { name: 'hopeless', data: {} },
      { name: 'x', data: {}, opts: { delay: 600_000 } },
    ]);
    await until('both to finish', async () => (await queue.getJobCountByTypes('completed', 'failed')) === 2);
    await until('both to be counted', async () => (await queue.getMetrics('failed')).meta.count === 1);
    const labels = (state: string): string => `queue="${name}", state="${state}", zone="a\\\\b\\"c\\nd", shard="7"`;
    const states = Object.entries(await queue.getJobCounts()).map(([state, n]) => `bullmq_job_count{${labels(state)}} ${n}`);
    expect(states).toHaveLength(7);
    expect((await queue.exportPrometheusMetrics({ zone: 'a\\b"c\nd', shard: 7 as never })).split('\n')).toEqual([
      '# HELP bullmq_job_count Number of jobs in the queue by state',
      '# TYPE bullmq_job_count gauge',
      ...states,
      '# HELP bullmq_job_completed_total Total number of completed jobs',
      '# TYPE bullmq_job_completed_total counter',
      `bullmq_job_completed_total{queue="${name}", zone="a\\\\b\\"c\\nd", shard="7"} 1`,
      '# HELP bullmq_job_failed_total Total number of failed jobs',
      '# TYPE bullmq_job_failed_total counter',
      `bullmq_job_failed_total{queue="${name}", zone="a\\\\b\\"c\\nd", shard="7"} 1`,
      '',
    ]);
  });
});

describe('exportPrometheusMetrics', () => {
  const of = (name: string) => kept(new Queue(name, { connection: 'memory:' }));

  test('escapes backslashes and quotes in the name of the queue', async () => {
    const text = await of('a\\b "c" ä').exportPrometheusMetrics();
    expect(text).toContain('bullmq_job_count{queue="a\\\\b \\"c\\" ä", state="active"} 0\n');
    expect(text.split('\n').filter((line) => !/^(#|bullmq_job_|$)/.test(line))).toEqual([]);
  });

  test('refuses labels that Prometheus would not read, or that would hide the own ones', async () => {
    const queue = of('q');
    const bad: unknown[] = [
      { 'a-b': 'x' },
      { '': 'x' },
      { '1a': 'x' },
      { __name__: 'x' },
      { queue: 'x' },
      { state: 'x' },
      { a: {} },
    ];
    for (const labels of [...bad, { a: null }, 'x', null, ['x']]) {
      const refused = { code: 'INVALID_OPTION', option: expect.stringContaining('globalVariables') as string };
      await expect(queue.exportPrometheusMetrics(labels as Record<string, string>)).rejects.toMatchObject(refused);
    }
  });
});

describe('the worker option metrics', () => {
  test.each<[unknown, string]>([
    [null, 'metrics'],
    [5, 'metrics'],
    [{ maxDataPoints: -1 }, 'metrics.maxDataPoints'],
    [{ maxDataPoints: 1.5 }, 'metrics.maxDataPoints'],
    [{ maxDataPoints: '5' }, 'metrics.maxDataPoints'],
    [{ maxDataPoints: Number.NaN }, 'metrics.maxDataPoints'],
    [{ maxDataPoints: MetricsTime.ONE_MONTH + 1 }, 'metrics.maxDataPoints'],
  ])('refuses %j and names %s', (metrics, option) => {
    const refused = { code: 'INVALID_OPTION', option };
    expect(() => new Worker('q', null, { connection: 'memory:', metrics } as never)).toThrow(expect.objectContaining(refused));
  });

  test('MetricsTime names minutes, as in BullMQ', () => {
    expect(MetricsTime).toEqual({
      ONE_MINUTE: 1,
      FIVE_MINUTES: 5,
      FIFTEEN_MINUTES: 15,
      THIRTY_MINUTES: 30,
      ONE_HOUR: 60,
      ONE_WEEK: 10_080,
      TWO_WEEKS: 20_160,
      ONE_MONTH: 80_640,
    });
  });
});

describe('metrics under the fake timers of a test', () => {
  afterEach(() => vi.useRealTimers());
  /** The middle of a minute. */
  const NOON = Date.UTC(2026, 0, 1, 12, 0, 30);

  async function start(maxDataPoints: number) {
    vi.useFakeTimers({ now: NOON });
    const connection = `memory:metrics-${maxDataPoints}-${Math.random()}`;
    const queue = kept(new Queue('q', { connection }));
    const worker = kept(new Worker('q', run, { connection, metrics: { maxDataPoints } }));
    let finished = 0;
    worker.on('completed', () => (finished += 1));
    worker.on('failed', () => (finished += 1));
    const finish = async (...names: string[]): Promise<void> => {
      const before = finished;
      await queue.addBulk(names.map((name) => ({ name, data: {} })));
      while (finished < before + names.length) await new Promise((resolve) => process.nextTick(() => setImmediateReal(resolve)));
    };
    const minutes = (count: number): Promise<unknown> => vi.advanceTimersByTimeAsync(count * MINUTE_MS);
    return { queue, finish, minutes };
  }
  const setImmediateReal = setImmediate;

  test('the running minute is no point, a whole minute is one, and gaps are zeros', async () => {
    const { queue, finish, minutes } = await start(10);
    expect(await queue.getMetrics('completed')).toEqual(NONE);
    await finish('x', 'x');
    const floor = NOON - (NOON % MINUTE_MS);
    expect(await queue.getMetrics('completed')).toEqual({ meta: { count: 2, prevTS: floor, prevCount: 0 }, data: [], count: 0 });
    await minutes(1);
    await finish('x', 'hopeless');
    const second = { meta: { count: 3, prevTS: floor + MINUTE_MS, prevCount: 2 }, data: [2], count: 1 };
    expect(await queue.getMetrics('completed')).toEqual(second);
    await minutes(3);
    await finish('x');
    const third = { meta: { count: 4, prevTS: floor + 4 * MINUTE_MS, prevCount: 3 }, data: [0, 0, 1, 2], count: 4 };
    expect(await queue.getMetrics('completed')).toEqual(third);
    expect(await queue.getMetrics('failed')).toMatchObject({ meta: { count: 1, prevTS: floor + MINUTE_MS }, data: [], count: 0 });
    expect(await queue.getMetrics('completed', 1, 2)).toEqual({ ...third, data: [0, 1] });
    expect((await queue.getMetrics('completed', -1, -1)).data).toEqual([2]);
    expect((await queue.getMetrics('completed', 4, 9)).data).toEqual([]);
    expect((await queue.getMetrics('completed', 3, 99)).data).toEqual([2]);
  });

  test('keeps at most maxDataPoints points, the newest', async () => {
    const { queue, finish, minutes } = await start(2);
    for (const count of [1, 2, 3, 1]) {
      await finish(...Array.from({ length: count }, () => 'x'));
      await minutes(1);
    }
    expect(await queue.getMetrics('completed')).toMatchObject({ meta: { count: 7, prevCount: 6 }, data: [3, 2], count: 2 });
    await minutes(60 * 24);
    await finish('x');
    expect(await queue.getMetrics('completed')).toMatchObject({ meta: { count: 8 }, data: [0, 0], count: 2 });
  });
});
