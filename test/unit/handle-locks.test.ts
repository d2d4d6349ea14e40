// The lock of a job in a user's hand: taken from a queue, and given up inside a handler.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { Worker } from '../../src/worker/worker.js';
import { until } from '../support/wait/until.js';

let store: FaultyStore;
let queue: Queue;
let opened: { close(): Promise<unknown> }[];

function newQueue(options = {}): Queue {
  const made = new Queue('mail', { connection: store, ...options });
  opened.push(made);
  return made;
}

function newWorker(processor: ((job: Job) => unknown) | null, options = {}): Worker {
  const worker = new Worker('mail', processor, { connection: store, ...options });
  worker.on('error', () => undefined);
  opened.push(worker);
  return worker;
}

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  opened = [];
  queue = newQueue();
});
afterEach(async () => {
  store.clear();
  await Promise.all(opened.map((each) => each.close()));
});

const refused = (code: string) => expect.objectContaining({ code });

async function waiting(opts = {}): Promise<Job> {
  const { id } = await queue.add('welcome', { to: 'ada' }, opts);
  return (await queue.getJob(id)) as Job;
}

describe('takeLock', () => {
  test('returns the token once; the handle then has the lock and shows the job as it was taken', async () => {
    const job = await waiting();
    const other = (await newQueue().getJob(job.id)) as Job;
    expect(job.lock).toMatchObject({ held: false, token: '' });
    expect(job.lockKey()).toBe(`mail:${job.id}:lock`);
    await other.updateData({ to: 'grace' });
    const token = await job.takeLock();
    expect(token).toEqual(expect.any(String));
    expect(job).toMatchObject({ token, attemptsStarted: 1, data: { to: 'grace' }, processedBy: 'queue' });
    expect(job.lock).toMatchObject({ held: true, token });
    expect(job.lock.signal.aborted).toBe(false);
    expect(await job.takeLock()).toBe(false);
    expect(await other.takeLock()).toBe(false);
    expect(job.lock).toMatchObject({ held: true, token });
  });

  test('rejects when the job is delayed, finished or gone', async () => {
    await expect((await waiting({ delay: 60_000 })).takeLock()).rejects.toThrow(refused('JOB_STATE'));
    for (const end of ['completed', 'failed'] as const) {
      const job = await waiting();
      await job.takeLock();
      await (end === 'completed' ? job.moveToCompleted('x') : job.moveToFailed(new Error('x')));
      await expect(job.takeLock()).rejects.toThrow(refused('JOB_STATE'));
    }
    const gone = await waiting();
    await queue.remove(gone.id);
    await expect(gone.takeLock()).rejects.toThrow(refused('JOB_MISSING'));
  });

  test('returns false when the key of the job is in use', async () => {
    const [first, second] = [await waiting({ lockKey: 'ada' }), await waiting({ lockKey: 'ada' })];
    expect(await first.takeLock()).toBeTruthy();
    expect(await second.takeLock()).toBe(false);
    await first.moveToCompleted('x');
    expect(await second.takeLock()).toBeTruthy();
  });

  test('works on a paused queue, and lasts for lockDuration unless it is extended', async () => {
    const job = await waiting();
    await queue.pause();
    const mine = (await newQueue({ lockDuration: 1000 }).getJob(job.id)) as Job;
    await mine.takeLock();
    expect((await queue.getLock(job.id))?.endsInMs).toBeLessThanOrEqual(1000);
    expect(await mine.extendLock(60_000)).toBe(1);
    expect((await queue.getLock(job.id))?.endsInMs).toBeGreaterThan(50_000);
    expect(mine.lock.expiresAt - Date.now()).toBeGreaterThan(50_000);
  });

  test('works on a handle from add, and from getJob of a worker', async () => {
    const added = await queue.add('welcome', {});
    expect(await added.takeLock()).toBeTruthy();
    const { id } = await queue.add('welcome', {});
    const job = (await Job.fromId(newWorker(null), id)) as Job;
    expect(await job.takeLock()).toBeTruthy();
    await job.moveToCompleted('by hand', undefined, false);
    expect(await queue.getJobState(id)).toBe('completed');
  });

  test('returns the same lock when its reply was lost', async () => {
    const job = await waiting();
    queue.on('error', () => undefined);
    store.on('claim', { fault: 'drop-reply', times: 2 });
    const token = await job.takeLock();
    expect((await store.locks('mail', { jobIds: [job.id] }))[0]?.token).toBe(token);
    expect(job.attemptsStarted).toBe(1);
  });
});

