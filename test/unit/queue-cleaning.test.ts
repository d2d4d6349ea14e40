import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { type LockClient, holder } from './claimed-job.js';

let clock: ManualClock;
let store: FaultyStore;
let queue: Queue;
let worker: LockClient;

beforeEach(async () => {
  clock = new ManualClock();
  store = new FaultyStore(new MemoryStore({ clock }));
  queue = new Queue('mail', { connection: store });
  worker = await holder(store, 'mail');
});
afterEach(() => queue.close());

const refused = (code: string) => expect.objectContaining({ code });

function bulk(count: number, opts = {}): Promise<unknown> {
  return queue.addBulk(Array.from({ length: count }, () => ({ name: 'x', opts })));
}

async function finished(count: number, kind: 'completed' | 'failed'): Promise<void> {
  await bulk(count);
  for (let n = 0; n < count; n++) {
    const job = await worker.take();
    await (kind === 'completed' ? job.moveToCompleted(n, undefined, false) : job.moveToFailed(new Error('x')));
  }
}

describe('drain', () => {
  test('removes waiting jobs in chunks, and delayed jobs only on request', async () => {
    await bulk(1200);
    await bulk(5, { priority: 1 });
    await bulk(3, { delay: 60_000 });
    await queue.drain();
    expect(await queue.getJobCounts('waiting', 'prioritized', 'delayed')).toMatchObject({
      waiting: 0,
      prioritized: 0,
      delayed: 3,
    });
    expect(store.calls('change')).toBe(3);
    await queue.drain(true);
    expect(await queue.count()).toBe(0);
  });

  test('leaves running and finished jobs, and ends although the queue keeps filling', async () => {
    await finished(1, 'completed');
    await bulk(501);
    await worker.take();
    store.on('change', {
      fault: 'delay',
      delayMs: 0,
      when: () => (void queue.addBulk([{ name: 'more' }, { name: 'more' }]), true),
    });
    await queue.drain();
    expect(await queue.getJobCounts('active', 'completed')).toEqual({ active: 1, completed: 1 });
  });
});

