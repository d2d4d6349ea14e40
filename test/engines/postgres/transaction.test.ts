// Adding jobs inside a transaction of the user's, through the packages that people use: what is committed is added, what is rolled back
// never was, and no call waits for a transaction that stays open.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../../src/events/queue-events.js';
import { Queue } from '../../../src/queue/queue.js';
import { Worker } from '../../../src/worker/worker.js';
import {
  blocked,
  completed,
  newClient,
  newDatabase,
  newEmptyDatabase,
  newJob,
  newJobs,
  newSession,
  newStore,
  openStore,
} from './support.js';
import { drizzleWay, knexWay, kyselyWay, newPool, pgWay, prismaWay, queryWay, type Way } from './transaction-ways.js';
import { until } from '../../support/wait/until.js';

const WAYS: [name: string, way: (url: string) => Way][] = [
  ['a client of pg', pgWay],
  ['query(text, values)', queryWay],
  ['Knex', knexWay],
  ['Kysely', kyselyWay],
  ['Drizzle', drizzleWay],
  ['Prisma', prismaWay],
];

class Change extends Error {}

function newQueue(connection: string): Queue {
  const queue = new Queue('q', { connection });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  return queue;
}

async function scene(way: (url: string) => Way): Promise<{ url: string; queue: Queue; way: Way }> {
  const url = await newDatabase();
  await (await newClient(url)).query('CREATE TABLE orders (id int)');
  return { url, queue: newQueue(url), way: way(url) };
}

