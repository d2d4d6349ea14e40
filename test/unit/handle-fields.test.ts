// A handle shows its fields as its own: copies, Object.keys and comparisons see them, whatever happened to the job.
import { once } from 'node:events';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Job } from '../../src/handle/job.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { Worker } from '../../src/worker/worker.js';
import { type LockClient, holder } from './claimed-job.js';

const FIELDS = [
  'id',
  'name',
  'queueName',
  'data',
  'opts',
  'progress',
  'returnvalue',
  'stacktrace',
  'failedReason',
  'delay',
  'priority',
  'timestamp',
  'processedOn',
  'finishedOn',
  'processedBy',
  'attemptsMade',
  'attemptsStarted',
  'stalledCounter',
  'lostBy',
  'token',
  'discarded',
  'deduplicationId',
  'gid',
  'repeatJobKey',
  'parent',
  'parentKey',
  'duplicate',
];
/** Longer than what is decoded before it is read. */
const LONG = 'x'.repeat(5000);

let store: MemoryStore;
let queue: Queue;
let holding: LockClient;

beforeEach(async () => {
  store = new MemoryStore();
  queue = new Queue('mail', { connection: store });
  holding = await holder(store, 'mail');
});
afterEach(() => queue.close());

const spread = (job: object): Record<string, unknown> => ({ ...job });

/** A copy must have every field, and each with the value that the handle shows. */
function copyOf(job: Job): Record<string, unknown> {
  const copy = spread(job);
  expect(Object.keys(copy)).toEqual(FIELDS);
  for (const field of FIELDS) expect(copy[field], field).toBe(job[field as keyof Job]);
  return copy;
}

async function found(id: string): Promise<Job> {
  const job = await queue.getJob(id);
  if (job === undefined) throw new Error(`there is no job ${id}`);
  return job;
}

