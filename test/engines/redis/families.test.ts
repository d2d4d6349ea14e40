// Families on one Redis server and on two slots of a cluster: processes that end between the steps of a delivery, messages that come twice
// or late, and the time that scripts take.
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { RedisStore } from '../../../src/store/redis/index.js';
import { completed, failed, retryFrom } from '../../../src/testing/conformance/samples.js';
import { startRedis } from '../../support/servers/redis.js';
import { startRedisCluster } from '../../support/servers/redis-cluster.js';
import { Family } from './family-support.js';
import { scriptCost } from './script-time.js';
import { levelOf, newJob, newSession, openStore, openWithClient } from './support.js';

const SERVERS = {
  'one server': { start: () => startRedis(), connect: (url: string) => new Redis(url) },
  'two slots of a cluster': { start: () => startRedisCluster(3), connect: (url: string) => new Cluster([url]) },
};

describe.each(Object.entries(SERVERS))('a family on %s of Redis', (_title, { start, connect }) => {
  let server: Awaited<ReturnType<typeof start>>;
  let client: Redis | Cluster;
  let family: Family;
  let tests = 0;

  beforeAll(async () => {
    server = await start();
    client = connect(server.url);
  });
  afterAll(async () => {
    client.disconnect();
    await server.close();
  });
  beforeEach(async () => {
    const prefix = `families-${++tests}`;
    family = await new Family(await openStore({ url: server.url, prefix }), client, prefix).open();
  });

  const another = (): Promise<RedisStore> => openStore({ url: server.url, prefix: family.prefix });

  test('is finished by another process when the worker ends between settle and delivery', async () => {
    await family.addAll('a');
    await family.settleAndDie('a');
    expect(await family.state()).toBe('waiting-children');
    const other = await another();
    for (const queue of [family.kids, family.parents]) expect(await other.probe(queue)).toMatchObject({ undone: true });
    const claim = { session: `s-${family.kids}`, seq: 1_000, count: 1 };
    expect(await other.claim(family.kids, claim)).toMatchObject({ undone: true });
    expect(await other.relay(family.parents, 10)).toEqual({ delivered: 1, more: false });
    expect(await family.state()).toBe('waiting');
    for (const queue of [family.kids, family.parents]) expect((await other.probe(queue)).undone).toBeUndefined();
  });

  test('waits when no process relays (negative control)', async () => {
    await family.addAll('a', 'b');
    await family.settleAndDie('a');
    const other = await another();
    await other.sweep(family.kids, 100);
    await other.sweep(family.parents, 100);
    await other.claim(family.parents, { session: `s-${family.parents}`, seq: 1_000, count: 1 });
    expect(await family.counts()).toBe('2 pending, 0 processed, 0 failed, 0 ignored');
    // The next call that sends to the same queue delivers the older messages too.
    await family.complete('b');
    await expect.poll(() => family.state()).toBe('waiting');
  });

  test('gets its children when the producer ends before it delivers them', async () => {
    const blind = new Family(family.store, client, family.prefix);
    await family.add({ id: 'parent' });
    await blind.run('add-family', 'parents', 'x', 1, 'parents', '-', 0, 0, 'na', ...linkAndSend());
    expect(await family.state('a', family.kids)).toBe('missing');
    expect((await family.store.probe(family.parents)).undone).toBe(true);
    await family.relay();
    expect(await family.state('a', family.kids)).toBe('waiting');
    expect((await family.store.jobs(family.kids, ['a'])).jobs[0]?.parents).toEqual([{ queue: 'parents', id: 'parent' }]);
  });

  test('applies a message once that is delivered again after a relayer ended before it deleted the message', async () => {
    await family.addAll('a', 'b');
    await family.settleAndDie('a');
    const messages = await family.messages();
    expect(await family.deliverAndDie(messages)).toBe(1);
    expect(await family.counts()).toBe('1 pending, 1 processed, 0 failed, 0 ignored');
    expect(await family.messages()).toEqual(messages);
    expect(await family.deliverAndDie(messages)).toBe(1);
    await family.relay();
    expect(await family.messages()).toEqual([]);
    expect(await family.counts()).toBe('1 pending, 1 processed, 0 failed, 0 ignored');
    await family.complete('b');
    await family.relay();
    expect(await family.releases()).toBe(1);
  });

  test('ignores a slow relayer that delivers what others have delivered and outdated since', async () => {
    await family.addAll('a', 'b');
    await family.settleAndDie('a');
    const old = await family.messages();
    await family.relay();
    await family.store.change(family.kids, ['a'], retryFrom('completed'));
    await family.relay();
    expect(await family.counts()).toBe('2 pending, 0 processed, 0 failed, 0 ignored');
    await family.deliverAndDie(old);
    expect(await family.counts()).toBe('2 pending, 0 processed, 0 failed, 0 ignored');
    // The link knows the last message too, if the queue has forgotten its number.
    await client.del(`{${family.prefix}:parents}:inbox`);
    await family.deliverAndDie(old);
    expect(await family.counts()).toBe('2 pending, 0 processed, 0 failed, 0 ignored');
  });

  test('ignores the message of an earlier family with the same ids', async () => {
    await family.addAll('a');
    await family.settleAndDie('a', (job) => completed(job, { count: 0 }));
    const old = await family.messages();
    await family.store.change(family.parents, ['parent'], { kind: 'remove' });
    await family.addAll('a');
    await family.deliverAndDie(old);
    await family.relay();
    expect(await family.counts()).toBe('1 pending, 0 processed, 0 failed, 0 ignored');
    await family.complete('a');
    await family.relay();
    expect([await family.state(), await family.releases()]).toEqual(['waiting', 1]);
  });

  test('is released once by several relayers at once', async () => {
    const names = Array.from({ length: 60 }, (_, n) => `kid-${n}`);
    await family.addAll(...names);
    for (const name of names) await family.settleAndDie(name);
    const stores = await Promise.all([another(), another(), another(), another()]);
    await Promise.all(stores.map((store) => family.relay(store)));
    expect(await family.counts()).toBe('0 pending, 60 processed, 0 failed, 0 ignored');
    expect(await family.releases()).toBe(1);
  });

  test('sends one letter when the worker ends before the delivery and two processes relay', async () => {
    await family.store.add(family.kids, [newJob({ id: 'x', deadLetter: 'parents' })], { caller: 'q', seq: 1 });
    await family.settleAndDie('x', failed);
    const messages = await family.messages();
    await family.deliverAndDie(messages);
    await Promise.all([family.relay(), family.relay(await another())]);
    await family.deliverAndDie(messages);
    expect((await family.store.status(family.parents)).counts.waiting).toBe(1);
    // A relayer that is slower still does not bring a letter back that was removed.
    await family.store.change(family.parents, { lists: ['waiting'], limit: 1 }, { kind: 'remove' });
    await family.deliverAndDie(messages);
    expect((await family.store.status(family.parents)).counts.waiting).toBe(0);
  });

  test('goes on when a failover has lost the messages of its children', async () => {
    await family.addAll('a', 'b', 'c', 'd');
    await family.settleAndDie('a', (job) => completed(job, {}, '"of a"'));
    await family.settleAndDie('b', (job) => completed(job, { count: 0 }));
    await client.del(`{${family.prefix}:kids}:outbox`, `{${family.prefix}:kids}:outbox:parents`);
    await family.relay();
    await family.store.sweep(family.parents, 100);
    expect(await family.counts()).toBe('4 pending, 0 processed, 0 failed, 0 ignored');
    await client.zadd(`{${family.prefix}:parents}:waiting-children`, 'XX', 1, 'parent');
    // The sweep above has begun the pause between two checks.
    await client.del(`{${family.prefix}:parents}:checking`);
    await family.store.sweep(family.parents, 100);
    await family.relay();
    expect(await family.counts()).toBe('2 pending, 1 processed, 0 failed, 0 ignored');
    for (const id of ['c', 'd']) await family.complete(id);
    await family.relay();
    expect(await family.state()).toBe('waiting');
    const { links } = await family.store.children(family.parents, 'parent', { states: ['processed'], limit: 10 });
    expect(links.find(({ child }) => child.id === 'a')?.text).toBe('"of a"');
  });

  test('loses the link to a child that another producer has given another parent in the meantime', async () => {
    await family.addAll('a');
    await family.add({ id: 'second', waitsForChildren: true }, family.child('b', 'second'));
    // This producer looked for `a` before it had a parent.
    await family.run('add-family', 'parents', 'x', 1, 'parents', '-', 0, 0, 'na', ...linkAndSend('second'));
    await family.relay();
    expect(await family.counts('second')).toBe('1 pending, 0 processed, 0 failed, 0 ignored');
    expect((await family.store.jobs(family.kids, ['a'])).jobs[0]?.parents).toEqual([{ queue: 'parents', id: 'parent' }]);
  });
});

