// Opening and closing a Redis store: what is wrong is said at once, in one error that says what to do.
import { readFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { HoldfastError } from '../../../src/errors.js';
import { Queue } from '../../../src/queue/queue.js';
import { RedisStore } from '../../../src/store/redis/index.js';
import { freePort } from '../../support/servers/free-port.js';
import { askRedis } from '../../support/servers/redis.js';
import { Worker } from '../../../src/worker/worker.js';
import { fakeRedis, killClients, newJob, newProxy, newServer, newSession, newStore, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';

async function failure(opening: Promise<void>): Promise<HoldfastError> {
  return opening.then(
    () => expect.fail('it opened'),
    (error: HoldfastError) => error,
  );
}

describe('a Redis store refuses to open', () => {
  test('with a wrong password', async () => {
    const server = await newServer({ settings: { requirepass: 'right' } });
    const error = await failure(newStore({ port: server.port, password: 'wrong' }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false, store: 'redis' });
    expect(error.message).toMatch(/user name or password.*WRONGPASS/);
    expect(error.message).not.toContain('wrong"');
  });

  test('without a required password, and opens with it', async () => {
    const server = await newServer({ settings: { requirepass: 'right' } });
    const error = await failure(newStore({ url: server.url }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false });
    expect(error.message).toContain('NOAUTH');
    const store = await openStore({ url: server.url.replace('://', '://:right@') });
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toEqual([{ id: '1', status: 'added' }]);
  });

  test('with an unknown host', async () => {
    const error = await failure(newStore({ host: 'no-such-host.invalid' }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: false });
    expect(error.message).toMatch(/host of Redis is not known.*no-such-host/);
  });

  test('on a port where no server listens, as retryable', async () => {
    const error = await failure(newStore({ port: await freePort() }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(error.message).toContain('ECONNREFUSED');
  });

  test('with a database that does not exist, instead of using another', async () => {
    const server = await newServer({ settings: { databases: '2' } });
    const error = await failure(newStore({ url: `${server.url}/7` }).open());
    expect(error).toMatchObject({ code: 'STORE_DENIED', retryable: false });
    expect(error.message).toContain('has no database 7');
    expect(await askRedis(server.port, 'DBSIZE')).toContain(':0');
    const store = await openStore({ url: `${server.url}/1` });
    await store.configure('q', { paused: true });
    expect(await askRedis(server.port, 'DBSIZE', 'SELECT 1', 'DBSIZE')).toMatch(/^:0\r\n\+OK\r\n:[1-9]/);
  });

  test('on a replica', async () => {
    const primary = await newServer({ settings: { 'repl-diskless-sync-delay': '0' } });
    const replica = await newServer({ settings: { replicaof: `127.0.0.1 ${primary.port}` } });
    await until('the replica follows', async () =>
      (await askRedis(replica.port, 'INFO replication')).includes('master_link_status:up'),
    );
    const error = await failure(newStore({ url: replica.url }).open());
    expect(error).toMatchObject({ code: 'STORE_READONLY', retryable: false });
    expect(error.message).toContain('is a replica');
  });

  test('on a version that is too old', async () => {
    const { port } = await fakeRedis('redis_version:5.0.14\r\nrole:master\r\n');
    const error = await failure(newStore({ port, protocol: 2 }).open());
    expect(error).toMatchObject({ code: 'STORE_UNSUPPORTED', retryable: false });
    expect(error.message).toMatch(/5\.0\.14.*6\.2 or newer/);
  });

  test('on a server that is still loading, as retryable', async () => {
    const { port } = await fakeRedis('redis_version:7.0.0\r\nloading:1\r\n');
    const error = await failure(newStore({ port, protocol: 2 }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(error.message).toContain('loading');
  });

  test('within connectTimeout when the server accepts and never replies', async () => {
    const server = await newServer();
    await server.stop();
    const took = stopwatch();
    const error = await failure(newStore({ url: server.url, connectTimeout: 300 }).open());
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(took()).toBeLessThan(paced(2_000));
  });

  test('on a server that takes no more clients, as retryable', async () => {
    const server = await newServer({ settings: { maxclients: '1' } });
    const first = newStore({ url: server.url });
    await until('the store opens', () =>
      first.open().then(
        () => true,
        () => false,
      ),
    );
    const error = await failure(newStore({ url: server.url }).open());
    // The server says so and hangs up; which of the two is noticed first is chance.
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
  });

  test('on a server that is not Redis', async () => {
    const server = createHttpServer((_request, response) => response.end('hello'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const error = await failure(newStore({ port, connectTimeout: 2_000 }).open());
    expect(error.code).toMatch(/^STORE_/);
    expect(error.store).toBe('redis');
  });

  test('at first, and opens at the next try when the cause is gone', async () => {
    const server = await newServer();
    await server.kill();
    const store = newStore({ url: server.url });
    expect(await failure(store.open())).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await server.restart();
    await store.open();
    expect(await store.status('q')).toMatchObject({ paused: false });
  });

  test('without the package ioredis, and names it', async () => {
    vi.doMock('ioredis', () => {
      throw new Error("Cannot find package 'ioredis'");
    });
    vi.resetModules();
    onTestFinished(() => {
      vi.doUnmock('ioredis');
      vi.resetModules();
    });
    const fresh = await import('../../../src/store/redis/index.js');
    const error = await failure(new fresh.RedisStore({ port: 1 }).open());
    expect(error.code).toBe('DRIVER_MISSING');
    expect(error.message).toContain('npm install ioredis');
  });
});

describe('options of a Redis store', () => {
  test('refuse a keyPrefix, which would move keys out of their slot', () => {
    const client = new Redis({ keyPrefix: 'x:', lazyConnect: true });
    expect(() => new RedisStore({ keyPrefix: 'x:' })).toThrow(/keyPrefix.*Use prefix.*"x:"/);
    expect(() => new RedisStore({ client })).toThrow(/keyPrefix.*Use prefix.*"x:"/);
  });

  test('refuse invalid values by name', () => {
    expect(() => new RedisStore({ prefix: '{x}' })).toThrow('prefix');
    expect(() => new RedisStore({ commandTimeout: 0 })).toThrow('commandTimeout');
    expect(() => new RedisStore({ cluster: [] })).toThrow('cluster');
    expect(() => new RedisStore({ client: {} })).toThrow('client');
  });

  test('accept a prefix in a URL, and valkey: as a scheme', async () => {
    const server = await newServer();
    const store = await openStore({ url: `${server.url.replace('redis:', 'valkey:')}/0?prefix=mine` });
    await store.configure('q', { paused: true });
    expect(await askRedis(server.port, 'KEYS *')).toContain('{mine:q}:meta');
    expect(store.describe()).toMatchObject({ engine: 'redis', options: { url: `${server.url}/0`, prefix: 'mine' } });
  });

  test('separate queues by prefix', async () => {
    const server = await newServer();
    const [one, two] = [await openStore({ url: server.url, prefix: 'one' }), await openStore({ url: server.url, prefix: 'two' })];
    await one.configure('q', { paused: true });
    expect([(await one.status('q')).paused, (await two.status('q')).paused]).toEqual([true, false]);
  });

  test('use the options of an ioredis instance, also in a thread, and neither use nor close it', async () => {
    const server = await newServer();
    const client = new Redis(server.url, { db: 3, lazyConnect: true, maxRetriesPerRequest: null });
    onTestFinished(() => client.disconnect());
    const store = await openStore({ client });
    const { port } = new URL(server.url);
    expect(store.describe()).toMatchObject({ engine: 'redis', options: { host: '127.0.0.1', port: Number(port), db: 3 } });
    await store.configure('q', { paused: true });
    await store.close();
    expect(client.status).toBe('wait');
    expect(await client.exists('{holdfast:q}:meta')).toBe(1);
  });
});

describe('settings of a Redis server', () => {
  test('that evict keys are reported with the remedy, to each listener', async () => {
    const server = await newServer({ settings: { 'maxmemory-policy': 'allkeys-lru' } });
    const store = await openStore({ url: server.url });
    for (const _ of ['first', 'second']) {
      const warnings: HoldfastError[] = [];
      const stop = store.onWarning((warning) => warnings.push(warning));
      expect(warnings).toHaveLength(1);
      expect(warnings[0]).toMatchObject({ code: 'STORE_UNSAFE', retryable: false, store: 'redis' });
      expect(warnings[0]?.message).toContain('CONFIG SET maxmemory-policy noeviction');
      stop();
    }
  });

  test('are a warning of the process, once, and no error of its queues and workers', async () => {
    const server = await newServer({ settings: { save: '' } });
    const warnings: Error[] = [];
    const keep = (warning: Error): void => void warnings.push(warning);
    process.on('warning', keep);
    onTestFinished(() => void process.off('warning', keep));
    const errors: Error[] = [];
    const made: { close(): Promise<void> }[] = [];
    for (let n = 0; n < 2; n += 1) {
      const queue = new Queue('q', { connection: server.url });
      queue.on('error', (error) => errors.push(error));
      const worker = new Worker('q', async () => undefined, { connection: server.url });
      worker.on('error', (error) => errors.push(error));
      made.push(queue, worker);
      await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    }
    await Promise.all(made.map((each) => each.close()));
    await new Promise((resolve) => setImmediate(resolve));
    const unsafe = warnings.filter((warning) => 'code' in warning && warning.code === 'HOLDFAST_STORE_UNSAFE');
    expect(unsafe.map(({ message }) => message)).toEqual([
      expect.stringMatching(/keeps nothing on disk.*CONFIG SET appendonly yes/),
    ]);
    expect(errors).toEqual([]);
  });

  test('that keep nothing on disk are reported after each connection, beside other problems', async () => {
    const server = await newServer({ settings: { save: '', 'maxmemory-policy': 'volatile-ttl' } });
    const store = await openStore({ url: server.url });
    const warnings: HoldfastError[] = [];
    store.onWarning((warning) => warnings.push(warning));
    expect(warnings.map(({ code }) => code)).toEqual(['STORE_UNSAFE', 'STORE_UNSAFE']);
    expect(warnings[1]?.message).toMatch(/keeps nothing on disk.*CONFIG SET appendonly yes/);
    await killClients(server);
    await until('all warnings', () => warnings.length === 4);
    await store.status('q');
    expect(warnings).toHaveLength(4);
  });

  test('with snapshots alone, as by default, are not reported', async () => {
    const server = await newServer({ settings: { save: '3600 1' } });
    const store = await openStore({ url: server.url });
    store.onWarning((warning) => expect.fail(warning.message));
    expect(store.server).toMatchObject({ persistence: 'snapshots' });
    await askRedis(server.port, 'CONFIG SET appendonly yes', 'CONFIG SET appendfsync no');
    expect((await openStore({ url: server.url, prefix: 'other' })).server).toMatchObject({ persistence: 'unsynced' });
  });

  test('with noeviction are not reported, and the persistence can be read', async () => {
    const server = await newServer({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const store = await openStore({ url: server.url });
    store.onWarning((warning) => expect.fail(warning.message));
    expect(store.server).toMatchObject({ evictionPolicy: 'noeviction', persistence: 'always', cluster: false });
  });

  test('may be limited to the rights that docs/stores.md names', async () => {
    const server = await newServer({ settings: { save: '' } });
    const manual = await readFile(new URL('../../../docs/stores.md', import.meta.url), 'utf8');
    const line = /^ACL SETUSER holdfast .*$/m.exec(manual)?.[0] ?? expect.fail('the line is gone');
    expect(await askRedis(server.port, line)).toMatch(/^\+OK/);
    const url = server.url.replace('://', '://holdfast:secret@');
    const [store, owner] = [await openStore({ url }), await openStore({ url })];
    expect(store.server).toMatchObject({ evictionPolicy: 'noeviction', persistence: 'none' });
    let calls = 0;
    store.watch('q', () => void (calls += 1), 'jobs');
    await until('the subscription', async () =>
      (await askRedis(server.port, 'PUBSUB NUMSUB {holdfast:q}:jobs-wake')).includes(':1'),
    );
    await owner.openSession(newSession({ graceMs: 1 }));
    await owner.add('q', [newJob()], { caller: 'p', seq: 1 });
    await until('the watcher is called at once', () => calls === 2, 900);
    const { jobs } = await owner.claim('q', { session: 's', seq: 1, count: 1 });
    await owner.close();
    await until('the session is suspected', async () => 'dueInMs' in (await store.probe('q')));
    await until('the job stalls', async () => (await store.sweep('q', 10)).stalled[0] === jobs[0]?.id);
    expect((await store.change('q', { lists: ['waiting'], limit: 10 }, { kind: 'remove' })).changed.length).toBe(1);
    await store.forget('q', { all: true });
  });

  test('may be hidden from the user', async () => {
    const server = await newServer();
    await askRedis(server.port, 'ACL SETUSER plain on >secret ~{holdfast:* &* +@all -info -client -config');
    const store = await openStore({ url: server.url.replace('://', '://plain:secret@') });
    await store.openSession(newSession());
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
  });

  test('may forbid the user to publish, and watchers poll', async () => {
    const server = await newServer();
    await askRedis(server.port, 'ACL SETUSER plain on >secret ~{holdfast:* resetchannels +@all');
    const store = await openStore({ url: server.url.replace('://', '://plain:secret@') });
    let calls = 0;
    store.watch('q', () => void (calls += 1));
    await until('the watcher is called', () => calls === 1);
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await until('the watcher is called', () => calls > 1, 3_000);
  });
});

describe('close of a Redis store', () => {
  test('resolves when the server does not reply, and its calls reject', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url, commandTimeout: 500 });
    await server.stop();
    const call = store.status('q');
    call.catch(() => undefined);
    const took = stopwatch();
    await store.close();
    expect(took()).toBeLessThan(paced(2_000));
    await expect(call).rejects.toThrow();
  });

  test('resolves while the store is being opened', async () => {
    const server = await newServer();
    await server.stop();
    const store = newStore({ url: server.url });
    const opening = failure(store.open());
    const took = stopwatch();
    await store.close();
    expect(took()).toBeLessThan(paced(1_000));
    expect((await opening).code).toMatch(/^STORE_/);
  });

  test('resolves while there is no connection', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url) });
    await server.kill();
    const call = store.status('q');
    call.catch(() => undefined);
    await store.close();
    await expect(call).rejects.toMatchObject({ store: 'redis' });
  });
});
