// Outcomes that a store refuses for ever, such as a result above a limit of the server: the job fails with that reason, the other
// outcomes of the same call are innocent, and the worker goes on.
import { createRequire } from 'node:module';
import type BetterSqlite3 from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import type { Outcome } from '../../src/job/outcome.js';
import { Queue } from '../../src/queue/queue.js';
import type { Store } from '../../src/store/contract/index.js';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { RedisStore } from '../../src/store/redis/index.js';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { Worker } from '../../src/worker/worker.js';
import { scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { newClient, newDatabase } from '../engines/postgres/support.js';
import { newServer } from '../engines/redis/support.js';
import { askRedis } from '../support/servers/redis.js';
import { newFile } from '../engines/sqlite/support.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

const Database = createRequire(import.meta.url)('better-sqlite3') as typeof BetterSqlite3;

const LARGE = 2 * 1024 * 1024;
const ONE_MB = 1024 * 1024;

/** Stores that take no result above a megabyte. */
const REFUSING: Record<string, () => Promise<Store>> = {
  'redis with proto-max-bulk-len': async () =>
    new RedisStore({ url: (await newServer({ settings: { 'proto-max-bulk-len': '1mb' } })).url }),
  'redis with client-query-buffer-limit': async () =>
    new RedisStore({ url: (await newServer({ settings: { 'client-query-buffer-limit': '1mb' } })).url }),
  postgres: async () => {
    const url = await newDatabase();
    const store = new PostgresStore({ url });
    await store.open();
    await (await newClient(url)).query(
      `ALTER TABLE holdfast.jobs ADD CONSTRAINT small CHECK (octet_length(returnvalue) <= ${ONE_MB})`,
    );
    return store;
  },
  sqlite: async () => {
    const path = newFile();
    const store = new SqliteStore({ path });
    await store.open();
    const file = new Database(path);
    file.exec(`CREATE TRIGGER small BEFORE UPDATE ON jobs WHEN length(new.returnvalue) > ${ONE_MB}
      BEGIN SELECT RAISE(ABORT, 'string or blob too big'); END`);
    file.close();
    return store;
  },
};

describe.each(Object.keys(REFUSING))('a result that %s refuses', (name) => {
  test('fails its job with the reason, and the others of the same call complete', async () => {
    const connection = (await REFUSING[name]?.()) as Store;
    const queue = new Queue<{ large: boolean }>('q', { connection });
    const go = newGate();
    const running: string[] = [];
    const worker = new Worker<{ large: boolean }>(
      'q',
      async ({ id, data }) => {
        running.push(id);
        await go.opened;
        return data.large ? 'x'.repeat(LARGE) : 'small';
      },
      { connection, concurrency: 10 },
    );
    onTestFinished(async () => {
      await worker.close();
      await queue.close();
      await connection.close();
    });
    const errors: Error[] = [];
    const failures: { id: string | undefined; error: Error }[] = [];
    worker.on('error', (error) => errors.push(error));
    worker.on('failed', (job, error) => failures.push({ id: job?.id, error }));
    const jobs = await queue.addBulk(Array.from({ length: 10 }, (_, n) => ({ name: 'job', data: { large: n === 4 } })));
    const large = jobs[4]?.id;
    await until('all to run', () => running.length === 10);
    go.open();
    await until('all to end', async () => (await queue.getJobCountByTypes('completed', 'failed')) === 10);
    // The store knows of the failure before the worker has heard of all outcomes of the call.
    await until('the worker to say so', () => failures.length === 1);
    const failed = await queue.getFailed();
    expect(failed.map(({ id }) => id)).toEqual([large]);
    expect(failed[0]?.failedReason).toMatch(/^The store refused the result of this job \(209715\d bytes\): ./);
    if (name.startsWith('redis')) expect(failed[0]?.failedReason).toMatch(/takes no value above \d+ bytes .* has 209715\d/);
    expect([failed[0]?.attemptsMade, failed[0]?.returnvalue]).toEqual([1, null]);
    expect(failures.map(({ id, error }) => [id, error.message])).toEqual([[large, failed[0]?.failedReason]]);
    // It goes on, and is in good health.
    const later = await queue.add('job', { large: false });
    await until('another one', async () => (await later.getState()) === 'completed');
    expect(worker.health()).toMatchObject({ healthy: true, running: 0 });
    expect(errors).toEqual([]);
  });
});

test('Redis refuses the data of a job at once, with size and limit, and takes it when the limit was raised', async () => {
  const server = await newServer({ settings: { 'proto-max-bulk-len': '1mb' } });
  const store = new RedisStore({ url: server.url });
  const queue = new Queue('q', { connection: store });
  onTestFinished(async () => {
    await queue.close();
    await store.close();
  });
  const text = 'ü'.repeat(ONE_MB);
  const refusal = await queue.add('job', text).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: 'PAYLOAD_TOO_LARGE', store: 'redis' });
  expect((refusal as Error).message).toMatch(/above 1048576 bytes \(proto-max-bulk-len\), and this one has 2097\d{3}/);
  expect(await queue.count()).toBe(0);
  const { Redis } = await import('ioredis');
  const client = new Redis(server.url);
  onTestFinished(() => client.disconnect());
  await client.config('SET', 'proto-max-bulk-len', '8mb');
  const job = await queue.add('job', text);
  expect((await queue.getJob(job.id))?.data).toBe(text);
});

