// Cancelled jobs on Redis: what is stored of them, what a call costs, and two callers at once.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedJob, JobRecord, NewJob } from '../../../src/job/record.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { completed, failed, released, retried, retryFrom } from '../../../src/testing/conformance/samples.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { scriptTime } from './script-time.js';
import { TAG } from './both-ways.js';
import { inOrders } from './in-orders.js';
import { levelOf, newJob, openTwo } from './support.js';

const CANCEL = { kind: 'cancel', reason: 'not needed' } as const;

let client: Redis;
let store: RedisStore;
/** On a connection of its own. */
let other: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, other, client } = await openTwo('q'));
  seq = 0;
});

async function add(...jobs: Partial<NewJob>[]): Promise<void> {
  await store.add('q', jobs.map(newJob), { caller: 'p', seq: ++seq });
}

async function claim(count = 1, from = store): Promise<ClaimedJob[]> {
  return (await from.claim('q', { session: 's', seq: ++seq, count })).jobs;
}

async function running(job: Partial<NewJob>): Promise<ClaimedJob> {
  await add(job);
  return (await claim())[0] as ClaimedJob;
}

/** Settles and claims in one call, as workers do. */
async function settleAndClaim(job: ClaimedJob): Promise<void> {
  const call = { caller: 's', seq: ++seq };
  await store.settle('q', [completed(job)], call, { session: 's', seq: call.seq, count: 1 });
}

async function jobOf(jobId: string): Promise<JobRecord | undefined> {
  return (await store.jobs('q', [jobId])).jobs[0];
}

async function noticeKinds(): Promise<string[]> {
  const [reply] = await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
  return reply?.notices.map(({ kind, jobId }) => `${kind} ${jobId}`) ?? [];
}

async function isNoticed(): Promise<boolean | undefined> {
  return (await store.checkSessions([{ queue: 'q', id: 's' }]))[0]?.noticed;
}

describe('a cancelled job on Redis', () => {
  test('leaves a queue of plain jobs in layout 1 if it did not run, and raises it to 2 if it runs', async () => {
    await add({ id: 'waits' }, { id: 'later', delayMs: 60_000 });
    await store.change('q', ['waits', 'later'], CANCEL);
    expect(await levelOf(client, TAG)).toBe(1);
    const job = await running({ id: 'a' });
    await store.change('q', ['a'], CANCEL);
    expect([await levelOf(client, TAG), await client.hget(`${TAG}:extra`, 'a')]).toEqual([2, '256,{"c":"not needed"}']);
    await store.settle('q', [completed(job)]);
    expect(await client.hget(`${TAG}:extra`, 'a')).toBe('0,{}');
  });

  test('of a group ends as one that was not cancelled, also in a call that would take the fast path', async () => {
    await store.configure('q', { groups: { maxActive: 2 } });
    const job = await running({ id: 'a', group: 'g' });
    await store.change('q', ['a'], CANCEL);
    await settleAndClaim(job);
    const { state, cancelled } = (await jobOf('a')) ?? {};
    expect([state, cancelled]).toEqual(['completed', undefined]);
    await store.change('q', ['a'], retryFrom('completed'));
    await store.settle('q', (await claim()).map(released));
    expect((await jobOf('a'))?.state).toBe('waiting');
  });

  test('leaves no key behind when its session closes', async () => {
    await running({ id: 'a', opts: '{"removeOnFail":true}' });
    await store.change('q', ['a'], CANCEL);
    expect(await client.exists(`${TAG}:cancelled:s`)).toBe(1);
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    expect(await jobOf('a')).toBeUndefined();
    expect(await client.exists(`${TAG}:cancelled:s`, `${TAG}:s:s`, `${TAG}:extra`, `${TAG}:run`)).toBe(0);
  });

  test('is reported in the row of numbers of revocations, and a late renewal does not bring the notice back', async () => {
    await add({ id: 'a' }, { id: 'b' });
    await claim(2);
    await store.change('q', ['a'], CANCEL);
    await store.change('q', ['b'], { kind: 'revoke', reason: 'r' });
    expect([await noticeKinds(), await isNoticed()]).toEqual([['cancelled a', 'revoked b'], true]);
    await store.renew([{ queue: 'q', id: 's', acked: 2 }]);
    expect(await isNoticed()).toBe(false);
    await store.renew([{ queue: 'q', id: 's', acked: 1 }]);
    expect([await noticeKinds(), await isNoticed()]).toEqual([[], false]);
  });

  test('is reported also to a session that has acked a number which no notice had yet', async () => {
    await add({ id: 'a' }, { id: 'b' });
    await claim(2);
    await store.change('q', ['a'], CANCEL);
    await store.renew([{ queue: 'q', id: 's', acked: 2 }]);
    await store.change('q', ['b'], CANCEL);
    expect([await noticeKinds(), await isNoticed()]).toEqual([['cancelled b'], true]);
  });

  test('that stalls has the owner that lost it in both of its events', async () => {
    await running({ id: 'a' });
    await store.change('q', ['a'], CANCEL);
    const { last } = await store.events('q', undefined, 1);
    await store.closeSessions([{ queue: 'q', id: 's' }], 'crashed');
    const { events } = await store.events('q', last, 10);
    expect(events.map(({ name, failedReason, lostBy }) => [name, failedReason, typeof lostBy])).toEqual([
      ['stalled', undefined, 'string'],
      ['failed', 'not needed', 'string'],
    ]);
  });

  test('is named once, by any number of names in one call', async () => {
    await add({ id: 'a' }, { id: 'gone', opts: '{"removeOnFail":true}' });
    const { changed, others } = await store.change('q', ['a', 'a', 'gone', 'gone'], CANCEL);
    expect(changed).toEqual(['a', 'gone']);
    expect(others).toEqual([
      { jobId: 'a', status: 'state' },
      { jobId: 'gone', status: 'missing' },
    ]);
  });

  test('is one of 2,000 that are cancelled in scripts of less than 5 ms, waiting or active', async () => {
    const idsOf = (round: number) => Array.from({ length: 2_000 }, (_, n) => `job ${round} ${n}`);
    const fill = async (round: number) => {
      await add(...idsOf(round).map((id) => ({ id })));
      await claim(1_000);
    };
    const select = (list: 'active' | 'waiting') => store.change('q', { lists: [list], limit: 10_000 }, CANCEL);
    const ofActive = async (round: number) => (await fill(round), () => select('active'));
    expect(await scriptTime(client, ofActive)).toBeLessThan(5);
    await select('waiting');
    const ofWaiting = async (round: number) => (await fill(100 + round), () => select('waiting'));
    expect(await scriptTime(client, ofWaiting)).toBeLessThan(5);
    const byId = async (round: number) => (await fill(200 + round), () => store.change('q', idsOf(200 + round), CANCEL));
    expect(await scriptTime(client, byId)).toBeLessThan(5);
    expect((await store.status('q')).counts.waiting).toBe(0);
  });

  test('is selected once, the oldest first, behind others that were cancelled before', async () => {
    const ids = Array.from({ length: 1_000 }, (_, n) => `job ${n}`);
    await add(...ids.map((id) => ({ id })));
    await claim(1_000);
    await store.change('q', ids.slice(0, 500), CANCEL);
    const selection = { lists: ['active' as const], limit: 300 };
    expect((await store.change('q', selection, CANCEL)).changed).toEqual(ids.slice(500, 800));
    expect((await store.change('q', selection, CANCEL)).changed).toEqual(ids.slice(800));
    expect((await store.change('q', selection, CANCEL)).changed).toEqual([]);
  });
});

