// The PostgreSQL servers that other tests start, stop and kill.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { childrenOf, hasEnded, isStopped } from '../../support/servers/processes.js';
import { startPostgres } from '../../support/servers/postgres.js';
import { FaultProxy } from '../../support/servers/proxy.js';
import type { TestServer } from '../../support/servers/server.js';

let server: TestServer;

beforeAll(async () => {
  server = await startPostgres({ settings: { max_connections: '20' } });
});
afterAll(() => server.close());

async function connected(url = server.url): Promise<Client> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  onTestFinished(() => client.end().catch(() => undefined));
  return client;
}

async function setting(name: string): Promise<string> {
  const { rows } = await (await connected()).query<Record<string, string>>(`SHOW ${name}`);
  return rows[0]?.[name] ?? '';
}

test('a test PostgreSQL is as durable as in production, and takes settings', async () => {
  expect(await setting('fsync')).toBe('on');
  expect(await setting('synchronous_commit')).toBe('on');
  expect(await setting('max_connections')).toBe('20');
});

test('a test PostgreSQL asks for the password', async () => {
  await expect(connected(server.url.replace(/:\w+@/, ':wrong@'))).rejects.toThrow('password authentication failed');
});

test('a test PostgreSQL keeps what was committed when it is killed with its backends', async () => {
  const client = await connected();
  await client.query('CREATE TABLE kept AS SELECT 1 AS one');
  const { pid } = server;
  const backends = childrenOf(pid);
  expect(backends.length).toBeGreaterThan(1);
  await server.kill();
  expect([pid, ...backends].every(hasEnded)).toBe(true);
  await expect(connected()).rejects.toThrow('ECONNREFUSED');
  await server.restart();
  expect((await (await connected()).query('SELECT * FROM kept')).rows).toEqual([{ one: 1 }]);
});

test('a test PostgreSQL ends connections on restart, and is back on its port', async () => {
  const { pid, url } = server;
  const client = await connected();
  const lost = new Promise((resolve) => client.once('end', resolve));
  await server.restart();
  await lost;
  expect(server.pid).not.toBe(pid);
  expect(server.url).toBe(url);
  await connected();
});

test('a stopped test PostgreSQL does not reply on open connections until it is resumed', async () => {
  const client = await connected();
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const backend = rows[0]?.pid ?? 0;
  await server.stop();
  expect([server.pid, backend].every(isStopped)).toBe(true);
  let answered = false;
  const answer = client.query('SELECT 1').then(() => {
    answered = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(answered).toBe(false);
  server.resume();
  await answer;
});

test('behind the proxy, a long reply that is dropped belongs to work that was committed', async () => {
  const direct = await connected();
  await direct.query('CREATE TABLE long (text text)');
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  const client = await connected(proxy.url(server.url));
  proxy.dropReplies({ when: (request) => request.includes('INSERT') });
  const insert = "INSERT INTO long SELECT repeat('x', 1000) FROM generate_series(1, 20000) RETURNING text";
  await expect(client.query(insert)).rejects.toThrow();
  await proxy.moment('reply dropped');
  expect((await direct.query('SELECT count(*)::int FROM long')).rows).toEqual([{ count: 20_000 }]);
});

test('a replica can be read and not written', async () => {
  const replica = await startPostgres({ standby: true });
  onTestFinished(() => replica.close());
  const client = await connected(replica.url);
  expect((await client.query('SELECT pg_is_in_recovery() AS replica')).rows).toEqual([{ replica: true }]);
  await expect(client.query('CREATE TABLE written ()')).rejects.toThrow('read-only transaction');
});

test.each(['running', 'stopped', 'killed'] as const)(
  'closed when %s, it leaves no process, no folder and no shared memory',
  async (state) => {
    const own = await startPostgres();
    const { pid, folder } = own;
    const family = [pid, ...childrenOf(pid)];
    const segment = readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[6]?.trim().split(/\s+/)[1] ?? '';
    expect(sharedMemory()).toContain(segment);
    if (state === 'stopped') await own.stop();
    if (state === 'killed') await own.kill();
    await own.close();
    expect(family.every(hasEnded)).toBe(true);
    expect(existsSync(folder)).toBe(false);
    expect(sharedMemory()).not.toContain(segment);
  },
);

/** The numbers of the System V segments of this host. */
function sharedMemory(): (string | undefined)[] {
  const lines = readFileSync('/proc/sysvipc/shm', 'utf8').trim().split('\n').slice(1);
  return lines.map((line) => line.trim().split(/\s+/)[1]);
}

test('a test PostgreSQL that cannot start says why', async () => {
  await expect(startPostgres({ settings: { max_connections: 'many' } })).rejects.toThrow(
    /ended while it started:[^]*max_connections/,
  );
});