test('Redis names the probable limit when its user may not read it', async () => {
  const server = await newServer({ settings: { 'proto-max-bulk-len': '1mb' } });
  await askRedis(server.port, 'ACL SETUSER plain on >secret ~* &* +@all -config');
  const store = new RedisStore({ url: `redis://plain:secret@127.0.0.1:${server.port}` });
  const queue = new Queue('q', { connection: store });
  onTestFinished(async () => {
    await queue.close();
    await store.close();
  });
  const job = await queue.add('job', 'small');
  // Redis closes the connection while such a value is still being sent, so that its reply is mostly lost.
  for (let round = 0; round < 5; round++) {
    // Without a connection the value is not sent, and the error cannot name a limit.
    const isUp = (): Promise<boolean> => queue.getJob(job.id).then(Boolean, () => false);
    await until('the connection to be made anew', isUp);
    const reason = await job.updateData('x'.repeat(20 * ONE_MB)).catch((error: unknown) => error);
    expect(reason).toMatchObject({ message: expect.stringContaining('proto-max-bulk-len') });
  }
  // If the reply came before the connection ended, the next call may still be sent over that connection, and is lost with it.
  const smaller = (): Promise<boolean> =>
    job.updateData('x'.repeat(ONE_MB / 2)).then(
      () => true,
      () => false,
    );
  await until('a smaller value to be taken', smaller);
  expect((await queue.getJob(job.id))?.data).toHaveLength(ONE_MB / 2);
});

const refusal = new HoldfastError('STORE_FAILED', 'The store takes no such thing.');

/** Settles of one outcome alone, as [job, kind]. */
function alone(settles: Outcome[][]): string[] {
  return settles.filter(({ length }) => length === 1).map(([outcome]) => `${outcome?.jobId} ${outcome?.kind}`);
}

async function batchOfThree(): Promise<{
  it: Awaited<ReturnType<typeof scene>>;
  ids: string[];
  worker: Worker;
  errors: Error[];
  /** All handlers return in one turn of the loop. The settles from then on. */
  finish(): Outcome[][];
}> {
  const it = await scene('memory');
  const ids = [await it.add(), await it.add(), await it.add()];
  const go = newGate();
  let running = 0;
  const { worker, errors } = it.worker(
    async ({ id }) => {
      running += 1;
      await go.opened;
      return `of ${id}`;
    },
    { concurrency: 3, runRetryDelay: 20, lockDuration: paced(1000) },
  );
  await until('all to run', () => running === 3);
  const finish = (): Outcome[][] => {
    const settles: Outcome[][] = [];
    // The rule that was given last is asked first.
    it.store.on('settle', { fault: 'fail', when: (_, outcomes) => settles.push(outcomes) < 0 });
    go.open();
    return settles;
  };
  return { it, ids, worker, errors, finish };
}