describe('a job that was taken by hand', () => {
  test('is run by no worker, and cannot be removed, retried, promoted or cleaned', async () => {
    const job = await waiting();
    await job.takeLock();
    const ran: string[] = [];
    newWorker(({ id }) => ran.push(id));
    const next = await queue.add('next', {});
    await until('the next job to run', async () => (await queue.getJobState(next.id)) === 'completed');
    const outside = (await queue.getJob(job.id)) as Job;
    await expect(outside.remove()).rejects.toThrow(refused('JOB_LOCKED'));
    expect(await queue.remove(job.id)).toBe(0);
    await expect(outside.retry()).rejects.toThrow(refused('JOB_LOCKED'));
    await expect(outside.promote()).rejects.toThrow(refused('JOB_LOCKED'));
    expect(await queue.clean(0, 0, 'active')).toEqual([]);
    await queue.drain(true);
    expect(ran).toEqual([next.id]);
    await job.moveToCompleted('by hand');
    expect(await queue.getJob(job.id)).toMatchObject({ returnvalue: 'by hand', attemptsMade: 1 });
    await job.releaseLock();
    expect(job.lock.held).toBe(false);
  });

  test('goes back to waiting when its lock ends, and its taker learns of it and can no longer move it', async () => {
    const hasty = newQueue({ lockDuration: 200, stalledInterval: 50 });
    const stalled: string[] = [];
    hasty.on('stalled', (jobId) => stalled.push(jobId));
    const { id } = await hasty.add('forgotten', {});
    const job = (await hasty.getJob(id)) as Job;
    await job.takeLock();
    await until('it to come back', async () => (await queue.getJobState(id)) === 'waiting');
    expect(stalled).toEqual([id]);
    expect(job.lock.held).toBe(false);
    expect(job.lock.signal.aborted).toBe(true);
    expect(await job.extendLock(1000)).toBe(0);
    await expect(job.moveToCompleted('late')).rejects.toThrow(refused('LOCK_LOST'));
    await expect(job.releaseLock()).rejects.toThrow(`Could not release lock for job ${id}`);
    await expect(job.releaseLock()).rejects.toThrow(refused('LOCK_LOST'));
    expect(await job.takeLock()).toBeTruthy();
    expect(job.stalledCounter).toBe(1);
  });

  test('aborts the signal of its taker at the next renewal when its lock was taken away', async () => {
    const mine = newQueue({ lockDuration: 10_000, lockRenewTime: 50 });
    const { id } = await mine.add('taken away', {});
    const job = (await mine.getJob(id)) as Job;
    await job.takeLock();
    await store.change('mail', [id], { kind: 'revoke', reason: 'an operator' });
    await until('the loss to be told', () => job.lock.signal.aborted);
    expect(job.lock.held).toBe(false);
    expect(String(job.lock.signal.reason)).toContain('an operator');
  });

  test('fails over maxStalledCount of the queue', async () => {
    const strict = newQueue({ lockDuration: 100, stalledInterval: 50, maxStalledCount: 0 });
    const { id } = await strict.add('forgotten', {});
    await ((await strict.getJob(id)) as Job).takeLock();
    await until('it to fail', async () => (await queue.getJobState(id)) === 'failed');
  });

  test('goes back to waiting without a stall when the queue is closed, and is not held before that', async () => {
    const closing = newQueue({ lockDuration: 60_000 });
    const { id } = await closing.add('held', {});
    const job = (await closing.getJob(id)) as Job;
    await job.takeLock();
    const { signal } = job.lock;
    await closing.close();
    expect(job.lock.held).toBe(false);
    expect(signal.reason).toMatchObject({ code: 'SHUTDOWN' });
    expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
    expect(await queue.getJobState(id)).toBe('waiting');
    expect(await queue.getLock(id)).toBeUndefined();
  });
});

describe('releaseLock', () => {
  test('moves the job to the front of waiting without a stall, where it can be taken again', async () => {
    const job = await waiting();
    await queue.add('behind', {});
    await job.takeLock();
    await job.releaseLock();
    await job.releaseLock();
    expect(job.lock.held).toBe(false);
    expect((await queue.getWaiting()).map(({ id }) => id)[0]).toBe(job.id);
    expect(await queue.getJob(job.id)).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
    await expect(job.moveToCompleted('x')).rejects.toThrow(refused('LOCK_LOST'));
    expect(await job.takeLock()).toBeTruthy();
    await job.releaseLock();
    expect(await queue.getJobState(job.id)).toBe('waiting');
  });

  test('rejects without a lock', async () => {
    const job = await waiting();
    await expect(job.releaseLock()).rejects.toThrow(refused('NO_TOKEN'));
    await expect(job.releaseLock()).rejects.toThrow(`Could not release lock for job ${job.id}`);
  });

  test('gives the job up in a handler, whose later writes change nothing', async () => {
    const refusals: unknown[] = [];
    const { id } = await queue.add('given up', {});
    let runs = 0;
    const worker = newWorker(async (job) => {
      runs += 1;
      if (runs > 1) return 'second run';
      await queue.pause();
      await job.releaseLock();
      for (const move of [job.moveToCompleted('x', job.token, false), job.moveToFailed(new Error('x')), job.updateProgress(1)]) {
        await move.catch((error: unknown) => refusals.push(error));
      }
      return 'first run';
    });
    await until('it to be given up', () => refusals.length === 3);
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'LOCK_LOST' });
    expect(await queue.getJob(id)).toMatchObject({ returnvalue: null, progress: 0, attemptsMade: 0 });
    await queue.resume();
    await until('the second run', async () => (await queue.getJobState(id)) === 'completed');
    expect(await queue.getJob(id)).toMatchObject({ returnvalue: 'second run', attemptsMade: 1 });
    await worker.close();
  });
});

describe('getLock', () => {
  test('returns the lock while a worker runs the job, and nothing afterwards', async () => {
    let end: () => void = () => undefined;
    newWorker(() => new Promise<void>((resolve) => (end = resolve)), { name: 'ada', instanceId: 'i:1', lockDuration: 5000 });
    const { id } = await queue.add('looked at', {});
    await until('it to run', async () => (await queue.getJobState(id)) === 'active');
    const lock = await queue.getLock(id);
    expect(lock).toMatchObject({
      jobId: id,
      owner: { pid: process.pid, name: 'ada', instance: 'i:1' },
      fence: expect.any(Number),
    });
    expect(lock?.since).toBeGreaterThan(Date.now() - 10_000);
    expect(lock?.until).toBeGreaterThan(Date.now());
    end();
    await until('it to end', async () => (await queue.getJobState(id)) === 'completed');
    expect(await queue.getLock(id)).toBeUndefined();
  });
});