describe.each(WAYS)('adding in a transaction with %s', (_name, make) => {
  test('adds the job with the commit of other writes', async () => {
    const { queue, way } = await scene(make);
    const data = { text: 'ä \u2028 \u0000 ? $1 :name', list: [1, null], deep: { a: "it's" } };
    let id = '';
    await way.transact(async (transaction) => {
      await way.run(transaction, 'INSERT INTO orders VALUES (1)');
      const job = await queue.add('mail', data, { transaction, priority: 3, attempts: 2 });
      ({ id } = job);
      expect(job.duplicate).toBe(false);
      expect(await queue.getJob(id)).toBeUndefined();
    });
    const job = await queue.getJob(id);
    expect(job).toMatchObject({ name: 'mail', data, priority: 3 });
    expect(job?.opts).toEqual({ priority: 3, attempts: 2 });
  });

  test('adds nothing after a rollback', async () => {
    const { url, queue, way } = await scene(make);
    const failure = way.transact(async (transaction) => {
      await queue.add('mail', {}, { transaction });
      await queue.add('mail', {}, { transaction, jobId: 'order-1', delay: 1_000 });
      throw new Change('no');
    });
    await expect(failure).rejects.toThrow(Change);
    expect(await queue.getJobCounts()).toMatchObject({ waiting: 0, delayed: 0 });
    expect((await queue.add('mail', {}, { jobId: 'order-1' })).duplicate).toBe(false);
    const store = await openStore({ url });
    expect((await store.events('q', 0, 10)).events.map(({ name: event, jobId }) => [event, jobId])).toEqual([
      ['added', 'order-1'],
      ['waiting', 'order-1'],
    ]);
  });

  test('adds no job of a savepoint that was rolled back, but all others', async () => {
    const { queue, way } = await scene(make);
    await way.transact(async (outer) => {
      await queue.add('before', {}, { transaction: outer });
      const failure = way.nested(outer, async (transaction) => {
        await queue.add('inside', {}, { transaction });
        throw new Change('no');
      });
      await expect(failure).rejects.toThrow(Change);
      await queue.add('after', {}, { transaction: outer });
    });
    expect((await queue.getWaiting()).map((job) => job.name)).toEqual(['before', 'after']);
  });

  test('adds a bulk as a whole, also in several statements', async () => {
    const { queue, way } = await scene(make);
    const jobs = Array.from({ length: 1_200 }, (_, n) => ({
      name: 'mail',
      data: n,
      opts: n % 2 === 0 ? {} : { jobId: `j${n}` },
    }));
    await expect(
      way.transact(async (transaction) => {
        expect(await queue.addBulk(jobs, { transaction })).toHaveLength(1_200);
        throw new Change('no');
      }),
    ).rejects.toThrow(Change);
    expect(await queue.count()).toBe(0);
    await way.transact((transaction) => queue.addBulk(jobs, { transaction }));
    expect(await queue.count()).toBe(1_200);
    expect((await queue.getWaiting(0, 9)).map(({ data }) => data as number)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test('refuses an invalid job before anything is sent, and the transaction goes on', async () => {
    const { queue, way } = await scene(make);
    await way.transact(async (transaction) => {
      await expect(queue.add('', {}, { transaction })).rejects.toMatchObject({ code: 'INVALID_JOB_NAME' });
      await expect(queue.add('a', { f: () => 1 }, { transaction })).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' });
      await queue.add('good', {}, { transaction });
    });
    expect(await queue.count()).toBe(1);
  });

  test('refuses a transaction of another database', async () => {
    const { url, queue } = await scene(make);
    const elsewhere = make(await newEmptyDatabase());
    const failure = elsewhere.transact((transaction) => queue.add('mail', { secret: 'do-not-show' }, { transaction }));
    const error = await failure.then(
      () => expect.fail('it was added'),
      (thrown: Error) => thrown,
    );
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'transaction', retryable: false });
    expect(error.message).toContain('does not see the schema "holdfast"');
    expect(error.message).toContain(new URL(url).pathname);
    expect(error.message).not.toContain('do-not-show');
    expect(await queue.count()).toBe(0);
  });
});

describe('the option transaction', () => {
  // An object with nothing but query(text, values) does not show whether a transaction is open.
  test.each(WAYS.filter(([, make]) => make !== queryWay))('refuses a handle outside of one: %s', async (_name, make) => {
    const { queue, way } = await scene(make);
    await expect(queue.add('mail', {}, { transaction: way.outside })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: 'transaction',
    });
    expect(await queue.count()).toBe(0);
  });

  test.each([{}, [], { query: 7 }, Object.assign(() => undefined, { raw: () => undefined })])(
    'is not %o, and nothing is written',
    async (transaction) => {
      const queue = newQueue(await newDatabase());
      await expect(queue.add('mail', {}, { transaction })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
      expect(await queue.count()).toBe(0);
    },
  );

  test.each([null, 7, 'BEGIN', true])('refuses %o', async (transaction) => {
    const queue = newQueue('memory:');
    const adding = queue.add('mail', {}, { transaction: transaction as unknown as object });
    await expect(adding).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'transaction' });
  });

  test('refuses a client without an open transaction', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    await client.query('SELECT 1');
    const error = await queue.add('mail', {}, { transaction: client }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'INVALID_OPTION' });
    expect((error as Error).message).toContain("client.query('BEGIN')");
  });

  test('is an option of add, not of a queue or of a job in a bulk', async () => {
    const transaction = { query: () => undefined };
    expect(() => new Queue('q', { connection: 'memory:', defaultJobOptions: { transaction } as object })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'defaultJobOptions.transaction' }),
    );
    const queue = newQueue('memory:');
    const adding = queue.addBulk([{ name: 'a', data: 1, opts: { transaction } as object }]);
    await expect(adding).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'transaction' });
  });

  test.each(['memory:', 'sync:'])('is refused on %s, with what to do, and adds nothing', async (connection) => {
    const queue = newQueue(connection);
    for (const adding of [
      queue.add('mail', {}, { transaction: {} }),
      queue.addBulk([{ name: 'a', data: 1 }], { transaction: {} }),
    ]) {
      await expect(adding).rejects.toMatchObject({ code: 'OPTION_UNSUPPORTED', option: 'transaction' });
    }
    expect(await queue.count()).toBe(0);
  });

  test('reports a transaction that was aborted before or is read only', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    await client.query('BEGIN');
    await client.query('SELECT nonsense').catch(() => undefined);
    await expect(queue.add('mail', {}, { transaction: client })).rejects.toThrow(/aborted by a statement that failed before/);
    await client.query('ROLLBACK');
    await client.query('BEGIN READ ONLY');
    await expect(queue.add('mail', {}, { transaction: client })).rejects.toMatchObject({ code: 'STORE_READONLY' });
    await client.query('ROLLBACK');
  });

  test('rejects when its connection was lost, and nothing was added', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newPool(url).connect();
    client.on('error', () => undefined);
    onTestFinished(() => client.release(true));
    await client.query('BEGIN');
    await queue.add('mail', {}, { transaction: client });
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    await (await newClient(url)).query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
    await expect(queue.add('mail', {}, { transaction: client })).rejects.toMatchObject({ name: 'HoldfastError' });
    expect(await queue.count()).toBe(0);
  });

  test('rejects after addTimeoutMs without a reply, and the queue can be closed', async () => {
    const url = await newDatabase();
    const queue = new Queue('q', { connection: url, addTimeoutMs: 200 });
    // Opening the store counts too, and may take longer.
    await queue.waitUntilReady();
    const stuck = { query: () => new Promise<never>(() => undefined) };
    await expect(queue.add('mail', {}, { transaction: stuck })).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await queue.close();
  });

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])('may be %s', async (level) => {
    const url = await newDatabase();
    const queue = newQueue(url);
    await queue.add('first', {});
    const client = await newClient(url);
    await client.query(`BEGIN ISOLATION LEVEL ${level}`);
    await client.query('SELECT 1');
    await queue.add('second', {});
    await queue.add('third', {}, { transaction: client });
    await client.query('COMMIT');
    expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['first', 'second', 'third']);
  });

  test('asks to repeat a transaction whose snapshot is older than its queue', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    const attempt = async (): Promise<void> => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
      await client.query('SELECT 1');
      await queue.add('mail', {}, { transaction: client });
    };
    await queue.waitUntilReady();
    await expect(attempt()).rejects.toMatchObject({ code: 'STORE_BUSY', retryable: true });
    await client.query('ROLLBACK');
    await attempt();
    await client.query('COMMIT');
    expect(await queue.count()).toBe(1);
  });

  test('emits no `waiting` on the queue, because it may be rolled back', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const told: string[] = [];
    queue.on('waiting', ({ name }) => told.push(name));
    const client = await newClient(url);
    await client.query('BEGIN');
    await queue.add('inside', {}, { transaction: client });
    await queue.add('outside', {});
    await client.query('ROLLBACK');
    expect(told).toEqual(['outside']);
  });

  test('leaves no trace of a producer in the store', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    await client.query('BEGIN');
    await queue.add('mail', {}, { transaction: client });
    await client.query('COMMIT');
    expect((await client.query('SELECT * FROM holdfast.callers')).rows).toEqual([]);
  });
});

