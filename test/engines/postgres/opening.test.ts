// Opening and closing a PostgreSQL store: what is wrong is said at once, in one error that says what to do.
import { Pool } from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { HoldfastError } from '../../../src/errors.js';
import { migratePostgres, PostgresStore } from '../../../src/store/postgres/index.js';
import { freePort } from '../../support/servers/free-port.js';
import {
  completed,
  newClient,
  newEmptyDatabase,
  newJob,
  newProxy,
  newServer,
  newSession,
  newStore,
  openStore,
} from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';

async function failure(opening: Promise<unknown>): Promise<HoldfastError> {
  return opening.then(
    () => expect.fail('it opened'),
    (error: HoldfastError) => error,
  );
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const took = stopwatch();
  await work;
  expect(took()).toBeLessThan(ms);
}

/** The same server, for a role with fewer rights. */
async function asUser(url: string, name: string, ...statements: string[]): Promise<string> {
  const admin = await newClient(url);
  await admin.query(`CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
  onTestFinished(async () => {
    await admin.query(`DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`);
  });
  for (const statement of statements) await admin.query(statement);
  const changed = new URL(url);
  changed.username = name;
  changed.password = 'secret';
  return changed.href;
}

describe('a PostgreSQL store refuses to open', () => {
  test('with a wrong password, without showing it', async () => {
    const url = new URL(await newEmptyDatabase());
    url.password = 'not-the-one';
    const error = await failure(newStore({ url: url.href }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false, store: 'postgres' });
    expect(error.message).toMatch(/refuses the user or the password.*28P01/);
    expect(error.message).not.toContain('not-the-one');
  });

  test('with an unknown host', async () => {
    const error = await failure(newStore({ url: 'postgres://u:p@no-such-host.invalid/db' }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false });
    expect(error.message).toMatch(/no host of the name.*no-such-host/);
    expect(error.message).not.toContain('u:p');
  });

  test('on a port where no server listens, as retryable', async () => {
    const error = await failure(newStore({ host: '127.0.0.1', port: await freePort() }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(error.message).toContain('ECONNREFUSED');
  });

  test('with a database that does not exist', async () => {
    const url = new URL(await newEmptyDatabase());
    url.pathname = '/nowhere';
    const error = await failure(newStore({ url: url.href }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false });
    expect(error.message).toMatch(/no such database.*3D000.*"nowhere"/);
  });

  test('on a replica', async () => {
    const server = await newServer({ standby: true });
    const error = await failure(newStore({ url: server.url }).open());
    expect(error).toMatchObject({ code: 'STORE_READONLY', retryable: false });
    expect(error.message).toContain('Name the primary');
  });

  test('without the right to create the schema, and says what to run', async () => {
    const url = await newEmptyDatabase();
    const restricted = await asUser(url, 'opening_no_rights');
    const error = await failure(newStore({ url: restricted }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false });
    const database = new URL(url).pathname.slice(1);
    const grant = `GRANT CREATE ON DATABASE "${database}" TO "opening_no_rights";`;
    const instead = 'CREATE SCHEMA IF NOT EXISTS "holdfast"; GRANT ALL ON SCHEMA "holdfast" TO "opening_no_rights";';
    expect(error.message).toContain(grant);
    expect(error.message).toContain(instead);
    // Both do what the message says.
    const admin = await newClient(url);
    await admin.query(instead);
    const store = await openStore({ url: restricted });
    await admin.query(grant);
    await openStore({ url: restricted, schema: 'another' });
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toEqual([{ id: '1', status: 'added' }]);
  });

  test('without rights on a schema of another role, and opens with them', async () => {
    const url = await newEmptyDatabase();
    await migratePostgres({ url });
    const restricted = await asUser(url, 'opening_guest', 'GRANT USAGE ON SCHEMA holdfast TO opening_guest');
    const error = await failure(newStore({ url: restricted }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false });
    expect(error.message).toContain('GRANT USAGE ON SCHEMA "holdfast" TO <user>');
    const admin = await newClient(url);
    await admin.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA holdfast TO opening_guest;
      GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA holdfast TO opening_guest`);
    const guest = await openStore({ url: restricted, migrate: false });
    const owner = await openStore({ url });
    // Queues that neither has used before, each begun by the other.
    await guest.add('q', [newJob()], { caller: 'p', seq: 1 });
    expect(await owner.add('q', [newJob()], { caller: 'p', seq: 2 })).toEqual([{ id: '2', status: 'added' }]);
    await owner.add('other', [newJob()], { caller: 'p', seq: 1 });
    expect(await guest.add('other', [newJob()], { caller: 'p', seq: 2 })).toEqual([{ id: '2', status: 'added' }]);
    await guest.openSession(newSession({ queue: 'q' }));
    const { jobs } = await guest.claim('q', { session: 's', seq: 1, count: 2 });
    expect((await guest.settle('q', jobs.map(completed), { caller: 's', seq: 2 })).results).toEqual(['done', 'done']);
    expect((await guest.events('q', 0, 100)).events.length).toBeGreaterThan(0);
    await guest.sweep('q', 10);
    await guest.forget('q', { all: true });
    await guest.closeSessions([{ queue: 'q', id: 's' }], 'closed');
  });

  test('on a server that is too old', async () => {
    const error = await failure(newStore({ pool: fakePool([120_009, false, 'UTF8', 'read committed', 1, 'app', 'me']) }).open());
    expect(error).toMatchObject({ code: 'STORE_UNSUPPORTED', retryable: false });
    expect(error.message).toMatch(/is version 12: Holdfast needs 13 or newer/);
  });

  test('on a database that is not UTF8', async () => {
    const url = await newEmptyDatabase();
    await (await newClient(url)).query(`CREATE DATABASE opening_latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'`);
    const admin = await newClient(url);
    onTestFinished(async () => void (await admin.query('DROP DATABASE opening_latin WITH (FORCE)')));
    const latin = new URL(url);
    latin.pathname = '/opening_latin';
    expect((await failure(newStore({ url: latin.href }).open())).message).toMatch(/encoded in LATIN1.*needs UTF8/);
  });

  test('under an isolation level other than read committed', async () => {
    const url = await newEmptyDatabase();
    const strict = await asUser(
      url,
      'opening_strict',
      'GRANT CREATE ON DATABASE ' + new URL(url).pathname.slice(1) + ' TO opening_strict',
      `ALTER ROLE opening_strict SET default_transaction_isolation = 'serializable'`,
    );
    const error = await failure(newStore({ url: strict }).open());
    expect(error).toMatchObject({ code: 'STORE_UNSUPPORTED', retryable: false });
    expect(error.message).toContain(`SET default_transaction_isolation = 'read committed'`);
  });

  test('on a schema of another program, and does not touch it', async () => {
    const url = await newEmptyDatabase();
    const admin = await newClient(url);
    await admin.query('CREATE SCHEMA holdfast; CREATE TABLE holdfast.jobs (mine text)');
    const error = await failure(newStore({ url }).open());
    expect(error).toMatchObject({ code: 'STORE_FOREIGN', retryable: false });
    expect(
      (await admin.query("SELECT count(*)::int AS n FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace")).rows,
    ).toEqual([{ n: 1 }]);
    await openStore({ url, schema: 'another' });
  });

  test('on a schema that is newer than this version', async () => {
    const url = await newEmptyDatabase();
    await migratePostgres({ url });
    await (await newClient(url)).query('UPDATE holdfast.holdfast_schema SET layout = 99');
    for (const migrate of [true, false]) {
      const error = await failure(newStore({ url, migrate }).open());
      expect(error).toMatchObject({ code: 'STORE_NEWER', retryable: false });
      expect(error.message).toContain('has version 99');
    }
  });

  test('within connectTimeoutMs when the server accepts and never replies', async () => {
    const server = await newServer();
    await server.stop();
    const took = stopwatch();
    const error = await failure(newStore({ url: server.url, connectTimeoutMs: 300 }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(took()).toBeLessThan(paced(2_000));
  });

  test('at first, and opens at the next try when the cause is gone', async () => {
    const server = await newServer();
    await server.kill();
    const store = newStore({ url: server.url });
    expect(await failure(store.open())).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    await server.restart();
    await store.open();
    expect(await store.status('q')).toMatchObject({ paused: false });
  });

  test('without the package pg, and names it', async () => {
    vi.doMock('pg', () => {
      throw new Error("Cannot find package 'pg'");
    });
    vi.resetModules();
    onTestFinished(() => {
      vi.doUnmock('pg');
      vi.resetModules();
    });
    const fresh = await import('../../../src/store/postgres/index.js');
    const error = await failure(new fresh.PostgresStore({ host: 'localhost' }).open());
    expect(error.code).toBe('DRIVER_MISSING');
    expect(error.message).toContain('npm install pg');
  });
});

