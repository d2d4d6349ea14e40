// Redis does one thing at a time: whatever is done with a queue of 100,000 jobs goes in steps of about 2 ms, between which others
// are served. Measured by the CPU that Redis uses.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import { Queue } from '../../../src/queue/queue.js';
import { bareBatchOf, batchOf } from '../../../src/store/capabilities.js';
import { RedisStore } from '../../../src/store/redis/index.js';
import { startRedis } from '../../support/servers/redis.js';
import type { TestServer } from '../../support/servers/server.js';
import { scriptCost } from './script-time.js';
import { newJob, newSession } from './support.js';
import { paced } from '../../support/wait/pace.js';
import { FULL, oneInThisRun } from '../../support/run/matrix.js';

const LIMIT_MS = paced(90_000);

const JOBS = FULL ? 100_000 : 40_000;
/** Of the CPU of a quiet machine: three times what is seen. */
const STEP_MS = 3;
/** Each job with a key or in a group moves between its lane and the claim order besides. */
const STEP_WITH_LANES_MS = 6;

let server: TestServer;
let client: Redis;
let store: RedisStore;
let queue: Queue;
let seq = 0;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.url);
  store = new RedisStore({ url: server.url });
  await store.open();
  queue = new Queue('q', { connection: store });
});

afterAll(async () => {
  await queue.close();
  await store.close();
  client.disconnect();
  await server.close();
});

async function goesInSteps(work: () => Promise<unknown>, steps: number, mostMs = STEP_MS): Promise<void> {
  const { scripts, ms } = await scriptCost(client, work);
  expect(scripts).toBeGreaterThanOrEqual(steps);
  expect(ms).toBeLessThan(mostMs);
}

function goesInLaneSteps(work: () => Promise<unknown>, steps: number): Promise<void> {
  return goesInSteps(work, steps, STEP_WITH_LANES_MS);
}

async function fill(job: (n: number) => Partial<NewJob>): Promise<void> {
  for (let added = 0; added < JOBS; added += 1_000) {
    const jobs = Array.from({ length: 1_000 }, (_, n) => newJob(job(n)));
    await store.add('q', jobs, { caller: 'p', seq: ++seq });
  }
}

async function claimAll(session: string, durationMs: number): Promise<void> {
  await store.openSession(newSession({ id: session, durationMs }));
  for (let claimed: ClaimedJob[] | undefined; claimed?.length !== 0; ) {
    claimed = (await store.claim('q', { session, seq: ++seq, count: 1_000 })).jobs;
  }
}

const { capabilities } = new RedisStore();
const batch = batchOf(capabilities);
const bareBatch = bareBatchOf(capabilities);

/** Finishes and claims in one call, until there is nothing more. */
async function turnOver(session: string, rounds: number): Promise<void> {
  let jobs: ClaimedJob[] = [];
  let round = 0;
  do {
    const outcomes = jobs.map(({ id, token }) => ({ kind: 'completed' as const, jobId: id, token, value: '1', keep: {} }));
    const call = { caller: session, seq: ++seq };
    jobs = (await store.settle('q', outcomes, call, { session, seq, count: batch })).claimed?.jobs ?? [];
  } while (jobs.length > 0 && ++round < rounds);
}

