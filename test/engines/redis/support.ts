// Shared by the tests of the Redis store: servers and proxies that are gone afterwards, and stores that are closed.
import { createServer, type Server } from 'node:net';
import { Redis } from 'ioredis';
import { onTestFinished } from 'vitest';
import { RedisStore, type RedisStoreOptions } from '../../../src/store/redis/index.js';
import { freePort } from '../../support/servers/free-port.js';
import { FaultProxy } from '../../support/servers/proxy.js';
import { newSession } from '../../unit/store-samples.js';
import { askRedis, type RedisOptions, startRedis } from '../../support/servers/redis.js';
import type { TestServer } from '../../support/servers/server.js';

export { newJob, newSession } from '../../unit/store-samples.js';

export async function newServer(options?: RedisOptions): Promise<TestServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.close());
  return server;
}

export async function newProxy(server: TestServer): Promise<FaultProxy> {
  const proxy = await FaultProxy.start(server);
  onTestFinished(() => proxy.close());
  return proxy;
}

/** Not opened. */
export function newStore(options: RedisStoreOptions): RedisStore {
  const store = new RedisStore(options);
  onTestFinished(() => store.close());
  return store;
}

export async function openStore(options: RedisStoreOptions): Promise<RedisStore> {
  const store = newStore(options);
  await store.open();
  return store;
}

/** A store on a server of its own, and a client that looks at what it wrote. */
export async function openWithClient(): Promise<{ store: RedisStore; client: Redis }> {
  const { url } = await newServer();
  const client = new Redis(url);
  onTestFinished(() => client.disconnect());
  return { store: await openStore({ url }), client };
}

/** The same with another store on connections of its own. The session `s` is open in each of the queues. */
export async function openTwo(...queues: string[]): Promise<{ store: RedisStore; other: RedisStore; client: Redis }> {
  const { store, client } = await openWithClient();
  const other = await openStore({ url: `redis://127.0.0.1:${client.options.port}` });
  for (const queue of queues) await store.openSession(newSession({ queue }));
  return { store, other, client };
}

/** Ids of the clients that are connected, but for the one that asks. */
export async function clientIds({ port }: TestServer): Promise<string[]> {
  const list = await askRedis(port, 'CLIENT LIST TYPE NORMAL', 'CLIENT LIST TYPE PUBSUB');
  return Array.from(list.matchAll(/id=(\d+) .*lib-name=\S*|id=(\d+) [^\n]*cmd=(?!client)/g), ([, a, b]) => a ?? b ?? '').filter(
    Boolean,
  );
}

/** Cuts every connection but that of the one who asks. */
export async function killClients({ port }: TestServer): Promise<void> {
  await askRedis(port, 'CLIENT KILL SKIPME yes');
}

/** A server that replies to INFO with this text, and to all other commands with OK. */
export async function fakeRedis(info: string): Promise<{ port: number }> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      const commands = chunk.toString().split(/^\*/m).slice(1);
      for (const command of commands) {
        socket.write(/\r\ninfo\r\n/i.test(command) ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
      }
    });
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { port };
}

const COUNTERS = 26;

/** The level of a queue: the last of its counters (`counters` in lua/queues.lua). */
export async function levelOf(client: Redis, tag: string): Promise<number | undefined> {
  return (await client.getBuffer(`${tag}:meta`))?.readDoubleLE(8 * (COUNTERS - 1));
}

/** Every key of a queue with its content, to see that nothing has changed. */
export async function dump(client: Redis, tag: string): Promise<Record<string, string | undefined>> {
  const found: Record<string, string | undefined> = {};
  for (const key of (await client.keys(`${tag}:*`)).sort()) found[key] = (await client.dumpBuffer(key))?.toString('hex');
  return found;
}
