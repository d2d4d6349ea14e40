// Makes the options with which the lock thread opens the same Redis: from the user's options, or from the user's ioredis instance.
import { lookup, resolveSrv } from 'node:dns';
import { plainCopy } from '../../descriptor.js';
import type { Client, Options } from './driver.js';
import type { CheckedOptions } from './options.js';

/** Options that the store sets itself or does not use (dial.ts). They are left out, because functions cannot cross to a thread. */
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
/** Functions that ioredis sets by default. The thread gets them from its own ioredis. */
const DEFAULTS: unknown[] = [lookup, resolveSrv];

/** Returns a plain copy of the options. Throws NOT_CLONEABLE if a value cannot cross to a thread. */
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
