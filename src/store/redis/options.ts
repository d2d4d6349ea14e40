// What a Redis store is made of: where Redis is, and how the queues' keys begin.
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../../runtime/check.js';
import { checkPort, readServerUrl } from '../server-url.js';
import type { Options } from './driver.js';

export interface RedisStoreOptions {
  /** redis://user:password@host:port/db, rediss:// with TLS; valkey:// and valkeys:// are the same. `?prefix=…` sets prefix. */
  url?: string;
  /** Nodes of a Redis Cluster to start from; one is enough. A URL or host of a cluster's node is recognised without it. */
  cluster?: readonly (string | { host: string; port: number })[];
  /** An ioredis instance, Redis or Cluster: lends its options to connections of our own, and is neither used nor closed. */
  client?: unknown;
  /** All keys begin with `{prefix:queue}`. */
  prefix?: string;
  /** A call that was not answered for so long rejects, and its connection is given up (default 5 s). */
  commandTimeout?: number;
  /** How long connecting may take (default 5 s). */
  connectTimeout?: number;
  /** Everything else is handed to ioredis as it is: host, port, path, username, password, db, tls, family, sentinels, name … */
  [option: string]: unknown;
}

export interface CheckedOptions {
  url: string | undefined;
  cluster: readonly unknown[] | undefined;
  client: unknown;
  prefix: string;
  commandTimeout: number;
  connectTimeout: number;
  /** For ioredis. */
  driver: Options;
}

export function checkOptions(given: RedisStoreOptions): CheckedOptions {
  const { url, cluster, client, prefix, commandTimeout = 5000, connectTimeout = 5000, ...driver } = given;
  checkInteger('commandTimeout', commandTimeout, { min: 1, max: MAX_TIMER_MS });
  checkInteger('connectTimeout', connectTimeout, { min: 1, max: MAX_TIMER_MS });
  if (url !== undefined && typeof url !== 'string') throw invalidOption('url', url, 'a string');
  if (cluster !== undefined && (!Array.isArray(cluster) || cluster.length === 0)) {
    throw invalidOption('cluster', cluster, 'a list of nodes, each { host, port }');
  }
  if (client !== undefined && !isClient(client))
    throw invalidOption('client', client, 'an instance of Redis or Cluster of ioredis');
  const keyPrefix = keyPrefixOf(driver) ?? keyPrefixOf((client as { options?: Options } | undefined)?.options);
  if (keyPrefix !== undefined)
    throw invalidOption('keyPrefix', keyPrefix, 'left out: it would move keys to another slot. Use prefix instead');
  checkPort(driver['port']);
  for (const node of cluster ?? []) if (typeof node === 'object') checkPort(node.port);
  const read: { url?: string; prefix?: string } = url === undefined ? {} : readUrl(url);
  return {
    url: read.url,
    cluster: cluster?.map((node) => (typeof node === 'string' ? readUrl(node).url : node)),
    client,
    prefix: checkPrefix(prefix ?? read.prefix ?? 'holdfast'),
    commandTimeout,
    connectTimeout,
    driver,
  };
}

function checkPrefix(prefix: unknown): string {
  if (typeof prefix !== 'string' || prefix === '' || prefix.length > 200 || /[{}\0]/.test(prefix)) {
    throw invalidOption('prefix', prefix, 'a string of 1 to 200 characters without { and }');
  }
  return prefix;
}

const LOOKS_LIKE = 'redis://user:password@host:6379/0';
/** A port, a host, host:port or the path of a socket: left to ioredis. */
const BARE = /^(?:\/(?!\/)|[\w.-]+(?::\d+)?$)/;

function readUrl(given: string): { url: string; prefix?: string } {
  const scheme = /^(?:redis|valkey)(s?):\/\//.exec(given);
  if (scheme === null && BARE.test(given)) return { url: given };
  readServerUrl(scheme === null ? '' : given, LOOKS_LIKE);
  if (scheme === null) return { url: given };
  const [address = '', query] = given.split('?', 2);
  const parameters = new URLSearchParams(query);
  const prefix = parameters.get('prefix');
  parameters.delete('prefix');
  const rest = parameters.size === 0 ? '' : `?${parameters.toString()}`;
  const url = `redis${scheme[1]}://${address.slice(scheme[0].length)}${rest}`;
  return prefix === null ? { url } : { url, prefix };
}

export function isClient(value: unknown): boolean {
  const client = value as { duplicate?: unknown; evalsha?: unknown } | null;
  return typeof client === 'object' && typeof client?.duplicate === 'function' && typeof client.evalsha === 'function';
}

function keyPrefixOf(options: Options | undefined): unknown {
  const keyPrefix = options?.['keyPrefix'];
  return keyPrefix === '' ? undefined : keyPrefix;
}
