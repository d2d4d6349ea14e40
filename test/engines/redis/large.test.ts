// Large payloads on Redis, which does one thing at a time: no script copies more than a reply holds, and others are served meanwhile.
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { readFile } from 'node:fs/promises';
import type { ClaimedJob } from '../../../src/job/record.js';
import { EVENT_VALUE_BYTES, EVENTS_BYTES_KEPT, REPLY_BYTES } from '../../../src/store/budget.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { paced } from '../../support/wait/pace.js';
import { scriptCost } from './script-time.js';
import { newJob, newServer, newSession, openStore, openWithClient } from './support.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';

const TAG = '{holdfast:q}';
/** Where `largest` lies among the counters, in bytes. */
const LARGEST_AT = 21 * 8;
const NUMBER = 8;
const LARGE_JOBS = 30;

async function add(store: RedisStore, data: string[], seq: number): Promise<void> {
  await store.add(
    'q',
    data.map((text) => newJob({ data: JSON.stringify(text) })),
    { caller: 'p', seq },
  );
}

function completed({ id, token }: ClaimedJob, value = 'null', count?: number): Parameters<RedisStore['settle']>[1][number] {
  return { kind: 'completed', jobId: id, token, value, keep: count === undefined ? {} : { count } };
}

test('the byte budgets of the Redis scripts are those of the contract', async () => {
  const lua = await readFile(new URL('../../../src/store/redis/lua/queues.lua', import.meta.url), 'utf8');
  expect(lua).toContain(`= ${REPLY_BYTES}, ${EVENT_VALUE_BYTES}, ${EVENTS_BYTES_KEPT / 2}\n`);
});

