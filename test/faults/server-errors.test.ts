// What can be wrong with a PostgreSQL server: each is told in one clear error, to whoever adds and to whoever works, and nobody is kept
// from closing.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type ErrorCode, type HoldfastError, migratePostgres, Queue, Worker } from 'holdfast';
import { Client } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/servers/free-port.js';
import { startPgbouncer } from '../support/servers/pgbouncer.js';
import type { TestServer } from '../support/servers/server.js';
import { newDatabase, newEmptyDatabase, newServer } from '../engines/postgres/support.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';
import { until } from '../support/wait/until.js';

type Connection = string | Record<string, unknown>;

interface Trouble {
  what: string;
  code: ErrorCode;
  message: RegExp;
  retryable?: true;
  /** Longer than one try to connect takes. */
  addTimeoutMs?: number;
  /** Makes it, and answers what to connect to. */
  make(): Promise<Connection>;
}

function changed(url: string, change: Partial<Pick<URL, 'username' | 'password' | 'pathname' | 'hostname' | 'port'>>): string {
  return Object.assign(new URL(url), change).href;
}

async function run(url: string, ...statements: string[]): Promise<void> {
  const admin = new Client({ connectionString: url });
  await admin.connect();
  try {
    for (const statement of statements) await admin.query(statement);
  } finally {
    await admin.end();
  }
}

/** The same database as somebody who may not do everything. */
async function asGuest(url: string): Promise<{ guest: string; url: string }> {
  const guest = `guest_${randomUUID().slice(0, 8)}`;
  await run(url, `CREATE ROLE ${guest} LOGIN PASSWORD 'secret'`);
  return { guest, url: changed(url, { username: guest, password: 'secret' }) };
}

/** On a server that others use, the role must go. */
async function guestOfShared(url: string): ReturnType<typeof asGuest> {
  const made = await asGuest(url);
  onTestFinished(() => run(url, `DROP OWNED BY ${made.guest} CASCADE`, `DROP ROLE ${made.guest}`));
  return made;
}

const database = (url: string): string => new URL(url).pathname.slice(1);

