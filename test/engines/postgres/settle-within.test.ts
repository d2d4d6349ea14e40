// Completing jobs and recording steps inside a transaction of the user, through the packages that people use: the job ends with the commit, or
// not at all. A run that has lost its lock takes nothing with it.
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Job } from '../../../src/handle/job.js';
import { FlowProducer } from '../../../src/queue/flow-producer.js';
import { Queue } from '../../../src/queue/queue.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { Worker } from '../../../src/worker/worker.js';
import { newGate, openGates } from '../../support/wait/gate.js';
import { paced } from '../../support/wait/pace.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { until } from '../../support/wait/until.js';
import { blocked, completed, newClient, newDatabase, newJob, newJobs, newSession, openStore } from './support.js';
import { drizzleWay, knexWay, kyselyWay, pgWay, prismaWay, queryWay, type Way } from './transaction-ways.js';

const WAYS: [name: string, way: (url: string) => Way][] = [
  ['a client of pg', pgWay],
  ['query(text, values)', queryWay],
  ['Knex', knexWay],
  ['Kysely', kyselyWay],
  ['Drizzle', drizzleWay],
  ['Prisma', prismaWay],
];

const INSERT = 'INSERT INTO orders VALUES (1)';

class Change extends Error {}

async function scene(make: (url: string) => Way = pgWay) {
  const url = await newDatabase();
  const admin = await newClient(url);
  await admin.query('CREATE TABLE orders (id int)');
  const queue = new Queue('q', { connection: url });
  onTestFinished(() => queue.close());
  const errors: Error[] = [];
  const work = (handler: (job: Job) => Promise<unknown>, options: object = {}): Worker => {
    const worker = new Worker('q', handler, { connection: url, drainDelay: 1, ...options });
    onTestFinished(() => {
      openGates();
      return worker.close();
    });
    worker.on('error', (error) => errors.push(error));
    return worker;
  };
  const orders = async (): Promise<number> => (await admin.query('SELECT FROM orders')).rowCount ?? 0;
  const ended = (job: Job): Promise<Job> =>
    until(`job ${job.id} to end`, async () => {
      const now = await queue.getJob(job.id);
      return now?.finishedOn === undefined ? undefined : now;
    });
  return { url, admin, queue, work, orders, ended, errors, way: make(url) };
}

