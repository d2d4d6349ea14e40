// What a user may pass as `connection`, read into one of a few plain forms. No engine is loaded here.
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../errors.js';
import { checkInteger, MAX_TIMER_MS, show } from '../runtime/check.js';
import type { Store } from './contract.js';

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
  busyTimeoutMs?: number;
}

/** `sqlite:jobs.db`, `memory:`, `sync:`, options, a module, or a store. Without one: HOLDFAST_URL, else `sqlite:holdfast.db`. */
export type Connection = string | SqliteConnection | StoreModule | Store | { url: string };

export type ConnectionPlan =
  | { engine: 'memory' | 'sync'; key: string }
  | { engine: 'sqlite'; key: string; options: SqliteConnection }
  | { engine: 'module'; module: StoreModule }
  | { engine: 'given'; store: Store };

const FORMS = 'Use sqlite:<file>, memory:, sync:, { path }, { module, export } or a store.';
const SERVERS = /^(rediss?|valkeys?|postgres(ql)?):/;

export function planConnection(connection: unknown): ConnectionPlan {
  const given = connection ?? process.env['HOLDFAST_URL'] ?? 'sqlite:holdfast.db';
  if (typeof given === 'string') return planUrl(given);
  if (given instanceof URL) return planUrl(given.href);
  if (typeof given !== 'object' || given === null) throw invalid(`A connection cannot be ${show(given)}.`);
  if (isStore(given)) return { engine: 'given', store: given };
  if (typeof (given as { url?: unknown }).url === 'string') return planUrl((given as { url: string }).url);
  if (typeof (given as StoreModule).module === 'string') return { engine: 'module', module: given as StoreModule };
  if (typeof (given as SqliteConnection).path === 'string') return planSqlite(given as SqliteConnection);
  if ('host' in given || 'port' in given) throw invalid('{ host, port } means Redis, which this version does not drive.');
  throw invalid('The connection options name no store.');
}

function planUrl(url: string): ConnectionPlan {
  if (url.startsWith('memory:')) return { engine: 'memory', key: url };
  if (url.startsWith('sync:')) return { engine: 'sync', key: url };
  if (url.startsWith('sqlite:')) return planSqlite(readSqliteUrl(url));
  if (SERVERS.test(url)) throw invalid(`This version does not drive ${url.slice(0, url.indexOf(':'))} stores.`);
  throw invalid(`The connection ${show(redact(url))} has no scheme that is known.`);
}

function readSqliteUrl(url: string): SqliteConnection {
  const [rawPath = '', query = ''] = url.slice('sqlite:'.length).split('?', 2);
  // Both sqlite:jobs.db and sqlite:///var/lib/jobs.db are in use; two slashes alone name no host here.
  const path = rawPath.startsWith('///') ? fileURLToPath(`file:${rawPath}`) : decodeURIComponent(rawPath.replace(/^\/\//, ''));
  const options: SqliteConnection = { path };
  for (const [name, value] of new URLSearchParams(query)) {
    if (name === 'synchronous') options.synchronous = value as 'full' | 'normal';
    else if (name === 'busyTimeoutMs') options.busyTimeoutMs = Number(value);
    else throw invalid(`The connection has a parameter ${show(name)} that sqlite: does not know.`);
  }
  return options;
}

function planSqlite(options: SqliteConnection): ConnectionPlan {
  const { path, synchronous = 'full', busyTimeoutMs = 0 } = options;
  if (path === '' || path === ':memory:') throw invalid('sqlite: needs a file. For a queue in memory use memory:.');
  if (synchronous !== 'full' && synchronous !== 'normal')
    throw invalid(`synchronous must be 'full' or 'normal', not ${show(synchronous)}.`);
  checkInteger('busyTimeoutMs', busyTimeoutMs, { max: MAX_TIMER_MS });
  const file = resolve(path);
  return { engine: 'sqlite', key: `sqlite:${file}?${synchronous}`, options: { ...options, path: file } };
}

export function isStore(value: unknown): value is Store {
  const candidate = value as Partial<Store>;
  return typeof candidate.claim === 'function' && typeof candidate.settle === 'function' && typeof candidate.renew === 'function';
}

function redact(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@');
}

function invalid(problem: string): HoldfastError {
  return new HoldfastError('INVALID_CONNECTION', `${problem} ${FORMS}`, { option: 'connection' });
}