test('Redis serves others while jobs of ten megabytes are claimed and finished', { timeout: paced(60_000) }, async () => {
  const { url } = await newServer();
  const client = new Redis(url);
  onTestFinished(() => client.disconnect());
  const store = await openStore({ url });
  const text = 'x'.repeat(10 * 1024 * 1024);
  for (let n = 1; n <= LARGE_JOBS; n += 1) await add(store, [text], n);
  await store.openSession(newSession({ durationMs: 60_000 }));
  let pings = 0;
  let ended = false;
  const pinging = (async () => {
    while (!ended) {
      await client.ping();
      pings += 1;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })();
  const { scripts, ms } = await scriptCost(client, async () => {
    let held: ClaimedJob[] = [];
    for (let finished = 0, seq = 1; finished < LARGE_JOBS; finished += held.length, seq += 1) {
      const outcomes = held.map((job) => completed(job));
      const request = { session: 's', seq, count: LARGE_JOBS };
      const { claimed } = await store.settle('q', outcomes, { caller: 's', seq }, request);
      held = claimed?.jobs ?? [];
      expect(held).toHaveLength(1);
    }
  });
  ended = true;
  await pinging;
  expect(ms).toBeLessThan(125);
  // A ping waits for one script, or two.
  expect(pings).toBeGreaterThan(scripts / 2);
});

test('Redis keeps the size of the largest job until all are finished, and measures second tries again', async () => {
  const { store, client } = await openWithClient();
  await store.openSession(newSession());
  const counters = async (): Promise<Buffer> => (await client.getBuffer(`${TAG}:meta`)) ?? Buffer.alloc(0);
  const largest = async (): Promise<number> => (await counters()).readDoubleLE(LARGEST_AT);
  await add(store, Array<string>(3).fill('x'.repeat(REPLY_BYTES * 0.4)), 1);
  expect(await largest()).toBeGreaterThan(REPLY_BYTES * 0.4);
  const first = await store.claim('q', { session: 's', seq: 1, count: 3 });
  expect([first.jobs.length, first.more]).toEqual([2, true]);
  expect(await largest()).toBeGreaterThan(REPLY_BYTES * 0.4);
  const { jobs } = await store.claim('q', { session: 's', seq: 2, count: 3 });
  const outcomes = [...first.jobs, ...jobs].map((job) => completed(job));
  await store.settle('q', outcomes, { caller: 's', seq: 3 }, { session: 's', seq: 3, count: 1 });
  expect(await largest()).toBe(0);
  // A second try is measured again.
  await store.change('q', { lists: ['completed'], limit: 3 }, retryFrom('completed'));
  expect(await largest()).toBeGreaterThan(REPLY_BYTES * 0.4);
  expect((await store.claim('q', { session: 's', seq: 4, count: 3 })).jobs).toHaveLength(2);
});

test.each(['data', 'progress'] as const)('Redis counts the bytes of a %s that grew while the job waited', async (kind) => {
  const { store } = await openWithClient();
  await store.openSession(newSession());
  await add(store, ['a', 'b', 'c'], 1);
  const text = JSON.stringify('x'.repeat(REPLY_BYTES * 0.4));
  for (const jobId of ['1', '2', '3']) {
    await store.write('q', [kind === 'data' ? { kind, jobId, data: text } : { kind, jobId, progress: text }]);
  }
  const { jobs, more } = await store.claim('q', { session: 's', seq: 1, count: 3 });
  expect([jobs.length, more]).toEqual([2, true]);
});

test('a claim of named jobs on Redis ends when the first of them cannot be claimed', async () => {
  const { store } = await openWithClient();
  await store.openSession(newSession());
  const data = JSON.stringify('x'.repeat(REPLY_BYTES * 0.7));
  await store.add(
    'q',
    [newJob({ data, lockKey: 'k' }), newJob({ data, lockKey: 'k' }), newJob({ data, delayMs: 60_000 }), newJob({ data })],
    {
      caller: 'p',
      seq: 1,
    },
  );
  await store.claim('q', { session: 's', seq: 1, count: 1, jobIds: ['1'] });
  const { jobs, more } = await store.claim('q', { session: 's', seq: 2, count: 3, jobIds: ['2', '3', '4'] });
  expect([jobs.map(({ id }) => id), more]).toEqual([['4'], undefined]);
});

test('400 removed jobs leave all their events and a few megabytes of results on Redis', async () => {
  const { store, client } = await openWithClient();
  await store.openSession(newSession());
  const result = JSON.stringify('x'.repeat(300 * 1024));
  let seq = 0;
  for (let n = 0; n < 400; n += 10) {
    await add(store, Array<string>(10).fill('x'), ++seq);
    const { jobs } = await store.claim('q', { session: 's', seq: ++seq, count: 10 });
    await store.settle(
      'q',
      jobs.map((job) => completed(job, result, 0)),
      { caller: 's', seq: ++seq },
    );
  }
  const bytesOf = async (key: string) => Number(await client.call('MEMORY', 'USAGE', `${TAG}:${key}`, 'SAMPLES', '0'));
  expect(await bytesOf('event-values')).toBeGreaterThan(result.length);
  expect(await bytesOf('event-values')).toBeLessThan(EVENTS_BYTES_KEPT * 1.6);
  expect(await bytesOf('events')).toBeLessThan(result.length);
  let completions = 0;
  for (let after = 0; ; ) {
    const { events, last } = await store.events('q', after, 10_000);
    if (events.length === 0) break;
    completions += events.filter(({ name }) => name === 'completed').length;
    after = last;
  }
  expect(completions).toBe(400);
  await store.forget('q', { events: 0 });
  expect(await client.exists(`${TAG}:event-values`, `${TAG}:event-value-marks`)).toBe(0);
});

test('a Redis queue of a higher level is refused, and not touched', async () => {
  const { store, client } = await openWithClient();
  await add(store, ['a'], 1);
  const meta = (await client.getBuffer(`${TAG}:meta`)) ?? Buffer.alloc(0);
  const newer = Buffer.from(meta);
  newer.writeDoubleLE(99, meta.length - NUMBER);
  await client.set(`${TAG}:meta`, newer);
  await expect(add(store, ['b'], 2)).rejects.toMatchObject({ code: 'STORE_NEWER', retryable: false, store: 'redis' });
  await expect(store.claim('q', { session: 's', seq: 1, count: 1 })).rejects.toMatchObject({ code: 'STORE_NEWER' });
  expect(await client.getBuffer(`${TAG}:meta`)).toEqual(newer);
  expect(await client.hlen(`${TAG}:job`)).toBe(1);
});