/** A store with one claimed job, and an open transaction. */
async function claimed(job: Parameters<typeof newJob>[0] = {}) {
  const { url, admin, orders } = await scene();
  const store = await openStore({ url });
  await store.openSession(newSession({ slots: 10 }));
  await store.add('q', [newJob({ id: 'a', ...job })], { caller: 'p', seq: 1 });
  const [got] = (await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs;
  if (got === undefined) throw new Error('no job was claimed');
  const client = await newClient(url);
  await client.query('BEGIN');
  return { url, admin, orders, store, job: got, client };
}

async function stateOf(store: PostgresStore, id = 'a'): Promise<string | undefined> {
  return (await store.jobs('q', [id])).jobs[0]?.state;
}

describe.each(WAYS)('completing a job in a transaction with %s', (_name, make) => {
  test('S8-8 completes the job with the commit of other writes', async () => {
    const { queue, work, orders, ended, errors, way } = await scene(make);
    const value = { text: 'ä \u2028 ? $1 :name', list: [1, null] };
    const seen: unknown[] = [];
    const worker = work((job) =>
      way.transact(async (transaction) => {
        await way.run(transaction, INSERT);
        await job.complete(value, { transaction });
        seen.push([await job.getState(), await orders()]);
      }),
    );
    const events: unknown[] = [];
    worker.on('completed', (_job, result) => events.push(result));
    const job = await queue.add('pay', {});
    expect((await ended(job)).returnvalue).toEqual(value);
    await until('the event of the worker', () => events.length > 0);
    expect(seen).toEqual([['active', 0]]);
    expect([events, await orders(), errors]).toEqual([[value], 1, []]);
  });

  test('S8-8 fails a run that ends normally although its transaction has rolled back', async () => {
    const { queue, work, orders, ended, way } = await scene(make);
    work(async (job) => {
      const transacting = way.transact(async (transaction) => {
        await way.run(transaction, INSERT);
        await job.complete('paid', { transaction });
        throw new Change('no');
      });
      await transacting.catch(() => undefined);
    });
    const { failedReason, returnvalue } = await ended(await queue.add('pay', {}));
    expect([failedReason, returnvalue]).toEqual([expect.stringContaining('has not committed'), null]);
    expect(await orders()).toBe(0);
  });

  test('S8-8 completes nothing after a rollback, and the job is retried', async () => {
    const { queue, work, orders, ended, way } = await scene(make);
    let runs = 0;
    work((job) =>
      way.transact(async (transaction) => {
        runs += 1;
        await way.run(transaction, INSERT);
        await job.complete(runs, { transaction });
        if (runs === 1) throw new Change('no');
      }),
    );
    const { returnvalue, attemptsMade } = await ended(await queue.add('pay', {}, { attempts: 2 }));
    expect([runs, returnvalue, attemptsMade, await orders()]).toEqual([2, 2, 2, 1]);
  });

  test('S8-8 rolls back what a run without its lock has written', async () => {
    const { url, queue, work, orders, ended, way } = await scene(make);
    const store = await openStore({ url });
    const [began, goOn] = [newGate(), newGate()];
    let runs = 0;
    const refusals: unknown[] = [];
    work(async (job) => {
      runs += 1;
      if (runs > 1) return 'second';
      return way
        .transact(async (transaction) => {
          await way.run(transaction, INSERT);
          began.open();
          await goOn.opened;
          await job.complete('first', { transaction });
        })
        .catch((error: unknown) => refusals.push(error));
    });
    const job = await queue.add('pay', {});
    await began.opened;
    await store.change('q', [job.id], { kind: 'revoke', reason: 'taken away' });
    work(() => Promise.resolve('second'));
    expect((await ended(job)).returnvalue).toBe('second');
    goOn.open();
    await until('the refusal', () => refusals.length > 0);
    expect(refusals).toMatchObject([{ code: 'LOCK_LOST' }]);
    expect(await orders()).toBe(0);
  });

  test('S8-8 records a step with the commit of other writes, once', async () => {
    const { queue, work, orders, ended, way } = await scene(make);
    let runs = 0;
    work(async (job) => {
      const paid = await job.step('pay', async ({ commit }) => {
        runs += 1;
        await way.transact(async (transaction) => {
          await way.run(transaction, INSERT);
          await commit({ run: runs }, { transaction });
          if (runs === 1) throw new Change('no');
        });
      });
      if (runs === 2 && job.attemptsMade === 1) throw new Change('after the step');
      return paid;
    });
    const { returnvalue } = await ended(await queue.add('pay', {}, { attempts: 3 }));
    expect([runs, returnvalue, await orders()]).toEqual([2, { run: 2 }, 1]);
  });
});

describe('a job that is completed in a transaction', () => {
  test('(N) leaves a business row without its completion if the transaction does not hold both', async () => {
    const { queue, work, orders, ended, way } = await scene();
    let runs = 0;
    work(async () => {
      runs += 1;
      await way.transact((transaction) => way.run(transaction, INSERT));
      if (runs === 1) throw new Change('between the two');
    });
    await ended(await queue.add('pay', {}, { attempts: 2 }));
    expect(await orders()).toBe(2);
  });

  test('is completed for its worker too if the handler throws after the commit', async () => {
    const { queue, work, ended, orders, errors, way } = await scene();
    const events: string[] = [];
    const worker = work(async (job) => {
      await way.transact(async (transaction) => {
        await way.run(transaction, INSERT);
        await job.complete('paid', { transaction });
      });
      throw new Change('too late');
    });
    worker.on('completed', () => events.push('completed'));
    worker.on('failed', () => events.push('failed'));
    const job = await ended(await queue.add('pay', {}, { attempts: 3 }));
    await until('the event of the worker', () => events.length > 0);
    expect([job.returnvalue, await job.getState(), events, await orders()]).toEqual(['paid', 'completed', ['completed'], 1]);
    expect(errors.map(({ message }) => message)).toEqual(['too late']);
  });

  test('is completed for its worker too if removeOnComplete removes it with the commit', async () => {
    const { queue, work, errors, way } = await scene();
    const events: unknown[] = [];
    const worker = work((job) => way.transact((transaction) => job.complete('paid', { transaction })));
    worker.on('completed', (_job, value) => events.push(value));
    const job = await queue.add('pay', {}, { removeOnComplete: true });
    await until('the event of the worker', () => events.length > 0);
    expect([events, await queue.getJob(job.id), errors]).toEqual([['paid'], undefined, []]);
  });

  test('reaches its parent within about a second, and frees its key and its place in a group', async () => {
    const { url, queue, work, way } = await scene();
    const flow = new FlowProducer({ connection: url });
    onTestFinished(() => flow.close());
    const store = await openStore({ url });
    await store.configure('q', { groups: { maxActive: 1 } });
    const worker = work((job) => way.transact((transaction) => job.complete(1, { transaction })));
    const { job: parent } = await flow.add({ name: 'parent', queueName: 'p', children: [{ name: 'child', queueName: 'q' }] });
    const others = [
      await queue.add('a', {}, { group: { id: 'g' } }),
      await queue.add('b', {}, { group: { id: 'g' } }),
      await queue.add('c', {}, { lockKey: 'k' }),
      await queue.add('d', {}, { lockKey: 'k' }),
    ];
    await until('the parent to be released', async () => (await parent.getState()) === 'waiting');
    for (const job of others) await until(`job ${job.name}`, async () => (await job.getState()) === 'completed');
    await worker.close();
  });

  test('S8-8 counts in events, counts and metrics from the commit on, once', async () => {
    const { store, job, client } = await claimed();
    await store.configure('q', { metrics: { points: 10 } });
    const { last } = await store.events('q', undefined, 1);
    const reply = await store.settle('q', [completed(job)], undefined, undefined, client);
    expect(reply).toEqual({ results: ['done'] });
    expect((await store.status('q')).counts).toMatchObject({ active: 1, completed: 0 });
    await client.query('COMMIT');
    expect((await store.settle('q', [completed(job)], { caller: 's', seq: 2 })).results).toEqual(['done']);
    const { counts, metrics } = await store.status('q', { metrics: { kind: 'completed', start: 0, end: 10 } });
    expect([counts.active, counts.completed, metrics?.total]).toMatchObject([0, 1, expect.anything()]);
    const names = (await store.events('q', last, 10)).events.map(({ name }) => name);
    expect(names).toEqual(['completed', 'drained']);
  });

  test('S8-8 a stale token changes nothing, and the transaction can go on', async () => {
    const { store, job, client, orders } = await claimed();
    await store.settle('q', [{ kind: 'release', jobId: job.id, token: job.token }]);
    await client.query(INSERT);
    expect((await store.settle('q', [completed(job)], undefined, undefined, client)).results).toEqual(['lost']);
    const step = { kind: 'step' as const, jobId: 'a', token: job.token, name: 'n', value: '1' };
    expect(await store.write('q', [step], client)).toEqual([{ status: 'lost' }]);
    await client.query('COMMIT');
    expect([await stateOf(store), await orders()]).toEqual(['waiting', 1]);
  });

  test('stays locked against other owners while its transaction is open, also after its session has expired', async () => {
    const { store, job, client, admin } = await claimed();
    await store.settle('q', [completed(job)], undefined, undefined, client);
    await admin.query('UPDATE holdfast.sessions SET expires_at = 0, look_at = 0');
    const { stalled, failed } = await store.sweep('q', 10);
    expect([stalled, failed]).toEqual([[], []]);
    await client.query('COMMIT');
    await store.sweep('q', 10);
    expect(await stateOf(store)).toBe('completed');
  });

  test('goes back after a rollback if its session has expired meanwhile', async () => {
    const { store, job, client, admin } = await claimed();
    await store.settle('q', [completed(job)], undefined, undefined, client);
    await admin.query('UPDATE holdfast.sessions SET expires_at = 0, look_at = 0');
    await store.sweep('q', 10);
    await client.query('ROLLBACK');
    await until('the job to go back', async () => {
      await store.sweep('q', 10);
      return (await stateOf(store)) === 'waiting';
    });
    expect((await store.settle('q', [completed(job)])).results).toEqual(['lost']);
  });
});

describe('an open transaction in which a job was completed', () => {
  test.each([
    ['a plain job', {}],
    ['a job of a group', { group: 'g' }],
    ['a job with a lock key', { lockKey: 'k' }],
    ['a child', { parents: [{ queue: 'p', id: 'parent' }] }],
  ])('with %s delays no call for other jobs', async (_name, kind) => {
    const { url, admin } = await scene();
    const store = await openStore({ url });
    await store.openSession(newSession({ slots: 10 }));
    await store.add('p', [newJob({ id: 'parent', waitsForChildren: true })], { caller: 'p', seq: 1 });
    await store.add('q', [newJob({ id: 'a', ...kind })], { caller: 'p', seq: 2 });
    const { jobs: first } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    const client = await newClient(url);
    await client.query('BEGIN');
    await store.settle('q', first.map(completed), undefined, undefined, client);
    const took = stopwatch();
    await store.add('q', [...newJobs(2), newJob({ id: 'b', ...kind })], { caller: 'p', seq: 3 });
    const { jobs } = await store.claim('q', { session: 's', seq: 2, count: 10 });
    // A job with the same lock key waits for the end of the first one.
    expect(jobs.length).toBe('lockKey' in kind ? 2 : 3);
    await store.settle('q', jobs.map(completed), { caller: 's', seq: 3 }, { session: 's', seq: 3, count: 10 });
    await store.configure('q', { paused: true, blockedMs: 0 });
    await store.sweep('q', 10);
    await store.relay('q', 10);
    await store.events('q', 0, 100);
    await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
    expect(took()).toBeLessThan(paced(2000));
    expect(await blocked(admin)).toBe(0);
    // A call for the job itself waits.
    const cancelled = store.change('q', ['a'], { kind: 'cancel', reason: 'r' });
    await until('the cancel to wait', async () => (await blocked(admin)) === 1);
    await client.query('COMMIT');
    expect((await cancelled).others).toEqual([{ jobId: 'a', status: 'state' }]);
  });
});
