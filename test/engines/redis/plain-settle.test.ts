// Most settles take a fast path (`plain-settle` in lua/settle.lua). It must leave the same data and give the same answer as the slow path
// does, and leave everything alone where it does not apply.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Call, ClaimRequest } from '../../../src/store/contract/index.js';
import { claim as claimAlone } from '../../../src/store/redis/claim.js';
import type { Argument } from '../../../src/store/redis/driver/driver.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { settle } from '../../../src/store/redis/settle.js';
import type { Engine } from '../../../src/store/redis/driver/engine.js';
import { goBothWays, TAG } from './both-ways.js';
import { newJob, newSession, openWithClient } from './support.js';

let client: Redis;
let store: RedisStore;
let seq: number;
let jobs: ClaimedJob[];

beforeEach(async () => {
  ({ store, client } = await openWithClient());
  await store.openSession(newSession());
  await store.openSession(newSession({ id: 't' }));
  seq = 0;
  await add(12);
  jobs = await claim(6);
});

async function add(count: number, job: Partial<NewJob> = {}): Promise<void> {
  const list = Array.from({ length: count }, () => newJob(job));
  await store.add('q', list, { caller: 'p', seq: ++seq });
}

async function claim(count: number, request: Partial<ClaimRequest> = {}): Promise<ClaimedJob[]> {
  return (await store.claim('q', { session: 's', seq: ++seq, count, by: 'w', ...request })).jobs;
}

const done = (n: number, change: Partial<Outcome & { kind: 'completed' }> = {}): Outcome => {
  const { id, token } = jobs[n] as ClaimedJob;
  return { kind: 'completed', jobId: id, token, value: 'null', keep: {}, ...change };
};

/** A call and its claim, numbered alike unless it is said otherwise. */
async function argumentsOf(outcomes: Outcome[], request: Partial<ClaimRequest>, given: Partial<Call>): Promise<Argument[]> {
  let sent: Argument[] = [];
  const numbered = { seq: request.seq ?? ++seq, ...(request.lane !== undefined && { lane: request.lane }) };
  const call = { caller: 's', ...numbered, ...given };
  const wish = { session: call.caller, count: 1, by: 'w', ...numbered, ...request };
  const note = (args: Argument[]): string[] => {
    sent = args;
    return ['', '1,0,0,-1,1'];
  };
  const run = async (_name: string, _queue: string, args: Argument[]): Promise<string[]> => note(args);
  const engine = { run, relays: { writeNear: () => undefined } } as unknown as Engine;
  if (outcomes.length > 0) await settle(engine, 'q', outcomes, call, wish);
  else await claimAlone(engine, 'q', wish);
  return sent;
}

async function takes(
  way: 'short' | 'long',
  outcomes: Outcome[],
  request: Partial<ClaimRequest> = {},
  call: Partial<Call> = {},
): Promise<void> {
  const args = await argumentsOf(outcomes, request, call);
  expect(await goBothWays(client, 'settle', 'plain-settle', args)).toBe(way);
}

