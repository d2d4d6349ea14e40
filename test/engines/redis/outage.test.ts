// Calls whose connection to Redis fails: none waits for ever, none is carried out twice, and the store comes
// back by itself.
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { JobsReply } from '../../../src/store/contract/index.js';
import { Dialer } from '../../../src/store/redis/driver/dial.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { Link } from '../../../src/store/redis/driver/link.js';
import { checkOptions } from '../../../src/store/redis/driver/options.js';
import { isLate, isRetryable } from '../../../src/errors.js';
import { freePort } from '../../support/servers/free-port.js';
import type { FaultProxy } from '../../support/servers/proxy.js';
import { askRedis } from '../../support/servers/redis.js';
import { killClients, newJob, newProxy, newServer, newSession, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

/** Waits until the store knows that no server is there. The first calls meet a connection that is ending; they are repeated at once. */
async function outage(store: RedisStore): Promise<void> {
  for (let tries = 0; tries < 1_000; tries += 1) {
    if (String(await store.status('q').catch(String)).includes('ECONNREFUSED')) return;
  }
  expect.fail('the end of the connection was not noticed');
}

async function claimOne(store: RedisStore, seq: number): Promise<ClaimedJob> {
  const { jobs } = await store.claim('q', { session: 's', seq, count: 1 });
  return jobs[0] ?? expect.fail('nothing was claimed');
}

describe('a lost connection to Redis', () => {
  test('makes calls in flight reject as retryable, and the next call opens a new one', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    for (let round = 0; round < 5; round += 1) {
      await killClients(server);
      expect((await insist(() => store.status('q'))).counts.waiting).toBe(1);
    }
  });

  test('lets a call be repeated as the same call when it was cut during the reply', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url) });
    await store.openSession(newSession());
    const failures: unknown[] = [];
    const note = (error: unknown): void => void failures.push(error);
    proxy.dropReplies({ times: 1 });
    await insist(() => store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 }), note);
    proxy.dropReplies({ times: 1 });
    const { jobs } = await insist(() => store.claim('q', { session: 's', seq: 1, count: 5 }), note);
    expect(jobs.map(({ id }) => id)).toEqual(['1', '2']);
    proxy.dropReplies({ times: 1 });
    const outcomes = jobs.map(({ id, token }) => ({
      kind: 'completed' as const,
      jobId: id,
      token,
      value: '1',
      keep: { count: 0 },
    }));
    expect(await insist(() => store.settle('q', outcomes, { caller: 's', seq: 2 }), note)).toEqual({ results: ['done', 'done'] });
    expect(failures).toHaveLength(3);
    for (const error of failures) expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true, store: 'redis' });
    expect((await store.events('q', 0, 100)).events.filter(({ name }) => name === 'completed')).toHaveLength(2);
  });

  test('delays calls during a short outage, without an error', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url) });
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    proxy.aim({ port: await freePort() });
    proxy.cut();
    await expect.poll(() => store.status('q').catch((error: unknown) => isRetryable(error))).toBe(true);
    const call = store.status('q');
    proxy.aim(server);
    expect((await call).counts.waiting).toBe(1);
  });

  test('makes calls reject with the reason within seconds in a long outage', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await server.kill();
    await outage(store);
    const took = stopwatch();
    const error = await store.status('q').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(String(error)).toContain('ECONNREFUSED');
    expect(took()).toBeLessThan(paced(4_000));
  });

  test('is retried when a host name that was known is unknown for a while', async () => {
    const server = await newServer();
    const dialer = new Dialer(checkOptions({ url: server.url }));
    const silence = (): void => undefined;
    const link = new Link({ dialer, commandTimeout: 500, connectTimeout: 500, onUp: silence, onSilentTrouble: silence });
    onTestFinished(() => link.close());
    await link.open();
    const unknown = vi.spyOn(dialer, 'dial').mockRejectedValue(new Error('getaddrinfo ENOTFOUND redis'));
    await killClients(server);
    await until('the name is looked up', () => unknown.mock.calls.length > 0);
    const error = await link.run('probe', '{holdfast:q}', []).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(String(error)).toContain('ENOTFOUND');
    unknown.mockRestore();
    await insist(() => link.run('probe', '{holdfast:q}', []));
  });

  test('makes no error that contains the payload', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await askRedis(server.port, 'CONFIG SET maxmemory 1');
    const error = await store
      .add('q', [newJob({ data: '"a secret"' })], { caller: 'p', seq: 1 })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'STORE_FULL', retryable: true });
    expect(JSON.stringify([error, (error as Error).cause])).not.toContain('secret');
    await askRedis(server.port, 'CONFIG SET maxmemory 0');
    expect(await store.add('q', [newJob()], { caller: 'p', seq: 1 })).toEqual([{ id: '1', status: 'added' }]);
  });
});

