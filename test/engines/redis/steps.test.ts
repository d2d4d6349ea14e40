// Steps of jobs on Redis: which keys they take and when these go, what a call costs, and two callers at once.
import type { Redis } from 'ioredis';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import { MAX_STEP_BYTES, MAX_STEPS, type Step, type Write, type WriteReply } from '../../../src/store/contract/index.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { completed, failed, released, retryFrom } from '../../../src/testing/conformance/samples.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { inOrders } from './in-orders.js';
import { scriptTime } from './script-time.js';
import { TAG } from './both-ways.js';
import { levelOf, newJob, newSession, openTwo } from './support.js';

let client: Redis;
let store: RedisStore;
/** On a connection of its own. */
let other: RedisStore;
let seq: number;

beforeEach(async () => {
  ({ store, other, client } = await openTwo('q'));
  seq = 0;
});

async function add(job: Partial<NewJob>): Promise<void> {
  await store.add('q', [newJob(job)], { caller: 'p', seq: ++seq });
}

async function claim(session = 's'): Promise<ClaimedJob> {
  const { jobs } = await store.claim('q', { session, seq: ++seq, count: 1 });
  return jobs[0] as ClaimedJob;
}

async function running(job: Partial<NewJob>): Promise<ClaimedJob> {
  await add(job);
  return claim();
}

const stepOf = ({ id, token }: ClaimedJob, name: string, value = '1'): Write => ({ kind: 'step', jobId: id, token, name, value });
const signalOf = (jobId: string, name: string): Write => ({ kind: 'step', jobId, name, value: '1' });

async function write(from: RedisStore, ...writes: Write[]): Promise<WriteReply[]> {
  return from.write('q', writes);
}

async function stepsOf(jobId: string): Promise<Step[]> {
  return (await store.jobs('q', { stepsOf: jobId })).steps;
}

async function jobOf(jobId: string) {
  return (await store.jobs('q', [jobId])).jobs[0];
}

async function stepKeys(): Promise<string[]> {
  return (await client.keys(`${TAG}:steps:*`)).map((key) => key.slice(`${TAG}:steps:`.length)).sort();
}

/** Each way on which a job leaves a queue. The id of the job is `a`, and it has finished as failed unless the way takes it from elsewhere. */
const WAYS: Record<string, (job: ClaimedJob) => Promise<unknown>> = {
  'its removal by id': async (job) => {
    await store.settle('q', [failed(job)]);
    await store.change('q', ['a'], { kind: 'remove' });
  },
  'its removal by selection': async (job) => {
    await store.settle('q', [failed(job)]);
    await store.change('q', { lists: ['failed'], limit: 10 }, { kind: 'remove' });
  },
  'a completion that keeps no job': (job) => store.settle('q', [completed(job, { count: 0 })]),
  'the trim of a later completion': async (job) => {
    await store.settle('q', [completed(job)]);
    await store.settle('q', [completed(await running({}), { count: 1 })]);
  },
  'the replacement of a delayed job with its deduplication id': async (job) => {
    await store.settle('q', [{ kind: 'delay', jobId: 'a', token: job.token, delayMs: 600_000 }]);
    await add({ id: 'b', delayMs: 600_000, deduplication: { id: 'd', replaceDelayed: true } });
  },
};

