import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { takeProcessTime } from '../support/wait/time.js';
import { type LockClient, holder } from './claimed-job.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let store: FaultyStore;
let queue: Queue;
let events: QueueEvents;
let worker: LockClient;

beforeEach(async () => {
  store = new FaultyStore(new MemoryStore());
  queue = new Queue('mail', { connection: store });
  events = new QueueEvents('mail', { connection: store });
  worker = await holder(store, 'mail');
});
afterEach(async () => {
  store.clear();
  await Promise.all([queue.close(), events.close()]);
});

const failedWith = (reason: string) =>
  expect.objectContaining({ code: 'JOB_FINISHED', message: reason, jobId: expect.any(String) });
const refused = (code: string) => expect.objectContaining({ code });

describe('waitUntilFinished', () => {
  test('resolves with the value when the job completes', async () => {
    const job = await queue.add('x', {});
    const finished = job.waitUntilFinished(events);
    await (await worker.take()).moveToCompleted({ sent: 1 }, undefined, false);
    expect(await finished).toEqual({ sent: 1 });
  });

  test('rejects with the reason when it fails for good, not when it is tried again', async () => {
    const job = await queue.add('x', {}, { attempts: 2 });
    const finished = job.waitUntilFinished(events);
    finished.catch(() => undefined);
    await (await worker.take()).moveToFailed(new Error('first'));
    await (await worker.take()).moveToFailed(new Error('second'));
    await expect(finished).rejects.toThrow(failedWith('second'));
  });

  test('resolves when the job had finished before', async () => {
    const done = await queue.add('x', {});
    await (await worker.take()).moveToCompleted('early', undefined, false);
    expect(await done.waitUntilFinished(events)).toBe('early');
    const failed = await queue.add('x', {});
    await (await worker.take()).moveToFailed(new Error('early'));
    await expect(failed.waitUntilFinished(events)).rejects.toThrow(failedWith('early'));
  });

  test.each([true, false])('works with jobs that are removed when they finish (called before that: %s)', async (before) => {
    const opts = { removeOnComplete: true, removeOnFail: true };
    const done = await queue.add('x', {}, opts);
    const early = before ? done.waitUntilFinished(events) : undefined;
    if (before) await store.called('jobs');
    await (await worker.take()).moveToCompleted('gone', undefined, false);
    expect(await (early ?? done.waitUntilFinished(events))).toBe('gone');
    const failed = await queue.add('x', {}, opts);
    const late = before ? failed.waitUntilFinished(events) : undefined;
    late?.catch(() => undefined);
    await (await worker.take()).moveToFailed(new Error('gone too'));
    await expect(late ?? failed.waitUntilFinished(events)).rejects.toThrow(failedWith('gone too'));
  });

  test('does not take the end of an earlier job with the same id', async () => {
    await queue.add('x', {}, { jobId: 'one', removeOnComplete: true });
    await (await worker.take()).moveToCompleted('the first', undefined, false);
    const second = await queue.add('x', {}, { jobId: 'one' });
    await second.remove();
    await expect(second.waitUntilFinished(events)).rejects.toThrow(refused('JOB_MISSING'));
  });

  test('says that the end is gone, not that the job is missing, when the log was cut', async () => {
    const job = await queue.add('x', {}, { removeOnComplete: true });
    await (await worker.take()).moveToCompleted('gone', undefined, false);
    await store.forget('mail', { events: 0 });
    await expect(job.waitUntilFinished(events)).rejects.toThrow(refused('RESULT_GONE'));
    const removed = await queue.add('x', {});
    await removed.remove();
    await expect(removed.waitUntilFinished(events)).rejects.toThrow(refused('JOB_MISSING'));
  });

  test('rejects when the job is removed meanwhile, or never existed', async () => {
    const job = await queue.add('x', {});
    const looked = store.answered('jobs');
    const finished = job.waitUntilFinished(events);
    finished.catch(() => undefined);
    await looked;
    await job.remove();
    await expect(finished).rejects.toThrow(refused('JOB_MISSING'));
  });

  test('rejects after ttl while the job goes on', async () => {
    const job = await queue.add('x', {});
    await expect(job.waitUntilFinished(events, 20)).rejects.toThrow(refused('TIMEOUT'));
    await expect(job.waitUntilFinished(events, 0)).rejects.toThrow(refused('TIMEOUT'));
    await (await worker.take()).moveToCompleted('x', undefined, false);
    expect(await job.waitUntilFinished(events, 0)).toBe('x');
  });

  test('leaves no timer behind when the job has finished already', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const job = await queue.add('x', {});
    await (await worker.take()).moveToCompleted('x', undefined, false);
    const before = timers();
    for (let n = 0; n < 20; n += 1) expect(await job.waitUntilFinished(events, 600_000)).toBe('x');
    // The listener has a timer of its own.
    expect(timers() - before).toBeLessThan(5);
  });

  test('rejects when the QueueEvents is closed', async () => {
    const job = await queue.add('x', {});
    const looked = store.answered('jobs');
    const finished = job.waitUntilFinished(events);
    finished.catch(() => undefined);
    await looked;
    await events.close();
    await expect(finished).rejects.toThrow(refused('CLOSED'));
    await expect(job.waitUntilFinished(events)).rejects.toThrow(refused('CLOSED'));
  });

  test('finds the end of the job when the event log lacks it', async () => {
    const silent = new QueueEvents('mail', { connection: store, autorun: false });
    const job = await queue.add('x', {});
    const time = takeProcessTime();
    onTestFinished(() => void vi.useRealTimers());
    const looked = store.answered('jobs');
    const finished = job.waitUntilFinished(silent);
    await looked;
    await (await worker.take()).moveToCompleted('unheard', undefined, false);
    expect(await time.until(finished)).toBe('unheard');
    await silent.close();
  });

  test('refuses invalid arguments', async () => {
    const job = await queue.add('x', {});
    for (const bad of [undefined, null, {}, 5, queue])
      await expect(job.waitUntilFinished(bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
    for (const ttl of [Number.NaN, -1, 1.5, 1e300, '5', null])
      await expect(job.waitUntilFinished(events, ttl as never)).rejects.toThrow(refused('INVALID_OPTION'));
    const other = new QueueEvents('other', { connection: store });
    await expect(job.waitUntilFinished(other)).rejects.toThrow(refused('INVALID_OPTION'));
    await other.close();
  });
});
