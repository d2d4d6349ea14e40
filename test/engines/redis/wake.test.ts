// Waking of watchers: at once while the subscription lives, within a second or two whatever becomes of it.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Dialer } from '../../../src/store/redis/driver/dial.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import type { Link } from '../../../src/store/redis/driver/link.js';
import { checkOptions } from '../../../src/store/redis/driver/options.js';
import { Subscriber } from '../../../src/store/redis/driver/subscriber.js';
import { askRedis } from '../../support/servers/redis.js';
import type { TestServer } from '../../support/servers/server.js';
import { killClients, newJob, newProxy, newServer, newSession, openStore, openWithClient } from './support.js';
import { until } from '../../support/wait/until.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { insist } from '../../support/wait/insist.js';

interface Watcher {
  calls: number;
  stop(): void;
}

/** Watches, and lets the first call pass. */
async function watch(store: RedisStore, queue = 'q'): Promise<Watcher> {
  const watcher: Watcher = { calls: 0, stop: () => undefined };
  watcher.stop = store.watch(queue, () => void (watcher.calls += 1));
  await until('the watcher is called', () => watcher.calls > 0);
  return watcher;
}

/** How long it takes until an add wakes, in ms. */
async function wakeUp(watcher: Watcher, store: RedisStore, caller: string): Promise<number> {
  const before = watcher.calls;
  const took = stopwatch();
  await store.add('q', [newJob()], { caller, seq: 1 });
  await until('the watcher is called', () => watcher.calls > before);
  return took();
}

/** Of five adds to an idle queue, the middle one: a look of the watcher comes after half a second on average. */
async function expectWokenAtOnce(watcher: Watcher, store: RedisStore): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    await sleep(80);
    times.push(await wakeUp(watcher, store, `round ${round}`));
  }
  expect(times.sort((a, b) => a - b)[2]).toBeLessThan(paced(300));
}

async function subscribed({ port }: TestServer, queue = 'q'): Promise<boolean> {
  return (await askRedis(port, `PUBSUB NUMSUB {holdfast:${queue}}:events-wake`)).includes(':1');
}