describe('the steps of a job on Redis', () => {
  for (const [name, way] of Object.entries(WAYS)) {
    test(`go with ${name}`, async () => {
      const job = await running({ id: 'a', deduplication: { id: 'd' } });
      await write(store, stepOf(job, 'one'));
      expect(await stepKeys()).toEqual(['a']);
      await way(job);
      expect(await jobOf('a')).toBeUndefined();
      expect(await stepKeys()).toEqual([]);
    });
  }

  test('raise the layout to 2, and a queue without steps keeps its own', async () => {
    const job = await running({ id: 'a' });
    await write(store, { kind: 'progress', jobId: 'a', progress: '1' });
    expect(await levelOf(client, TAG)).toBe(1);
    await write(store, stepOf(job, 'one'));
    expect(await levelOf(client, TAG)).toBe(2);
  });

  test('that a process without steps left behind do not count for a new job of the same id', async () => {
    const job = await running({ id: 'a' });
    await write(store, stepOf(job, 'old'));
    await store.settle('q', [completed(job, { count: 0 })]);
    await client.hset(`${TAG}:steps:a`, '=older', '1\0"old"', '#', '1,1000,8');
    const again = await running({ id: 'a' });
    expect(await stepsOf('a')).toEqual([]);
    expect(await write(store, stepOf(again, 'old', '"new"'))).toEqual([{ status: 'done', value: '"new"' }]);
    expect(await stepsOf('a')).toEqual([{ name: 'old', value: '"new"' }]);
  });

  test('leave the owner that lost the job in its record and in later claims, although the count of stalls is 0', async () => {
    await store.openSession(newSession({ id: 'lost' }));
    await add({ id: 'a' });
    await claim('lost');
    await store.closeSessions([{ queue: 'q', id: 'lost' }], 'crashed');
    const job = await claim();
    await write(store, stepOf(job, 'one'));
    const call = { caller: 's', seq: ++seq };
    const { claimed } = await store.settle('q', [released(job)], call, { session: 's', seq: call.seq, count: 1 });
    const again = claimed?.jobs[0] as ClaimedJob;
    expect([again.stalledCounter, again.lostBy]).toEqual([0, job.lostBy]);
    await store.settle('q', [released(again)]);
    expect([job.lostBy === undefined, (await claim()).lostBy, (await jobOf('a'))?.lostBy]).toEqual([
      false,
      job.lostBy,
      job.lostBy,
    ]);
  });

  test('have any names, also those that look like the fields of the store', async () => {
    const job = await running({ id: 'a' });
    const names = ['#', '=', '', 'a\0b', 'a\nb', '\u{1f600}'];
    await write(store, ...names.map((name) => stepOf(job, name, JSON.stringify(name))));
    expect(await stepsOf('a')).toEqual(names.map((name) => ({ name, value: JSON.stringify(name) })));
    await store.settle('q', [failed(job)]);
    expect((await store.change('q', ['a'], { ...retryFrom('failed'), fromStep: 'a\0b' })).changed).toEqual(['a']);
    expect((await stepsOf('a')).map(({ name }) => name)).toEqual(['#', '=', '']);
  });

  describe('cost no script more than 5 ms', () => {
    const value = JSON.stringify('x'.repeat(Math.floor(MAX_STEP_BYTES / MAX_STEPS) - 12));
    const names = Array.from({ length: MAX_STEPS }, (_, n) => `step ${n}`);
    const large = JSON.stringify('x'.repeat(MAX_STEP_BYTES - 10));

    /** A new job, and the writes that fill it with steps. */
    async function unfilled(id: string): Promise<[ClaimedJob, () => Promise<unknown>]> {
      const job = await running({ id, lifo: true });
      return [job, () => write(store, ...names.map((name) => stepOf(job, name, value)))];
    }

    test('when 1,000 steps of a mebibyte are written', async () => {
      const ms = await scriptTime(client, async (round) => (await unfilled(`job ${round}`))[1]);
      expect((await jobOf('job 0'))?.hasSteps).toBe(true);
      expect(ms).toBeLessThan(5);
    });

    test('when they are read, dropped, or removed with their job', async () => {
      const filled = async (id: string): Promise<void> => {
        const [job, fill] = await unfilled(id);
        await fill();
        await store.settle('q', [failed(job)]);
      };
      const from = { ...retryFrom('failed'), fromStep: names[0] as string };
      await filled('read');
      expect(await scriptTime(client, async () => () => stepsOf('read'))).toBeLessThan(5);
      const drops = async (id: string) => (await filled(id), () => store.change('q', [id], from));
      expect(await scriptTime(client, (round) => drops(`dropped ${round}`))).toBeLessThan(5);
      expect(await stepsOf('dropped 0')).toEqual([]);
      await store.change('q', { lists: ['waiting'], limit: 100 }, { kind: 'remove' });
      const removes = async (id: string) => (await filled(id), () => store.change('q', [id], { kind: 'remove' }));
      expect(await scriptTime(client, (round) => removes(`gone ${round}`))).toBeLessThan(5);
    });

    test('when one step of a mebibyte is written, and written again', async () => {
      const writes = async (round: number) => {
        const job = await running({ id: `job ${round}` });
        const writeLarge = () => write(store, stepOf(job, 'large', large));
        return async () => (await writeLarge(), writeLarge());
      };
      // Taking in the mebibyte costs Redis most of this, before the script runs.
      expect(await scriptTime(client, writes)).toBeLessThan(10);
    });
  });
});

describe('two callers at once on Redis', () => {
  const awaiting = ({ id, token }: ClaimedJob, awaits?: string): Outcome => ({
    kind: 'delay',
    jobId: id,
    token,
    delayMs: 600_000,
    step: { name: 'wait', value: '1' },
    ...(awaits !== undefined && { awaits }),
  });

  test('a signal and the delay that awaits it never leave the job delayed', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 40; round += 1) {
      const id = `job ${round}`;
      const job = await running({ id });
      await inOrders(
        round,
        () => store.settle('q', [awaiting(job, 'go')]),
        () => write(other, signalOf(id, 'go')),
      );
      const state = (await jobOf(id))?.state ?? 'missing';
      seen.add(state);
      await store.settle('q', [completed(state === 'active' ? job : await claim())]);
    }
    expect([...seen].sort()).toEqual(['active', 'waiting']);
  });

  test('a delay that does not name its signal sleeps through one that has come (control)', async () => {
    const job = await running({ id: 'a' });
    await write(other, signalOf('a', 'go'));
    expect((await store.settle('q', [awaiting(job)])).results).toEqual(['done']);
    expect((await jobOf('a'))?.state).toBe('delayed');
  });

  test('a step and the sweep of its job take effect in one order or the other', async () => {
    const seen = new Set<string>();
    for (let round = 0; round < 10; round += 1) {
      const id = `job ${round}`;
      await add({ id });
      await claimAndExpire(`first ${round}`);
      await store.sweep('q', 10);
      const job = await claimAndExpire(`second ${round}`);
      const [replies] = await inOrders(
        round,
        () => write(other, stepOf(job, 'one')),
        () => store.sweep('q', 10),
      );
      const { state, stalledCounter } = (await jobOf(id)) ?? {};
      const status = replies[0]?.status ?? '';
      seen.add(status);
      // The step sets the count of stalls to 0, so that the second stall is the first again.
      const expected = status === 'done' ? ['done', 'waiting', 1, 1] : ['lost', 'failed', 2, 0];
      expect([status, state, stalledCounter, (await stepsOf(id)).length]).toEqual(expected);
      await store.change('q', [id], { kind: 'remove' });
    }
    expect([...seen].sort()).toEqual(['done', 'lost']);
  });

  /** Claims a job under a session that has expired when this returns. */
  async function claimAndExpire(session: string): Promise<ClaimedJob> {
    await store.openSession(newSession({ id: session, durationMs: paced(60), maxStalls: 1 }));
    const job = await claim(session);
    await until('the session expires', async () => {
      const [check] = await store.checkSessions([{ queue: 'q', id: session }]);
      return check?.unsuspected === false;
    });
    return job;
  }
});