describe('the schema of a PostgreSQL store', () => {
  test('is made once, however many processes start at once', async () => {
    const url = await newEmptyDatabase();
    const stores = await Promise.all(Array.from({ length: 8 }, () => openStore({ url, max: 2 })));
    await Promise.all(stores.map((store, n) => store.add('q', [newJob()], { caller: `p${n}`, seq: 1 })));
    expect((await stores[0]?.status('q'))?.counts.waiting).toBe(8);
  });

  test('is only checked with migrate: false, and made by migratePostgres', async () => {
    const url = await newEmptyDatabase();
    const store = newStore({ url, migrate: false });
    const error = await failure(store.open());
    expect(error).toMatchObject({ code: 'STORE_UNSUPPORTED', retryable: false });
    expect(error.message).toMatch(/is not there\. Call migratePostgres\(connection\)/);
    await migratePostgres({ url });
    await migratePostgres({ url });
    await store.open();
  });

  test('is reported as STORE_GONE when a part of it is missing', async () => {
    const url = await newEmptyDatabase();
    const store = await openStore({ url });
    await (await newClient(url)).query('DROP FUNCTION holdfast.status(text)');
    expect(await failure(store.status('q'))).toMatchObject({ code: 'STORE_GONE', retryable: false });
  });

  test('can have any name, also one that needs quotes, beside another one', async () => {
    const url = await newEmptyDatabase();
    const [one, two] = [
      await openStore({ url, schema: 'Jobs-1' }),
      await openStore({ url: `${url}?schema=jobs_2&notify=false` }),
    ];
    await one.add('q', [newJob()], { caller: 'p', seq: 1 });
    expect((await one.status('q')).counts.waiting).toBe(1);
    expect((await two.status('q')).counts.waiting).toBe(0);
    expect(two.capabilities.crashHints).toBe(false);
  });

  test.each(['public', 'pg_mine', 'information_schema', '', 'a b', 'x'.repeat(64), 'a"b', 7])('cannot be called %j', (schema) => {
    expect(() => new PostgresStore({ schema: schema as string })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option: 'schema' }),
    );
  });
});

