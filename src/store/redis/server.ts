// What is looked at when a connection is made: whether this server can carry the store, and under what settings it runs.
import type { HoldfastError } from '../../errors.js';
import type { Client } from './driver.js';
import { failure, unavailable } from './errors.js';

export interface Server {
  version: string;
  /** Part of a Redis Cluster. */
  cluster: boolean;
  /** Names this connection: the run of the server, and the client's id within it. Undefined where the user may not ask. */
  presence: string | undefined;
  evictionPolicy: string;
  /** What a crash of Redis may take: 'always' nothing, 'everysec' the last second, 'snapshots' minutes, 'none' everything. */
  persistence: 'always' | 'everysec' | 'snapshots' | 'none' | 'unknown';
}

const OLDEST = [6, 2] as const;

/** The first that answers is the one that vouches for us; the settings of all of them count. Throws when none can be used. */
export async function inspectServers(clients: Client[], address: string): Promise<{ server: Server; anchor: Client }> {
  const looks = await Promise.allSettled(clients.map((client) => inspectServer(client, address)));
  const found = looks.flatMap((look, index) =>
    look.status === 'fulfilled' ? [{ server: look.value, anchor: clients[index] as Client }] : [],
  );
  const [first] = found;
  if (first === undefined)
    throw looks[0]?.status === 'rejected' ? looks[0].reason : new Error('None of startup nodes is available');
  const evicting = found.find(({ server }) => server.evictionPolicy !== 'noeviction') ?? first;
  return { server: { ...first.server, evictionPolicy: evicting.server.evictionPolicy }, anchor: first.anchor };
}

/** Throws when the server cannot be used. */
async function inspectServer(client: Client, address: string): Promise<Server> {
  const info = readInfo(await ask(client, 'info', []));
  checkVersion(info.get('redis_version'), address);
  if (info.get('loading') === '1') throw unavailable(`Redis at ${address} is still loading its data.`);
  if (info.get('role') === 'slave') {
    throw failure(
      'STORE_READONLY',
      `Redis at ${address} is a replica, which cannot be written to. Name the primary, or its sentinels.`,
    );
  }
  const own = await ask(client, 'client', ['INFO']);
  const wanted = `${Number(client.options['db'] ?? 0)}`;
  const db = field(own, 'db');
  // ioredis goes on with database 0 when it could not select the one that was asked for.
  if (db !== undefined && db !== wanted) {
    throw failure(
      'STORE_UNAVAILABLE',
      `Redis at ${address} has no database ${wanted}. Check the number behind the host in the URL, or db.`,
    );
  }
  const id = field(own, 'id');
  const run = info.get('run_id');
  return {
    version: info.get('redis_version') ?? 'unknown',
    cluster: info.get('cluster_enabled') === '1',
    presence: id === undefined || run === undefined ? undefined : `${run}:${id}`,
    evictionPolicy: info.get('maxmemory_policy') ?? 'unknown',
    persistence: await persistenceOf(client, info),
  };
}

/** Eviction takes whole queues: a warning with the remedy. */
export function warningOf({ evictionPolicy }: Server, address: string): HoldfastError | undefined {
  if (evictionPolicy === 'noeviction' || evictionPolicy === 'unknown') return undefined;
  return failure(
    'STORE_FAILED',
    `Redis at ${address} has the maxmemory-policy ${evictionPolicy}: when its memory is full, it deletes jobs, locks and whole queues ` +
      'without a word. Type: redis-cli CONFIG SET maxmemory-policy noeviction (and set it in redis.conf)',
  );
}

function checkVersion(version: string | undefined, address: string): void {
  if (version === undefined) return;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw failure(
    'STORE_FAILED',
    `Redis at ${address} has version ${version}; Holdfast needs Redis ${OLDEST.join('.')} or newer, or Valkey.`,
  );
}

/** A user without the right to ask is no reason not to go on. */
async function ask(client: Client, command: string, args: string[]): Promise<string> {
  try {
    return String(await client.call(command, args));
  } catch (error) {
    if (error instanceof Error && /NOPERM|unknown command|unknown subcommand/i.test(error.message)) return '';
    throw error;
  }
}

async function persistenceOf(client: Client, info: Map<string, string>): Promise<Server['persistence']> {
  if (!info.has('aof_enabled')) return 'unknown';
  const settings = await client
    .call('config', ['GET', info.get('aof_enabled') === '1' ? 'appendfsync' : 'save'])
    .catch(() => undefined);
  if (!Array.isArray(settings)) return 'unknown';
  const value = String(settings[1] ?? '');
  if (info.get('aof_enabled') !== '1') return value === '' ? 'none' : 'snapshots';
  return value === 'always' ? 'always' : 'everysec';
}

function readInfo(text: string): Map<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function field(text: string, name: string): string | undefined {
  return new RegExp(`(?:^| )${name}=(\\S*)`).exec(text)?.[1];
}