describe('watchers on Redis', () => {
  test('of an idle queue are woken at once, again and again', async () => {
    const server = await newServer();
    const [store, peer] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    const watcher = await watch(store);
    await until('the subscription', () => subscribed(server));
    await expectWokenAtOnce(watcher, peer);
  });

  test('of jobs are woken as soon as their own process sends jobs, which they can then claim', async () => {
    const { store } = await openWithClient();
    await store.openSession(newSession());
    let calls = 0;
    let claimed: Promise<{ jobs: unknown[] }> | undefined;
    const stop = store.watch(
      'q',
      () => {
        calls += 1;
        if (adding) claimed ??= store.claim('q', { session: 's', seq: 1, count: 1 });
      },
      'jobs',
    );
    let adding = false;
    await until('the watcher is called', () => calls > 0);
    adding = true;
    const added = store.add('q', [newJob()], { caller: 'p', seq: 1 });
    expect(claimed).toBeDefined();
    expect((await claimed)?.jobs).toHaveLength(1);
    await added;
    stop();
  });

  test('of events or of another queue are not woken by that', async () => {
    const { store } = await openWithClient();
    const events = await watch(store);
    let others = 0;
    const stop = store.watch('other', () => void (others += 1), 'jobs');
    await until('the watcher is called', () => others > 0);
    const before = [events.calls, others];
    const added = store.add('q', [newJob()], { caller: 'p', seq: 1 });
    expect([events.calls, others]).toEqual(before);
    await added;
    stop();
    events.stop();
  });

  test('of a busy queue are woken in bulk', async () => {
    const server = await newServer();
    const [store, peer] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    const watcher = await watch(store);
    const before = watcher.calls;
    const changes = 400;
    for (let n = 0; n < changes; n += 1) await peer.add('q', [newJob()], { caller: 'p', seq: n + 1 });
    await sleep(50);
    expect(watcher.calls).toBeGreaterThan(before);
    expect(watcher.calls - before).toBeLessThan(changes / 2);
    // And the last change was not missed.
    const seen = watcher.calls;
    await sleep(1_200);
    expect(watcher.calls).toBe(seen);
  });

  test('of jobs are woken by claimable jobs, not by finished ones', async () => {
    const server = await newServer();
    const [store, peer] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    await peer.openSession(newSession());
    await peer.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
    let calls = 0;
    store.watch('q', () => void (calls += 1), 'jobs');
    await until('the watcher is called', () => calls === 1);
    const events = await watch(store);
    const { jobs } = await peer.claim('q', { session: 's', seq: 1, count: 2 });
    await peer.write('q', [{ jobId: '1', kind: 'progress', progress: '1' }]);
    const outcomes = jobs.map(({ id, token }) => ({ kind: 'completed' as const, jobId: id, token, value: '1', keep: {} }));
    await peer.settle('q', outcomes, { caller: 's', seq: 2 });
    // Longer than a look takes to come: nothing was missed, there was nothing.
    await until('the watcher is called', () => events.calls > 1);
    await sleep(1_200);
    expect(calls).toBe(1);
    await peer.add('q', [newJob()], { caller: 'p', seq: 2 });
    await until('the watcher is called at once', () => calls === 2, 900);
  });

  test('are woken by polling while the subscription is gone, and by messages when it is back', async () => {
    const server = await newServer();
    const [store, peer] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    const watcher = await watch(store);
    await until('the subscription', () => subscribed(server));
    await askRedis(server.port, 'CLIENT KILL TYPE pubsub');
    expect(await wakeUp(watcher, peer, 'a')).toBeLessThan(paced(5_000));
    await until('the subscription is back', () => subscribed(server));
    await expectWokenAtOnce(watcher, peer);
  });

  test('are woken after all connections were killed', async () => {
    const server = await newServer();
    const [store, peer] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    const watcher = await watch(store);
    await killClients(server);
    await insist(() => peer.status('q'));
    expect(await wakeUp(watcher, peer, 'a')).toBeLessThan(paced(5_000));
  });

  test('are woken after everything was half-open', async () => {
    const server = await newServer();
    const proxy = await newProxy(server);
    const peer = await openStore({ url: server.url });
    const store = await openStore({ url: proxy.url(server.url), commandTimeout: 1_000, connectTimeout: 500 });
    const watcher = await watch(store);
    await until('the subscription', () => subscribed(server));
    proxy.swallow('both');
    await sleep(2_500);
    proxy.heal();
    expect(await wakeUp(watcher, peer, 'a')).toBeLessThan(paced(5_000));
  });

  test('leave nothing behind when they stop: the last one ends the subscription', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    const [one, other] = [await watch(store), await watch(store, 'other')];
    const stopTwo = store.watch('q', () => undefined);
    await until('both subscriptions', async () => (await subscribed(server)) && (await subscribed(server, 'other')));
    one.stop();
    one.stop();
    expect(await subscribed(server)).toBe(true);
    stopTwo();
    await until('the subscription ends', async () => !(await subscribed(server)));
    other.stop();
    await until('no subscriber is left', async () => (await askRedis(server.port, 'CLIENT LIST TYPE pubsub')).startsWith('$0'));
  });

  test('of a later queue share the subscription', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await watch(store, 'first');
    await until('the subscription', () => subscribed(server, 'first'));
    const watcher = await watch(store);
    await until('the subscription', () => subscribed(server));
    await expectWokenAtOnce(watcher, store);
  });
});

test('find a half-open subscription by pings, and subscribe again', async () => {
  const server = await newServer();
  const proxy = await newProxy(server);
  const url = proxy.url(server.url);
  const messages: string[] = [];
  const client = new Redis(url, { lazyConnect: true });
  const subscriber = new Subscriber({
    link: { client } as unknown as Link,
    dialer: new Dialer(checkOptions({ url })),
    connectTimeout: 500,
    channels: () => ['{holdfast:q}:events-wake'],
    onMessage: (_channel, message) => void messages.push(message),
    onConnected: () => undefined,
  });
  onTestFinished(() => subscriber.close());
  await until('the subscription', () => subscribed(server));
  proxy.swallow('both');
  await until('a new connection', () => proxy.counts.opened > 1, 8_000);
  proxy.heal();
  await until('the subscription', () => subscribed(server));
  await askRedis(server.port, 'PUBLISH {holdfast:q}:events-wake news');
  await until('the message', () => messages.length > 0);
});

test('are woken at once by the next job after a claim found too few, and not again before another claim', async () => {
  const { store, client } = await openWithClient();
  const messages: string[] = [];
  client.on('message', (_channel, version) => messages.push(version));
  await client.subscribe('{holdfast:q}:jobs-wake');
  await store.openSession(newSession());
  const add = (seq: number) => store.add('q', [newJob()], { caller: 'p', seq });
  const claim = (seq: number, count: number) => store.claim('q', { session: 's', seq, count });
  await add(1);
  expect((await claim(1, 1)).jobs).toHaveLength(1);
  await add(2);
  expect((await claim(2, 5)).jobs).toHaveLength(1);
  // No queue was armed so far: the claims found jobs.
  await add(3);
  await add(4);
  expect((await claim(3, 5)).jobs).toHaveLength(2);
  await add(5);
  await client.ping();
  expect(messages).toEqual(['3', '5']);
});
