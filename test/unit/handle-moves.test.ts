import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Job } from '../../src/handle/job.js';
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

const refused = (code: string) => expect.objectContaining({ code });

describe('moves that end a run', () => {
  test('show completed in the handle and in the store', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    expect(await job.moveToCompleted({ sent: 1 }, job.token, false)).toEqual([]);
    expect(job).toMatchObject({ returnvalue: { sent: 1 }, attemptsMade: 1, finishedOn: expect.any(Number) });
    expect(await queue.getJob(job.id)).toMatchObject({
      returnvalue: { sent: 1 },
      attemptsMade: 1,
      finishedOn: expect.any(Number),
    });
    expect(await job.isCompleted()).toBe(true);
  });

  test('retry a failed job while attempts are left, then fail it', async () => {
    await queue.add('welcome', {}, { attempts: 2, backoff: 5000 });
    const first = await worker.take();
    await first.moveToFailed(new Error('no luck'));
    expect(first).toMatchObject({ attemptsMade: 1, failedReason: 'no luck', delay: 5000, finishedOn: undefined });
    expect(first.stacktrace).toHaveLength(1);
    expect(await first.isDelayed()).toBe(true);
    await (await queue.getJob(first.id))?.promote();
    const second = await worker.take();
    await second.moveToFailed(new Error('again'), second.token);
    expect(second).toMatchObject({ attemptsMade: 2, failedReason: 'again', finishedOn: expect.any(Number) });
    expect(await queue.getJob(second.id)).toMatchObject({ attemptsMade: 2, failedReason: 'again' });
    expect((await queue.getJob(second.id))?.stacktrace).toHaveLength(2);
  });

  test('fail a discarded job at once', async () => {
    await queue.add('welcome', {}, { attempts: 5 });
    const job = await worker.take();
    job.discard();
    await job.moveToFailed(new Error('enough'));
    expect(await job.isFailed()).toBe(true);
  });

  test('fail a job with something that is no Error', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await job.moveToFailed('just text' as never);
    expect(job.failedReason).toBe('just text');
  });

  test('count neither attempt nor stall when a job is delayed or handed back', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await job.moveToDelayed(Date.now() + 60_000);
    expect(job.delay).toBeGreaterThan(59_000);
    expect(await job.isDelayed()).toBe(true);
    await (await queue.getJob(job.id))?.promote();
    const again = await worker.take();
    await again.moveToWait();
    expect(await again.isWaiting()).toBe(true);
    expect(await queue.getJob(job.id)).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
  });

  test.each([Number.NaN, -1, 1.5, 1e300, '5', null])('moveToDelayed(%s) is refused', async (timestamp) => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await expect(job.moveToDelayed(timestamp as never)).rejects.toThrow(refused('INVALID_OPTION'));
    expect(await job.isActive()).toBe(true);
  });
});