const TROUBLES: Trouble[] = [
  {
    what: 'a wrong password',
    code: 'STORE_DENIED',
    message: /refuses the user or the password\. Check them.*28P01/,
    make: async () => changed(await newDatabase(), { password: 'not-the-one' }),
  },
  {
    what: 'a user that there is not',
    code: 'STORE_DENIED',
    message: /refuses the user or the password/,
    make: async () => changed(await newDatabase(), { username: 'nobody_here' }),
  },
  {
    what: 'a host that nobody knows',
    code: 'STORE_UNAVAILABLE',
    message: /no host of the name of PostgreSQL at no-such-host\.invalid:5432.*Check the host name/,
    make: () => Promise.resolve('postgres://u:p@no-such-host.invalid:5432/db'),
  },
  {
    what: 'a port where nobody listens',
    code: 'STORE_UNAVAILABLE',
    message: /cannot be reached\. Check that it runs.*ECONNREFUSED/,
    retryable: true,
    make: async () => `postgres://u:p@127.0.0.1:${await freePort()}/db`,
  },
  {
    what: 'a server that does not answer',
    code: 'STORE_UNAVAILABLE',
    message: /PostgreSQL at .*(timeout|became free)/,
    retryable: true,
    addTimeoutMs: 2_000,
    make: async () => {
      const server = await newServer();
      await server.stop();
      return { url: server.url, connectTimeoutMs: paced(1_000) };
    },
  },
  {
    what: 'a server that has no connection left',
    code: 'STORE_UNAVAILABLE',
    message: /cannot serve at the moment.*53300/,
    retryable: true,
    make: async () => {
      const admin = await newDatabase();
      const { guest, url } = await guestOfShared(admin);
      await run(admin, `ALTER ROLE ${guest} CONNECTION LIMIT 0`);
      return url;
    },
  },
  {
    what: 'a database that there is not',
    code: 'STORE_DENIED',
    message: /no such database\. Create it.*3D000/,
    make: async () => changed(await newDatabase(), { pathname: '/nowhere' }),
  },
  {
    what: 'a replica',
    code: 'STORE_READONLY',
    message: /it is a replica, or set to read only\. Name the primary/,
    make: async () => (await newServer({ standby: true })).url,
  },
  {
    what: 'a database that is set to read only',
    code: 'STORE_READONLY',
    message: /it is a replica, or set to read only/,
    make: async () => {
      const url = await newDatabase();
      await run(url, `ALTER DATABASE ${database(url)} SET default_transaction_read_only = on`);
      return url;
    },
  },
  {
    what: 'a user who may not create the schema',
    code: 'STORE_DENIED',
    message: /may not create the schema "holdfast".*GRANT CREATE ON DATABASE "holdfast_\w+" TO "guest_\w+";/,
    make: async () => (await guestOfShared(await newEmptyDatabase())).url,
  },
  {
    what: 'a user who may not use the schema',
    code: 'STORE_DENIED',
    message: /lacks rights on the schema "holdfast".*GRANT USAGE ON SCHEMA "holdfast" TO/,
    make: async () => {
      const url = await newDatabase();
      await migratePostgres(url);
      return (await guestOfShared(url)).url;
    },
  },
  {
    what: 'a schema that was not made, with migrate: false',
    code: 'STORE_UNSUPPORTED',
    message: /schema "holdfast" at .* is not there\. Call migratePostgres\(/,
    make: async () => ({ url: await newEmptyDatabase(), migrate: false }),
  },
  {
    what: 'a schema that is newer than this version',
    code: 'STORE_NEWER',
    message: /has version 99.*Upgrade the holdfast package/,
    make: async () => {
      const url = await newDatabase();
      await migratePostgres(url);
      await run(url, 'UPDATE holdfast.holdfast_schema SET layout = 99');
      return url;
    },
  },
  {
    what: 'a schema that belongs to somebody else',
    code: 'STORE_FOREIGN',
    message: /tables that are not Holdfast's\. Name another schema/,
    make: async () => {
      const url = await newEmptyDatabase();
      await run(url, 'CREATE SCHEMA holdfast; CREATE TABLE holdfast.mine (n int)');
      return url;
    },
  },
  {
    what: 'a version that is too old',
    code: 'STORE_UNSUPPORTED',
    message: /is version 11: Holdfast needs 13 or newer\. Upgrade/,
    // Nobody serves such a one any more: this server says of itself that it is one.
    make: async () => {
      const url = await newDatabase();
      await run(
        url,
        `CREATE FUNCTION public.current_setting(name text) RETURNS text LANGUAGE sql AS
         $$ SELECT CASE name WHEN 'server_version_num' THEN '110022' ELSE pg_catalog.current_setting(name) END $$`,
        `ALTER DATABASE ${database(url)} SET search_path = public, pg_catalog`,
      );
      return url;
    },
  },
  {
    what: 'an isolation level that hides what others do',
    code: 'STORE_UNSUPPORTED',
    message: /default_transaction_isolation "serializable".*ALTER ROLE/,
    make: async () => {
      const url = await newDatabase();
      await run(url, `ALTER DATABASE ${database(url)} SET default_transaction_isolation = 'serializable'`);
      return url;
    },
  },
];

async function closesSoon(closing: { close(): Promise<void> }): Promise<void> {
  const took = stopwatch();
  await closing.close();
  expect(took()).toBeLessThan(paced(5_000));
}

function newQueue(connection: Connection, options: object = {}): { queue: Queue; told: Error[] } {
  const told: Error[] = [];
  const queue = new Queue('q', { connection, ...options });
  queue.on('error', (error) => told.push(error));
  onTestFinished(() => queue.close());
  return { queue, told };
}

function newWorker(connection: Connection, options: object = {}): { worker: Worker; errors: HoldfastError[] } {
  const errors: HoldfastError[] = [];
  const worker = new Worker('q', () => Promise.resolve(), { connection, ...options });
  worker.on('error', (error) => errors.push(error as HoldfastError));
  onTestFinished(() => worker.close());
  return { worker, errors };
}

describe.each(TROUBLES)('$what', ({ code, message, retryable = false, addTimeoutMs = 1_000, make }) => {
  test('makes add reject and a worker emit error once, and both can be closed', async () => {
    const connection = await make();
    const { queue, told } = newQueue(connection, { addTimeoutMs: paced(addTimeoutMs) });
    const refusal = (await queue.add('job', {}).catch((error: unknown) => error)) as HoldfastError;
    expect(refusal).toMatchObject({ code, retryable, store: 'postgres' });
    expect(refusal.message).toMatch(message);
    expect(refusal.message).not.toMatch(/not-the-one|secret/);
    expect(told).toEqual([refusal]);

    const { worker, errors } = newWorker(connection);
    await until('an error', () => errors.length > 0, 6_000);
    expect(errors[0]).toMatchObject({ code, retryable, store: 'postgres' });
    expect(errors[0]?.message).toMatch(message);
    // It tries again meanwhile (after runRetryDelay where time alone heals nothing), and says nothing new.
    await sleep(retryable ? 500 : 0);
    expect(errors).toHaveLength(1);

    await Promise.all([closesSoon(worker), closesSoon(queue)]);
  });

  test('lets queue and worker be closed before the first reply', async () => {
    const connection = await make();
    const { queue } = newQueue(connection);
    const adding = queue.add('job', {}).catch((error: unknown) => error);
    const { worker } = newWorker(connection);
    await Promise.all([closesSoon(worker), closesSoon(queue)]);
    expect(await adding).toBeInstanceOf(Error);
  });
});

test('a pooler in transaction mode is accepted', async () => {
  const pooler = await startPgbouncer(await newDatabase());
  onTestFinished(() => pooler.close());
  const connection = pooler.url;
  const { queue } = newQueue(connection);
  const { worker, errors } = newWorker(connection);
  const completed = new Promise<void>((resolve) => worker.once('completed', () => resolve()));
  await queue.add('job', {});
  await completed;
  await Promise.all([closesSoon(worker), closesSoon(queue)]);
  expect(errors).toEqual([]);
});

interface Turn {
  what: string;
  code: ErrorCode;
  turn(at: { server: TestServer; admin: string; guest: string }): Promise<unknown>;
}

// So that the next call meets the new state on a new connection.
const CUT = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'`;

/** Returns false after a deadlock, and throws any other error. */
function isDeadlock(error: Error & { code?: string }): false {
  if (error.code === '40P01') return false;
  throw error;
}

const TURNS: Turn[] = [
  { what: 'is killed', code: 'STORE_UNAVAILABLE', turn: ({ server }) => server.kill() },
  { what: 'does not answer any more', code: 'STORE_UNAVAILABLE', turn: ({ server }) => server.stop() },
  {
    what: 'becomes read only',
    code: 'STORE_READONLY',
    turn: ({ admin }) => run(admin, 'ALTER DATABASE postgres SET default_transaction_read_only = on', CUT),
  },
  {
    what: 'gets another password',
    code: 'STORE_DENIED',
    turn: ({ admin, guest }) => run(admin, `ALTER ROLE ${guest} PASSWORD 'another'`, CUT),
  },
  {
    what: 'takes the rights away',
    code: 'STORE_DENIED',
    turn: ({ admin, guest }) =>
      run(admin, `ALTER SCHEMA holdfast OWNER TO postgres; REVOKE ALL ON SCHEMA holdfast FROM ${guest}`),
  },
  {
    what: 'loses the schema',
    code: 'STORE_GONE',
    // It locks the tables in another order than the calls of the worker do. If it deadlocks with one, it is repeated.
    turn: ({ admin }) =>
      until('the schema is gone', () => run(admin, 'DROP SCHEMA holdfast CASCADE').then(() => true, isDeadlock)),
  },
];

describe.each(TURNS)('a server that served and $what', ({ code, turn }) => {
  test('makes a waiting worker emit error and add reject, and both can be closed', async () => {
    const server = await newServer();
    const { guest, url } = await asGuest(server.url);
    await run(server.url, `GRANT CREATE ON DATABASE postgres TO ${guest}`);
    const connection = { url, connectTimeoutMs: paced(1_000), queryTimeoutMs: paced(1_000) };
    const { queue } = newQueue(connection, { addTimeoutMs: paced(2_000) });
    const { worker, errors } = newWorker(connection, { drainDelay: 1, lockDuration: paced(2_000) });
    await queue.add('job', {});
    await new Promise<void>((resolve) => worker.once('drained', () => resolve()));
    await turn({ server, admin: server.url, guest });
    await expect(queue.add('job', {})).rejects.toThrow();
    await until(`the error ${code}`, () => errors.some((error) => error.code === code), 8_000);
    await Promise.all([closesSoon(worker), closesSoon(queue)]);
  });
});

test('a worker finds a PostgreSQL server that starts late', async () => {
  const server = await newServer();
  await server.kill();
  const connection = server.url;
  const { worker, errors } = newWorker(connection);
  await until('an error', () => errors.length > 0, 6_000);
  const ready = new Promise<void>((resolve) => worker.once('ready', () => resolve()));
  await server.restart();
  await ready;
  const { queue } = newQueue(connection);
  const completed = new Promise<void>((resolve) => worker.once('completed', () => resolve()));
  await queue.add('job', {});
  await completed;
  await Promise.all([closesSoon(worker), closesSoon(queue)]);
  expect(errors).toHaveLength(1);
});

test('the error for a missing pg says what to type, for add and for a worker, and both can be closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-missing-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const root = fileURLToPath(new URL('../../', import.meta.url));
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true });
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  writeFileSync(
    join(folder, 'program.mjs'),
    `import { migratePostgres, Queue, Worker } from 'holdfast';
const connection = 'postgres://127.0.0.1:1/db';
const queue = new Queue('q', { connection });
const told = await queue.add('job', {}).catch((error) => error);
const worker = new Worker('q', async () => undefined, { connection });
const heard = await new Promise((resolve) => worker.on('error', resolve));
const migrated = await migratePostgres(connection).catch((error) => error);
await worker.close();
await queue.close();
console.log(JSON.stringify([told, heard, migrated].map(({ code, message }) => ({ code, message }))));
`,
  );
  const { stdout } = await promisify(execFile)(process.execPath, ['program.mjs'], { cwd: folder, timeout: paced(15_000) });
  const errors = JSON.parse(stdout) as { code: string; message: string }[];
  expect(errors.map(({ code }) => code)).toEqual(['DRIVER_MISSING', 'DRIVER_MISSING', 'DRIVER_MISSING']);
  // On one line: the advice must not stand below Node's require stack.
  expect(errors[0]?.message).toMatch(/^The PostgreSQL store needs the package pg, .*npm install pg$/);
});