describe('a Redis connection without replies', () => {
  test('makes the call reject within commandTimeout, and the store goes on when the server is resumed', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url, commandTimeout: 600, connectTimeout: 600 });
    await store.openSession(newSession());
    await server.stop();
    const took = stopwatch();
    const call = { caller: 'p', seq: 1 };
    await expect(store.add('q', [newJob()], call)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(took()).toBeLessThan(paced(3_000));
    await expect(store.status('q')).rejects.toMatchObject({ retryable: true });
    server.resume();
    // The call that was sent before the stop is carried out now, perhaps after its own repetition.
    expect(await insist(() => store.add('q', [newJob()], call))).toEqual([{ id: '1', status: 'added' }]);
    expect((await store.status('q')).counts.waiting).toBe(1);
  });

  test('is found by pings when it is idle and half-open', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), commandTimeout: 1_000, connectTimeout: 500 });
    const opened = proxy.counts.opened;
    proxy.swallow('both');
    await until('a new connection', () => proxy.counts.opened > opened, 6_000);
    proxy.heal();
    expect((await insist(() => store.status('q'))).paused).toBe(false);
  });

  test('is reported to listeners once, within seconds, when it is half-open and idle', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), connectTimeout: 500 });
    const warnings: Error[] = [];
    store.onWarning((warning) => warnings.push(warning));
    // With a watcher, as an idle worker is one: its looks are no calls that could tell.
    store.watch('q', () => undefined);
    proxy.swallow('both');
    const took = stopwatch();
    await until('a warning', () => warnings.length > 0, 10_000);
    expect(took()).toBeLessThan(paced(6_000));
    expect(warnings[0]).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    expect(warnings[0]?.message).toMatch(/has not answered for \d+ ms/);
    const attempts = proxy.counts.opened;
    await until('a new connection', () => proxy.counts.opened > attempts + 1, 6_000);
    expect(warnings).toHaveLength(1);
    proxy.heal();
    expect((await insist(() => store.status('q'))).paused).toBe(false);
  });

  test('makes a call in flight reject when it is half-open, and the next call succeed', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), commandTimeout: 600, connectTimeout: 500 });
    proxy.swallow('both');
    await expect(store.status('q')).rejects.toMatchObject({ retryable: true });
    proxy.heal();
    expect((await insist(() => store.status('q'))).paused).toBe(false);
  });

  test('makes a call late that waits for another one of the server', async () => {
    const server = await newServer({ settings: { 'enable-debug-command': 'yes' } });
    const store = await openStore({ url: server.url, commandTimeout: 500 });
    await store.status('q');
    const client = new Redis(server.url);
    client.on('error', () => undefined);
    onTestFinished(() => client.disconnect());
    await client.ping();
    const asleep = client.call('DEBUG', 'SLEEP', '2');
    const late = await store.status('q').catch((error: unknown) => error);
    expect([late, isLate(late)]).toEqual([expect.objectContaining({ code: 'STORE_UNAVAILABLE', retryable: true }), true]);
    await asleep;
    await server.close();
    const other = await store.status('q').catch((error: unknown) => error);
    expect([other, isLate(other)]).toEqual([expect.any(Error), false]);
  });

  test('is not assumed after a blocked event loop', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url, commandTimeout: 700 });
    const call = store.status('q');
    const until = performance.now() + 2_000;
    while (performance.now() < until);
    expect(await call).toMatchObject({ paused: false });
  });
});

