// What becomes of calls when the connection to PostgreSQL fails: none waits for ever, none is carried out twice, and the store comes
// back by itself.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isLate } from '../../../src/errors.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import {
  blocked,
  completed,
  killConnections,
  newClient,
  newDatabase,
  newJob,
  newJobs,
  newProxy,
  newServer,
  newSession,
  openStore,
} from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { insist } from '../../support/wait/insist.js';
import { until } from '../../support/wait/until.js';

async function claimOne(store: PostgresStore, seq: number): Promise<ClaimedJob> {
  const { jobs } = await insist(() => store.claim('q', { session: 's', seq, count: 1 }));
  return jobs[0] ?? expect.fail('nothing was claimed');
}

describe('a lost connection to PostgreSQL', () => {
  test('makes the call reject, and the process goes on, when the server ends it right after accepting it', async () => {
    const message = (type: string, body: Buffer): Buffer => {
      const length = Buffer.alloc(4);
      length.writeInt32BE(4 + body.length);
      return Buffer.concat([Buffer.from(type), length, body]);
    };
    const fatal = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
    const accepted = [message('R', Buffer.alloc(4)), message('Z', Buffer.from('I')), message('E', Buffer.from(fatal))];
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.end(Buffer.concat(accepted)));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    // An error event without a listener would fail this test as an uncaught exception.
    await expect(openStore({ url: `postgres://a:b@127.0.0.1:${port}/x` })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('is replaced at the next call after the server killed it', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const admin = await newClient(url);
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    for (let round = 0; round < 5; round += 1) {
      expect(await killConnections(admin)).toBeGreaterThan(0);
      expect((await insist(() => store.status('q'))).counts.waiting).toBe(1);
    }
  });

  test('makes a call in flight reject as retryable, and the call changed nothing', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.add('q', [newJob({ id: 'x' })], { caller: 'p', seq: 1 });
    const admin = await newClient(url);
    await admin.query('BEGIN; SELECT FROM holdfast.jobs FOR UPDATE');
    const change = store.change('q', ['x'], { kind: 'priority', priority: 5, lifo: false }).catch((error: unknown) => error);
    await until('the call waits', async () => (await blocked(admin)) > 0);
    await killConnections(admin);
    expect(await change).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, store: 'postgres' });
    await admin.query('COMMIT');
    expect((await insist(() => store.jobs('q', ['x']))).jobs[0]?.priority).toBe(0);
  });

  test('lets a call be repeated as the same call when it was cut during the reply', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), notify: false });
    await store.openSession(newSession());
    const failures: unknown[] = [];
    const note = (error: unknown): void => void failures.push(error);
    proxy.dropReplies({ times: 1 });
    await insist(() => store.add('q', newJobs(2), { caller: 'p', seq: 1 }), note);
    proxy.dropReplies({ times: 1 });
    const { jobs } = await insist(() => store.claim('q', { session: 's', seq: 1, count: 5 }), note);
    expect(jobs.map(({ id }) => id)).toEqual(['1', '2']);
    proxy.dropReplies({ times: 1 });
    const outcomes = jobs.map((job) => ({ ...completed(job), keep: { count: 0 } }) as const);
    expect(await insist(() => store.settle('q', outcomes, { caller: 's', seq: 2 }), note)).toEqual({ results: ['done', 'done'] });
    expect(failures).toHaveLength(3);
    for (const error of failures) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect((await store.events('q', 0, 100)).events.filter(({ name }) => name === 'completed')).toHaveLength(2);
  });

  test('makes calls reject with the reason until the server is back, and nothing acknowledged is lost', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await store.openSession(newSession());
    await store.add('q', newJobs(3), { caller: 'p', seq: 1 });
    const job = await claimOne(store, 1);
    await server.kill();
    await expect(store.status('q')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    const settling = insist(() => store.settle('q', [completed(job)], { caller: 's', seq: 2 }));
    await server.restart();
    expect(await settling).toEqual({ results: ['done'] });
    expect((await store.status('q')).counts).toMatchObject({ waiting: 2, active: 0, completed: 1 });
  });
});

