// The Redis servers that other tests start, stop and kill.
import { existsSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { Cluster, Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../support/servers/free-port.js';
import { hasEnded, isStopped } from '../../support/servers/processes.js';
import { askRedis, type RedisOptions, redisPlan, startRedis } from '../../support/servers/redis.js';
import { startRedisCluster } from '../../support/servers/redis-cluster.js';
import { TestServer } from '../../support/servers/server.js';

async function redis(options?: RedisOptions): Promise<TestServer> {
  const server = await startRedis(options);
  onTestFinished(() => server.close());
  return server;
}

function client(url: string): Redis {
  const made = new Redis(url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
  made.on('error', () => undefined);
  onTestFinished(() => made.disconnect());
  return made;
}

test('a test Redis replies as soon as it is started, and leaves nothing when it is closed', async () => {
  const server = await redis();
  expect(await client(server.url).ping()).toBe('PONG');
  const { pid, folder } = server;
  await server.close();
  await server.close();
  expect(hasEnded(pid)).toBe(true);
  expect(existsSync(folder)).toBe(false);
  expect(() => server.pid).toThrow('restart() it first');
});

test('a test Redis is gone at once when killed, and back on its port after a restart, without unsaved data', async () => {
  const server = await redis();
  await client(server.url).set('key', 'value');
  const { pid, url } = server;
  await server.kill();
  expect(hasEnded(pid)).toBe(true);
  await expect(askRedis(server.port, 'PING')).rejects.toThrow('ECONNREFUSED');
  await server.restart();
  expect(server.url).toBe(url);
  expect(server.pid).not.toBe(pid);
  expect(await client(url).get('key')).toBe(null);
});

test('a test Redis keeps what its settings save, after a kill and after a restart', async () => {
  const server = await redis({ settings: { appendonly: 'yes', appendfsync: 'always' } });
  await client(server.url).set('key', 'value');
  await server.kill();
  await server.restart();
  expect(await client(server.url).get('key')).toBe('value');
  await server.restart();
  expect(await client(server.url).get('key')).toBe('value');
});

test('a stopped test Redis does not reply until it is resumed', async () => {
  const server = await redis();
  await server.stop();
  expect(isStopped(server.pid)).toBe(true);
  let answered = false;
  const pong = client(server.url)
    .ping()
    .then(() => {
      answered = true;
    });
  await expect(askRedis(server.port, 'PING')).rejects.toThrow('does not answer');
  expect(answered).toBe(false);
  server.resume();
  await pong;
});

test('a stopped test Redis can be restarted, killed and closed', async () => {
  const server = await redis();
  await server.stop();
  await server.restart();
  expect(await client(server.url).ping()).toBe('PONG');
  await server.stop();
  await server.kill();
  await server.restart();
  await server.stop();
  await server.close();
});

test('a test Redis with a password becomes ready', async () => {
  const server = await redis({ settings: { requirepass: 'secret' } });
  await expect(client(server.url).get('key')).rejects.toThrow('NOAUTH');
  expect(await client(server.url.replace('//', '//:secret@')).get('key')).toBe(null);
});

test('a test Redis can be a replica of another one', async () => {
  const primary = await redis();
  const replica = await redis({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
  await expect(client(replica.url).set('key', 'value')).rejects.toThrow('READONLY');
});

test('a test Redis that cannot start says why, and leaves nothing', async () => {
  await expect(startRedis({ settings: { maxmemory: 'nonsense' } })).rejects.toThrow(/ended while it started:[^]*nonsense/);
});

test('a port that another program takes in between is not mistaken for a test Redis', async () => {
  const foreign = await redis();
  const plan = await redisPlan({});
  const ports: number[] = [];
  // At the first start, the free port turns out to be the foreign server's.
  const taken = (port: number): number => (ports.length === 1 ? foreign.port : port);
  const server = await TestServer.start({
    ...plan,
    args: ({ folder, port }) => {
      ports.push(port);
      return plan.args({ folder, port: taken(port) });
    },
    isReady: (running) => plan.isReady({ ...running, port: taken(running.port) }),
  });
  onTestFinished(() => server.close());
  expect(server.port).toBe(ports[1]);
});

test('free ports are unused, and outside the range that the kernel gives to clients', async () => {
  const port = await freePort();
  expect(port).toBeLessThan(32_768 - 10_000);
  const probe: Server = createServer();
  onTestFinished(() => void probe.close());
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(port, '127.0.0.1', resolve));
});

test('a test cluster of three serves keys of all slots, and a killed node comes back', async () => {
  const cluster = await startRedisCluster(3, { settings: { appendonly: 'yes', appendfsync: 'always' } });
  onTestFinished(() => cluster.close());
  const clustered = new Cluster([cluster.url]);
  onTestFinished(() => clustered.disconnect());
  const keys = Array.from({ length: 50 }, (_, n) => `key-${n}`);
  await Promise.all(keys.map((key) => clustered.set(key, key)));
  expect(await Promise.all(keys.map((key) => clustered.get(key)))).toEqual(keys);
  const sizes = await Promise.all(clustered.nodes('master').map((node) => node.dbsize()));
  expect(sizes).toHaveLength(3);
  expect(Math.min(...sizes)).toBeGreaterThan(0);
  await cluster.nodes[1]?.kill();
  await cluster.nodes[1]?.restart();
  await cluster.whole();
  expect(await Promise.all(keys.map((key) => clustered.get(key)))).toEqual(keys);
});
