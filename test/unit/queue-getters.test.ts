import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { type LockClient, holder } from './claimed-job.js';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };

let store: MemoryStore;
let queue: Queue;
let worker: LockClient;

beforeEach(async () => {
  store = new MemoryStore();
  queue = new Queue('mail', { connection: store });
  worker = await holder(store, 'mail');
});
afterEach(() => queue.close());

const names = (jobs: { name: string }[]): string[] => jobs.map(({ name }) => name);
const refused = (code: string) => expect.objectContaining({ code });

/** One in each state, and a second waiting one. */
async function oneOfEach(): Promise<void> {
  for (const name of ['completed', 'failed', 'active']) await queue.add(name, {});
  await (await worker.take()).moveToCompleted('x', undefined, false);
  await (await worker.take()).moveToFailed(new Error('x'));
  await worker.take();
  await queue.add('waiting', {});
  await queue.add('waiting 2', {});
  await queue.add('delayed', {}, { delay: 60_000 });
  await queue.add('prioritized', {}, { priority: 4 });
}

describe('getters of jobs by state', () => {
  test('return the jobs of their own state', async () => {
    await oneOfEach();
    expect(names(await queue.getWaiting())).toEqual(['waiting', 'waiting 2']);
    expect(names(await queue.getActive())).toEqual(['active']);
    expect(names(await queue.getDelayed())).toEqual(['delayed']);
    expect(names(await queue.getPrioritized())).toEqual(['prioritized']);
    expect(names(await queue.getCompleted())).toEqual(['completed']);
    expect(names(await queue.getFailed())).toEqual(['failed']);
    expect(await queue.getJobs()).toHaveLength(7);
    expect(names(await queue.getJobs(['wait', 'delayed'], 0, -1, true))).toEqual(['waiting', 'waiting 2', 'delayed']);
    expect(names(await queue.getJobs('failed'))).toEqual(['failed']);
    expect(await queue.getJobs(['waiting-children', 'repeat', 'paused'])).toEqual([]);
  });

  test.each([1, undefined, null, '', {}])('refuse %j as the id of a job, and change nothing', async (id) => {
    const { id: first } = await queue.add('a', {});
    expect(first).toBe('1');
    const given = id as string;
    const calls = {
      getJob: () => queue.getJob(given),
      remove: () => queue.remove(given),
      getJobState: () => queue.getJobState(given),
      getJobLogs: () => queue.getJobLogs(given),
      updateJobProgress: () => queue.updateJobProgress(given, 5),
      addJobLog: () => queue.addJobLog(given, 'row'),
    };
    for (const [name, call] of Object.entries(calls))
      await expect(call(), name).rejects.toMatchObject({ code: 'INVALID_JOB_ID' });
    expect(await queue.count()).toBe(1);
  });

  test('return undefined for an id that no job can have', async () => {
    expect(await queue.getJob('x'.repeat(1000))).toBeUndefined();
    expect(await queue.remove('none')).toBe(0);
  });

  test('return the asked range and order', async () => {
    await queue.addBulk(['a', 'b', 'c', 'd'].map((name) => ({ name })));
    expect(names(await queue.getWaiting(1, 2))).toEqual(['b', 'c']);
    expect(names(await queue.getJobs(['waiting'], 0, 1, false))).toEqual(['d', 'c']);
    expect(names(await queue.getJobs(['waiting'], -2, -1, true))).toEqual(['c', 'd']);
  });

  test('count the jobs of each state', async () => {
    await oneOfEach();
    expect(await queue.getJobCounts()).toEqual({
      active: 1,
      completed: 1,
      delayed: 1,
      failed: 1,
      prioritized: 1,
      waiting: 2,
      'waiting-children': 0,
    });
    expect(await queue.getJobCounts('failed', 'wait')).toEqual({ failed: 1, wait: 2 });
    expect(await queue.getJobCountByTypes('wait', 'waiting', 'failed')).toBe(3);
    expect(await queue.count()).toBe(4);
    expect(
      await Promise.all([
        queue.getWaitingCount(),
        queue.getActiveCount(),
        queue.getDelayedCount(),
        queue.getPrioritizedCount(),
        queue.getCompletedCount(),
        queue.getFailedCount(),
      ]),
    ).toEqual([2, 1, 1, 1, 1, 1]);
  });

  test('show jobs of a paused queue as waiting, as in BullMQ 6', async () => {
    await oneOfEach();
    const told: string[] = [];
    queue.on('paused', () => told.push('paused')).on('resumed', () => told.push('resumed'));
    await queue.pause();
    expect(await queue.isPaused()).toBe(true);
    const meta = { maxLenEvents: 10_000, version: `holdfast:${manifest.version}` };
    expect(await queue.getMeta()).toEqual({ paused: true, ...meta });
    expect(await queue.getVersion()).toBe(meta.version);
    await queue.setGlobalConcurrency(3);
    expect(await queue.getMeta()).toEqual({ paused: true, concurrency: 3, ...meta });
    expect(await queue.getJobCounts('waiting', 'wait', 'paused')).toEqual({ waiting: 2, wait: 2, paused: 0 });
    expect(await queue.getCountsPerPriority([0])).toEqual({ 0: 2 });
    expect(await queue.getWaitingCount()).toBe(2);
    expect(await queue.count()).toBe(4);
    expect(names(await queue.getJobs(['paused', 'waiting', 'wait', 'waiting'], 0, -1, true))).toEqual(['waiting', 'waiting 2']);
    expect(await queue.getJobs(['paused'])).toEqual([]);
    expect(await queue.getWaiting()).toHaveLength(2);
    await queue.resume();
    expect(await queue.isPaused()).toBe(false);
    expect(told).toEqual(['paused', 'resumed']);
  });

  test('count jobs per priority', async () => {
    await queue.addBulk([0, 0, 1, 5, 5, 5, 9].map((priority) => ({ name: 'x', opts: { priority } })));
    expect(await queue.getCountsPerPriority([0, 1, 2, 5, 9, 10])).toEqual({ 0: 2, 1: 1, 2: 0, 5: 3, 9: 1, 10: 0 });
    for (const bad of [5, null, [Number.NaN], [-1], ['5']])
      await expect(queue.getCountsPerPriority(bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });

  test('refuse invalid arguments', async () => {
    for (const types of ['nonsense', ['waiting', 5], 7, {}, [null]])
      await expect(queue.getJobs(types as never)).rejects.toThrow(refused('INVALID_OPTION'));
    await expect(queue.getJobCounts('nonsense' as never)).rejects.toThrow(refused('INVALID_OPTION'));
    for (const bad of [Number.NaN, 1.5, '5', null]) {
      await expect(queue.getJobs(['waiting'], bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.getJobs(['waiting'], 0, bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.getJobLogs('1', bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
    }
  });
});

describe('getters of one job', () => {
  test('return the job, its state, logs and progress', async () => {
    const progress: unknown[] = [];
    queue.on('progress', (jobId, value) => progress.push([jobId, value]));
    const { id } = await queue.add('x', {});
    expect((await queue.getJob(id))?.name).toBe('x');
    expect(await queue.getJob('nobody')).toBeUndefined();
    expect([await queue.getJobState(id), await queue.getJobState('nobody')]).toEqual(['waiting', 'unknown']);
    await queue.updateJobProgress(id, 30);
    expect([await queue.addJobLog(id, 'a'), await queue.addJobLog(id, 'b', 1)]).toEqual([1, 1]);
    expect(await queue.getJobLogs(id, 0, -1, false)).toEqual({ logs: ['b'], count: 1 });
    expect((await queue.getJob(id))?.progress).toBe(30);
    expect(progress).toEqual([[id, 30]]);
    await expect(queue.updateJobProgress('nobody', 1)).rejects.toThrow(refused('JOB_MISSING'));
    await expect(queue.addJobLog('nobody', 'x')).rejects.toThrow(refused('JOB_MISSING'));
    await expect(queue.addJobLog(id, 'x', -1)).rejects.toThrow(refused('INVALID_OPTION'));
  });

  test('show a rate limit until it ends', async () => {
    expect(await queue.getRateLimitTtl()).toBe(-2);
    await queue.rateLimit(60_000);
    expect(await queue.getRateLimitTtl()).toBeGreaterThan(59_000);
    await queue.rateLimit(0);
    expect(await queue.getRateLimitTtl()).toBe(-2);
    for (const bad of [Number.NaN, -1, 1.5, 1e300, '5', null])
      await expect(queue.rateLimit(bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });
});
