// The options of a Redis store, and their validation. The store and the dialer use only checked options.
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../../../runtime/check.js';
import { checkPort, readServerUrl } from '../../server-url.js';
import type { Options } from './driver.js';

export interface RedisStoreOptions {
  /**
   * redis://user:password@host:port/db; rediss:// with TLS. valkey:// and valkeys:// mean the same. `?prefix=…` sets `prefix`. A host,
   * host:port, port or socket path is allowed too.
   */
  url?: string;
  /** Startup nodes of a Redis Cluster; one is enough. Not needed if `url` or `host` names a node of a cluster: the store detects that. */
  cluster?: readonly (string | { host: string; port: number })[];
  /** An ioredis instance, Redis or Cluster. The store opens its own connections with its options, and neither uses nor closes it. */
  client?: unknown;
  /** All keys begin with `{prefix:queue}`. 1 to 200 characters without { and }; default `holdfast`. */
  prefix?: string;
  /** How long a call waits for its reply, in ms (default 5000). Then the call rejects, and the store drops the connection. */
  commandTimeout?: number;
  /** How long connecting may take, in ms (default 5000). */
  connectTimeout?: number;
  /** All other options go to ioredis unchanged: host, port, path, username, password, db, tls, family, sentinels, name … */
  [option: string]: unknown;
}

export interface CheckedOptions {
  url: string | undefined;
  cluster: readonly unknown[] | undefined;
  client: unknown;
  prefix: string;
  commandTimeout: number;
  connectTimeout: number;
  /** Options for ioredis. */
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
/** A port, a host, host:port or the path of a socket, which ioredis parses. */
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
