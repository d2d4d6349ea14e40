// The short cuts of calls with many jobs: texts that go together, outcomes that are sent in series, locks that end as a range.
// Each has a second way, for what does not fit it, and both must do the same.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { newJob, newSession, openWithClient } from './support.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';

const TAG = '{holdfast:q}';
let client: Redis;
let store: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession());
  seq = 0;
});

async function add(jobs: Partial<NewJob>[]): Promise<void> {
  const call = { caller: 'p', seq: ++seq };
  await store.add(
    'q',
    jobs.map((job) => newJob(job)),
    call,
  );
}

async function claim(count: number, session = 's'): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session, seq: ++seq, count, by: 'w' })).jobs;
}

const plain = (count: number): Partial<NewJob>[] => Array.from({ length: count }, () => ({}));
const done = ({ id, token }: ClaimedJob, value = '1'): Outcome => ({
  kind: 'completed',
  jobId: id,
  token,
  value,
  keep: {},
});
const lockedBy = (session: string): Promise<string[]> => client.zrange(`${TAG}:bound:${session}`, 0, '-1');

describe('added jobs on Redis', () => {
  const ids = async (jobs: Partial<NewJob>[]): Promise<string[]> => {
    const call = { caller: 'p', seq: ++seq };
    const replies = await store.add(
      'q',
      jobs.map((job) => newJob(job)),
      call,
    );
    expect(await store.add('q', [newJob()], call)).toEqual(replies);
    return replies.map(({ id, status }) => (status === 'duplicate' ? `${id} again` : id));
  };

  test('get counted ids, alone and among named ones, and skip names that look like a count', async () => {
    expect(await ids(plain(2))).toEqual(['1', '2']);
    expect(await ids([{ id: '4' }, {}, { id: '1' }, { priority: 2 }])).toEqual(['4', '3', '1 again', '5']);
    await ids([{ id: '7' }]);
    expect(await ids(plain(3))).toEqual(['6', '8', '9']);
    expect(await ids(plain(1))).toEqual(['10']);
    expect((await claim(20)).map(({ id }) => id)).toEqual(['1', '2', '4', '3', '7', '6', '8', '9', '10', '5']);
  });
});

describe('claimed jobs on Redis', () => {
  test.each([
    ['short', 10],
    ['long', 20_000],
  ])('of %s texts come with their own name, data and options', async (_, length) => {
    const jobs = Array.from({ length: 7 }, (_, n) => ({
      name: `n${n}`,
      data: JSON.stringify('ä'.repeat(length) + n),
      opts: `{"attempts":${n}}`,
      timestamp: 1000 + n,
    }));
    await add(jobs);
    expect(await claim(7)).toMatchObject(
      jobs.map((job, n) => ({ ...job, id: String(n + 1), processedBy: 'w', token: expect.stringMatching(/^s:\d+$/) })),
    );
  });

  test('have their own counters when they ran before, also when the claim is repeated', async () => {
    await add(plain(2));
    const [first, second] = await claim(2);
    if (!first || !second) return expect.fail('two were to be claimed');
    await store.settle('q', [
      { kind: 'retry', jobId: first.id, token: first.token, reason: 'r', stacktrace: '["s"]', delayMs: 0, lifo: true },
      { kind: 'release', jobId: second.id, token: second.token },
    ]);
    await add([{}, { priority: 5 }]);
    const jobs = await claim(4);
    expect(jobs).toMatchObject([
      { id: '2', attemptsMade: 0, attemptsStarted: 2, priority: 0 },
      { id: '1', attemptsMade: 1, attemptsStarted: 2, priority: 0, failedReason: 'r', stacktrace: '["s"]' },
      { id: '3', attemptsMade: 0, attemptsStarted: 1, priority: 0 },
      { id: '4', attemptsMade: 0, attemptsStarted: 1, priority: 5 },
    ]);
    expect((await store.claim('q', { session: 's', seq, count: 4, by: 'w' })).jobs).toEqual(jobs);
  });
});

describe('locks on Redis', () => {
  test('that end together, in order, leave the locks around them in place', async () => {
    await add(plain(9));
    const jobs = await claim(9);
    expect(
      (
        await store.settle(
          'q',
          jobs.slice(2, 6).map((job) => done(job)),
        )
      ).results,
    ).toEqual(Array(4).fill('done'));
    expect(await lockedBy('s')).toEqual(['1', '2', '7', '8', '9']);
  });

  test.each([
    [
      [8, 1, 2, 4],
      ['1', '4', '6', '7', '8'],
    ],
    // As many as from the first to the last, and not those.
    [
      [1, 5, 3],
      ['1', '3', '5', '7', '8', '9'],
    ],
    [
      [5, 4, 3],
      ['1', '2', '3', '7', '8', '9'],
    ],
  ])('that end out of order, or with others between them, leave these (%j)', async (places, left) => {
    await add(plain(9));
    const jobs = await claim(9);
    const some = places.map((n) => done(jobs[n] as ClaimedJob));
    expect((await store.settle('q', some)).results).toEqual(some.map(() => 'done'));
    expect(await lockedBy('s')).toEqual(left);
  });

  test('of two sessions that end in one call are kept apart', async () => {
    await store.openSession(newSession({ id: 't' }));
    await add(plain(8));
    const [mine, theirs] = [await claim(4), await claim(4, 't')];
    const mixed = [mine[0], theirs[0], theirs[1], mine[1], mine[2]].map((job) => done(job as ClaimedJob));
    expect((await store.settle('q', mixed)).results).toEqual(Array(5).fill('done'));
    expect([await lockedBy('s'), await lockedBy('t')]).toEqual([['4'], ['7', '8']]);
    const [first] = (await store.jobs('q', [theirs[0]?.id ?? ''])).jobs;
    expect(first).toMatchObject({ state: 'completed', attemptsMade: 1 });
    // The token that finished it is the one that it keeps.
    expect((await store.settle('q', [done(theirs[0] as ClaimedJob), done(mine[0] as ClaimedJob)])).results).toEqual([
      'done',
      'done',
    ]);
  });

  test('are not ended by a token that is only part of theirs, nor by one that stands in a lock key', async () => {
    await add([{ lockKey: 'x:12' }, {}]);
    const [keyed, other] = await claim(2);
    if (!keyed || !other) return expect.fail('two were to be claimed');
    const forged = [
      `s:${String(keyed.fence).slice(0, -1)}`,
      `${keyed.token}0`,
      's:',
      '',
      ':',
      'x:12',
      `:${keyed.fence}`,
      String(keyed.fence),
    ];
    const tries = [...forged, other.token].map((token) => done({ ...keyed, token }));
    expect((await store.settle('q', tries)).results).toEqual(tries.map(() => 'lost'));
    expect(await lockedBy('s')).toEqual(['1', '2']);
    expect((await store.settle('q', [done(keyed)])).results).toEqual(['done']);
  });
});

