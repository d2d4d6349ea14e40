// Checks whether the server and the schema fit, and creates or migrates the schema. Every migration recreates all functions: a release
// that changes a function appends a migration, even an empty one.
import { type ErrorCode, HoldfastError } from '../../../errors.js';
import { codeOf, isCollision } from './errors.js';
import { quoteName } from './options.js';
import type { Server } from './server.js';
import { functionTexts, sqlOf } from './sql.js';
import { MIGRATIONS, READABLE_SINCE } from './tables.js';

export const SCHEMA_VERSION = MIGRATIONS.length;

/** PostgreSQL 13, as server_version_num. */
const OLDEST_SERVER = 130_000;
/** Timeout: another process may be migrating a large schema. */
const MIGRATION_MS = 120_000;
const TRIES = 10;

/** The names for the GRANT statement in an error message. */
type Who = [database: string, user: string];

type Run = (text: string, values?: unknown[]) => Promise<unknown[][]>;

interface Found {
  /** The numbers of the migrations that this call ran. */
  ran: number[];
  /** True if no pooler lies between this process and the server. */
  direct: boolean;
  /** The rows that `schema/durability` in sql/schema.sql returns. */
  settings: unknown[][];
}

/** Checks the server and the schema. Creates or migrates the schema if `migrate` is true. */
export async function prepareSchema(server: Server, schema: string, migrate: boolean): Promise<Found> {
  return server.use(async (run, client) => {
    const [row] = await run(sqlOf('schema/facts'));
    const [version, readOnly, encoding, isolation, pid, ...who] = row as [
      number,
      boolean,
      string,
      string,
      number,
      string,
      string,
    ];
    const { place } = server.circumstance;
    if (version < OLDEST_SERVER)
      throw refused(
        'STORE_UNSUPPORTED',
        `PostgreSQL at ${place} is version ${Math.floor(version / 10_000)}: Holdfast needs 13 or newer. Upgrade the server.`,
      );
    if (encoding !== 'UTF8')
      throw refused(
        'STORE_UNSUPPORTED',
        `The database at ${place} is encoded in ${encoding}: Holdfast needs UTF8. Create one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
      );
    // The verbs read again after they have waited for a lock. Under other isolation levels they would not see what the other transaction
    // wrote.
    if (isolation !== 'read committed') {
      throw refused(
        'STORE_UNSUPPORTED',
        `The user at ${place} has the default_transaction_isolation "${isolation}": Holdfast needs "read committed". Run: ALTER ROLE <user> SET default_transaction_isolation = 'read committed'`,
      );
    }
    if (readOnly) {
      throw refused(
        'STORE_READONLY',
        `PostgreSQL at ${place} takes no writes: it is a replica, or set to read only. Name the primary server.`,
      );
    }
    const ran = migrate ? await bringUp(run, schema, place, who) : await check(run, schema, place);
    // Behind a pooler, the process number of the connection differs from that of the process that serves it.
    return { ran, direct: client.processID === pid, settings: await run(sqlOf('schema/durability')) };
  }, MIGRATION_MS);
}

async function check(run: Run, schema: string, place: string): Promise<[]> {
  const version = await versionOf(run, schema, place);
  if (version >= SCHEMA_VERSION) return [];
  const state = version === 0 ? 'is not there' : `has version ${version} and must have ${SCHEMA_VERSION}`;
  throw refused(
    'STORE_UNSUPPORTED',
    `The schema "${schema}" at ${place} ${state}. Call migratePostgres(connection) once, as a user who may create it, or open the store without migrate: false.`,
  );
}

/**
 * Migrates under a lock, because several processes may start at once. One of them migrates; the others find that done when they check
 * again under the lock.
 */
async function bringUp(run: Run, schema: string, place: string, who: Who): Promise<number[]> {
  if ((await versionOf(run, schema, place)) >= SCHEMA_VERSION) return [];
  for (let tries = 1; ; tries += 1) {
    await run('BEGIN');
    try {
      await run(sqlOf('schema/lock-schema'), [schema]);
      const version = await versionOf(run, schema, place);
      if (version < SCHEMA_VERSION) await writeSchema(run, schema, version, place, who);
      await run('COMMIT');
      return MIGRATIONS.map((_, index) => index + 1).slice(version);
    } catch (error) {
      await run('ROLLBACK').catch(() => undefined);
      // Calls of running processes may hold one table and want the next: that deadlock is retried.
      if (!isCollision(error) || tries >= TRIES) throw error;
    }
  }
}

async function writeSchema(run: Run, schema: string, version: number, place: string, who: Who): Promise<void> {
  try {
    // CREATE SCHEMA IF NOT EXISTS would require the right to create a schema even if the schema exists.
    const [row] = await run('SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)', [schema]);
    if (row?.[0] !== true) await run(`CREATE SCHEMA ${quoteName(schema)}`);
    // The functions keep this search path, so that they find the tables wherever they are called from.
    await run(`SET LOCAL search_path TO ${quoteName(schema)}, pg_temp`);
    for (const migration of MIGRATIONS.slice(version)) await run(migration);
    // The functions come in any order, and may call one another.
    await run('SET LOCAL check_function_bodies TO off');
    await run("SELECT set_config('holdfast.functions', $1, true)", [JSON.stringify(functionTexts())]);
    await run(sqlOf('schema/replace-functions'));
    if (version === 0) await run('INSERT INTO holdfast_schema (layout) VALUES (0)');
    await run('UPDATE holdfast_schema SET layout = $1, revision = $2', [READABLE_SINCE, SCHEMA_VERSION]);
  } catch (error) {
    if (codeOf(error) !== '42501') throw error;
    const [database, user] = who.map(quoteName);
    const remedy =
      version === 0
        ? `Let an owner of the database type: GRANT CREATE ON DATABASE ${database} TO ${user}; or, for this schema alone: ` +
          `CREATE SCHEMA IF NOT EXISTS ${quoteName(schema)}; GRANT ALL ON SCHEMA ${quoteName(schema)} TO ${user};`
        : 'Only its owner may change it: call migratePostgres(connection) once as that user.';
    throw refused(
      'STORE_DENIED',
      `The user ${user} may not ${version === 0 ? 'create' : 'change'} the schema "${schema}" at ${place}. ${remedy}`,
      error,
    );
  }
}

/**
 * Returns how many migrations the schema has. 0: it does not exist. It may be newer than this Holdfast, if this Holdfast can work with
 * it.
 */
async function versionOf(run: Run, schema: string, place: string): Promise<number> {
  const name = quoteName(schema);
  const [row] = await run(sqlOf('schema/contents'), [`${name}.holdfast_schema`, schema]);
  const [ours, relations] = row as [boolean, number];
  if (!ours && relations > 0) {
    throw refused(
      'STORE_FOREIGN',
      `The schema "${schema}" at ${place} holds tables that are not Holdfast's. Name another schema; this one was not touched.`,
    );
  }
  if (!ours) return 0;
  const [found] = await run(
    `SELECT (to_jsonb(s) ->> 'layout')::int, (to_jsonb(s) ->> 'revision')::int FROM ${name}.holdfast_schema s`,
  );
  const [layout, revision] = (found ?? [0, 0]) as [number | null, number];
  if (layout === null) {
    throw refused(
      'STORE_UNSUPPORTED',
      `The schema "${schema}" at ${place} was made by a build from before 0.1.0, whose layout no version migrates. ` +
        `Drop it with its jobs (DROP SCHEMA ${name} CASCADE), or name another schema; this one was not touched.`,
    );
  }
  if (layout > SCHEMA_VERSION) {
    throw refused(
      'STORE_NEWER',
      `The schema "${schema}" at ${place} has version ${layout}, but this Holdfast knows versions up to ${SCHEMA_VERSION}. ` +
        'Upgrade the holdfast package here, or name another schema; this one was not touched.',
    );
  }
  return revision;
}

function refused(code: ErrorCode, message: string, cause?: unknown): HoldfastError {
  return new HoldfastError(code, message, { cause, store: 'postgres' });
}
