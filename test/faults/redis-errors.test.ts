// What can be wrong with a Redis server: each is told in one clear error, to whoever adds and to whoever works, and nobody is kept
// from closing.
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ErrorCode, type HoldfastError, Queue, Worker } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/servers/free-port.js';
import { askRedis } from '../support/servers/redis.js';
import type { TestServer } from '../support/servers/server.js';
import { fakeRedis, newProxy, newServer } from '../engines/redis/support.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';
import { until } from '../support/wait/until.js';

type Address = { host: string; port: number } & Record<string, unknown>;

interface Trouble {
  what: string;
  code: ErrorCode;
  message: RegExp;
  /** Makes it, and answers what to connect to. */
  make(): Promise<Address>;
}

const at = (port: number, options: Record<string, unknown> = {}): Address => ({ host: '127.0.0.1', port, ...options });

/** A user with these rights, who may otherwise do everything. */
async function serverWithUser(rights: string): Promise<Address> {
  const { port } = await newServer();
  expect(await askRedis(port, `ACL SETUSER limited on >secret ${rights}`)).toMatch(/^\+OK/);
  return at(port, { username: 'limited', password: 'secret' });
}

/** In a script without end. */
async function keepBusy(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1', () => socket.write('EVAL "while true do end" 0\r\n'));
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await until('the server is busy', async () => (await askRedis(port, 'PING').catch(String)).includes('-BUSY'));
}

const TROUBLES: Trouble[] = [
  {
    what: 'a wrong password',
    code: 'STORE_DENIED',
    message: /user name or password.*WRONGPASS/,
    make: async () => at((await newServer({ settings: { requirepass: 'right' } })).port, { password: 'wrong' }),
  },
  {
    what: 'a user who may not run scripts',
    code: 'STORE_DENIED',
    message: /lacks a right.*evalsha/,
    make: () => serverWithUser('~* &* +@all -evalsha -eval'),
  },
  {
    what: 'a user who may not touch our keys',
    code: 'STORE_DENIED',
    message: /lacks a right.*ACL SETUSER/,
    make: () => serverWithUser('~other:* &* +@all'),
  },
  {
    what: 'a user who may not use a command of a script',
    code: 'STORE_DENIED',
    message: /lacks a right/,
    make: () => serverWithUser('~* &* +@all -hset'),
  },
  {
    what: 'a host that nobody knows',
    code: 'STORE_UNAVAILABLE',
    message: /host of Redis is not known.*no-such-host\.invalid/,
    make: async () => ({ host: 'no-such-host.invalid', port: 6379 }),
  },
  {
    what: 'a port where nobody listens',
    code: 'STORE_UNAVAILABLE',
    message: /cannot be reached.*ECONNREFUSED/,
    make: async () => at(await freePort()),
  },
  {
    what: 'a server that does not answer',
    code: 'STORE_UNAVAILABLE',
    // Well before `add` gives up.
    message: /did not answer within 500 ms/,
    make: async () => {
      const server = await newServer();
      await server.stop();
      return at(server.port, { connectTimeout: 500 });
    },
  },
  {
    what: 'a database that there is not',
    code: 'STORE_DENIED',
    message: /has no database 7/,
    make: async () => at((await newServer({ settings: { databases: '2' } })).port, { db: 7 }),
  },
  {
    what: 'a replica',
    code: 'STORE_READONLY',
    message: /is a replica.*Name the primary/,
    make: async () => {
      const [primary, replica] = [await newServer(), await newServer()];
      await askRedis(replica.port, `REPLICAOF 127.0.0.1 ${primary.port}`);
      return at(replica.port);
    },
  },
  {
    what: 'a replica that has lost its primary (MASTERDOWN)',
    code: 'STORE_READONLY',
    message: /is a replica.*Name the primary/,
    make: async () => {
      const { port } = await newServer({ settings: { 'replica-serve-stale-data': 'no' } });
      await askRedis(port, `REPLICAOF 127.0.0.1 ${await freePort()}`);
      expect(await askRedis(port, 'GET x')).toContain('-MASTERDOWN');
      return at(port);
    },
  },
  {
    what: 'a server that is loading its data (LOADING)',
    code: 'STORE_UNAVAILABLE',
    message: /still loading/,
    make: async () => at((await fakeRedis('redis_version:7.0.0\r\nloading:1\r\n')).port, { protocol: 2 }),
  },
  {
    what: 'a server in a script without end (BUSY)',
    code: 'STORE_UNAVAILABLE',
    message: /not ready to answer.*BUSY/,
    make: async () => {
      const { port } = await newServer({ settings: { 'lua-time-limit': '10' } });
      await keepBusy(port);
      return at(port);
    },
  },
  {
    what: 'a version that is too old',
    code: 'STORE_UNSUPPORTED',
    message: /5\.0\.14.*6\.2 or newer/,
    make: async () => at((await fakeRedis('redis_version:5.0.14\r\nrole:master\r\n')).port, { protocol: 2 }),
  },
  {
    what: 'a server whose scripts were taken away',
    code: 'STORE_UNSUPPORTED',
    message: /lacks a command.*evalsha/i,
    make: async () => at((await newServer({ settings: { 'rename-command': 'EVALSHA NOTHING' } })).port),
  },
  {
    what: 'a cluster without enough nodes',
    code: 'STORE_UNAVAILABLE',
    message: /Cluster at .* is down.*start the nodes/,
    make: async () => at((await newServer({ settings: { 'cluster-enabled': 'yes' } })).port),
  },
];

