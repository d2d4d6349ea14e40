// Rates, metrics and events of users on Redis: what a queue stores for them, and which calls still take the fast path.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { paced } from '../../support/wait/pace.js';
import { goBothWays, TAG } from './both-ways.js';
import { levelOf, newJob, newSession, openWithClient } from './support.js';

const MINUTE_MS = 60_000;
const PLAIN_BYTES = 26 * 8;
const RATE = { max: 2, durationMs: 600_000 };
let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession({ durationMs: 3_600_000 }));
  seq = 0;
});

async function add(count: number): Promise<void> {
  await store.add(
    'q',
    Array.from({ length: count }, () => newJob()),
    { caller: 'p', seq: ++seq },
  );
}

async function claim(count: number): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count })).jobs;
}

function completed({ id, token }: ClaimedJob): Outcome {
  return { kind: 'completed', jobId: id, token, value: 'null', keep: {} };
}

/** The arguments of lua/settle.lua for these completed jobs and a claim of one. */
function settleArguments(...jobs: ClaimedJob[]): string[] {
  const number = String(++seq);
  const group = ['c', String(jobs.length), '', 's:', ...jobs.flatMap(({ id, fence }) => [id, String(fence), 'null'])];
  return ['s', number, '', '1', 's', number, '', '1', '', '', String(jobs.length), ...group];
}

/** Runs a settle at a moment of the test's choice. */
async function settleAt(ms: number, ...jobs: ClaimedJob[]): Promise<void> {
  const text = script('settle').text.replace("call('TIME')", `{ ${Math.floor(ms / 1000)}, ${(ms % 1000) * 1000} }`);
  await client.eval(text, 1, TAG, ...settleArguments(...jobs));
}

async function minutes(): Promise<unknown> {
  return (await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } })).metrics;
}

describe('a queue on Redis without a rate and metrics', () => {
  test('stores no byte more than before', async () => {
    await add(3);
    await store.settle('q', (await claim(2)).map(completed));
    await store.configure('q', { rate: null, metrics: null, cap: { maxActive: 5 } });
    expect(await client.strlen(`${TAG}:meta`)).toBe(PLAIN_BYTES);
    expect(await levelOf(client, TAG)).toBe(1);
  });

  test('stores none again once it is forgotten', async () => {
    await store.configure('q', { rate: RATE, metrics: { points: 10 } });
    await add(1);
    const [job] = await claim(1);
    await settleAt(Date.now() + 2 * MINUTE_MS, job as ClaimedJob);
    expect(await levelOf(client, TAG)).toBe(4);
    await store.forget('q', { all: true });
    expect([await levelOf(client, TAG), await client.strlen(`${TAG}:meta`)]).toEqual([1, PLAIN_BYTES]);
    expect(await client.exists(`${TAG}:minutes:completed`, `${TAG}:minutes:failed`)).toBe(0);
    expect((await store.status('q')).rate).toBeUndefined();
  });
});

describe('a queue on Redis that counts finished jobs', () => {
  test('takes the fast path, but for the first completed job of a minute', async () => {
    await add(8);
    await store.configure('q', { metrics: { points: 10 } });
    const jobs = await claim(4);
    expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(jobs[0] as ClaimedJob))).toBe('long');
    // The control: within one minute. A minute may end here, so take the one that the clock shows after the first completed job.
    await store.settle('q', [completed(jobs[0] as ClaimedJob)]);
    const ways = [
      await goBothWays(client, 'settle', 'plain-settle', settleArguments(jobs[1] as ClaimedJob)),
      await goBothWays(client, 'settle', 'plain-settle', settleArguments(jobs[1] as ClaimedJob, jobs[2] as ClaimedJob)),
      await goBothWays(client, 'settle', 'plain-settle', settleArguments(jobs[2] as ClaimedJob, jobs[3] as ClaimedJob)),
    ];
    expect(ways).toContain('short');
    expect(await goBothWays(client, 'add', 'plain-add', ['p', String(++seq), '1', '1\0n\0{}\0{}'])).toBe('short');
  });

  test('counts on both ways, and stores a minute only if a job finished in it', async () => {
    await add(12);
    await store.configure('q', { metrics: { points: 20_160 } });
    const jobs = await claim(6);
    const start = Math.ceil(Date.now() / MINUTE_MS) * MINUTE_MS + 1_000;
    await settleAt(start, jobs[0] as ClaimedJob);
    await settleAt(start + 1, jobs[1] as ClaimedJob, jobs[2] as ClaimedJob);
    await settleAt(start + 2 * MINUTE_MS, jobs[3] as ClaimedJob);
    await client.eval(script('settle').text, 1, TAG, ...settleArguments(jobs[4] as ClaimedJob));
    expect(await minutes()).toEqual({
      count: 5,
      current: { minute: Math.floor(start / MINUTE_MS) + 2, count: 2 },
      points: [0, 3],
      total: 2,
    });
    // Two weeks without a job.
    await settleAt(start + 20_000 * MINUTE_MS, jobs[5] as ClaimedJob);
    expect(await client.zcard(`${TAG}:minutes:completed`)).toBe(2);
    const { points, total } = (await minutes()) as { points: number[]; total: number };
    expect([total, points.length, points.filter((jobs) => jobs > 0)]).toEqual([20_000, 20_000, [2, 3]]);
  });
});

test('a Redis queue with a rate never takes the fast path', async () => {
  await add(4);
  await store.configure('q', { rate: { max: 100, durationMs: 1 } });
  const [job] = await claim(1);
  expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(job as ClaimedJob))).toBe('long');
  await store.configure('q', { rate: null });
  await expect.poll(async () => (await store.status('q')).window, { timeout: paced(5_000) }).toBeUndefined();
  expect(await goBothWays(client, 'settle', 'plain-settle', settleArguments(job as ClaimedJob))).toBe('short');
});