describe('the same jobId in PostgreSQL transactions', () => {
  test('waits for the first open transaction, and is a duplicate if that commits', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const [one, two] = [await newClient(url), await newClient(url)];
    for (const [end, duplicate] of [
      ['ROLLBACK', false],
      ['COMMIT', true],
    ] as const) {
      const jobId = `order-${end}`;
      await one.query('BEGIN');
      await two.query('BEGIN');
      await queue.add('mail', 1, { jobId, transaction: one });
      const second = queue.add('mail', 2, { jobId, transaction: two });
      await waitsForLock(url);
      await one.query(end);
      expect((await second).duplicate).toBe(duplicate);
      await two.query('COMMIT');
      expect((await queue.getJob(jobId))?.data).toBe(duplicate ? 1 : 2);
    }
  });

  test('is a duplicate the second time in one transaction', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    await client.query('BEGIN');
    expect((await queue.add('mail', 1, { jobId: 'x', transaction: client })).duplicate).toBe(false);
    expect((await queue.add('mail', 2, { jobId: 'x', transaction: client })).duplicate).toBe(true);
    await client.query('COMMIT');
    expect((await queue.getJob('x'))?.data).toBe(1);
  });

  test('does not delay other jobs that are added meanwhile outside', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const client = await newClient(url);
    await client.query('BEGIN');
    await queue.add('mail', 1, { jobId: 'x', transaction: client });
    const same = queue.add('mail', 2, { jobId: 'x' });
    const others = Array.from({ length: 20 }, (_, n) => queue.add('mail', n, n % 2 === 0 ? {} : { jobId: `other-${n}` }));
    expect((await Promise.all(others)).filter(({ duplicate }) => duplicate)).toEqual([]);
    await queue.add('later', {});
    expect(await queue.count()).toBe(21);
    await client.query('COMMIT');
    expect((await same).duplicate).toBe(true);
    expect(await queue.count()).toBe(22);
  });

  test('makes one of two transactions repeat when they add two ids in opposite order', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const clients = [await newClient(url), await newClient(url)] as const;
    const add = (client: object, jobId: string) => queue.add('mail', {}, { jobId, transaction: client });
    for (const client of clients) await client.query('BEGIN');
    await add(clients[0], 'a');
    await add(clients[1], 'b');
    const results = await Promise.allSettled(
      [add(clients[0], 'b'), add(clients[1], 'a')].map(async (adding, side) => {
        try {
          await adding;
          await clients[side]?.query('COMMIT');
        } catch (error) {
          await clients[side]?.query('ROLLBACK');
          throw error;
        }
      }),
    );
    const failed = results.filter((result) => result.status === 'rejected');
    expect(failed).toHaveLength(1);
    expect(failed[0]?.reason).toMatchObject({ code: 'STORE_BUSY', retryable: true });
    expect(await queue.count()).toBe(2);
  });
});

