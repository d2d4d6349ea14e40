// A Redis store as the conformance suite wants it: on a real server, whose clock cannot be moved, under keys that nobody else
// uses.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { RedisStore } from '../../src/store/redis/index.js';
import type { NewSession, StoreUnderTest } from '../../src/testing/index.js';

/** All keys of this run, on whatever server. */
const RUN = `conformance-${randomUUID()}`;
const ORPHAN = fileURLToPath(new URL('fixtures/redis-orphan.mjs', import.meta.url));

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
    orphan: (session) => openAndDie(options, session),
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

function openAndDie(options: { url: string; prefix: string }, session: NewSession): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [ORPHAN, JSON.stringify({ options, session })], (_error, _stdout, stderr) => {
      if (child.signalCode === 'SIGKILL') resolve();
      else reject(new Error(`The process that was to die ended otherwise: ${stderr}`));
    });
  });
}