describe('a PostgreSQL server that does not reply', () => {
  test('makes a call reject within queryTimeoutMs, and the next one succeed when it replies again', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url, queryTimeoutMs: 400, connectTimeoutMs: 400 });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await server.stop();
    for (const call of [() => store.status('q'), () => store.add('q', [newJob()], { caller: 'p', seq: 2 })]) {
      const took = stopwatch();
      await expect(call()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      expect(took()).toBeLessThan(paced(2_000));
    }
    server.resume();
    await insist(() => store.add('q', [newJob()], { caller: 'p', seq: 2 }));
    expect((await store.status('q')).counts.waiting).toBe(2);
  });

  test.each([
    ['queryTimeoutMs of the store', { queryTimeoutMs: 400 }, ''],
    ['statement_timeout of the user', {}, '?options=-c%20statement_timeout%3D400'],
  ])('makes a call that is too long for the %s known as late, and no other one', async (_title, options, query) => {
    const url = await newDatabase();
    const store = await openStore({ url: `${url}${query}`, notify: false, ...options });
    const client = await newClient(url);
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await client.query('BEGIN');
    await client.query('LOCK TABLE holdfast.jobs IN ACCESS EXCLUSIVE MODE');
    const late = await store.jobs('q', ['1']).catch((error: unknown) => error);
    expect([late, isLate(late)]).toEqual([expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true }), true]);
    await client.query('ROLLBACK');
    await client.query('DROP TABLE holdfast.jobs CASCADE');
    const other = await store.jobs('q', ['1']).catch((error: unknown) => error);
    expect([other, isLate(other)]).toEqual([expect.any(Error), false]);
  });

  test('does not block a call for ever on a half-open connection', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), queryTimeoutMs: 400, connectTimeoutMs: 400 });
    await store.status('q');
    proxy.swallow('both');
    await expect(store.status('q')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    proxy.heal();
    expect(await insist(() => store.status('q'))).toMatchObject({ paused: false });
  });

  test('is not assumed when the reply came while the event loop was blocked', async () => {
    const store = await openStore({ url: await newDatabase(), queryTimeoutMs: 500, notify: false });
    await store.status('q');
    for (let round = 0; round < 3; round += 1) {
      const call = store.status('q');
      // By now it is sent.
      await new Promise((resolve) => setImmediate(resolve));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
      expect(await call).toMatchObject({ paused: false });
    }
  });

  test('is called without prepared statements when it has forgotten them', async () => {
    const pool = new Pool({ connectionString: await newDatabase(), max: 1 });
    onTestFinished(() => pool.end());
    const store = await openStore({ pool, prepare: true, notify: false });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    expect((await pool.query('SELECT name FROM pg_prepared_statements')).rows).toEqual([{ name: 'holdfast_add' }]);
    await pool.query('DEALLOCATE ALL');
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 2 })).toEqual([{ id: '2', status: 'added' }]);
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 3 })).toEqual([{ id: '3', status: 'added' }]);
    await store.close();
  });

  test('costs one call its timeout, not one call per connection that a firewall has dropped', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), queryTimeoutMs: 500, notify: false });
    await Promise.all(Array.from({ length: 10 }, () => store.status('q')));
    expect(proxy.open).toBeGreaterThan(3);
    proxy.strand();
    await expect(store.status('q')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(await store.status('q')).toMatchObject({ paused: false });
  });

  test('is distinguished from a lock that another program holds for long', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.add('q', [newJob({ id: 'x' })], { caller: 'p', seq: 1 });
    const admin = await newClient(url);
    await admin.query('BEGIN; SELECT FROM holdfast.jobs FOR UPDATE');
    await expect(store.change('q', ['x'], { kind: 'remove' })).rejects.toMatchObject({ code: 'STORE_BUSY', retryable: true });
    // A claim waits for no other transaction.
    await store.openSession(newSession());
    expect((await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs).toEqual([]);
    await admin.query('COMMIT');
    expect((await store.claim('q', { session: 's', seq: 2, count: 1 })).jobs).toHaveLength(1);
  });

  test('claims nothing when a claim arrives after it timed out', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url, queryTimeoutMs: 300, notify: false });
    await store.openSession(newSession());
    const admin = await newClient(server.url);
    // The first claim finds nothing; the second is held up on its way, and its caller goes on.
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    await admin.query('BEGIN; LOCK TABLE holdfast.callers IN ACCESS EXCLUSIVE MODE');
    await store.claim('q', { session: 's', seq: 2, count: 1 }).catch(() => undefined);
    await admin.query('COMMIT');
    await insist(() => store.claim('q', { session: 's', seq: 2, count: 1 }));
    // What arrives now under that number, from wherever it hung, is a straggler.
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const other = await openStore({ url: server.url, notify: false });
    expect((await other.claim('q', { session: 's', seq: 2, count: 1 })).jobs).toEqual([]);
    expect((await store.claim('q', { session: 's', seq: 3, count: 1 })).jobs).toHaveLength(1);
  });
});

describe('random cuts of PostgreSQL connections', () => {
  test('lose nothing, double nothing and leave nothing behind', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), queryTimeoutMs: 1_000, max: 4 });
    await insist(() => store.openSession(newSession({ id: 'opened' })).catch(() => undefined));
    await insist(() => store.openSession(newSession()));
    let failures = 0;
    const note = (): void => void (failures += 1);
    proxy.cutAfter({ bytes: { from: 50, to: 4_000, seed: 7 } });
    const finished: string[] = [];
    let held: ClaimedJob[] = [];
    for (let seq = 1; seq <= 60; seq += 1) {
      await insist(() => store.add('q', newJobs(3), { caller: 'p', seq }), note);
      const request = { session: 's', seq, count: 4 };
      const before = held;
      const { results, claimed } = await insist(
        () => store.settle('q', before.map(completed), { caller: 's', seq }, request),
        note,
      );
      expect(results).toEqual(before.map(() => 'done'));
      finished.push(...before.map(({ id }) => id));
      held = claimed?.jobs ?? [];
    }
    proxy.heal();
    expect(failures).toBeGreaterThan(5);
    await insist(() => store.settle('q', held.map(completed), { caller: 's', seq: 61 }));
    finished.push(...held.map(({ id }) => id));
    expect(new Set(finished).size).toBe(finished.length);
    expect(await store.locks('q', { session: 's' })).toEqual([]);
    const { counts } = await store.status('q');
    expect(counts).toMatchObject({ active: 0, completed: finished.length, waiting: 180 - finished.length });
    const { events } = await store.events('q', 0, 10_000);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    expect(events.filter(({ name }) => name === 'completed')).toHaveLength(finished.length);
    await sleep(0);
  });
});