describe('a copy of a job shows its fields', () => {
  const opts = { attempts: 2, priority: 3, delay: 50 };

  test('after add', async () => {
    const copy = copyOf(await queue.add('welcome', { to: 'a' }, opts));
    expect(copy).toMatchObject({ id: '1', name: 'welcome', queueName: 'mail', data: { to: 'a' }, opts, priority: 3, delay: 50 });
    expect(copy).toMatchObject({ progress: 0, returnvalue: null, stacktrace: [], attemptsMade: 0, duplicate: false });
    expect(copyOf(await queue.add('welcome'))).toMatchObject({ data: {}, opts: { attempts: 0 } });
  });

  test('from getJob', async () => {
    const { id } = await queue.add('welcome', { to: 'a' }, opts);
    expect(copyOf(await found(id))).toMatchObject({ id, data: { to: 'a' }, opts });
  });

  test('structuredClone makes it plain data', async () => {
    const job = await queue.add('welcome', { to: 'a' }, opts);
    expect(structuredClone(job)).toEqual(copyOf(job));
  });

  test.each([{ to: 'a' }, { to: LONG }])('inside a processor, and after completion', async (data) => {
    const seen: Record<string, unknown>[] = [];
    const worker = new Worker(
      'mail',
      async (job) => {
        seen.push(spread(job));
        return data;
      },
      { connection: store },
    );
    const completed = once(worker, 'completed') as Promise<[Job]>;
    const { id } = await queue.add('welcome', data, { attempts: 3 });
    const [job] = await completed;
    await worker.close();
    expect(Object.keys(seen[0] as object)).toEqual(FIELDS);
    expect(seen).toMatchObject([{ data, opts: { attempts: 3 }, attemptsStarted: 1, token: job.token, finishedOn: undefined }]);
    const end = { data, returnvalue: data, attemptsMade: 1, finishedOn: expect.any(Number) };
    expect(copyOf(job)).toMatchObject(end);
    expect(copyOf(await found(id))).toMatchObject(end);
  });

  test('after a failure with an attempt left, and after the last one', async () => {
    await queue.add('welcome', {}, { attempts: 2 });
    const first = await holding.take();
    await first.moveToFailed(new Error(LONG));
    expect(copyOf(first)).toMatchObject({ failedReason: LONG, stacktrace: [expect.stringContaining(LONG)], attemptsMade: 1 });
    const second = await holding.take();
    expect(copyOf(second)).toMatchObject({ attemptsMade: 1, attemptsStarted: 2, stacktrace: [expect.stringContaining(LONG)] });
    await second.moveToFailed(new Error('again'));
    const end = { failedReason: 'again', attemptsMade: 2, finishedOn: expect.any(Number) };
    expect(copyOf(second)).toMatchObject(end);
    expect(second.stacktrace).toHaveLength(2);
    await second.retry('failed', { resetAttemptsMade: true });
    expect(copyOf(second)).toMatchObject({ failedReason: undefined, finishedOn: undefined, attemptsMade: 0, returnvalue: null });
  });

  test.each([{ step: 1 }, { step: LONG }])('after updateData, updateProgress and discard', async (value) => {
    await queue.add('welcome', { step: 0 });
    const job = await holding.take();
    await job.updateData(value);
    await job.updateProgress(value);
    job.discard();
    expect(copyOf(job)).toMatchObject({ data: value, progress: value, discarded: true });
    expect(copyOf(await found(job.id))).toMatchObject({ data: value, progress: value, discarded: false });
  });

  test.each(['new', LONG])('after takeLock, as the job is then', async (to) => {
    const job = await queue.add('welcome', { to: 'a' });
    expect(copyOf(job)).toMatchObject({ data: { to: 'a' }, token: undefined });
    const other = await found(job.id);
    await other.updateData({ to });
    await other.updateProgress({ to });
    const token = await job.takeLock();
    expect(copyOf(job)).toMatchObject({ data: { to }, progress: { to }, token, attemptsStarted: 1 });
    await job.releaseLock();
  });

  test('after changeDelay and changePriority', async () => {
    const job = await queue.add('welcome', {}, { delay: 60_000 });
    await job.changeDelay(70_000);
    await job.changePriority({ priority: 4 });
    expect(copyOf(job)).toMatchObject({ delay: 70_000, priority: 4 });
    await job.promote();
    expect(copyOf(job)).toMatchObject({ delay: 0 });
  });

  test.each(['b', LONG])('with values that were set on the handle, which do not reach the job', async (to) => {
    const { id } = await queue.add('welcome', { to });
    const job = await holding.take();
    job.data = { to: 'mine' };
    await job.moveToCompleted({ to }, undefined, false);
    expect(copyOf(job)).toMatchObject({ data: { to: 'mine' }, returnvalue: { to } });
    job.returnvalue = 5;
    expect(copyOf(job)).toMatchObject({ returnvalue: 5 });
    expect(copyOf(await found(id))).toMatchObject({ data: { to }, returnvalue: { to } });
  });
});

test('the fields do not change what JSON.stringify and inspect show', async () => {
  await queue.add('welcome', { to: 'a' });
  const job = await holding.take();
  for (const text of [JSON.stringify(job), inspect(job)]) {
    expect(text).not.toContain(job.token);
    expect(text).not.toContain('discarded');
  }
});

describe('a payload that is not JSON', () => {
  const broken = expect.objectContaining({ code: 'INVALID_PAYLOAD' });

  test.each(['{', `{${LONG}`])('throws where it is read, and leaves the other fields and jobs readable', async (text) => {
    await queue.addBulk([
      { name: 'broken', data: { to: 'a' } },
      { name: 'sound', data: { to: 'b' } },
    ]);
    await store.write('mail', [{ jobId: '1', kind: 'data', data: text }]);
    const [first, second] = await queue.getJobs('waiting', 0, -1, true);
    expect(first).toMatchObject({ id: '1', name: 'broken', progress: 0 });
    expect(() => first?.data).toThrow(broken);
    expect(() => spread(first as Job)).toThrow(broken);
    expect(second?.data).toEqual({ to: 'b' });
    const taken = await holding.take();
    expect(() => taken.data).toThrow(broken);
    await taken.updateData({ to: 'c' });
    expect(copyOf(taken)).toMatchObject({ data: { to: 'c' } });
  });
});