describe(`${JOBS} jobs`, () => {
  test('are added, claimed and finished by short calls', async () => {
    await store.openSession(newSession());
    await goesInSteps(async () => {
      for (let n = 0; n < 40; n += 1) {
        await store.add(
          'q',
          Array.from({ length: batch }, () => newJob()),
          { caller: 'p', seq: ++seq },
        );
      }
    }, 40);
    await goesInSteps(() => turnOver('s', Number.POSITIVE_INFINITY), 40);
    await store.change('q', { lists: ['completed'], limit: JOBS }, { kind: 'remove' });
  });

  test.each(['plain', 'grouped'] as const)('in a %s bulk are added by short calls', async (kind) => {
    const opts = kind === 'grouped' ? { group: { id: 'tenant' } } : {};
    const bulk = Array.from({ length: 5_000 }, () => ({ name: 'test', opts }));
    await goesInLaneSteps(() => queue.addBulk(bulk), 5_000 / (kind === 'plain' ? bareBatch : batch));
    expect(await queue.count()).toBe(5_000);
    await queue.obliterate({ force: true });
  });

  test('are promoted, swept, handed back and obliterated in steps', { timeout: LIMIT_MS }, async () => {
    await fill(() => ({ delayMs: 3_600_000 }));
    await goesInSteps(() => queue.promoteJobs(), JOBS / 500);
    await claimAll('dead', 600_000);
    // Its time is up.
    await client.hset('{holdfast:q}:s:dead', 'expires', 1);
    await client.zadd('{holdfast:q}:sessions', 1, 'dead');
    await goesInSteps(async () => {
      while ((await store.sweep('q', JOBS)).more);
    }, JOBS / 100);
    expect((await store.status('q')).counts).toMatchObject({ waiting: JOBS, active: 0 });
    await claimAll('going', 600_000);
    await goesInSteps(() => store.closeSessions([{ queue: 'q', id: 'going' }], 'closed'), JOBS / 100);
    expect((await store.status('q')).counts).toMatchObject({ waiting: JOBS, active: 0 });
    await claimAll('running', 600_000);
    await goesInSteps(() => queue.obliterate({ force: true }), JOBS / 500);
    expect(await queue.count()).toBe(0);
    expect((await store.events('q', 0, 10)).events).toEqual([]);
  });

  test.each(
    oneInThisRun(
      [
        ['one lock key', 1],
        ['1,000 lock keys', 1_000],
      ] as const,
      'keys',
    ),
  )(
    'with %s are claimed, finished and removed by calls that are short',
    async (_, keys) => {
      const session = `of ${keys}`;
      await store.openSession(newSession({ id: session }));
      await fill((n) => ({ lockKey: `key ${n % keys}` }));
      await goesInLaneSteps(() => turnOver(session, 50), 50);
      const listed = () => store.jobs('q', { lists: ['waiting'], start: JOBS / 2, end: JOBS / 2 + 999, asc: true });
      await goesInLaneSteps(listed, 4);
      await goesInLaneSteps(() => queue.obliterate({ force: true }), JOBS / 500);
      expect(await queue.count()).toBe(0);
    },
    LIMIT_MS,
  );

  test.each(
    oneInThisRun(
      [
        ['one group', 1],
        ['1,000 groups', 1_000],
        ['100,000 groups', JOBS],
      ] as const,
      'groups',
    ),
  )(
    'of %s are claimed, finished and removed by calls that are short, also after a change of their limits',
    async (_, count) => {
      const session = `of groups, ${count}`;
      let added = 0;
      await store.openSession(newSession({ id: session }));
      await fill(() => ({ group: `group ${added++ % count}` }));
      await goesInLaneSteps(() => turnOver(session, 50), 50);
      // No group has a place: all of them go aside as claims find them, and come back when the limit is removed.
      const limit = (maxActive: number) => store.configure('q', { groups: { maxActive } });
      await goesInLaneSteps(() => limit(0), 1);
      const claims = async (): Promise<number> => {
        for (let calls = 1; ; calls += 1) {
          const { jobs, more } = await store.claim('q', { session, seq: ++seq, count: batch });
          if (more !== true || jobs.length > 0) return calls;
        }
      };
      await goesInLaneSteps(claims, 1);
      await goesInLaneSteps(() => store.configure('q', { groups: null }), 1);
      await goesInLaneSteps(() => turnOver(session, 50), 50);
      await goesInLaneSteps(() => store.status('q', { groups: { limit: 1_000 } }), 1);
      await goesInLaneSteps(() => queue.obliterate({ force: true }), JOBS / 500);
      expect(await queue.count()).toBe(0);
      expect((await store.status('q', { groups: { limit: 1 } })).groups).toEqual({ groups: [] });
    },
    LIMIT_MS,
  );
});
