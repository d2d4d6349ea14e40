// Connections that the server ends one after the other, those for wake-ups and those of the lock threads too, while there is work to do;
// a script cache that is emptied; a pool of the user's in which nothing is free.
import { Pool } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { Worker } from '../../src/worker/worker.js';
import { switchboardOf } from '../support/servers/connections.js';
import { Crew, SERVER_ENGINES, serverOf } from '../support/processes/crew.js';
import { messagesOf } from '../support/scenes/faulty-scene.js';
import { sleep, until } from '../support/wait/until.js';
import { askRedis } from '../support/servers/redis.js';
import { freshDatabase } from '../support/servers/shared.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

const ROUNDS = 3;
const BETWEEN_MS = 30;

describe.each(SERVER_ENGINES)('connections of %s', (engine) => {
  test('can be ended one after the other: nothing is lost, doubled or stalled, and new jobs are noticed', {
    timeout: paced(60_000),
  }, async () => {
    const server = await serverOf(engine);
    const switchboard = await switchboardOf(engine, server);
    onTestFinished(() => switchboard.close());
    const crew = await Crew.on(server.url);
    const { url: connection } = server;
    for (const _ of [1, 2]) {
      crew.worker({ connection, options: { concurrency: 8, lockRenewTime: 200, stalledInterval: 500, drainDelay: 60 } });
      crew.producer({ connection });
    }
    await Promise.all(crew.members.map((member) => member.ready()));
    let cut = 0;
    let listeners = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      // Both workers, their threads and both producers; listeners come back a moment after the calls.
      await until(
        'all to be connected',
        async () => (await switchboard.connections()).filter(({ listens }) => listens).length >= 2,
      );
      for (const { id, listens } of await switchboard.connections()) {
        await switchboard.cut(id);
        cut += 1;
        listeners += Number(listens);
        await sleep(BETWEEN_MS);
      }
      await crew.more('finished', 30);
    }
    expect(cut).toBeGreaterThanOrEqual(ROUNDS * 6);
    expect(listeners).toBeGreaterThanOrEqual(ROUNDS * 2);
    const { complaints } = await crew.finish();
    expect(complaints).toEqual([]);
    expect(crew.count('stalled')).toBe(0);
    expect(crew.count('aborted')).toBe(0);
    expect(crew.count('refused')).toBe(0);
    for (const { role, errors } of crew.members.map((member) => ({ role: member.role, errors: member.errors() }))) {
      for (const error of errors) expect(error, role).toMatch(/^STORE_UNAVAILABLE: .*(Redis|PostgreSQL)/);
    }
    // Each connection that was in use when it ended may be told, and none of the others.
    expect(crew.count('error')).toBeLessThanOrEqual(cut);
  });
});

test('Redis jobs go on when the script cache is emptied under load', { timeout: paced(30_000) }, async () => {
  const server = await serverOf('redis');
  const crew = await Crew.on(server.url);
  const { url: connection } = server;
  for (const _ of [1, 2]) {
    crew.worker({ connection, options: { concurrency: 8, lockRenewTime: 100, stalledInterval: 100 } });
    crew.producer({ connection });
  }
  await Promise.all(crew.members.map((member) => member.ready()));
  for (let round = 0; round < 40; round += 1) {
    await askRedis(server.port, 'SCRIPT FLUSH');
    await crew.more('finished', 5);
  }
  const { complaints } = await crew.finish();
  expect(complaints).toEqual([]);
  expect(crew.members.flatMap((member) => member.errors())).toEqual([]);
  expect(crew.count('stalled')).toBe(0);
});

describe.each([1, 2])("postgres: a pool of the user's with %i connections", (max) => {
  test('has none left for a while: the worker reports it once, keeps its job and goes on', async () => {
    const { url, drop } = await freshDatabase();
    onTestFinished(drop);
    const pool = new Pool({ connectionString: url, max });
    onTestFinished(() => pool.end());
    const store = new PostgresStore({ pool, connectTimeoutMs: 300 });
    await store.open();
    onTestFinished(() => store.close());
    const finish = newGate();
    const fences: number[] = [];
    const worker = new Worker(
      'work',
      async (job) => {
        fences.push(job.lock.fence);
        await finish.opened;
        return job.lock.held;
      },
      { connection: store, lockDuration: 10_000, lockRenewTime: 200, stalledInterval: 200 },
    );
    onTestFinished(() => worker.close());
    const errors: Error[] = [];
    worker.on('error', (error) => errors.push(error));
    const job = { name: 'job', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
    await store.add('work', [job, job], { caller: 'p', seq: 1 });
    await until('the first job to run', () => fences.length === 1);
    const taken = await Promise.all(Array.from({ length: max }, () => pool.connect()));
    finish.open();
    await until('the worker to say so', () => messagesOf(errors, 'became free within 300 ms').length > 0);
    // Some more tries in vain.
    await sleep(1_500);
    const told = errors.length;
    for (const client of taken) client.release();
    await until('both to be done', async () => (await store.status('work')).counts.completed === 2);
    expect(fences).toHaveLength(2);
    const records = (await store.jobs('work', ['1', '2'])).jobs;
    for (const record of records) expect(record).toMatchObject({ attemptsStarted: 1, stalledCounter: 0, returnvalue: 'true' });
    expect(told).toBeLessThanOrEqual(4);
    for (const error of errors) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
  });
});