/** Steps of `add-family` in lua/families.lua: a parent that exists gets the child `a` in another queue. */
function linkAndSend(parent = 'parent'): string[] {
  const extra = `2,{"p":[{"queue":"parents","id":"${parent}","n":"bond"}]}`;
  const texts = ['e', 'a', '', '1\0n\0{}\0{}', extra, '00'];
  const steps = `b\0${texts.map((text) => text.length).join(',')}\n${texts.join('')}`;
  return ['k', parent, 'kids', 'a', 'bond', '1', 'n', 'kids', steps, '', '', ''];
}

test('1,000 children on Redis that end at once on 20 connections release their parent once', async () => {
  const { store, client } = await openWithClient();
  const family = await new Family(store, client).open();
  const names = Array.from({ length: 1_000 }, (_, n) => `kid-${n}`);
  await family.addAll(...names);
  await family.relay();
  const url = `redis://127.0.0.1:${client.options.port}`;
  const stores = await Promise.all(Array.from({ length: 20 }, () => openStore({ url })));
  const work = stores.map(async (worker, n) => {
    const id = `worker-${n}`;
    await worker.openSession(newSession({ queue: 'kids', id }));
    const { jobs } = await worker.claim('kids', { session: id, seq: 1, count: 50 });
    await Promise.all(jobs.map((job) => worker.settle('kids', [completed(job)])));
  });
  await Promise.all(work);
  await family.relay();
  expect(await family.counts()).toBe('0 pending, 1000 processed, 0 failed, 0 ignored');
  expect([await family.state(), await family.releases()]).toEqual(['waiting', 1]);
});

