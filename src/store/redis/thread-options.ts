// The options with which the lock thread opens the same Redis: those of the user, or those of the ioredis instance that the user gave.
import { lookup, resolveSrv } from 'node:dns';
import { plainCopy } from '../descriptor.js';
import type { Client, Options } from './driver.js';
import type { CheckedOptions } from './options.js';

/** The store sets these itself wherever they count (dial.ts), so it does not matter that functions cannot cross. */
const UNUSED = [
  'retryStrategy',
  'sentinelRetryStrategy',
  'sentinelReconnectStrategy',
  'reconnectOnError',
  'clusterRetryStrategy',
  'clusterNodeRetryStrategy',
  'scaleReads',
  'scripts',
  'keyPrefix',
];
/** ioredis fills them in. */
const DEFAULTS: unknown[] = [lookup, resolveSrv];

/** Throws NOT_CLONEABLE. */
export function threadOptions({ client, url, cluster, prefix, commandTimeout, connectTimeout, driver }: CheckedOptions): Options {
  const given = client === undefined ? { ...driver, url, cluster } : optionsOf(client as Client);
  const needed = Object.entries(given).filter(([name, value]) => !UNUSED.includes(name) && !DEFAULTS.includes(value));
  return { ...plainCopy(Object.fromEntries(needed), 'connection'), prefix, commandTimeout, connectTimeout };
}

function optionsOf(client: Client): Options {
  if (!client.isCluster) return client.options;
  const { redisOptions, ...ofCluster } = client.options;
  const { startupNodes } = client as unknown as { startupNodes: unknown[] };
  return { ...ofCluster, ...(redisOptions as Options), cluster: startupNodes };
}
