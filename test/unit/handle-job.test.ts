import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Job } from '../../src/handle/job.js';
import { NO_LOCK } from '../../src/job/lock.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { type LockClient, holder } from './claimed-job.js';

let store: MemoryStore;
let queue: Queue;
let worker: LockClient;

beforeEach(async () => {
  store = new MemoryStore();
  queue = new Queue('mail', { connection: store });
  worker = await holder(store, 'mail');
});
afterEach(() => queue.close());

const refused = (code: string) => expect.objectContaining({ code, jobId: expect.any(String), queue: 'mail' });

describe('a job handle shows its job', () => {
  test('after add', async () => {
    const before = Date.now();
    const job = await queue.add('welcome', { to: 'a' }, { delay: 50, priority: 3, attempts: 2 });
    expect(job).toMatchObject({
      id: '1',
      name: 'welcome',
      queueName: 'mail',
      data: { to: 'a' },
      opts: { delay: 50, priority: 3, attempts: 2 },
      delay: 50,
      priority: 3,
      progress: 0,
      returnvalue: null,
      stacktrace: [],
      attemptsMade: 0,
      attemptsStarted: 0,
      stalledCounter: 0,
      duplicate: false,
      discarded: false,
    });
    expect(job.timestamp).toBeGreaterThanOrEqual(before);
    expect([job.failedReason, job.processedOn, job.finishedOn, job.processedBy, job.token]).toEqual(Array(5).fill(undefined));
    expect(job.lock).toBe(NO_LOCK);
  });

  test('while it runs', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    expect(job).toMatchObject({ attemptsStarted: 1, processedBy: 'tester' });
    expect(job.processedOn).toBeGreaterThan(0);
    expect(job.lock).toMatchObject({ held: true, token: job.token, fence: expect.any(Number) });
  });

  test('that was not added', async () => {
    const job = new Job(queue, 'welcome', { to: 'a' }, { delay: 50, priority: 3, attempts: 2 }, 'mine');
    expect(job).toMatchObject({ id: 'mine', name: 'welcome', queueName: 'mail', data: { to: 'a' }, delay: 50, priority: 3 });
    expect(job.opts).toEqual({ delay: 50, priority: 3, attempts: 2 });
    expect([await job.getState(), await queue.count()]).toEqual(['unknown', 0]);
    expect(new Job(queue, 'welcome', {}, { jobId: 'other' }).id).toBe('other');
    expect(() => new Job(queue, 'welcome', {}, { delay: -1 })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    expect(() => new Job(queue, 'welcome', () => 1)).toThrow(expect.objectContaining({ code: 'INVALID_PAYLOAD' }));
  });

  test('with data that is decoded once, so that changes of a handler stay', async () => {
    const job = await queue.add('welcome', { list: [1] });
    (job.data as { list: number[] }).list.push(2);
    expect(job.data).toEqual({ list: [1, 2] });
    job.data = { other: true };
    expect(job.data).toEqual({ other: true });
    expect((await queue.getJob(job.id))?.data).toEqual({ list: [1] });
  });

  test('as plain data in JSON and in a log, without its token', async () => {
    await queue.add('welcome', { to: 'a' });
    const job = await worker.take();
    const token = job.token as string;
    expect(JSON.parse(JSON.stringify(job))).toMatchObject({
      id: '1',
      name: 'welcome',
      data: { to: 'a' },
      queueName: 'mail',
      progress: 0,
    });
    for (const text of [JSON.stringify(job), inspect(job), JSON.stringify(job.asJSON())]) expect(text).not.toContain(token);
    expect(inspect(job)).toContain('welcome');
  });

  test('with a returnvalue that can be set on the handle alone', async () => {
    const job = await queue.add('welcome', { to: 'a' });
    job.returnvalue = 5;
    expect(job.returnvalue).toBe(5);
    expect(job.toJSON().returnvalue).toBe(5);
    expect((await queue.getJob(job.id))?.returnvalue).toBeNull();
  });

  test('the same after asJSON and fromJSON', async () => {
    const job = await queue.add('welcome', { to: 'a' }, { attempts: 3 });
    await job.updateProgress({ step: 1 });
    const again = Job.fromJSON(queue, job.asJSON());
    expect(again.toJSON()).toEqual(job.toJSON());
    expect(again.lock).toBe(NO_LOCK);
    expect(Job.fromJSON(queue, { name: 'x', opts: { attempts: 4 } }, '9')).toMatchObject({
      id: '9',
      opts: { attempts: 4 },
      data: {},
    });
  });

  test('the same when made by create, createBulk and fromId', async () => {
    const one = await Job.create(queue, 'welcome', { to: 'a' }, { jobId: 'one' });
    const [two] = await Job.createBulk(queue, [{ name: 'welcome', data: { to: 'b' } }]);
    expect((await Job.fromId(queue, one.id))?.data).toEqual({ to: 'a' });
    expect((await Job.fromId(queue, two?.id as string))?.data).toEqual({ to: 'b' });
    expect(await Job.fromId(queue, 'nobody')).toBeUndefined();
  });
});

