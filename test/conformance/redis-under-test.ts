// A Redis store as the conformance suite wants it: on a real server, whose clock cannot be moved, under keys that nobody else
// uses.
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { RedisStore } from '../../src/store/redis/index.js';
import type { StoreUnderTest } from '../../src/testing/index.js';
import { openAndDie } from './orphan.mjs';

/** All keys of this run, on whatever server. */
const RUN = `conformance-${randomUUID()}`;

export async function redisUnderTest(url: string): Promise<StoreUnderTest> {
  const options = { url, prefix: `${RUN}-${randomUUID()}` };
  const connect = async (): Promise<RedisStore> => {
    const store = new RedisStore(options);
    await store.open();
    return store;
  };
  const store = await connect();
  return {
    store,
    advance: (ms) => sleep(ms),
    peer: connect,
    reopen: connect,
    orphan: (session) => openAndDie('redis-orphan.mjs', { options, session }),
    close: () => store.close(),
  };
}

/** Takes away what the run has left on a server that lives on. */
export async function removeKeys(url: string): Promise<number> {
  const client = new Redis(url);
  let removed = 0;
  for await (const keys of client.scanStream({ match: `{${RUN}*`, count: 1_000 }) as AsyncIterable<string[]>) {
    if (keys.length > 0) removed += await client.unlink(keys);
  }
  client.disconnect();
  return removed;
}
