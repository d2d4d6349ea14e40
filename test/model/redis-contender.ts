// Redis stores whose scripts read the time from a key beside those of the queue, in the same slot, instead of asking Redis for it.
import { randomUUID } from 'node:crypto';
import { Cluster, Redis } from 'ioredis';
import { RedisStore } from '../../src/store/redis/index.js';
import { tagOf } from '../../src/store/redis/driver/runner.js';
import { ManualClock } from '../../src/testing/index.js';
import { readClockWith } from '../support/servers/redis-clock.js';
import type { Contender } from './check.js';

const READ = "call('HMGET', base .. ':model-clock', 's', 'us')";

export interface OpenContender extends Contender {
  close(): Promise<void>;
}

export async function redisContender(url: string, kind: 'single' | 'cluster'): Promise<OpenContender> {
  readClockWith(READ);
  const prefix = `model-${randomUUID()}`;
  const connections = [new RedisStore({ url, prefix }), new RedisStore({ url, prefix })];
  for (const store of connections) await store.open();
  const client = kind === 'single' ? new Redis(url) : new Cluster([url]);
  return {
    clock: new ManualClock(),
    connections,
    async showTime(queue, now) {
      const key = `${tagOf(prefix, queue)}:model-clock`;
      await client.hset(key, { s: Math.floor(now / 1_000), us: (now % 1_000) * 1_000 });
    },
    async close() {
      for (const store of connections) await store.close();
      await removeKeys(client, prefix);
      client.disconnect();
    },
  };
}

/** A server that was given lives on. */
async function removeKeys(client: Redis | Cluster, prefix: string): Promise<void> {
  for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
    for await (const keys of node.scanStream({ match: `{${prefix}*`, count: 1_000 }) as AsyncIterable<string[]>) {
      await Promise.all(keys.map((key) => node.unlink(key)));
    }
  }
}