describe('options of a PostgreSQL store', () => {
  test.each([
    { max: 0 },
    { connectTimeoutMs: -1 },
    { queryTimeoutMs: 1.5 },
    { migrate: 'yes' },
    { notify: 1 },
    { url: 'postgres://h/d?notify=maybe' },
  ])('%j is refused', (options) => {
    expect(() => new PostgresStore(options as object)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  test('refuse an invalid url', () => {
    expect(() => new PostgresStore({ url: 'nonsense' })).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('accept host, port, user, password and database instead of a url', async () => {
    const { hostname, port, username, password, pathname } = new URL(await newEmptyDatabase());
    const store = await openStore({ host: hostname, port: Number(port), user: username, password, database: pathname.slice(1) });
    expect(await store.status('q')).toMatchObject({ paused: false });
  });

  test('describe a smaller store for the thread that does not migrate', async () => {
    const options = { url: 'postgres://u:p@h/d', schema: 'jobs', notify: false };
    expect(new PostgresStore(options).describe()).toEqual({
      engine: 'postgres',
      options: { ...options, migrate: false, max: 2 },
    });
  });
});

describe('a PostgreSQL pool of the user', () => {
  test('provides the password and the private key that pg hides', () => {
    const ssl = { ca: Buffer.from('authority'), key: Buffer.from('secret') };
    const pool = new Pool({ host: 'h', password: 'p', ssl });
    expect(Object.keys(ssl)).toEqual(['ca']);
    expect(new PostgresStore({ pool }).describe()?.options).toMatchObject({
      password: 'p',
      ssl: { ca: new Uint8Array(Buffer.from('authority')), key: new Uint8Array(Buffer.from('secret')) },
    });
  });

  test('is used, provides its options to a thread, and stays open', async () => {
    const connectionString = await newEmptyDatabase();
    const pool = new Pool({ connectionString, max: 3 });
    onTestFinished(() => pool.end());
    const store = await openStore({ pool });
    expect(store.describe()).toEqual({ engine: 'postgres', options: { connectionString, migrate: false, max: 2 } });
    await store.openSession(newSession());
    expect(store.capabilities.crashHints).toBe(true);
    await store.close();
    expect((await pool.query('SELECT count(*)::int AS n FROM holdfast.sessions WHERE vouched IS NOT NULL')).rows).toEqual([
      { n: 1 },
    ]);
  });

  test('makes calls reject when it has no connection left, and succeed when one is free', async () => {
    const pool = new Pool({ connectionString: await newEmptyDatabase(), max: 1 });
    onTestFinished(() => pool.end());
    const store = await openStore({ pool, connectTimeoutMs: 200, notify: false });
    const taken = await pool.connect();
    expect(await failure(store.status('q'))).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    taken.release();
    expect(await store.status('q')).toMatchObject({ paused: false });
  });
});

describe('close of a PostgreSQL store', () => {
  test('resolves while the server does not reply, and calls in flight reject', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    const unwatch = store.watch('q', () => undefined);
    await store.openSession(newSession());
    await server.stop();
    const calls = [failure(store.status('q')), failure(store.add('q', [newJob()], { caller: 'p', seq: 1 }))];
    await within(8_000, store.close());
    for (const error of await Promise.all(calls)) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    unwatch();
  });

  test('resolves while the server is gone', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    store.watch('q', () => undefined);
    await server.kill();
    await within(2_000, store.close());
  });

  test('resolves while the store is being opened', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    proxy.swallow('both');
    const store = newStore({ url: proxy.url(server.url), connectTimeoutMs: 500 });
    const opening = failure(store.open());
    await within(3_000, store.close());
    expect(await opening).toMatchObject({ code: 'STORE_UNAVAILABLE' });
  });

  test('leaves no connection behind', async () => {
    const url = await newEmptyDatabase();
    const store = await openStore({ url });
    store.watch('q', () => undefined);
    await store.openSession(newSession());
    await Promise.all(Array.from({ length: 20 }, (_, n) => store.add('q', [newJob()], { caller: `p${n}`, seq: 1 })));
    await store.close();
    const admin = await newClient(url);
    const others = `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    await until('no connection is left', async () => (await admin.query(others)).rowCount === 0);
  });
});

describe('PostgreSQL settings that can lose acknowledged jobs', () => {
  test('are reported with the remedy, and a safe server is not reported', async () => {
    const careless = await newServer({ settings: { synchronous_commit: 'off', fsync: 'off' } });
    const warnings: string[] = [];
    (await openStore({ url: careless.url })).onWarning(({ message }) => warnings.push(message));
    expect(warnings.sort()).toEqual([
      expect.stringMatching(/fsync = off.*ALTER SYSTEM SET fsync = on/),
      expect.stringMatching(/synchronous_commit = off.*ALTER SYSTEM SET synchronous_commit = on/),
    ]);
    const sound = await openStore({ url: await newEmptyDatabase() });
    sound.onWarning(() => expect.fail('there is nothing to warn of'));
  });
});

/** A server of a version that cannot be had any more, as far as it is asked before it is refused. */
function fakePool(row: unknown[]): never {
  const client = { query: () => Promise.resolve({ rows: [row] }), on: () => undefined, release: () => undefined, processID: 1 };
  return { connect: () => Promise.resolve(client), end: () => Promise.resolve(), on: () => undefined, options: {} } as never;
}