describe('an open transaction with an added job', () => {
  test('does not delay adding, claiming, settling, pausing, events, or the first use of its queue', async () => {
    const url = await newDatabase();
    const store = await openStore({ url, queryTimeoutMs: 3_000 });
    const client = await newClient(url);
    await client.query('BEGIN');
    await store.add('q', newJobs(2), { caller: 't', seq: 1 }, client);
    await store.openSession(newSession());
    expect(await store.add('q', newJobs(2), { caller: 'p', seq: 1 })).toHaveLength(2);
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 10 });
    expect(jobs).toHaveLength(2);
    await store.settle('q', jobs.map(completed), { caller: 's', seq: 2 });
    await store.configure('q', { paused: true });
    await store.configure('q', { paused: false });
    await store.sweep('q', 10);
    const { last, events } = await store.events('q', 0, 100);
    expect(events.at(-1)?.name).toBe('resumed');
    // A reader that has read to the end sees what commits later, with ids that go on.
    await client.query('COMMIT');
    const later = await store.events('q', last, 100);
    expect(later.events.map(({ id, name }) => [id, name])).toEqual([
      [last + 1, 'added'],
      [last + 2, 'added'],
      [last + 3, 'waiting'],
      [last + 4, 'waiting'],
    ]);
    expect((await store.claim('q', { session: 's', seq: 3, count: 10 })).jobs).toHaveLength(2);
  });

  test('is seen by a listener that has read later events', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const events = new QueueEvents('q', { connection: url });
    onTestFinished(() => events.close());
    await events.waitUntilReady();
    const added: string[] = [];
    events.on('added', ({ jobId }) => added.push(jobId));
    const client = await newClient(url);
    await client.query('BEGIN');
    await queue.add('early', {}, { jobId: 'early', transaction: client });
    await queue.add('late', {}, { jobId: 'late' });
    await until('the first event', () => added.length > 0);
    expect(added).toEqual(['late']);
    await client.query('COMMIT');
    await until('the second event', () => added.length > 1);
    expect(added).toEqual(['late', 'early']);
  });
});

describe('the commit of a transaction with an added job', () => {
  test('wakes waiting workers of this and other processes', async () => {
    const url = await newDatabase();
    const queue = newQueue(url);
    const worker = new Worker('q', () => Promise.resolve(1), { connection: url, useDedicatedLockThread: false, drainDelay: 60 });
    onTestFinished(() => worker.close());
    await worker.waitUntilReady();
    const other = await openStore({ url });
    const client = await newClient(url);
    await client.query('BEGIN');
    const { id } = await queue.add('mail', {}, { transaction: client });
    other.watch('another', () => undefined);
    // A poll sees the number of this change twice at most, and nothing since: only the commit itself can wake them.
    await sleep(2_500);
    const heard = new Promise<void>((resolve) => other.watch('q', resolve));
    const ran = new Promise<string>((resolve) => worker.on('completed', (job) => resolve(job.id)));
    await client.query('COMMIT');
    expect(await ran).toBe(id);
    await heard;
  });

  test('is found by polling with notify: false', async () => {
    const url = await newDatabase();
    const store = newStore({ url, notify: false });
    await store.open();
    const client = await newClient(url);
    await client.query('BEGIN');
    await store.add('q', [newJob()], { caller: 't', seq: 1 }, client);
    await client.query('COMMIT');
    expect((await store.status('q')).counts.waiting).toBe(1);
  });
});

/** A transaction waits for a lock. */
async function waitsForLock(url: string): Promise<void> {
  const client = await newClient(url);
  await until('a transaction waits', async () => (await blocked(client)) === 1);
}