test('a parent with 500 children on Redis does not go on before all of them are linked', async () => {
  const { store, client } = await openWithClient();
  const family = await new Family(store, client).open();
  const names = Array.from({ length: 500 }, (_, n) => `kid-${n}`);
  const middle = { id: 'middle', queue: 'kids', waitsForChildren: true, parents: [{ queue: 'parents', id: 'parent' }] };
  const own = names.map((id) => ({ id, parents: [{ queue: 'kids', id: 'middle' }] }));
  await family.add({ id: 'parent', waitsForChildren: true }, ...names.map((id) => family.child(`far-${id}`)), middle, ...own);
  await family.relay();
  expect(await family.counts()).toBe('501 pending, 0 processed, 0 failed, 0 ignored');
  const { counts } = await store.children('kids', 'middle', { states: [], limit: 1 });
  expect([counts.pending, await family.state('middle', 'kids')]).toEqual([500, 'waiting-children']);
  await store.openSession(newSession({ queue: 'parents', id: 's' }));
  for (let done = 0; done < 500; ) {
    const { jobs } = await store.claim('parents', { session: 's', seq: done + 1, count: 100 });
    await store.settle(
      'parents',
      jobs.map((job) => completed(job)),
    );
    done += jobs.length;
  }
  await family.relay();
  expect(await family.state('middle', 'kids')).toBe('waiting');
  expect(await family.state()).toBe('waiting-children');
});

