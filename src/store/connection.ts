// Reads the user's `connection` into one of a few plain forms. No engine is loaded here.
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../errors.js';
import { checkInteger, MAX_TIMER_MS, show } from '../runtime/check.js';
import { closest } from '../runtime/option-names.js';
import type { Store } from './contract/index.js';
import { plainCopy } from './descriptor.js';
import { readFileMode } from './file-mode.js';

/** A factory that both this process and the lock thread can load. */
export interface StoreModule {
  module: string;
  export?: string;
  options?: unknown;
}

export interface SqliteConnection {
  path: string;
  /** 'full' (default) syncs every commit to disk; 'normal' survives a crash of the process, not of the machine. */
  synchronous?: 'full' | 'normal';
  /** How long a call waits while another program holds the write lock, in ms. Default 10,000. */
  busyTimeoutMs?: number;
  /** Mode of the database and its other files: 0o600, or '600'. Default: 0644 minus the umask of the process. */
  fileMode?: number | string;
}

/** `{ host, port }` and all other options of ioredis, `{ cluster: [{ host, port }] }`, or `{ url }` with options of the engine. */
export interface ServerConnection {
  url?: string | undefined;
  host?: string | undefined;
  port?: number | undefined;
  [option: string]: unknown;
}

/** Options of ioredis in its own type, `RedisOptions`, which has no index signature. */
export interface RedisOptionsLike {
  host?: string | undefined;
  port?: number | undefined;
  path?: string | undefined;
  db?: number | undefined;
  username?: string | undefined;
  password?: string | undefined;
  tls?: object | undefined;
  /** Not a client of pg. */
  query?: never;
}

/** An ioredis instance or a pg pool, typed by a few of their members, so that users need no types of a package that they do not use. */
export type ClientInstance = { duplicate: unknown; evalsha: unknown } | { connect: unknown; query: unknown; totalCount: number };

/**
 * `sqlite:jobs.db`, `redis://…`, `postgres://…`, `memory:`, `sync:`, options, an ioredis or pg.Pool instance, a module, or a store.
 * Without one: HOLDFAST_URL, else `sqlite:holdfast.db`.
 */
export type Connection =
  | string
  | SqliteConnection
  | StoreModule
  | Store
  | ServerConnection
  | RedisOptionsLike
  | ClientInstance
  | URL;

/** Connections with the same `key` share one store. */
export type ConnectionPlan =
  | { engine: 'memory' | 'sync'; key: string }
  | {
      engine: 'sqlite' | 'redis' | 'postgres';
      key: unknown;
      options: Record<string, unknown>;
      /** The file that is used because the user named none. */
      defaultFile?: string;
    }
  | { engine: 'module'; module: StoreModule }
  | { engine: 'given'; store: Store };

/** Options of ioredis. As in BullMQ, a connection of these alone, or of none, is Redis on localhost. */
const OF_REDIS: ReadonlySet<string> = new Set([
  'db',
  'username',
  'password',
  'family',
  'tls',
  'name',
  'role',
  'sentinels',
  'sentinelUsername',
  'sentinelPassword',
  'connectionName',
  'connectTimeout',
  'commandTimeout',
  'keepAlive',
  'noDelay',
  'lazyConnect',
  'enableOfflineQueue',
  'enableReadyCheck',
  'maxRetriesPerRequest',
  'retryStrategy',
  'reconnectOnError',
]);
/** The options that say which store is meant. */
const STORE_NAMES = ['url', 'path', 'module', 'host', 'port', 'cluster'];
const FORMS =
  'Use sqlite:<file>, redis://…, postgres://…, memory:, sync:, { path }, { host, port }, { module, export } or a store.';
const REDIS = /^(redis|valkey)s?:/;
const POSTGRES = /^postgres(ql)?:/;
const SCHEMES = ['sqlite', 'redis', 'rediss', 'valkey', 'valkeys', 'postgres', 'postgresql', 'memory', 'sync'];

export function planConnection(connection: unknown): ConnectionPlan {
  if (connection === undefined || connection === null) return planDefault(process.env['HOLDFAST_URL']);
  return plan(connection);
}

function planDefault(url: string | undefined): ConnectionPlan {
  if (url === undefined) {
    const defaultFile = resolve('holdfast.db');
    return { ...planSqlite({ path: defaultFile }), defaultFile };
  }
  try {
    if (url === '') throw invalid('It is empty.');
    return planUrl(url);
  } catch (cause) {
    if (!(cause instanceof HoldfastError)) throw cause;
    throw new HoldfastError(cause.code, `The environment variable HOLDFAST_URL names no store: ${cause.message}`, {
      option: 'HOLDFAST_URL',
      cause,
    });
  }
}

function plan(given: unknown): ConnectionPlan {
  if (typeof given === 'string') return planUrl(given);
  if (given instanceof URL) return planUrl(given.href);
  if (typeof given !== 'object' || given === null) throw invalid(`A connection cannot be ${show(given)}.`);
  if (isStore(given)) return { engine: 'given', store: given };
  const { url, ...options } = given as { url?: unknown };
  if (url instanceof URL) return planUrl(url.href, options);
  if (typeof url === 'string') return planUrl(url, options);
  if (typeof (given as StoreModule).module === 'string') return { engine: 'module', module: given as StoreModule };
  if (typeof (given as SqliteConnection).path === 'string') return planSqlite(given as SqliteConnection);
  if (isRedisClient(given)) return { engine: 'redis', key: given, options: { client: given } };
  if (isPostgresPool(given)) return { engine: 'postgres', key: given, options: { pool: given } };
  const names = Object.keys(given);
  if ('host' in given || 'port' in given || 'cluster' in given || (isPlain(given) && names.every((name) => OF_REDIS.has(name))))
    return planServer('redis', given as Record<string, unknown>);
  const misspelt = names.find((name) => closest(name, STORE_NAMES, 2) !== undefined);
  throw invalid(
    misspelt === undefined
      ? 'The connection options name no store.'
      : `The connection option ${misspelt} is not known: did you mean ${closest(misspelt, STORE_NAMES, 2)}?`,
  );
}