describe('a cancel and another caller at once on Redis', () => {
  test('a retry never lets a cancelled job wait', async () => {
    for (let round = 0; round < 30; round += 1) {
      const job = await running({ id: `job ${round}` });
      const [, { changed }] = await inOrders(
        round,
        () => store.settle('q', [retried(job)]),
        () => other.change('q', [job.id], CANCEL),
      );
      const { state, failedReason } = (await jobOf(job.id)) ?? {};
      expect([changed, state, failedReason]).toEqual([[job.id], 'failed', 'not needed']);
    }
  });

  test('a retry lets a job wait whose mark of the cancel is lost (control)', async () => {
    const job = await running({ id: 'a' });
    await other.change('q', ['a'], CANCEL);
    await client.hdel(`${TAG}:extra`, 'a');
    await store.settle('q', [retried(job)]);
    expect((await jobOf('a'))?.state).toBe('waiting');
  });

  test('a completion counts if it comes first, and is not undone', async () => {
    const seen = new Set<number>();
    for (let round = 0; round < 30; round += 1) {
      const job = await running({ id: `job ${round}` });
      const [{ results }, { changed }] = await inOrders(
        round,
        () => store.settle('q', [completed(job)]),
        () => other.change('q', [job.id], CANCEL),
      );
      const { state, cancelled } = (await jobOf(job.id)) ?? {};
      expect([results, state, cancelled]).toEqual([['done'], 'completed', undefined]);
      seen.add(changed.length);
    }
    expect(seen).toEqual(new Set([0, 1]));
  });

  test('a claim gets a job with a notice, or does not get it', async () => {
    const seen = new Set<number>();
    for (let round = 0; round < 30; round += 1) {
      const id = `job ${round}`;
      await add({ id });
      const [jobs] = await inOrders(
        round,
        () => claim(),
        () => other.change('q', [id], CANCEL),
      );
      const { state, cancelled } = (await jobOf(id)) ?? {};
      const isKnown = (await noticeKinds()).includes(`cancelled ${id}`);
      expect([state, cancelled, isKnown]).toEqual(
        jobs.length === 1 ? ['active', 'not needed', true] : ['failed', undefined, false],
      );
      seen.add(jobs.length);
      await store.settle(
        'q',
        jobs.map((job) => failed(job)),
      );
    }
    expect(seen).toEqual(new Set([0, 1]));
  });
});

test('a cancel by age finds a job that got the turn of its key from a cancelled job, before many younger ones', async () => {
  await add({ id: 'first', lockKey: 'k' }, { id: 'second', lockKey: 'k' });
  const gapMs = paced(400);
  const pause = performance.now();
  await until('the next jobs to be younger', () => performance.now() - pause > gapMs);
  const middle = performance.now() - gapMs / 2;
  await add(...Array.from({ length: 420 }, (_, n) => ({ id: `young-${n}` })));
  const cancelled: string[] = [];
  for (let more = true; more; ) {
    const selection = { lists: ['waiting' as const], olderThanMs: Math.round(performance.now() - middle), limit: 1000 };
    const reply = await store.change('q', selection, CANCEL);
    cancelled.push(...reply.changed);
    more = reply.more && reply.changed.length > 0;
  }
  expect(cancelled).toEqual(['first', 'second']);
});