describe('tokens of moves', () => {
  test('may be the name that was passed to getNextJob', async () => {
    await queue.add('welcome', {});
    const job = await worker.take('my-token');
    expect(job.token).toBe('my-token');
    expect(job.lock.token).not.toBe('my-token');
    expect(await job.extendLock('my-token', 1000)).toBe(1);
    expect(await job.extendLock(job.lock.token, 1000)).toBe(1);
    expect(await job.extendLock(1000)).toBe(1);
    await job.updateProgress(1);
    await job.moveToCompleted('x', 'my-token', false);
    expect(await job.isCompleted()).toBe(true);
  });

  test('are refused by the store when they are wrong', async () => {
    await queue.add('welcome', {});
    const job = await worker.take('my-token');
    await expect(job.moveToCompleted('x', 'other')).rejects.toThrow(refused('LOCK_LOST'));
    expect(await job.extendLock('other', 1000)).toBe(0);
    expect(await job.isActive()).toBe(true);
  });

  test('are required on a handle without a lock', async () => {
    const job = await queue.add('welcome', {});
    await worker.take();
    for (const move of [
      () => job.moveToCompleted('x'),
      () => job.moveToFailed(new Error('x')),
      () => job.moveToDelayed(Date.now()),
      () => job.moveToWait(),
      () => job.moveToCompleted('x', ''),
      () => job.extendLock(1000),
    ]) {
      await expect(move()).rejects.toThrow(refused('NO_TOKEN'));
    }
    expect(await job.isActive()).toBe(true);
  });

  test('allow another handle to finish when it has the real one', async () => {
    await queue.add('welcome', {});
    const { id, lock } = await worker.take();
    const other = (await queue.getJob(id)) as Job;
    await other.moveToCompleted('x', lock.token);
    expect(await other.isCompleted()).toBe(true);
    expect(other.returnvalue).toBe('x');
  });

  test.each([Number.NaN, 0, -1, 1.5, 1e300, '5', null, undefined])('extendLock by %s is refused', async (duration) => {
    await queue.add('welcome', {});
    const job = await worker.take();
    await expect(job.extendLock(job.lock.token, duration as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });
});

describe('moveToCompleted that fetches the next job', () => {
  test('returns [json, id], which make a handle with its lock', async () => {
    await queue.addBulk([{ name: 'one' }, { name: 'two', data: { n: 2 } }]);
    const first = await worker.take('my-token');
    const [json, id] = await first.moveToCompleted('x', 'my-token');
    const second = Job.fromJSON(worker.context, json as NonNullable<typeof json>, id);
    expect(second).toMatchObject({ id: '2', name: 'two', data: { n: 2 }, token: 'my-token', attemptsStarted: 1 });
    expect(second.lock).toMatchObject({ held: true, token: expect.any(String) });
    expect(await second.moveToCompleted('y', 'my-token')).toEqual([]);
    expect(await queue.getJobCounts('completed')).toEqual({ completed: 2 });
  });

  test('a handle sends its token although its job context no longer holds the lock', async () => {
    await queue.add('welcome', {});
    const job = await worker.take();
    const json = { ...job.asJSON(), token: job.lock.token, fence: job.lock.fence };
    const copy = Job.fromJSON(queue, json);
    expect(copy.lock).toMatchObject({ held: false, token: job.lock.token, fence: job.lock.fence, expiresAt: 0 });
    expect(copy.lock.signal.aborted).toBe(true);
    await store.change('mail', [job.id], { kind: 'revoke', reason: 'operator' });
    await expect(copy.updateProgress(1)).rejects.toThrow(refused('LOCK_LOST'));
  });
});

describe('moves of a job from outside', () => {
  async function finished(kind: 'completed' | 'failed'): Promise<Job> {
    const { id } = await queue.add('welcome', {});
    const job = await worker.take();
    await (kind === 'completed' ? job.moveToCompleted('x', undefined, false) : job.moveToFailed(new Error('x')));
    return (await queue.getJob(id)) as Job;
  }

  test('retry a finished job, with or without a reset of its attempts', async () => {
    const failed = await finished('failed');
    await failed.retry();
    expect(failed).toMatchObject({ failedReason: undefined, finishedOn: undefined, attemptsMade: 1 });
    expect(await failed.isWaiting()).toBe(true);
    await (await worker.take()).moveToCompleted('x', undefined, false);
    const completed = (await queue.getJob(failed.id)) as Job;
    await completed.retry('completed', { resetAttemptsMade: true, resetAttemptsStarted: true });
    expect(completed).toMatchObject({ returnvalue: null, attemptsMade: 0, attemptsStarted: 0 });
    expect(await queue.getJob(failed.id)).toMatchObject({ returnvalue: null, attemptsMade: 0, attemptsStarted: 0 });
  });

  test('change nothing on retry of a job in another state', async () => {
    const completed = await finished('completed');
    await expect(completed.retry()).rejects.toThrow(refused('JOB_STATE'));
    expect(completed.returnvalue).toBe('x');
    await queue.add('welcome', {});
    const running = await worker.take();
    const outside = (await queue.getJob(running.id)) as Job;
    await expect(outside.retry()).rejects.toThrow(refused('JOB_LOCKED'));
    await expect(outside.remove()).rejects.toThrow(refused('JOB_LOCKED'));
    await expect(completed.retry('waiting' as never)).rejects.toThrow(refused('INVALID_OPTION'));
    await expect(completed.retry('completed', { resetAttemptsMade: 1 as never })).rejects.toThrow(refused('INVALID_OPTION'));
  });

  test('promote a delayed job, and change its delay', async () => {
    const job = await queue.add('welcome', {}, { delay: 60_000 });
    await job.changeDelay(90_000);
    expect([job.delay, (await queue.getJob(job.id))?.delay]).toEqual([90_000, 90_000]);
    await job.promote();
    expect([job.delay, await job.isWaiting()]).toEqual([0, true]);
    await expect(job.promote()).rejects.toThrow(refused('JOB_STATE'));
    await expect(job.changeDelay(5)).rejects.toThrow(refused('JOB_STATE'));
    for (const bad of [Number.NaN, -1, 1.5, 1e300, '5', null, {}])
      await expect(job.changeDelay(bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });

  test('reorder a waiting job on a new priority', async () => {
    const job = await queue.add('welcome', {});
    await queue.add('next', {}, { priority: 1 });
    await job.changePriority({ priority: 5 });
    expect([job.priority, await job.getState()]).toEqual([5, 'prioritized']);
    expect((await worker.take()).name).toBe('next');
    await job.changePriority({});
    expect(await job.getState()).toBe('waiting');
    for (const priority of [Number.NaN, -1, 1.5, 2 ** 21 + 1, '5', null, {}]) {
      await expect(job.changePriority({ priority } as never)).rejects.toThrow(refused('INVALID_OPTION'));
    }
    await expect(job.changePriority({ lifo: 1 } as never)).rejects.toThrow(refused('INVALID_OPTION'));
  });
});