describe('a Redis server that changes', () => {
  test('serves calls after its script cache is flushed, also many at once', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await store.openSession(newSession());
    for (let round = 1; round <= 3; round += 1) {
      await askRedis(server.port, 'SCRIPT FLUSH');
      const calls = Array.from({ length: 20 }, (_, n) => store.add('q', [newJob()], { caller: `p${n}`, seq: round }));
      expect((await Promise.all(calls)).flat()).toHaveLength(20);
      expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toMatchObject([{ alive: true }]);
    }
    expect((await store.status('q')).counts.waiting).toBe(60);
  });

  test('keeps jobs, locks and numbers when it is restarted with its data', async () => {
    const server = await newServer({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const store = await openStore({ url: server.url });
    await store.openSession(newSession());
    await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
    const first = await claimOne(store, 1);
    await server.kill();
    await server.restart();
    const second = await insist(() => claimOne(store, 2));
    expect(second.fence).toBeGreaterThan(first.fence);
    const done = { kind: 'completed', jobId: first.id, token: first.token, value: '1', keep: {} } as const;
    expect((await store.settle('q', [done])).results).toEqual(['done']);
  });

  test('gives growing fences although a failover lost the last writes', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await store.openSession(newSession());
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const before = await claimOne(store, 1);
    await askRedis(server.port, 'FLUSHALL');
    await store.openSession(newSession());
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    const after = await claimOne(store, 1);
    expect(after.fence).toBeGreaterThan(before.fence);
    expect(after.token).not.toBe(before.token);
  });

  test('rejects calls while it is a replica, and serves them when it is not', async () => {
    const other = await newServer({ settings: { 'repl-diskless-sync-delay': '0' } });
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await askRedis(server.port, `REPLICAOF 127.0.0.1 ${other.port}`);
    // A write whatever the data: that of the other server takes the place of this one's meanwhile.
    const write = (): Promise<void> => store.configure('q', { blockedMs: 1 });
    await expect(write()).rejects.toMatchObject({ code: 'STORE_READONLY' });
    await until('the store says that it is read-only', () =>
      write().then(
        () => false,
        (error) => error.code === 'STORE_READONLY' && !error.retryable,
      ),
    );
    await askRedis(server.port, 'REPLICAOF NO ONE');
    await until('the store takes writes', () =>
      store.configure('q', { paused: true }).then(
        () => true,
        () => false,
      ),
    );
    expect((await store.status('q')).paused).toBe(true);
  });
});

describe('large replies of Redis on a slow line', () => {
  const MB = 1024 * 1024;
  const COMMAND_TIMEOUT = 1000;
  const JOBS = 6;

  /** Answers of a megabyte each, together much longer under way than a command may take, and when the first of them is here. */
  async function slowReads(): Promise<{ store: RedisStore; proxy: FaultProxy; reads: Promise<JobsReply>[] }> {
    const server = await newServer();
    const proxy = await newProxy(server);
    const store = await openStore({ url: proxy.url(server.url), commandTimeout: COMMAND_TIMEOUT });
    await store.openSession(newSession());
    const job = newJob({ data: JSON.stringify('x'.repeat(MB)) });
    for (let seq = 1; seq <= JOBS; seq += 1) await store.add('q', [job], { caller: 'p', seq });
    proxy.throttle(2 * MB);
    const reads = Array.from({ length: JOBS }, (_, index) => store.jobs('q', [String(index + 1)]));
    for (const read of reads) read.catch(() => undefined);
    return { store, proxy, reads };
  }

  test('are awaited while bytes arrive', async () => {
    const { reads } = await slowReads();
    const began = performance.now();
    for (const read of reads) expect((await read).jobs[0]?.data).toHaveLength(MB + 2);
    expect(performance.now() - began).toBeGreaterThan(2 * COMMAND_TIMEOUT);
  });

  test('time out when nothing arrives any more', async () => {
    const { reads, proxy } = await slowReads();
    await reads[0];
    proxy.strand();
    await expect(reads[JOBS - 1]).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
  });

  test('do not delay a renewal beyond commandTimeout', async () => {
    const { store, reads } = await slowReads();
    await expect(store.renew([{ queue: 'q', id: 's', acked: 0 }])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    await expect(reads[JOBS - 1]).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(await insist(() => store.renew([{ queue: 'q', id: 's', acked: 0 }]))).toEqual([{ alive: true, notices: [] }]);
  });
});