async function closesSoon(closing: { close(): Promise<void> }): Promise<void> {
  const took = stopwatch();
  await closing.close();
  expect(took()).toBeLessThan(paced(5_000));
}

describe.each(TROUBLES)('$what', ({ code, message, make }) => {
  test('makes add reject and a worker emit error, and both can be closed', async () => {
    const connection = await make();
    const queue = new Queue('q', { connection, addTimeoutMs: paced(1_000) });
    queue.on('error', () => undefined);
    const refusal = (await queue.add('job', {}).catch((error: unknown) => error)) as HoldfastError;
    expect(refusal).toMatchObject({ code, store: 'redis' });
    expect(refusal.message).toMatch(message);

    const errors: HoldfastError[] = [];
    const worker = new Worker('q', () => Promise.resolve(), { connection });
    worker.on('error', (error) => errors.push(error as HoldfastError));
    await until('an error', () => errors.length > 0, 6_000);
    expect(errors[0]).toMatchObject({ code, store: 'redis' });
    expect(errors[0]?.message).toMatch(message);

    await Promise.all([closesSoon(worker), closesSoon(queue)]);
  });
});

interface Turn {
  what: string;
  code: ErrorCode;
  turn(server: TestServer): Promise<unknown>;
}

const TURNS: Turn[] = [
  { what: 'is killed', code: 'STORE_UNAVAILABLE', turn: (server) => server.kill() },
  { what: 'does not answer any more', code: 'STORE_UNAVAILABLE', turn: (server) => server.stop() },
  { what: 'becomes a replica', code: 'STORE_READONLY', turn: ({ port }) => askRedis(port, 'REPLICAOF 127.0.0.1 1') },
  { what: 'is caught in a script', code: 'STORE_UNAVAILABLE', turn: ({ port }) => keepBusy(port) },
  {
    what: 'takes the rights away',
    code: 'STORE_DENIED',
    turn: ({ port }) => askRedis(port, 'ACL SETUSER default -evalsha -eval'),
  },
];

describe.each(TURNS)('a server that served and $what', ({ code, turn }) => {
  test('makes a waiting worker emit error and add reject, and both can be closed', async () => {
    const server = await newServer({ settings: { 'lua-time-limit': '10' } });
    const connection = at(server.port, { commandTimeout: paced(1_000), connectTimeout: paced(1_000) });
    const queue = new Queue('q', { connection, addTimeoutMs: paced(2_000) });
    queue.on('error', () => undefined);
    const errors: HoldfastError[] = [];
    const worker = new Worker('q', () => Promise.resolve(), { connection, drainDelay: 1 });
    worker.on('error', (error) => errors.push(error as HoldfastError));
    await queue.add('job', {});
    await new Promise<void>((resolve) => worker.once('drained', () => resolve()));
    await turn(server);
    await expect(queue.add('job', {})).rejects.toThrow();
    await until(`the error ${code}`, () => errors.some((error) => error.code === code), 8_000);
    await Promise.all([closesSoon(worker), closesSoon(queue)]);
  });
});

test('a waiting worker reports half-open connections within seconds, and works again when they recover', async () => {
  const server = await newServer();
  const proxy = await newProxy(server);
  const errors: HoldfastError[] = [];
  const done: unknown[] = [];
  const worker = new Worker('q', ({ data }) => Promise.resolve(done.push(data)), { connection: proxy.url(server.url) });
  worker.on('error', (error) => errors.push(error as HoldfastError));
  onTestFinished(() => worker.close());
  const queue = new Queue('q', { connection: server.url });
  onTestFinished(() => queue.close());
  // Nothing is under way when it begins: neither a result nor the start of the lock thread.
  const finished = new Promise<void>((resolve) => worker.once('completed', () => resolve()));
  await queue.add('job', 'before');
  await finished;
  await until('the thread renews', () => worker.health().lockThread === 'thread');
  proxy.swallow('both');
  await until('the outage is reported', () => errors.some(({ code }) => code === 'STORE_UNAVAILABLE'), 10_000);
  proxy.heal();
  await queue.add('job', 'after');
  await until('the job after the outage', () => done.length === 2, 10_000);
});

test('the error for a missing ioredis says what to type, for add and for a worker, and both can be closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-missing-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const root = fileURLToPath(new URL('../../', import.meta.url));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  writeFileSync(
    join(folder, 'program.mjs'),
    `import { Queue, Worker } from 'holdfast';
const connection = 'redis://127.0.0.1:1';
const queue = new Queue('q', { connection });
const told = await queue.add('job', {}).catch((error) => error);
const worker = new Worker('q', async () => undefined, { connection });
const heard = await new Promise((resolve) => worker.on('error', resolve));
await worker.close();
await queue.close();
console.log(JSON.stringify([told, heard].map(({ code, message }) => ({ code, message }))));
`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ['program.mjs'], { cwd: folder, timeout: paced(15_000) });
  const errors = JSON.parse(stdout) as { code: string; message: string }[];
  expect(errors.map(({ code }) => code)).toEqual(['DRIVER_MISSING', 'DRIVER_MISSING']);
  expect(errors[0]?.message).toContain('npm install ioredis');
});