test('an add of many children without ids on Redis is cut into several scripts', async () => {
  const { store, client } = await openWithClient();
  const family = await new Family(store, client).open();
  const parents = [{ queue: 'parents', id: 'parent' }];
  await client.config('RESETSTAT');
  await family.add({ id: 'parent', waitsForChildren: true }, ...Array.from({ length: 500 }, () => ({ parents })));
  await family.relay();
  const scripts = Number(/cmdstat_evalsha:calls=(\d+)/.exec(await client.info('commandstats'))?.[1]);
  expect(scripts).toBeGreaterThan(5);
  expect(await family.counts()).toBe('500 pending, 0 processed, 0 failed, 0 ignored');
  expect((await store.status('parents')).counts).toMatchObject({ waiting: 500, 'waiting-children': 1 });
});

describe('a family with 10,000 children on Redis', () => {
  const CHILDREN = 10_000;
  /** Of the CPU of a quiet machine: three times what is seen. */
  const STEP_MS = 2;

  test('is added, completes and is removed in scripts that do not block Redis', async () => {
    const server = await startRedis();
    const client = new Redis(server.url);
    onTestFinished(async () => {
      client.disconnect();
      await server.close();
    });
    const family = await new Family(await openStore({ url: server.url }), client).open();
    const adds = await scriptCost(client, async () => {
      await family.addAll(...Array.from({ length: CHILDREN }, (_, n) => `kid-${n}`));
      await family.relay();
    });
    expect(await family.counts()).toBe(`${CHILDREN} pending, 0 processed, 0 failed, 0 ignored`);
    expect((await family.store.status('kids')).counts.waiting).toBe(CHILDREN);
    const ends = await scriptCost(client, async () => {
      for (let done = 0; done < CHILDREN; ) {
        const { jobs } = await family.store.claim('kids', { session: 's-kids', seq: 10_000 + done, count: 100 });
        await family.store.settle(
          'kids',
          jobs.map((job) => completed(job)),
        );
        done += jobs.length;
      }
      await family.relay();
    });
    expect(await family.counts()).toBe(`0 pending, ${CHILDREN} processed, 0 failed, 0 ignored`);
    expect(await family.releases()).toBe(1);
    const removal = await scriptCost(client, async () => {
      await family.store.change('parents', ['parent'], { kind: 'remove', children: true });
      await family.relay();
    });
    const { counts } = await family.store.status('kids');
    expect([counts.completed, await client.exists('{holdfast:parents}:outbox')]).toEqual([0, 0]);
    for (const { scripts, ms } of [adds, ends, removal]) {
      expect(scripts).toBeGreaterThan(50);
      expect(ms).toBeLessThan(STEP_MS);
    }
  });
});

describe('a queue with families on Redis', () => {
  test('has level 6, and a queue without families has not', async () => {
    const { store, client } = await openWithClient();
    const family = await new Family(store, client).open();
    await store.add('plain', [newJob()], { caller: 'q', seq: 1 });
    await family.addAll('a');
    expect(await levelOf(client, '{holdfast:parents}')).toBe(6);
    expect(await levelOf(client, '{holdfast:kids}')).toBe(6);
    expect(await levelOf(client, '{holdfast:plain}')).toBe(1);
  });

  test('keeps nothing of a family that is gone', async () => {
    const { store, client } = await openWithClient();
    const family = await new Family(store, client).open();
    await family.addAll('a', 'b');
    await family.store.settle('kids', [completed(await family.claim('a'), { count: 0 })]);
    await family.store.change('parents', ['parent'], { kind: 'remove', children: true });
    await family.relay();
    const left = (await client.keys('{holdfast:*')).map((key) => key.replace(/^.*\}:/, ''));
    expect(left.filter((key) => /^(links|kids|parting|telling|outbox|kin|extra|run|job|waiting-children)/.test(key))).toEqual([]);
  });
});