describe('clean', () => {
  test('removes finished jobs of one state by age and number, and emits cleaned', async () => {
    const told: unknown[] = [];
    queue.on('cleaned', (ids, type) => told.push([ids, type]));
    await finished(3, 'completed');
    await finished(1, 'failed');
    clock.advance(10_000);
    await finished(2, 'completed');
    expect(await queue.clean(5000, 2)).toEqual(['1', '2']);
    expect(await queue.clean(5000, 0)).toEqual(['3']);
    expect(await queue.clean(5000, 0)).toEqual([]);
    expect(await queue.clean(0, 0, 'failed')).toEqual(['4']);
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 2, failed: 0 });
    expect(told).toEqual([
      [['1', '2'], 'completed'],
      [['3'], 'completed'],
      [[], 'completed'],
      [['4'], 'failed'],
    ]);
  });

  test('removes waiting jobs either without or with a priority, never both', async () => {
    await bulk(700);
    await bulk(2, { priority: 1 });
    await bulk(1, { delay: 1000 });
    expect(await queue.clean(0, 600, 'wait')).toHaveLength(600);
    expect(await queue.clean(0, 0, 'paused')).toEqual([]);
    await queue.pause();
    expect(await queue.clean(0, 50, 'paused')).toHaveLength(50);
    await queue.resume();
    expect(await queue.getJobCounts('waiting', 'prioritized')).toMatchObject({ waiting: 50, prioritized: 2 });
    expect(await queue.clean(0, 0, 'prioritized')).toHaveLength(2);
    expect(await queue.clean(0, 0, 'delayed')).toHaveLength(1);
    expect(await queue.getJobCounts('waiting', 'prioritized')).toMatchObject({ waiting: 50, prioritized: 0 });
  });

  test('removes old waiting jobs behind young ones, by the clock of the store', async () => {
    await bulk(3, { timestamp: Date.now() + 60_000 });
    clock.advance(60_000);
    await bulk(600, { timestamp: Date.now() - 60_000, lifo: true });
    expect(await queue.clean(30_000, 0, 'wait')).toEqual(['1', '2', '3']);
    expect(await queue.clean(30_000, 0, 'wait')).toEqual([]);
  });

  test('makes one call per 500 jobs, and one if there is no job', async () => {
    expect(await queue.clean(0, 0, 'wait')).toEqual([]);
    expect(store.calls('change')).toBe(1);
    await bulk(600);
    expect(await queue.clean(0, 0, 'wait')).toHaveLength(600);
    expect(store.calls('change')).toBe(3);
  });

  test('never removes a locked job', async () => {
    await bulk(1);
    await worker.take();
    expect(await queue.clean(0, 0, 'active')).toEqual([]);
    expect(await queue.getActiveCount()).toBe(1);
  });

  test('refuses invalid arguments', async () => {
    for (const bad of [Number.NaN, -1, 1.5, 1e300, '5', null, {}]) {
      await expect(queue.clean(bad as never, 0)).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.clean(0, bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
    }
    await expect(queue.clean(0, 0, 'nonsense' as never)).rejects.toThrow(refused('INVALID_OPTION'));
    await expect(queue.drain('yes' as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });
});

describe('moving many jobs back to waiting', () => {
  test('retries failed jobs by default, in steps, with retryJobs', async () => {
    await finished(5, 'failed');
    await finished(2, 'completed');
    await queue.retryJobs({ count: 2 });
    expect(await queue.getJobCounts('failed', 'completed', 'waiting')).toMatchObject({ failed: 0, completed: 2, waiting: 5 });
    expect(store.calls('change')).toBe(3);
    await queue.retryJobs({ state: 'completed' });
    expect(await queue.getJobCounts('completed', 'waiting')).toMatchObject({ completed: 0, waiting: 7 });
  });

  test('retries jobs that finished before a timestamp, with retryJobs', async () => {
    await finished(2, 'failed');
    clock.advance(60_000);
    await finished(1, 'failed');
    await queue.retryJobs({ timestamp: Date.now() - 30_000 });
    expect(await queue.getFailedCount()).toBe(1);
  });

  test('promotes delayed jobs, with promoteJobs', async () => {
    await bulk(3, { delay: 60_000 });
    await queue.promoteJobs({ count: 2 });
    expect(await queue.getJobCounts('delayed', 'waiting')).toMatchObject({ delayed: 0, waiting: 3 });
  });

  test('refuses invalid arguments', async () => {
    for (const bad of [Number.NaN, 0, -1, 1.5, 1e300, '5', null, {}]) {
      await expect(queue.retryJobs({ count: bad as never })).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.promoteJobs({ count: bad as never })).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.obliterate({ count: bad as never })).rejects.toThrow(refused('INVALID_OPTION'));
    }
    await expect(queue.retryJobs({ state: 'waiting' as never })).rejects.toThrow(refused('INVALID_OPTION'));
    await expect(queue.retryJobs({ timestamp: Number.NaN })).rejects.toThrow(refused('INVALID_OPTION'));
    await expect(queue.obliterate({ force: 1 as never })).rejects.toThrow(refused('INVALID_OPTION'));
  });
});

describe('remove', () => {
  test('returns 1 when the job was removed, 0 when it is missing or locked', async () => {
    const told: string[] = [];
    queue.on('removed', (jobId) => told.push(jobId));
    await bulk(2);
    const running = await worker.take();
    expect([await queue.remove('2'), await queue.remove('2'), await queue.remove(running.id)]).toEqual([1, 0, 0]);
    const job = await queue.add('x', {});
    await job.remove();
    expect(told).toEqual(['2', job.id]);
  });
});

describe('obliterate', () => {
  test('removes everything, and the queue can be used again', async () => {
    await finished(2, 'failed');
    await bulk(600);
    await bulk(2, { delay: 1000 });
    await queue.obliterate();
    expect(Object.values(await queue.getJobCounts()).every((count) => count === 0)).toBe(true);
    expect(await queue.isPaused()).toBe(false);
    expect((await queue.add('x', {})).id).toBe('1');
  });

  test('is refused while jobs run, and leaves everything as it was', async () => {
    await bulk(2);
    await worker.take();
    await expect(queue.obliterate()).rejects.toThrow(refused('QUEUE_ACTIVE'));
    await expect(queue.obliterate()).rejects.toThrow(/^Cannot obliterate queue with active jobs$/);
    expect([await queue.isPaused(), await queue.getActiveCount(), await queue.count()]).toEqual([false, 1, 1]);
  });

  test('revokes locks by force, and the owners of running jobs are refused', async () => {
    await bulk(2);
    const running = await worker.take();
    await queue.obliterate({ force: true });
    expect(await queue.getJobs()).toEqual([]);
    await expect(running.moveToCompleted('x')).rejects.toThrow(refused('JOB_MISSING'));
  });
});
