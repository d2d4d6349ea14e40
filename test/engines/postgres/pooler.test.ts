// Behind PgBouncer, which hands out connections to the server by the transaction.
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import { Worker } from '../../../src/worker/worker.js';
import { startPgbouncer } from '../../support/servers/pgbouncer.js';
import type { TestServer } from '../../support/servers/server.js';
import { completed, newClient, newDatabase, newJobs, newServer, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

async function newPooler(direct: string): Promise<TestServer> {
  const pooler = await startPgbouncer(direct);
  onTestFinished(() => pooler.close());
  return pooler;
}

// The settings that a client leaves on a connection reach another client a moment later. These are PgBouncer's own: it tells the server who a client is.
const OWN = /SET (?:application_name|client_encoding|datestyle|timezone|standard_conforming_strings)/i;
const LEFT_BEHIND =
  /(?:statement|execute [^:]+): (?:LISTEN|SET (?!LOCAL)|PREPARE|SELECT pg_(?:try_)?advisory_lock)|execute (?!<unnamed>)\w+:/;

function leftBehind(log: string): string[] {
  // Statements from SQL files begin with comments, and the log has a line for each of their lines.
  const statements = log.replace(/-- [^\n]*\n\t?/g, '').split('\n');
  return statements.filter((line) => LEFT_BEHIND.test(line) && !OWN.test(line));
}

async function work(url: string): Promise<void> {
  const store = await openStore({ url });
  expect(store.capabilities.crashHints).toBe(false);
  const stop = store.watch('q', () => undefined);
  await store.openSession(newSession());
  await Promise.all(Array.from({ length: 8 }, (_, n) => store.add('q', newJobs(25), { caller: `p${n}`, seq: 1 })));
  let held: ClaimedJob[] = [];
  for (let seq = 1; seq <= 5; seq += 1) {
    const request = { session: 's', seq, count: 50 };
    const { results, claimed } = await store.settle('q', held.map(completed), { caller: 's', seq }, request);
    expect(results).toEqual(held.map(() => 'done'));
    held = claimed?.jobs ?? [];
  }
  expect((await store.status('q')).counts).toMatchObject({ waiting: 0, active: 0, completed: 200 });
  expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
  expect(await store.sweep('q', 10)).toEqual({ stalled: [], failed: [], more: false });
  expect(await store.probe('q')).toEqual({ sessions: 1 });
  stop();
  await store.close();
}

describe('a PostgreSQL store behind a pooler', () => {
  test('leaves no LISTEN, lock, setting or prepared statement on a connection', async () => {
    const server = await newServer({ settings: { log_statement: 'all' } });
    await work((await newPooler(server.url)).url);
    expect(server.log).toContain('holdfast".settle(');
    expect(leftBehind(server.log)).toEqual([]);
  });

  test('(N) would leave some with a direct connection, and with named statements', async () => {
    const server = await newServer({ settings: { log_statement: 'all' } });
    const direct = await openStore({ url: server.url, prepare: true });
    await direct.openSession(newSession());
    await direct.status('q');
    const left = leftBehind(server.log).join('\n');
    expect(left).toContain('LISTEN holdfast_');
    expect(left).toContain('advisory_lock');
    expect(left).toContain('execute holdfast_status:');
  });

  test('wakes its watchers by polling, and notifies processes that can listen', async () => {
    const url = await newDatabase();
    const [here, there] = [await openStore({ url: (await newPooler(url)).url }), await openStore({ url })];
    const heard = new Promise<void>((resolve) => there.watch('q', resolve));
    await here.add('q', newJobs(1), { caller: 'p', seq: 1 });
    await heard;
    let woken = 0;
    here.watch('other', () => void (woken += 1));
    // The first two looks may wake for nothing.
    await sleep(2_200);
    const before = woken;
    await there.add('other', newJobs(1), { caller: 'p', seq: 1 });
    await until('the watcher is called', () => woken > before, 2_500);
  });

  test('serves a queue and a worker, also within a transaction through the pooler', async () => {
    const connection = (await newPooler(await newDatabase())).url;
    const queue = new Queue('q', { connection });
    onTestFinished(() => queue.close());
    const client = await newClient(connection);
    await client.query('BEGIN');
    await queue.add('inside', {}, { transaction: client });
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    await queue.add('inside', {}, { transaction: client });
    await client.query('COMMIT');
    await queue.addBulk(Array.from({ length: 199 }, (_, n) => ({ name: 'outside', data: n })));
    const errors: Error[] = [];
    const worker = new Worker('q', () => sleep(5), { connection, concurrency: 20, useDedicatedLockThread: false });
    worker.on('error', (error) => errors.push(error));
    onTestFinished(() => worker.close());
    await until('all jobs are completed', async () => (await queue.getCompletedCount()) === 200);
    expect(errors).toEqual([]);
  });

  test('reconnects when the pooler is restarted', async () => {
    const pooler = await newPooler(await newDatabase());
    const store = await openStore({ url: pooler.url });
    await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
    await pooler.restart();
    await insist(() => store.add('q', newJobs(1), { caller: 'p', seq: 2 }));
    expect((await store.status('q')).counts.waiting).toBe(2);
  });
});