function carries(outcomes: Outcome[], id: string | undefined): boolean {
  return outcomes.some(({ jobId, kind }) => jobId === id && kind === 'completed');
}

test('each outcome of a refused call is settled once, and a lost reply of such a settle changes nothing', async () => {
  const { it, ids, finish } = await batchOfThree();
  it.store.on('settle', { fault: 'fail', error: refusal, when: (_, outcomes) => carries(outcomes, ids[1]) });
  // The reply of the first one that goes alone is lost, and so is the reply of the substitute.
  it.store.on('settle', {
    fault: 'drop-reply',
    times: 1,
    when: (_, outcomes) => outcomes.length === 1 && carries(outcomes, ids[0]),
  });
  it.store.on('settle', { fault: 'drop-reply', times: 1, when: (_, [first]) => first?.kind === 'failed' });
  const settles = finish();
  expect(await it.reaches(ids[0] ?? '', 'completed')).toMatchObject({ returnvalue: `"of ${ids[0]}"`, attemptsMade: 1 });
  expect(await it.reaches(ids[1] ?? '', 'failed')).toMatchObject({ attemptsMade: 1 });
  expect(await it.reaches(ids[2] ?? '', 'completed')).toMatchObject({ attemptsMade: 1 });
  await it.reaches(await it.add(), 'completed');
  const [a, b, c] = ids;
  const expected = [`${a} completed`, `${a} completed`, `${b} completed`, `${b} failed`, `${b} failed`, `${c} completed`];
  expect(alone(settles).slice(0, 6)).toEqual(expected);
});

test('no result is lost when the store refuses everything for a while, because outcomes are retried', async () => {
  const { it, ids, errors, finish } = await batchOfThree();
  const broken = it.store.on('settle', { fault: 'fail', error: refusal });
  finish();
  await until('three rounds in vain', () => broken.struck > 6);
  broken.remove();
  for (const id of ids) expect(await it.reaches(id, 'completed')).toMatchObject({ returnvalue: `"of ${id}"` });
  expect(errors).toEqual([refusal]);
});

test('a worker whose store refuses everything emits error, and can be closed', async () => {
  const { it, ids, worker, errors, finish } = await batchOfThree();
  const broken = it.store.on('settle', { fault: 'fail', error: refusal });
  finish();
  await until('a round in vain', () => broken.struck > 3);
  expect(errors).toEqual([refusal]);
  expect(worker.health().reasons[0]).toMatch(/^STORE_FAILED: /);
  await worker.close();
  expect(errors.slice(1)).toMatchObject(ids.map(() => ({ code: 'OUTCOME_UNKNOWN' })));
  expect(await it.record(ids[0] ?? '')).toMatchObject({ state: 'waiting' });
});

test('a job taken by hand stays with its taker, who gets the refusal', async () => {
  const it = await scene('memory');
  const id = await it.add();
  const { worker, errors } = it.worker(null);
  const job = await worker.getNextJob('token', { block: false });
  const rule = it.store.on('settle', { fault: 'fail', error: refusal });
  await expect(job?.moveToCompleted('too large', 'token', false)).rejects.toBe(refusal);
  rule.remove();
  expect(await it.record(id)).toMatchObject({ state: 'active' });
  expect(job?.lock.held).toBe(true);
  await job?.moveToCompleted('small', 'token', false);
  expect(await it.record(id)).toMatchObject({ state: 'completed', returnvalue: '"small"' });
  expect(errors).toEqual([]);
  expect(worker.health().healthy).toBe(true);
});