describe('the fast path to settle on Redis does what the slow path does', () => {
  test('for a single job, again and again', async () => {
    for (let round = 0; round < 3; round += 1) await takes('short', [done(round)]);
  });

  test('for many jobs, in order, out of order, and with gaps', async () => {
    await takes('short', [done(0), done(1), done(2)], { count: 2 });
    await takes('short', [done(5), done(3)], { count: 3 });
  });

  test.each([
    ['as many as wait', 6],
    ['more than wait', 50],
  ])('for a claim of %s, and one of a queue that is empty', async (_, count) => {
    await takes('short', [done(0)], { count });
    await takes('short', [done(1)], { count });
  });

  test('for the last job of all', async () => {
    await claim(100, { session: 't' });
    for (const { id, token } of (await store.locks('q', { session: 't' })).map(({ jobId, fence }) => ({
      id: jobId,
      token: `t:${fence}`,
    })))
      await store.settle('q', [{ kind: 'completed', jobId: id, token, value: 'null', keep: {} }]);
    await takes(
      'short',
      [0, 1, 2, 3, 4].map((n) => done(n)),
    );
    await takes('short', [done(5)]);
    const { events } = await store.events('q', 0, 1000);
    expect(events.at(-1)).toMatchObject({ name: 'drained' });
  });

  test('for values, reasons, progress, jobs that ran before, and data that is long', async () => {
    const { id, token } = jobs[5] as ClaimedJob;
    await store.write('q', [{ jobId: '7', kind: 'progress', progress: '50' }]);
    await store.settle('q', [
      { kind: 'retry', jobId: id, token, reason: 'r', stacktrace: '["s"]', delayMs: 0, lifo: true },
      { kind: 'release', jobId: '5', token: jobs[4]?.token ?? '' },
    ]);
    await add(1, { lifo: true, data: JSON.stringify('x'.repeat(70_000)) });
    await takes('short', [done(0, { value: '"one"' }), done(1), done(2, { value: '2' })], { count: 5 });
    jobs = await Promise.all(
      (await store.locks('q', { session: 's' })).map(async ({ jobId }) => (await running(jobId)) as ClaimedJob),
    );
    await takes('short', [done(1), done(2), done(3)], { count: 2 });
  });

  test('for a claim alone of one, all, too many or no jobs, and in another lane', async () => {
    await takes('short', []);
    await takes('short', [], { count: 3, lane: 1 });
    await takes('short', [], { count: 50 });
    await takes('short', [], { count: 50 });
    await add(1, { delayMs: 60_000 });
    await takes('short', []);
    await add(1);
    await takes('short', [], { session: 't' });
  });

  test('in each lane, also with a lower number than the other lane', async () => {
    await takes('short', [done(0)], { seq: 50, lane: 1 });
    await takes('short', [done(1)], { seq: 40 });
    await takes('short', [done(2)], { seq: 51, lane: 1 });
    await takes('long', [done(2)], { seq: 51, lane: 1 });
    await takes('long', [done(3)], { seq: 45, lane: 1 });
  });

  test('beside jobs that are not due yet, and after the last of them', async () => {
    await add(1, { delayMs: 60_000 });
    await takes('short', [done(0)]);
    await store.change('q', ['13'], { kind: 'promote' });
    await takes('short', [done(1)]);
  });

  test('when the clock of Redis was set back: fences go on from the last one', async () => {
    const packed = (await client.getBuffer(`${TAG}:meta`)) as Buffer;
    const [seconds = 0] = await client.time();
    // The first counter is the last number given out, from a clock that was an hour ahead.
    const last = (Number(seconds) + 3600) * 1_000_000;
    packed.writeDoubleLE(last, 0);
    await client.set(`${TAG}:meta`, packed);
    await takes('short', [], { count: 2 });
    await takes('short', [done(0)], { count: 2 });
    const claimed = (await store.locks('q', { session: 's' })).slice(-4).map(({ fence }) => fence);
    // The place of the finished job lies between them.
    expect(claimed.toSorted((a, b) => a - b)).toEqual([last + 1, last + 2, last + 4, last + 5]);
  });

  test('with a watcher', async () => {
    await client.eval(script('watch').text, 1, TAG, 'events');
    await takes('short', [done(0)]);
    await client.eval(script('watch').text, 1, TAG, 'jobs');
    await takes('short', [done(1)]);
  });
});

