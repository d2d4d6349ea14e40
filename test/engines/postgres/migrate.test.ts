// Making and migrating the schema: by hand or at the start, once however many begin together, and never downwards.
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { migratePostgres } from '../../../src/store/open.js';
import { SCHEMA_VERSION } from '../../../src/store/postgres/driver/schema.js';
import { newClient, newEmptyDatabase, newJob, newStore, openStore } from './support.js';
import { newPool } from './transaction-ways.js';

const ALL = Array.from({ length: SCHEMA_VERSION }, (_, index) => index + 1);

/** The same engine as a later version of it, whose last migration makes a table. `readable`: by the version of today. */
async function laterVersion(readable = false): Promise<typeof import('../../../src/store/postgres/index.js')> {
  const tables = await import('../../../src/store/postgres/driver/tables.js');
  vi.doMock('../../../src/store/postgres/driver/tables.js', () => ({
    ...tables,
    MIGRATIONS: [...tables.MIGRATIONS, 'CREATE TABLE later (n int)'],
    ...(readable ? {} : { READABLE_SINCE: tables.MIGRATIONS.length + 1 }),
  }));
  vi.resetModules();
  onTestFinished(() => {
    vi.doUnmock('../../../src/store/postgres/driver/tables.js');
    vi.resetModules();
  });
  return import('../../../src/store/postgres/index.js');
}

describe('migratePostgres', () => {
  test('makes the schema and returns what it ran, and runs nothing the second time', async () => {
    const url = await newEmptyDatabase();
    expect(await migratePostgres(url)).toEqual({ schema: 'holdfast', version: SCHEMA_VERSION, ran: ALL });
    expect(await migratePostgres(url)).toEqual({ schema: 'holdfast', version: SCHEMA_VERSION, ran: [] });
    const store = await openStore({ url, migrate: false });
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toEqual([{ id: '1', status: 'added' }]);
  });

  test.each<[string, (url: string) => unknown, Record<string, unknown>?]>([
    ['a URL', (url) => `${url}?schema=jobs`],
    ['options', (url) => ({ url, schema: 'jobs' })],
    ['a URL and options', (url) => url, { schema: 'jobs' }],
    ['a pool', (url) => newPool(url), { schema: 'jobs' }],
  ])('takes %s', async (_name, connection, options) => {
    const url = await newEmptyDatabase();
    expect(await migratePostgres(connection(url) as string, options)).toMatchObject({ schema: 'jobs', ran: ALL });
    await openStore({ url, schema: 'jobs', migrate: false });
  });

  test.each(['memory:', 'redis://localhost', { path: 'jobs.db' }])('refuses %j', async (connection) => {
    await expect(migratePostgres(connection)).rejects.toMatchObject({ code: 'INVALID_CONNECTION' });
  });

  test('runs once, however many processes call it at once', async () => {
    const url = await newEmptyDatabase();
    const results = await Promise.all(Array.from({ length: 10 }, () => migratePostgres(url)));
    expect(results.filter(({ ran }) => ran.length > 0)).toHaveLength(1);
  });

  test('leaves nothing behind when it fails', async () => {
    const url = await newEmptyDatabase();
    const admin = await newClient(url);
    await admin.query(`CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $$not now$$; END';
      CREATE EVENT TRIGGER refuse ON ddl_command_end WHEN TAG IN ('CREATE FUNCTION') EXECUTE FUNCTION refuse()`);
    await expect(migratePostgres(url)).rejects.toThrow(/not now/);
    expect((await admin.query(`SELECT FROM pg_namespace WHERE nspname = 'holdfast'`)).rows).toHaveLength(0);
    await admin.query('DROP EVENT TRIGGER refuse');
    expect((await migratePostgres(url)).ran).toEqual(ALL);
  });
});

test('a schema of a build from before 0.1.0 is refused, with what to do, and stays as it is', async () => {
  const url = await newEmptyDatabase();
  const admin = await newClient(url);
  await admin.query(`CREATE SCHEMA holdfast; CREATE TABLE holdfast.holdfast_schema (version int, revision int);
    INSERT INTO holdfast.holdfast_schema VALUES (6, 23); CREATE TABLE holdfast.jobs (id text); INSERT INTO holdfast.jobs VALUES ('kept')`);
  for (const migrate of [true, false]) {
    await expect(newStore({ url, migrate }).open()).rejects.toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: expect.stringMatching(/from before 0\.1\.0.*DROP SCHEMA "holdfast" CASCADE/) as string,
    });
  }
  await expect(migratePostgres(url)).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED' });
  expect((await admin.query('SELECT * FROM holdfast.jobs')).rows).toEqual([{ id: 'kept' }]);
});