describe('the states of a job handle', () => {
  test('follow the job', async () => {
    const job = await queue.add('welcome', {});
    expect([await job.getState(), await job.isWaiting(), await job.isActive()]).toEqual(['waiting', true, false]);
    const running = await worker.take();
    expect([await job.getState(), await job.isActive(), await job.isWaiting()]).toEqual(['active', true, false]);
    await running.moveToCompleted('done');
    expect([await job.isCompleted(), await job.isFailed(), await job.isWaitingChildren()]).toEqual([true, false, false]);
    const later = await queue.add('welcome', {}, { delay: 1000 });
    expect(await later.isDelayed()).toBe(true);
    expect(await (await queue.add('welcome', {}, { priority: 1 })).getState()).toBe('prioritized');
    await later.remove();
    expect(await later.getState()).toBe('unknown');
  });
});

describe('writes of the owner', () => {
  test('change data, progress and logs in the store', async () => {
    await queue.add('welcome', { step: 0 }, { keepLogs: 2 });
    const job = await worker.take();
    await job.updateData({ step: 1 });
    await job.updateProgress({ done: 1 });
    expect([await job.log('a'), await job.log('b'), await job.log('c')]).toEqual([1, 2, 2]);
    expect(job).toMatchObject({ data: { step: 1 }, progress: { done: 1 } });
    expect(await queue.getJob(job.id)).toMatchObject({ data: { step: 1 }, progress: { done: 1 } });
    expect(await queue.getJobLogs(job.id)).toEqual({ logs: ['b', 'c'], count: 2 });
    await job.clearLogs(1);
    expect((await queue.getJobLogs(job.id)).logs).toEqual(['c']);
    await job.clearLogs();
    expect((await queue.getJobLogs(job.id)).count).toBe(0);
    expect(worker.progress).toEqual([[job.id, { done: 1 }]]);
  });

  test.each([0, 50, 'half', false, true, { a: 1 }, [1]])('accept %j as progress', async (progress) => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await job.updateProgress(progress);
    expect([job.progress, (await queue.getJob(job.id))?.progress]).toEqual([progress, progress]);
  });

  test('are refused after the lock was lost, and change nothing in the handle or the store', async () => {
    await queue.add('welcome', { step: 0 });
    const job = await worker.take();
    await store.change('mail', [job.id], { kind: 'revoke', reason: 'operator' });
    const again = await worker.take();
    expect(again.id).toBe(job.id);
    const writes: [string, () => Promise<unknown>][] = [
      ['updateData', () => job.updateData({ step: 9 })],
      ['updateProgress', () => job.updateProgress(9)],
      ['log', () => job.log('late')],
      ['clearLogs', () => job.clearLogs()],
      ['moveToCompleted', () => job.moveToCompleted('late')],
      ['moveToFailed', () => job.moveToFailed(new Error('late'))],
      ['moveToDelayed', () => job.moveToDelayed(Date.now() + 1000)],
      ['moveToWait', () => job.moveToWait()],
    ];
    for (const [action, write] of writes) {
      await expect(write(), action).rejects.toThrow(refused('LOCK_LOST'));
      await expect(write(), action).rejects.toThrow(`${action} of job 1 of queue "mail" changed nothing`);
    }
    expect(await job.extendLock(1000)).toBe(0);
    expect(job).toMatchObject({ data: { step: 0 }, progress: 0, attemptsMade: 0, returnvalue: null, failedReason: undefined });
    expect(await queue.getJob(job.id)).toMatchObject({ data: { step: 0 }, progress: 0, attemptsMade: 0 });
    expect((await queue.getJobLogs(job.id)).count).toBe(0);
    expect(await again.getState()).toBe('active');
    await again.moveToCompleted('the second run');
  });

  test('are refused after the run has ended, except for logs', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await job.moveToCompleted('done', undefined, false);
    expect(await job.log('a listener says')).toBe(1);
    await expect(job.updateProgress(1)).rejects.toThrow('this run of it has ended already');
    await expect(job.updateData({})).rejects.toThrow(refused('LOCK_LOST'));
  });

  test('reject with JOB_MISSING when the job is gone', async () => {
    const job = await queue.add('welcome', {});
    await job.remove();
    await expect(job.updateProgress(1)).rejects.toThrow(refused('JOB_MISSING'));
    await expect(job.updateData({})).rejects.toThrow(refused('JOB_MISSING'));
    await expect(job.log('x')).rejects.toThrow(refused('JOB_MISSING'));
    await expect(job.promote()).rejects.toThrow(refused('JOB_MISSING'));
    await expect(job.remove()).resolves.toBeUndefined();
  });

  test('are accepted without a token from outside', async () => {
    const job = await queue.add('welcome', {});
    await worker.take();
    await job.updateProgress(5);
    await job.log('from outside');
    expect(await queue.getJob(job.id)).toMatchObject({ progress: 5 });
  });

  test('are refused before they reach the store when they cannot be kept as JSON', async () => {
    const job = await queue.add('welcome', {}, { sizeLimit: 20 });
    const invalid = expect.objectContaining({ code: 'INVALID_PAYLOAD' });
    for (const progress of [undefined, null, Number.NaN, () => 1, 1n])
      await expect(job.updateProgress(progress as never)).rejects.toThrow(invalid);
    await expect(job.updateData({ f: () => 1 })).rejects.toThrow(invalid);
    await expect(job.updateData('x'.repeat(30))).rejects.toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }));
    await expect(job.log((() => 1) as never)).rejects.toThrow(invalid);
    for (const keep of [Number.NaN, -1, 1.5, '5']) {
      await expect(job.clearLogs(keep as never)).rejects.toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    }
    expect((await queue.getJob(job.id))?.toJSON()).toEqual(job.toJSON());
  });
});