describe('the fast path to settle on Redis removes what the slow path removes', () => {
  const REMOVED = { keep: { count: 0 } };
  /** Completes the jobs 1 to 3, as if that were an hour ago, and claims others in their place. */
  async function finishThree(): Promise<void> {
    await store.settle(
      'q',
      [0, 1, 2].map((n) => done(n, { value: `"${n}"` })),
      { caller: 's', seq: ++seq },
    );
    const hourAgo = (Date.now() - 3_600_000) * 1000;
    for (const id of ['1', '2', '3']) await client.zadd(`${TAG}:completed`, hourAgo + Number(id), id);
    jobs = [...jobs.slice(3), ...(await claim(3))];
  }

  test('when completed jobs are not kept: one, several, and the last', async () => {
    await takes('short', [done(0, REMOVED)]);
    await takes('short', [done(1, REMOVED), done(2, { ...REMOVED, value: '"two"' })], { count: 3 });
    jobs = [...(await claim(12)), ...jobs.slice(3)];
    await takes(
      'short',
      jobs.slice(0, 7).map((_, n) => done(n, REMOVED)),
    );
    await takes('short', [], { count: 5 });
    expect(await client.hlen(`${TAG}:job`)).toBe(4);
  });

  test('when a removed job has logs, a reason, a stack trace and a progress', async () => {
    const { id, token } = jobs[0] as ClaimedJob;
    await store.write('q', [
      { jobId: id, kind: 'log', row: 'a line' },
      { jobId: id, kind: 'progress', progress: '50' },
    ]);
    await store.settle('q', [{ kind: 'retry', jobId: id, token, reason: 'r', stacktrace: '["s"]', delayMs: 0, lifo: true }]);
    jobs = await claim(1);
    await takes('short', [done(0, REMOVED)]);
    const left = await Promise.all(['reason', 'stack', 'progress'].map((hash) => client.hexists(`${TAG}:${hash}`, id)));
    expect([...left, await client.exists(`${TAG}:log:${id}`)]).toEqual([0, 0, 0, 0]);
  });

  test('when a count, an age or both limit the completed jobs', async () => {
    await finishThree();
    await takes('short', [done(0, { keep: { count: 10 } })]);
    await takes('short', [done(1, { keep: { count: 4 } })]);
    await takes('short', [done(2, { keep: { ageMs: 7_200_000 } })]);
    await takes('short', [done(3, { keep: { count: 4, ageMs: 1_800_000 } })], { count: 2 });
    expect(await client.zrange(`${TAG}:completed`, 0, '-1')).toEqual(jobs.slice(0, 4).map(({ id }) => id));
  });

  test('when more old jobs are left than one call removes', async () => {
    await add(150);
    const many = await claim(150, { session: 't' });
    await store.settle(
      'q',
      many.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: 'null', keep: {} })),
    );
    await takes('short', [done(0, { keep: { count: 1 } })]);
    expect(await client.zcard(`${TAG}:completed`)).toBe(50);
    await takes('short', [done(1, { keep: { ageMs: 1 } })]);
    expect(await client.zcard(`${TAG}:completed`)).toBe(1);
  });

  test('when jobs of groups are not kept', async () => {
    for (const { id, token } of [...jobs, ...(await claim(6))])
      await store.settle('q', [{ kind: 'completed', jobId: id, token, value: 'null', keep: {} }]);
    for (let n = 0; n < 6; n += 1) await add(1, { group: `g${n % 2}` });
    jobs = await claim(3);
    const grouped = await client.hlen(`${TAG}:extra`);
    await takes('short', [done(0, REMOVED), done(1, REMOVED)], { count: 2 });
    expect(await client.hlen(`${TAG}:extra`)).toBe(grouped - 2);
    await takes('short', [done(2, { keep: { count: 2 } })]);
  });

  test('leaves large results, jobs of the call itself and jobs that had an entry to the slow path', async () => {
    await takes('long', [done(0, { ...REMOVED, value: JSON.stringify('x'.repeat(5000)) })]);
    await takes('long', [done(0, { keep: { count: 1 } }), done(1, { keep: { count: 1 } })]);
    await add(1, { deduplication: { id: 'd' } });
    for (const { id, token } of await claim(100, { session: 't' }))
      await store.settle('q', [{ kind: 'completed', jobId: id, token, value: 'null', keep: {} }]);
    await takes('short', [done(0, { keep: { count: 6 } })]);
    await takes('long', [done(1, { keep: { count: 1 } })]);
  });
});

