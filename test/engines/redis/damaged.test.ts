// Records of jobs that something else than Holdfast has damaged: each costs its own job, never one that was claimed together with it.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { Worker } from '../../../src/worker/worker.js';
import { newJob, newSession, openWithClient } from './support.js';

const TAG = '{holdfast:q}';
const JOBS = 6;
let client: Redis;
let store: RedisStore;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
});

/** Six jobs with ids 1 to 6. The data are numbers, as times are, and so is what some names are. */
async function addJobs(size = 0): Promise<void> {
  const jobs = Array.from({ length: JOBS }, (_, index) =>
    newJob({ name: `${index + 1}`, data: size === 0 ? `${index + 1}` : JSON.stringify(`${index + 1}`.repeat(size)) }),
  );
  await store.add('q', jobs, { caller: 'p', seq: 1 });
}

async function damage(hash: 'job' | 'run', records: Record<string, string>): Promise<void> {
  await client.hset(`${TAG}:${hash}`, records);
}

async function claimAll(): Promise<ClaimedJob[]> {
  await store.openSession(newSession());
  return (await store.claim('q', { session: 's', seq: 1, count: JOBS })).jobs;
}

const LACKS = '1794834261093\0evil\0{}';
const HAS_TOO_MANY = '1794834261093\0evil\0{}\0"evil"\x005';
const DAMAGES: Record<string, Record<string, string>> = {
  'that lacks a field': { '2': LACKS },
  'that has a field too many': { '2': HAS_TOO_MANY },
  'that has a field too many, and one that lacks a field': { '2': HAS_TOO_MANY, '5': LACKS },
  'that lacks a field, and one that has a field too many': { '2': LACKS, '5': HAS_TOO_MANY },
  'that is empty, and one that is full of separators': { '1': '', '6': '\0'.repeat(6) },
};

describe.each(Object.entries(DAMAGES))('a record %s', (_, records) => {
  test.each([
    ['short', 0],
    ['long', 30_000],
  ])('leaves the other jobs of its claim alone, where the texts are %s', async (_length, size) => {
    await addJobs(size);
    const whole = (await store.jobs('q', ['1', '2', '3', '4', '5', '6'])).jobs;
    await damage('job', records);
    const claimed = await claimAll();
    expect(claimed.map(({ id }) => id)).toEqual(['1', '2', '3', '4', '5', '6']);
    for (const [index, job] of claimed.entries()) {
      const { name, data, opts, timestamp } = whole[index] ?? expect.fail('all jobs were added');
      if (records[job.id] === undefined) expect(job).toMatchObject({ name, data, opts, timestamp });
      else expect([() => JSON.parse(job.data), () => JSON.parse(job.opts)].every(throws)).toBe(true);
    }
  });
});

test('a job on Redis whose state cannot be read leaves the other jobs of its claim alone', async () => {
  await addJobs();
  await damage('run', { '3': 'nonsense' });
  const claimed = await claimAll();
  expect(claimed.map(({ id, name, attemptsStarted }) => [id, name, attemptsStarted])).toEqual([
    ['1', '1', 1],
    ['2', '2', 1],
    ['3', '', 1],
    ['4', '4', 1],
    ['5', '5', 1],
    ['6', '6', 1],
  ]);
});

test('a damaged job on Redis fails with a reason that says so, and others complete with their own data', async () => {
  const { host = '', port = 0 } = client.options;
  const connection = { host, port };
  const queue = new Queue('q', { connection });
  onTestFinished(() => queue.close());
  await queue.addBulk(Array.from({ length: JOBS }, (_, index) => ({ name: `job${index + 1}`, data: { n: index + 1 } })));
  await damage('job', { '2': LACKS, '5': HAS_TOO_MANY });
  await damage('run', { '3': 'nonsense' });
  const seen = new Map<string, unknown>();
  const finish = (job: { name: string; data: unknown }): void => void seen.set(job.name, job.data);
  const worker = new Worker('q', async (job) => finish(job), { connection, concurrency: JOBS });
  onTestFinished(() => worker.close());
  await expect.poll(() => queue.getJobCounts('completed', 'failed'), { timeout: 20_000 }).toEqual({ completed: 3, failed: 3 });
  expect([...seen]).toEqual([1, 4, 6].map((n) => [`job${n}`, { n }]));
  for (const id of ['2', '3', '5']) {
    expect((await queue.getJob(id))?.failedReason).toContain('something else than Holdfast has written to it');
  }
});

function throws(read: () => unknown): boolean {
  try {
    read();
    return false;
  } catch {
    return true;
  }
}