describe('a later version of the PostgreSQL schema', () => {
  test('migrates the data of an earlier version, which then refuses the schema', async () => {
    const url = await newEmptyDatabase();
    const earlier = await openStore({ url });
    await earlier.add('q', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    await earlier.close();

    const { PostgresStore, migratePostgres: migrate } = await laterVersion();
    const strict = new PostgresStore({ url, migrate: false });
    onTestFinished(() => strict.close());
    await expect(strict.open()).rejects.toMatchObject({
      code: 'STORE_UNSUPPORTED',
      message: expect.stringMatching(
        new RegExp(`has version ${SCHEMA_VERSION} and must have ${SCHEMA_VERSION + 1}\\. Call migratePostgres\\(`),
      ) as string,
    });

    expect(await migrate({ url })).toMatchObject({ version: SCHEMA_VERSION + 1, ran: [SCHEMA_VERSION + 1] });
    await strict.open();
    expect((await strict.jobs('q', ['kept'])).jobs[0]?.id).toBe('kept');

    for (const migrateThere of [true, false]) {
      await expect(newStore({ url, migrate: migrateThere }).open()).rejects.toMatchObject({ code: 'STORE_NEWER' });
    }
    expect((await strict.jobs('q', ['kept'])).jobs[0]?.id).toBe('kept');
  });

  test('that only adds can still be used by the earlier version, which does not change it', async () => {
    const url = await newEmptyDatabase();
    const earlier = await openStore({ url });
    await earlier.add('q', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    const { migratePostgres: migrate } = await laterVersion(true);
    expect(await migrate({ url })).toMatchObject({ ran: [SCHEMA_VERSION + 1] });
    expect((await earlier.jobs('q', ['kept'])).jobs[0]?.id).toBe('kept');
    for (const migrateThere of [true, false]) {
      const again = await openStore({ url, migrate: migrateThere });
      expect((await again.jobs('q', ['kept'])).jobs[0]?.id).toBe('kept');
    }
    expect(await migratePostgres(url)).toMatchObject({ ran: [] });
    expect(await migrate({ url })).toMatchObject({ ran: [] });
  });

  test('replaces the functions in place, and drops those that have changed or are gone', async () => {
    const url = await newEmptyDatabase();
    await migratePostgres(url);
    const admin = await newClient(url);
    const functions = async (): Promise<Map<string, string>> => {
      const { rows } = await admin.query(`SELECT proname, string_agg(oid || md5(prosrc), ',') AS oids FROM pg_proc
        WHERE pronamespace = 'holdfast'::regnamespace GROUP BY proname`);
      return new Map(rows.map(({ proname, oids }) => [proname as string, oids as string]));
    };
    const before = await functions();
    // A function with another body, one with other types, one with another result and one that this version does not have.
    await admin.query(`SET search_path TO holdfast; SET check_function_bodies TO off;
      CREATE OR REPLACE FUNCTION group_place(_paused boolean, _active float8, _own float8, _common float8) RETURNS boolean LANGUAGE sql AS 'SELECT false';
      DROP FUNCTION clock_ms() CASCADE; CREATE FUNCTION clock_ms(_n int) RETURNS float8 LANGUAGE sql AS 'SELECT 1';
      DROP FUNCTION note_groups(int, text[], text[]) CASCADE;
      CREATE FUNCTION note_groups(_queue int, _freed text[], _entered text[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
      CREATE FUNCTION gone() RETURNS int LANGUAGE sql AS 'SELECT 1'`);
    expect((await functions()).get('group_place')).not.toBe(before.get('group_place'));
    const { migratePostgres: migrate } = await laterVersion(true);
    await migrate({ url });
    const after = await functions();
    const changed = [...after].filter(([name, oids]) => before.get(name) !== oids).map(([name]) => name);
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
    expect(changed.sort()).toEqual(['clock_ms', 'note_groups']);
  });

  test('does not stop an earlier version whose connection has kept an invalid plan', async () => {
    const url = await newEmptyDatabase();
    const pool = newPool(url);
    const store = await openStore({ pool });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    // As the server replies if the function was replaced while it made the plan.
    let refusals = 0;
    const kept = await pool.connect();
    const query = kept.query.bind(kept);
    kept.query = ((config: unknown, ...rest: unknown[]) => {
      const text = typeof config === 'string' ? config : (config as { text: string }).text;
      if (!text.includes('status')) return (query as (...all: unknown[]) => unknown)(config, ...rest);
      refusals += 1;
      return Promise.reject(Object.assign(new Error('cache lookup failed for function 23333'), { code: 'XX000' }));
    }) as typeof kept.query;
    kept.release();
    expect((await store.status('q')).counts.waiting).toBe(1);
    expect(refusals).toBe(1);
  });

  test('names the owner of the schema when another role must migrate it', async () => {
    const url = await newEmptyDatabase();
    await migratePostgres(url);
    const admin = await newClient(url);
    await admin.query(`CREATE ROLE migrate_guest LOGIN PASSWORD 'secret'; GRANT ALL ON SCHEMA holdfast TO migrate_guest;
      GRANT ALL ON ALL TABLES IN SCHEMA holdfast TO migrate_guest`);
    onTestFinished(async () => void (await admin.query('DROP OWNED BY migrate_guest CASCADE; DROP ROLE migrate_guest')));
    const guest = new URL(url);
    guest.username = 'migrate_guest';
    guest.password = 'secret';
    const { migratePostgres: migrate } = await laterVersion();
    await expect(migrate({ url: guest.href })).rejects.toMatchObject({
      code: 'STORE_DENIED',
      message: expect.stringContaining('call migratePostgres(connection) once as that user') as string,
    });
  });
});
