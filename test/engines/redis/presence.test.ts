// The crash hint: a session whose connection is gone is suspected, unless its owner only lost its connection.
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type SessionInfo } from '../../../src/store/contract/index.js';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { script } from '../../../src/store/redis/driver/scripts.js';
import { askRedis } from '../../support/servers/redis.js';
import { killClients, newServer, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

const GRACE_MS = 5_000;

async function session(store: RedisStore): Promise<SessionInfo> {
  const [only] = await store.sessions('q');
  return only ?? expect.fail('there is no session');
}

async function suspect(store: RedisStore): Promise<void> {
  await until('the session is suspected', async () => 'dueInMs' in (await store.probe('q')));
}

describe('a session on Redis', () => {
  test('is suspected when the store that opened it is gone, and keeps its grace', async () => {
    const server = await newServer();
    const [store, owner] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    await owner.openSession(newSession({ graceMs: GRACE_MS }));
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await owner.close();
    await suspect(store);
    const { suspected, expiresInMs } = await session(store);
    expect(suspected).toBe(true);
    expect(expiresInMs).toBeLessThanOrEqual(GRACE_MS);
    expect(expiresInMs).toBeGreaterThan(GRACE_MS - 4_500);
  });

  test('is not suspected when the store that opened it ends, but another one renewed it last', async () => {
    const server = await newServer();
    const [store, owner, renewer] = [
      await openStore({ url: server.url }),
      await openStore({ url: server.url }),
      await openStore({ url: server.url }),
    ];
    await owner.openSession(newSession({ graceMs: GRACE_MS }));
    await renewer.renew([{ queue: 'q', id: 's', acked: 0 }]);
    await owner.close();
    await sleep(600);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await renewer.close();
    await suspect(store);
  });

  test('gets back its time when its live owner reconnects', async () => {
    const server = await newServer();
    const [store, owner] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    await owner.openSession(newSession({ graceMs: GRACE_MS }));
    for (let round = 0; round < 3; round += 1) {
      await killClients(server);
      // With or without a probe between the loss and the new connection.
      await insist(() => store.probe('q'));
      await until('the suspicion ends', async () => !(await session(store)).suspected);
      await sleep(550);
      expect(await store.probe('q')).toEqual({ sessions: 1 });
      expect((await session(store)).expiresInMs).toBeGreaterThan(50_000);
    }
  });

  test('gets back no more than its time after a suspicion', async () => {
    const server = await newServer();
    const [store, owner] = [await openStore({ url: server.url }), await openStore({ url: server.url })];
    await owner.openSession(newSession({ durationMs: 8_000, graceMs: 3_000 }));
    const before = (await session(store)).expiresInMs;
    const begun = performance.now();
    // A prober asks within the blink: what it does then is done here by hand, to be sure of the order.
    const client = new Redis(server.url);
    onTestFinished(() => client.disconnect());
    const presences = await client.hvals('{holdfast:q}:presence');
    await client.eval(script('suspect').text, 1, '{holdfast:q}', ...presences);
    expect(await session(store)).toMatchObject({ suspected: true });
    await killClients(server);
    await until('the suspicion ends', async () => !(await session(store)).suspected);
    const left = (await session(store)).expiresInMs;
    expect(left).toBeLessThanOrEqual(before);
    expect(left).toBeGreaterThan(before - (performance.now() - begun) - 50);
  });

  test('is not suspected after a restart of the server', async () => {
    const server = await newServer({ settings: { appendonly: 'yes', appendfsync: 'always' } });
    const owner = await openStore({ url: server.url });
    await owner.openSession(newSession({ graceMs: GRACE_MS }));
    await owner.close();
    await server.restart();
    const store = await openStore({ url: server.url });
    await sleep(100);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    expect((await session(store)).suspected).toBe(false);
  });

  test('is probed twice a second at most, however many callers probe', async () => {
    const server = await newServer();
    const store = await openStore({ url: server.url });
    await store.openSession(newSession({ graceMs: GRACE_MS }));
    const asked = async (): Promise<number> =>
      Number(/cmdstat_client\|list:calls=(\d+)/.exec(await askRedis(server.port, 'INFO commandstats'))?.[1] ?? 0);
    const begun = performance.now();
    for (let n = 0; n < 200; n += 1) await store.probe('q');
    const seconds = (performance.now() - begun) / 1_000;
    expect(await asked()).toBeGreaterThan(0);
    expect(await asked()).toBeLessThanOrEqual(2 * seconds + 2);
  });
});
