// Cancels, signals and steps that meet other calls for the same job. A transaction holds the job while both calls come, so each order is tried.
// Each test has a control: the same calls with a planted defect, which shows the harm.
import type { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, JobRecord } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { functionTexts } from '../../../src/store/postgres/driver/sql.js';
import { until } from '../../support/wait/until.js';
import { blocked, newClient, newDatabase, newJob, newSession, openStore } from './support.js';

interface Scene {
  admin: Client;
  store: PostgresStore;
  job: ClaimedJob;
}

/** A defect: a text of a function, and what takes its place. */
type Defect = [name: string, from: string, to: string];

async function scene({ session = {}, claims = true, defects = [] as Defect[] } = {}): Promise<Scene> {
  const url = await newDatabase();
  const admin = await newClient(url);
  await admin.query('SET search_path TO holdfast, pg_temp; SET check_function_bodies TO off');
  const store = await openStore({ url });
  await store.openSession(newSession({ maxStalls: 5, ...session }));
  await store.add('q', [newJob({ id: 'a' })], { caller: 'p', seq: 1 });
  const [job] = claims ? (await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs : [];
  for (const defect of defects) await plant(admin, defect);
  return { admin, store, job: job as ClaimedJob };
}

async function plant(admin: Client, [name, from, to]: Defect): Promise<void> {
  const text = functionTexts()[name] ?? '';
  expect(text, `the text of ${name}`).toContain(from);
  await admin.query(text.replaceAll(from, to).replace(/^CREATE FUNCTION/m, 'CREATE OR REPLACE FUNCTION'));
}

/** Lets the calls wait for the job in this order, and then go on. */
async function together(admin: Client, calls: (() => Promise<unknown>)[]): Promise<unknown[]> {
  await admin.query(`BEGIN; SELECT FROM holdfast.jobs WHERE id = 'a' FOR UPDATE`);
  const replies: Promise<unknown>[] = [];
  for (const call of calls) {
    replies.push(call());
    await until('the call to wait', async () => (await blocked(admin)) === replies.length);
  }
  await admin.query('COMMIT');
  return Promise.all(replies);
}

async function jobOf(store: PostgresStore): Promise<JobRecord> {
  return (await store.jobs('q', ['a'])).jobs[0] as JobRecord;
}

const cancel =
  ({ store }: Scene) =>
  () =>
    store.change('q', ['a'], { kind: 'cancel', reason: 'not needed' });
const signal =
  ({ store }: Scene) =>
  () =>
    store.write('q', [{ kind: 'step', jobId: 'a', name: 'go', value: '1' }]);
const settle =
  ({ store, job: { id: jobId, token } }: Scene, outcome: object) =>
  () =>
    store.settle('q', [{ jobId, token, ...outcome } as Outcome], { caller: 's', seq: 2 });

const BACK: [string, object][] = [
  ['a release', { kind: 'release' }],
  ['a retry', { kind: 'retry', reason: 'r', stacktrace: '[]', delayMs: 0, lifo: false }],
  ['a delay', { kind: 'delay', delayMs: 60_000 }],
  ['a sleep', { kind: 'delay', delayMs: 60_000, step: { name: 'nap', value: '1' } }],
];

describe('a cancel that comes together with', () => {
  test.each(BACK)('%s fails the job in either order', async (_name, outcome) => {
    for (const isFirst of [true, false]) {
      const here = await scene();
      const calls = [cancel(here), settle(here, outcome)];
      await together(here.admin, isFirst ? calls : calls.toReversed());
      expect(await jobOf(here.store), isFirst ? 'cancel first' : 'settle first').toMatchObject({
        state: 'failed',
        failedReason: 'not needed',
      });
      expect((await here.store.status('q')).counts).toMatchObject({ waiting: 0, delayed: 0, active: 0, failed: 1 });
    }
  });

  test('(N) a release lets a cancelled job wait again if the settle ignores the cancel', async () => {
    const here = await scene({
      defects: [['carry_out', 'j.marks & (4 | 256) = 0', 'j.marks & 4 = 0']],
    });
    await together(here.admin, [cancel(here), settle(here, { kind: 'release' })]);
    expect((await jobOf(here.store)).state).toBe('waiting');
  });

  test('a completion leaves the job completed in either order', async () => {
    for (const isFirst of [true, false]) {
      const here = await scene();
      const calls = [cancel(here), settle(here, { kind: 'completed', value: '1', keep: {} })];
      await together(here.admin, isFirst ? calls : calls.toReversed());
      const job = await jobOf(here.store);
      expect([job.state, job.cancelled]).toEqual(['completed', undefined]);
    }
  });

  test('a claim by id either fails the job before it runs, or leaves a notice for the session', async () => {
    for (const isFirst of [true, false]) {
      const here = await scene({ claims: false });
      const claim = () => here.store.claim('q', { session: 's', seq: 1, count: 1, jobIds: ['a'] });
      await together(here.admin, isFirst ? [cancel(here), claim] : [claim, cancel(here)]);
      const { state, cancelled } = await jobOf(here.store);
      const [check] = await here.store.checkSessions([{ queue: 'q', id: 's' }]);
      expect([state, cancelled, check?.noticed]).toEqual(isFirst ? ['failed', undefined, false] : ['active', 'not needed', true]);
    }
  });

  test('(N) a claim by id runs a job without a notice if the cancel looks at the job before it has the lock', async () => {
    const here = await scene({ claims: false, defects: [['cancel_jobs', ' FOR UPDATE', '']] });
    const claim = () => here.store.claim('q', { session: 's', seq: 1, count: 1, jobIds: ['a'] });
    await together(here.admin, [claim, cancel(here)]);
    const { state } = await jobOf(here.store);
    const [check] = await here.store.checkSessions([{ queue: 'q', id: 's' }]);
    expect([state, check?.noticed]).not.toEqual(['active', true]);
  });
});

describe('a signal that comes together with the delay that awaits it', () => {
  const awaiting = { kind: 'delay', delayMs: 60_000, step: { name: 'wait go', value: '1' }, awaits: 'go' };

  test('never leaves the job delayed', async () => {
    const here = await scene();
    const [, settled] = await together(here.admin, [signal(here), settle(here, awaiting)]);
    expect([settled, (await jobOf(here.store)).state]).toMatchObject([{ results: ['ready'] }, 'active']);
    const there = await scene();
    await together(there.admin, [settle(there, awaiting), signal(there)]);
    expect((await jobOf(there.store)).state).toBe('waiting');
  });

  test('(N) leaves the job delayed if the delay does not look for the signal', async () => {
    const here = await scene({ defects: [['record_sleep', "RETURN 'r';", 'NULL;']] });
    await together(here.admin, [signal(here), settle(here, awaiting)]);
    expect((await jobOf(here.store)).state).toBe('delayed');
  });
});

describe('a step that is recorded while a sweep takes the job from its dead owner', () => {
  const step = ({ store, job: { token } }: Scene) => {
    return () => store.write('q', [{ kind: 'step', jobId: 'a', token, name: 'pay', value: '1' }]);
  };
  const die = ({ admin }: Scene) => admin.query('UPDATE holdfast.sessions SET expires_at = 0, look_at = 0');

  test('is recorded before the sweep, or not at all', async () => {
    const here = await scene();
    await die(here);
    const [written] = await together(here.admin, [step(here)]);
    expect(written).toEqual([{ status: 'done', value: '1' }]);
    expect((await here.store.sweep('q', 10)).stalled).toEqual(['a']);
    expect(await jobOf(here.store)).toMatchObject({ state: 'waiting', stalledCounter: 1, hasSteps: true });
    expect(await step(here)()).toEqual([{ status: 'lost' }]);
    expect((await here.store.jobs('q', { stepsOf: 'a' })).steps).toEqual([{ name: 'pay', value: '1' }]);
  });

  test('waits for a hand-back that has begun, and is then lost', async () => {
    const here = await scene();
    const revoke = () => here.store.change('q', ['a'], { kind: 'revoke', reason: 'r' });
    const [, written] = await together(here.admin, [revoke, step(here)]);
    expect(written).toEqual([{ status: 'lost' }]);
    expect((await here.store.jobs('q', { stepsOf: 'a' })).steps).toEqual([]);
  });

  test('(N) is recorded for a dead owner if the write does not check the token under the lock', async () => {
    const here = await scene({ defects: [['write_jobs', '_one.owner IS NOT NULL\n        AND NOT', 'false AND NOT']] });
    const revoke = () => here.store.change('q', ['a'], { kind: 'revoke', reason: 'r' });
    await together(here.admin, [revoke, step(here)]);
    expect((await here.store.jobs('q', { stepsOf: 'a' })).steps).toHaveLength(1);
  });
});
