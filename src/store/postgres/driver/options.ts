// Reads the options of the PostgreSQL store, checks them, and turns them into the options of the driver.
import { checkBoolean, checkInteger, invalidOption, MAX_TIMER_MS } from '../../../runtime/check.js';
import { checkPort, parseServerUrl, readServerUrl } from '../../server-url.js';
import { plainCopy } from '../../descriptor.js';
import type { PgPool } from './driver.js';

export interface PostgresStoreOptions {
  /** postgres://user:password@host:port/database. The query may set `schema`, `migrate`, `notify` and `max`. */
  url?: string;
  host?: string;
  port?: number;
  user?: string;
  password?: string | (() => string | Promise<string>);
  database?: string;
  ssl?: boolean | object;
  application_name?: string;
  /** A pool of yours. Closing the store does not end it. The lock thread opens its own connections with the options of the pool. */
  pool?: PgPool;
  /** The schema of the tables (default `holdfast`). Nothing else may be in it. */
  schema?: string;
  /** False: the store only checks the schema; `migratePostgres` creates it. Default true. */
  migrate?: boolean;
  /**
   * False: the store keeps no connection for LISTEN and the crash hint, and polls for changes every second. Default true. Behind a pooler
   * that assigns connections per transaction, the store does this by itself.
   */
  notify?: boolean;
  /**
   * Prepares statements by name, which saves the server a little parsing and does not work behind most poolers. Default: true if the
   * store has its own pool and no pooler lies between it and the server.
   */
  prepare?: boolean;
  /** How many connections the pool has (default 10), beside the one for LISTEN. */
  max?: number;
  /** How many milliseconds a call waits for a connection (default 4000). Closing waits for it too. */
  connectTimeoutMs?: number;
  /** How many milliseconds a call waits for the server's reply (default 15000). After that, the store drops the connection. */
  queryTimeoutMs?: number;
}

export interface PostgresPlan {
  pool: PgPool | undefined;
  /** Options for a client or a pool of the driver. */
  config: Record<string, unknown>;
  schema: string;
  migrate: boolean;
  notify: boolean;
  /** Undefined: only where it surely works. */
  prepare: boolean | undefined;
  max: number;
  connectTimeoutMs: number;
  queryTimeoutMs: number;
}

const IN_URL = ['schema', 'migrate', 'notify', 'max'] as const;
/** The server cuts longer names. */
const MAX_SCHEMA = 63;

export function planPostgres(given: PostgresStoreOptions): PostgresPlan {
  const { url, pool, ...rest } = { ...readUrl(given.url), ...given };
  checkPort(rest.port);
  const {
    schema = 'holdfast',
    migrate = true,
    notify = true,
    prepare,
    max = 10,
    connectTimeoutMs = 4_000,
    queryTimeoutMs = 15_000,
    ...config
  } = rest;
  return {
    pool,
    config: { application_name: 'holdfast', ...config, ...(url === undefined ? {} : { connectionString: stripUrl(url) }) },
    schema: checkSchema(schema),
    migrate: checkBoolean('migrate', migrate),
    notify: checkBoolean('notify', notify),
    prepare: prepare === undefined ? undefined : checkBoolean('prepare', prepare),
    max: checkInteger('max', max, { min: 1, max: 10_000 }),
    connectTimeoutMs: checkInteger('connectTimeoutMs', connectTimeoutMs, { min: 1, max: MAX_TIMER_MS }),
    queryTimeoutMs: checkInteger('queryTimeoutMs', queryTimeoutMs, { min: 1, max: MAX_TIMER_MS }),
  };
}

/** Options that only matter to a pool of the user: how the pool works, and how rows are read. */
const OF_POOLS = [
  'Client',
  'Promise',
  'log',
  'verify',
  'types',
  'min',
  'maxUses',
  'maxLifetimeSeconds',
  'idleTimeoutMillis',
  'connectionTimeoutMillis',
  'allowExitOnIdle',
];

/** Returns the options that open the same store in the lock thread: the given ones, or those of the user's pool. Throws NOT_CLONEABLE. */
export function threadOptions({ pool, ...given }: PostgresStoreOptions): Record<string, unknown> {
  const { password, ssl, ...others } = { ...pool?.options, ...hiddenOf(pool?.options), ...given, ...hiddenOf(given) };
  // The thread only renews and sweeps: the schema exists by then, and two connections are enough.
  const options = { ...others, password, ssl, migrate: false, max: 2 };
  const needed = Object.entries(options).filter(([name]) => !OF_POOLS.includes(name));
  return plainCopy(Object.fromEntries(needed), 'connection');
}

/** Returns passwords and private keys, which pg hides from enumeration. */
function hiddenOf(given: { password?: unknown; ssl?: unknown } | undefined): Record<string, unknown> {
  const { password, ssl } = given ?? {};
  const key: unknown = (ssl as { key?: unknown } | null | undefined)?.key;
  return {
    ...(password === undefined ? {} : { password }),
    ...(ssl === undefined ? {} : { ssl: key === undefined ? ssl : { ...(ssl as object), key } }),
  };
}

/** Returns the address of the server for messages, without secrets. */
export function placeOf({ pool, config }: PostgresPlan): string {
  const options = (pool?.options ?? config) as { [option: string]: string | number | undefined };
  const { connectionString } = options;
  const url = typeof connectionString === 'string' ? parseServerUrl(connectionString) : undefined;
  if (typeof connectionString === 'string' && url === undefined) return 'the given address';
  const host = url?.hostname || options['host'] || process.env['PGHOST'] || 'localhost';
  const port = url?.port || options['port'] || process.env['PGPORT'] || 5432;
  const database = decodeURIComponent(url?.pathname.slice(1) ?? '') || options['database'] || process.env['PGDATABASE'] || '';
  return `${host}:${port}${database === '' ? '' : `/${database}`}`;
}

function readUrl(url: string | undefined): PostgresStoreOptions {
  if (url === undefined) return {};
  const { searchParams: query } = readServerUrl(url, 'postgres://user:password@host:5432/database');
  const options: PostgresStoreOptions = {};
  const schema = query.get('schema');
  const max = query.get('max');
  if (schema !== null) options.schema = schema;
  if (max !== null) options.max = Number(max);
  for (const name of ['migrate', 'notify'] as const) {
    const value = query.get(name);
    if (value !== null) options[name] = value === 'true' ? true : value === 'false' ? false : (value as unknown as boolean);
  }
  return options;
}

function stripUrl(url: string): string {
  const parsed = parseServerUrl(url);
  if (parsed === undefined || !IN_URL.some((name) => parsed.searchParams.has(name))) return url;
  for (const name of IN_URL) parsed.searchParams.delete(name);
  return parsed.href;
}

function checkSchema(schema: unknown): string {
  const fits =
    typeof schema === 'string' && /^[\p{L}_][\p{L}\p{N}_$-]*$/u.test(schema) && Buffer.byteLength(schema) <= MAX_SCHEMA;
  if (!fits || schema === 'public' || schema === 'information_schema' || schema.startsWith('pg_')) {
    throw invalidOption(
      'schema',
      schema,
      `the name of a schema of its own (letters, digits, _ and -, at most ${MAX_SCHEMA} bytes; not public)`,
    );
  }
  return schema;
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
