// Checks a server after connecting: whether it can carry the store, and which of its settings put jobs at risk. link.ts calls it.
import { type HoldfastError, isError } from '../../../errors.js';
import { serversOf } from './clients.js';
import type { Client } from './driver.js';
import { failure, unavailable } from './errors.js';
import { type ValueLimit, valueLimitOf } from './value-limit.js';

export interface Server {
  version: string;
  /** True for a node of a Redis Cluster. */
  cluster: boolean;
  /** Identifies this connection: the run id of the server and the client id. Undefined if the Redis user may not read them. */
  presence: string | undefined;
  evictionPolicy: string;
  /**
   * The writes that a crash may lose: 'always' none, 'everysec' the last second, 'unsynced' those that the operating system had not
   * written yet, 'snapshots' minutes, 'none' all. 'unknown' if the Redis user may not read the settings.
   */
  persistence: 'always' | 'everysec' | 'unsynced' | 'snapshots' | 'none' | 'unknown';
  valueLimit: ValueLimit;
}

const OLDEST = [6, 2] as const;

/**
 * Checks all servers. The first usable one becomes the anchor, whose connection vouches for our sessions. The riskiest settings and the
 * smallest value limit of all servers count. Throws if none can be used. `client`: the one that the servers are connected by.
 */
export async function inspectServers(client: Client, address: string): Promise<{ server: Server; anchor: Client }> {
  const clients = serversOf(client);
  const looks = await Promise.allSettled(clients.map((one) => inspectServer(one, address, client.isCluster)));
  const found = looks.flatMap((look, index) =>
    look.status === 'fulfilled' ? [{ server: look.value, anchor: clients[index] as Client }] : [],
  );
  const [first] = found;
  if (first === undefined)
    throw looks[0]?.status === 'rejected' ? looks[0].reason : new Error('None of startup nodes is available');
  const { evictionPolicy } = (found.find(({ server }) => server.evictionPolicy !== 'noeviction') ?? first).server;
  const { persistence } = (found.find(({ server }) => server.persistence === 'none') ?? first).server;
  const [valueLimit] = found.map(({ server }) => server.valueLimit).sort((a, b) => a.bytes - b.bytes);
  const strictest = { evictionPolicy, persistence, ...(valueLimit !== undefined && { valueLimit }) };
  return { server: { ...first.server, ...strictest }, anchor: first.anchor };
}

/** Checks one server. Throws if it cannot be used. */
async function inspectServer(client: Client, address: string, isJoined: boolean): Promise<Server> {
  const info = readInfo(await ask(client, 'info', []));
  checkVersion(info.get('redis_version'), address);
  if (info.get('loading') === '1') throw unavailable(`Redis at ${address} is still loading its data.`);
  const cluster = info.get('cluster_enabled') === '1';
  // A replica of a cluster is good enough to find the primaries: a failover may have made one of the named node.
  if (info.get('role') === 'slave' && (isJoined || !cluster)) {
    throw failure(
      'STORE_READONLY',
      `Redis at ${address} is a replica, which cannot be written to. Name the primary, or its sentinels.`,
    );
  }
  if (cluster) await checkCluster(client, address);
  const own = await ask(client, 'client', ['INFO']);
  const wanted = `${Number(client.options['db'] ?? 0)}`;
  const db = field(own, 'db');
  // If ioredis cannot select the requested database, it continues with database 0.
  if (db !== undefined && db !== wanted) {
    throw failure(
      'STORE_DENIED',
      `Redis at ${address} has no database ${wanted}. Check the number behind the host in the URL, or db.`,
    );
  }
  const id = field(own, 'id');
  const run = info.get('run_id');
  return {
    version: info.get('redis_version') ?? 'unknown',
    cluster,
    presence: id === undefined || run === undefined ? undefined : `${run}:${id}`,
    evictionPolicy: info.get('maxmemory_policy') ?? 'unknown',
    persistence: await persistenceOf(client, info),
    valueLimit: await valueLimitOf(client),
  };
}

/**
 * Returns a warning, with the remedy, for each setting under which Redis surely loses acknowledged writes. The documentation describes
 * settings that lose less.
 */
export function warningsOf({ evictionPolicy, persistence }: Server, address: string): HoldfastError[] {
  const warnings: HoldfastError[] = [];
  if (evictionPolicy !== 'noeviction' && evictionPolicy !== 'unknown') {
    const harm = `when its memory is full, it deletes jobs, locks and whole queues without a word`;
    warnings.push(unsafe(address, `has the maxmemory-policy ${evictionPolicy}: ${harm}`, 'maxmemory-policy noeviction'));
  }
  if (persistence === 'none') {
    warnings.push(unsafe(address, 'keeps nothing on disk: all jobs are gone when it is restarted or crashes', 'appendonly yes'));
  }
  return warnings;
}

function unsafe(address: string, problem: string, remedy: string): HoldfastError {
  return failure(
    'STORE_UNSAFE',
    `Redis at ${address} ${problem}. Run: redis-cli CONFIG SET ${remedy} (and set it in redis.conf)`,
  );
}

function checkVersion(version: string | undefined, address: string): void {
  if (version === undefined) return;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return;
  throw failure(
    'STORE_UNSUPPORTED',
    `Redis at ${address} has version ${version}; Holdfast needs Redis ${OLDEST.join('.')} or newer, or Valkey.`,
  );
}

async function checkCluster(client: Client, address: string): Promise<void> {
  if (!(await ask(client, 'cluster', ['INFO'])).startsWith('cluster_state:fail')) return;
  throw unavailable(
    `The Redis Cluster at ${address} is down: slots are without a node that serves them. See redis-cli --cluster check, and start the nodes that are missing.`,
  );
}

/** Sends a command. Returns '' if the Redis user lacks the right to it or the server does not know it: connecting continues without. */
async function ask(client: Client, command: string, args: string[]): Promise<string> {
  try {
    return String(await client.call(command, args));
  } catch (error) {
    if (isError(error) && /NOPERM|unknown command|unknown subcommand/i.test(error.message)) return '';
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
  if (value === 'no') return 'unsynced';
  return value === 'always' ? 'always' : 'everysec';
}

function readInfo(text: string): Map<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
}

function field(text: string, name: string): string | undefined {
  return new RegExp(`(?:^| )${name}=(\\S*)`).exec(text)?.[1];
}