function planUrl(url: string, options: Record<string, unknown> = {}): ConnectionPlan {
  if (url.startsWith('memory:')) return { engine: 'memory', key: withoutParameters(url) };
  if (url.startsWith('sync:')) return { engine: 'sync', key: withoutParameters(url) };
  if (url.startsWith('sqlite:')) return planSqlite({ ...options, ...readSqliteUrl(url) });
  if (REDIS.test(url)) return planServer('redis', { ...options, url });
  if (POSTGRES.test(url)) return planServer('postgres', { ...options, url });
  throw unknownScheme(url);
}

/** The message shows no other part of the URL, because a password may be anywhere in it: without `//`, even before the colon. */
function unknownScheme(url: string): HoldfastError {
  const [, scheme = '', slashes] = /^([a-z][a-z0-9+.-]*):(\/\/)?/i.exec(url) ?? [];
  const meant = closest(scheme.toLowerCase(), SCHEMES, 2);
  if (meant !== undefined)
    return invalid(`The connection has the scheme ${scheme}:, which is not known: did you mean ${meant}:?`);
  if (slashes !== undefined) return invalid(`The connection has the scheme ${scheme}:, which is not known.`);
  return invalid('The connection has no scheme that is known.');
}

function withoutParameters(url: string): string {
  if (!url.includes('?')) return url;
  throw invalid(`The connection has parameters, and ${url.slice(0, url.indexOf(':'))}: takes none.`);
}

function readSqliteUrl(url: string): SqliteConnection {
  const [rawPath = '', query = ''] = url.slice('sqlite:'.length).split('?', 2);
  const options: SqliteConnection = { path: readPath(rawPath) };
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'synchronous') options.synchronous = value as 'full' | 'normal';
    else if (name === 'busyTimeoutMs') options.busyTimeoutMs = Number(value);
    else if (name === 'fileMode') options.fileMode = value;
    else
      throw invalid(
        'The connection has a parameter that sqlite: does not know. It knows synchronous, busyTimeoutMs and fileMode.',
      );
  }
  return options;
}

/** Accepts both sqlite:jobs.db and sqlite:///var/lib/jobs.db. After two slashes comes a path too, not a host. */
function readPath(text: string): string {
  if (/^\/\/(?!\/)[^@]*:.*@/.test(text))
    throw invalid('sqlite: names a file, and takes neither a host nor a user and a password.');
  try {
    return text.startsWith('///') ? fileURLToPath(`file:${text}`) : decodeURIComponent(text.replace(/^\/\//, ''));
  } catch {
    throw invalid('The path cannot be read: write a % in it as %25, or pass { path } as it is.');
  }
}

function planSqlite(options: SqliteConnection): ConnectionPlan & { engine: 'sqlite' | 'redis' | 'postgres' } {
  const { path, synchronous = 'full', busyTimeoutMs = 0, fileMode } = options;
  if (path === '' || path === ':memory:') throw invalid('sqlite: needs a file. For a queue in memory use memory:.');
  if (synchronous !== 'full' && synchronous !== 'normal')
    throw invalid(`synchronous must be 'full' or 'normal', not ${show(synchronous)}.`);
  checkInteger('busyTimeoutMs', busyTimeoutMs, { max: MAX_TIMER_MS });
  const mode = fileMode === undefined ? {} : { fileMode: readFileMode(fileMode) };
  const file = resolve(path);
  return { engine: 'sqlite', key: `sqlite:${file}?${synchronous}`, options: { ...options, path: file, ...mode } };
}

/** Options with a function, an instance or a bigint are not compared: such a connection does not share its store. */
function planServer(engine: 'redis' | 'postgres', options: Record<string, unknown>): ConnectionPlan {
  const text = plainText(options);
  return { engine, key: text === undefined ? options : `${engine}:${text}`, options };
}

function plainText(options: unknown): string | undefined {
  try {
    return JSON.stringify(plainCopy(options, 'connection'));
  } catch {
    return undefined;
  }
}

function isPlain(value: object): boolean {
  return Object.getPrototypeOf(value) === Object.prototype;
}

function isRedisClient(value: object): boolean {
  const { duplicate, evalsha } = value as { duplicate?: unknown; evalsha?: unknown };
  return typeof duplicate === 'function' && typeof evalsha === 'function';
}

function isPostgresPool(value: object): boolean {
  const { connect, query, totalCount } = value as { connect?: unknown; query?: unknown; totalCount?: unknown };
  return typeof connect === 'function' && typeof query === 'function' && typeof totalCount === 'number';
}

export function isStore(value: unknown): value is Store {
  const candidate = value as Partial<Store>;
  return typeof candidate.claim === 'function' && typeof candidate.settle === 'function' && typeof candidate.renew === 'function';
}

function invalid(problem: string): HoldfastError {
  return new HoldfastError('INVALID_CONNECTION', `${problem} ${FORMS}`, { option: 'connection' });
}