describe('outcomes on Redis', () => {
  test('without a token are not taken for a repeated call, even of an unfinished job', async () => {
    await store.openSession(newSession({ id: 'gone', maxStalls: 0 }));
    await add(plain(1));
    const [job] = await claim(1, 'gone');
    await store.closeSessions([{ queue: 'q', id: 'gone' }], 'crashed');
    expect((await store.jobs('q', [job?.id ?? ''])).jobs).toMatchObject([{ state: 'failed' }]);
    const unowned: Outcome = { kind: 'failed', jobId: job?.id ?? '', token: '', reason: 'r', stacktrace: '[]', keep: {} };
    expect((await store.settle('q', [unowned])).results).toEqual(['lost']);
  });

  test('of all kinds, in any order, are each applied', async () => {
    await add(plain(8));
    const jobs = await claim(8);
    const at = (n: number): { jobId: string; token: string } => ({ jobId: String(n), token: jobs[n - 1]?.token ?? '' });
    const { results } = await store.settle('q', [
      { ...at(1), kind: 'completed', value: '"one"', keep: {} },
      { ...at(2), kind: 'failed', reason: 'two', stacktrace: '["t"]', keep: {} },
      { ...at(3), kind: 'retry', reason: 'three', stacktrace: '["u"]', delayMs: 60_000, lifo: false },
      { ...at(4), kind: 'completed', value: 'null', keep: { count: 0 } },
      { ...at(5), kind: 'completed', value: 'null', keep: {} },
      { ...at(6), kind: 'delay', delayMs: 70_000 },
      { ...at(7), kind: 'release' },
      { ...at(1), kind: 'release' },
      { ...at(4), kind: 'completed', value: '1', keep: {} },
    ]);
    expect(results).toEqual([...Array(7).fill('done'), 'lost', 'missing']);
    expect((await store.jobs('q', ['1', '2', '3', '4', '5', '6', '7', '8'])).jobs).toMatchObject([
      { state: 'completed', returnvalue: '"one"', attemptsMade: 1 },
      { state: 'failed', failedReason: 'two', stacktrace: '["t"]', attemptsMade: 1 },
      { state: 'delayed', delay: 60_000, failedReason: 'three', stacktrace: '["u"]', attemptsMade: 1 },
      undefined as never,
      { state: 'completed', returnvalue: 'null', attemptsMade: 1 },
      { state: 'delayed', delay: 70_000, attemptsMade: 0 },
      { state: 'waiting', attemptsMade: 0 },
      { state: 'active' },
    ]);
  });

  test('that lost their lock do not trim finished jobs of others', async () => {
    await add(plain(4));
    const jobs = await claim(4);
    await store.settle(
      'q',
      jobs.slice(0, 3).map((job) => done(job)),
    );
    const stale: Outcome = { kind: 'completed', jobId: '1', token: 's:1', value: '1', keep: { count: 1 } };
    expect((await store.settle('q', [stale, done(jobs[3] as ClaimedJob)])).results).toEqual(['lost', 'done']);
    expect((await store.status('q')).counts.completed).toBe(4);
  });

  test('of null store no value, and the job shows null until it runs again', async () => {
    await add(plain(2));
    const jobs = await claim(2);
    await store.settle(
      'q',
      jobs.map((job, n) => done(job, n === 0 ? 'null' : '2')),
    );
    expect(await client.hkeys(`${TAG}:value`)).toEqual(['2']);
    expect((await store.jobs('q', ['1', '2'])).jobs).toMatchObject([{ returnvalue: 'null' }, { returnvalue: '2' }]);
    await store.change('q', { lists: ['completed'], limit: 2 }, retryFrom('completed'));
    for (const job of (await store.jobs('q', ['1', '2'])).jobs) expect(job).not.toHaveProperty('returnvalue');
    await store.settle(
      'q',
      (await claim(2)).map((job) => done(job, 'null')),
    );
    expect((await store.jobs('q', ['1', '2'])).jobs).toMatchObject([{ returnvalue: 'null' }, { returnvalue: 'null' }]);
  });
});