describe('the fast path to settle on Redis is not used', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['of a queue that is paused', () => store.configure('q', { paused: true })],
    ['of a queue with a job that is due', () => add(1, { delayMs: 1 }).then(() => sleep(10))],
    ['of a queue with lock keys', () => add(1, { lockKey: 'k' })],
    ['of a queue under a limit', () => store.configure('q', { blockedMs: 60_000 })],
    ['of a queue whose claims are counted', () => claim(1, { limit: { max: 50, durationMs: 60_000 } })],
    ['of a queue under a cap', () => store.configure('q', { cap: { maxActive: 100 } })],
    ['of a session that is gone', () => store.closeSessions([{ queue: 'q', id: 's' }], 'closed')],
    ['of a session that was ended and still holds something', () => client.hset(`${TAG}:s:s`, 'ended', 1)],
    ['of a session that has expired', () => client.hset(`${TAG}:s:s`, 'expires', 1)],
    ['of a session under suspicion', () => client.hset(`${TAG}:s:s`, 'suspected', 1)],
    ['of a job whose lock was taken away', () => store.change('q', ['1'], { kind: 'revoke', reason: 'r' })],
    ['of a job whose lock has an end of its own', () => store.extend('q', [{ ...done(0), durationMs: 60_000 }])],
    ['of a job that is gone', () => client.hdel(`${TAG}:run`, '1')],
    ['of a place without a job', () => client.hdel(`${TAG}:run`, '7')],
  ])('%s', async (_, change) => {
    await change();
    await takes('long', [done(0)]);
  });

  test.each<[string, () => Promise<unknown>]>([
    ['a paused queue', () => store.configure('q', { paused: true })],
    ['a queue with a due job', () => add(1, { delayMs: 1 }).then(() => sleep(10))],
    ['a queue under a limit', () => store.configure('q', { blockedMs: 60_000 })],
    ['a queue under a cap', () => store.configure('q', { cap: { maxActive: 100 } })],
    ['a session that has expired', () => client.hset(`${TAG}:s:s`, 'expires', 1)],
    ['a session under suspicion', () => client.hset(`${TAG}:s:s`, 'suspected', 1)],
    ['a place without a job', () => client.hdel(`${TAG}:run`, '7')],
  ])('for a claim alone of %s', async (_, change) => {
    await change();
    await takes('long', []);
  });

  test('for a claim alone that is special, or of an old number', async () => {
    await takes('long', [], { timedMs: 1000 });
    await takes('long', [], { jobIds: ['9'] });
    await takes('long', [], { limit: { max: 5, durationMs: 1000 } });
    await takes('long', [], { count: 0 });
    await takes('long', [], { seq: 1 });
  });

  test('when jobs with a priority may be next', async () => {
    await add(1, { priority: 3 });
    await takes('short', [done(0)]);
    await takes('long', [done(1)], { count: 5 });
  });

  test('for outcomes of other kinds, other retention, other owners, repeated or lost ones', async () => {
    await takes('long', [{ ...done(0), kind: 'release' }]);
    await takes('long', [done(0), { ...done(1), kind: 'release' }]);
    await takes('long', [done(0, { keep: { count: 0 } }), done(1)]);
    await takes('long', [done(0, { keep: { ageMs: 0 } })]);
    await takes('long', [done(0)], { session: 't' });
    await takes('long', [done(0)], {}, { caller: 't' });
    await takes('long', [done(0), done(1), done(0)]);
    for (const token of ['s:', 's:1', '', `${jobs[0]?.token}0`, (jobs[0]?.token ?? '').slice(0, -1)])
      await takes('long', [done(1), done(0, { token })]);
  });

  test('for claims that are special, or of an old number', async () => {
    await takes('long', [done(0)], { timedMs: 1000 });
    await takes('long', [done(0)], { jobIds: ['9'] });
    await takes('long', [done(0)], { limit: { max: 5, durationMs: 1000 } });
    await takes('long', [done(0)], { count: 0 });
    await takes('long', [done(0)], { seq: 1 });
    await takes('long', [done(0)], { seq: 90 }, { seq: 91 });
    await takes('long', [done(0)], { seq: 92 }, { seq: 92, lane: 1 });
  });
});

/** The fields of a running job that finishing it needs. */
async function running(id: string): Promise<{ id: string; token: string }> {
  return { id, token: (await store.locks('q', { jobIds: [id] }))[0]?.token ?? '' };
}
