// The Redis store on a cluster of three nodes: queues lie on different nodes, and the trouble of one node is not that of the
// others.
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { RedisStore } from '../../../src/store/redis/index.js';
import { FaultProxy } from '../../support/servers/proxy.js';
import { askRedis } from '../../support/servers/redis.js';
import { follows, type RedisCluster, startRedisCluster } from '../../support/servers/redis-cluster.js';
import type { TestServer } from '../../support/servers/server.js';
import { killClients, newJob, newSession, openStore } from './support.js';
import { stopwatch } from '../../support/wait/stopwatch.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';
import { insist } from '../../support/wait/insist.js';

let cluster: RedisCluster;
let prefix: string;
let tests = 0;

beforeAll(async () => {
  cluster = await startRedisCluster(3);
});
afterAll(() => cluster.close());
beforeEach(() => {
  prefix = `test-${++tests}`;
});

async function slotOf(queue: string): Promise<number> {
  return Number((await askRedis(cluster.nodes[0]?.port ?? 0, `CLUSTER KEYSLOT {${prefix}:${queue}}`)).slice(1).split('\r')[0]);
}

/** The node that a queue lies on, as the nodes were given their slots. */
async function nodeOf(queue: string): Promise<TestServer> {
  return cluster.nodes[Math.floor((await slotOf(queue)) / Math.ceil(16_384 / 3))] as TestServer;
}

/** A queue on each node. */
async function queuePerNode(): Promise<Map<TestServer, string>> {
  const queues = new Map<TestServer, string>();
  for (let n = 0; queues.size < 3; n += 1) {
    const node = await nodeOf(`q${n}`);
    if (!queues.has(node)) queues.set(node, `q${n}`);
  }
  return queues;
}

async function works(store: RedisStore, queue: string, caller: string): Promise<void> {
  await insist(() => store.add(queue, [newJob()], { caller, seq: 1 }));
  const id = `session-${caller}`;
  await insist(() => store.openSession(newSession({ queue, id })));
  const { jobs } = await insist(() => store.claim(queue, { session: id, seq: 1, count: 1 }));
  const [job] = jobs;
  if (job === undefined) return expect.fail('nothing was claimed');
  const outcome = { kind: 'completed', jobId: job.id, token: job.token, value: '1', keep: {} } as const;
  expect(await insist(() => store.settle(queue, [outcome], { caller: id, seq: 2 }))).toEqual({ results: ['done'] });
}

describe('a Redis Cluster', () => {
  test('is found by the address of a node that a failover has made a replica', { timeout: paced(30_000) }, async () => {
    const replicated = await startRedisCluster(3, { replicas: true });
    onTestFinished(() => replicated.close());
    const [, , , replica] = replicated.nodes as TestServer[];
    const store = await openStore({ url: replica?.url ?? '', prefix });
    for (const queue of ['q1', 'q2', 'q3']) await works(store, queue, `replica-${queue}`);
  });

  test('finds the primary of a slot when connections to its replicas are the only ones left', {
    timeout: paced(60_000),
  }, async () => {
    const { nodes, demoted, queue } = await clusterAfterFailover();
    const { template, made } = spyOn(nodes);
    const store = await openStore({ client: template, prefix });
    const client = made[0] as Cluster;
    // The first use of a queue also sends a plain write, which a replica redirects. A script it does not.
    await works(store, queue, 'registered');
    await Promise.all(nodes.map((node) => killClients(node)));
    await until('no primary is connected', () => client.nodes('master').length === 0);
    // ioredis has not connected to the replicas yet, so the kill has missed them.
    expect(client.nodes('slave').map(({ options }) => options.port)).toContain(demoted.port);
    expect(await store.add(queue, [newJob()], { caller: 'p', seq: 1 })).toMatchObject([{ status: 'added' }]);
    await works(store, queue, 'after');
    expect(made).toHaveLength(1);
  });

  test('is connected to anew when a replica answers for the primary, and not at each such reply', {
    timeout: paced(60_000),
  }, async () => {
    const { nodes, primary, demoted, queue, elsewhere } = await clusterAfterFailover();
    const { template, made } = spyOn(nodes);
    const store = await openStore({ client: template, prefix });
    await works(store, queue, 'registered');
    await works(store, elsewhere, 'registered');
    let rejected: unknown[] = [];
    const failed = (error: unknown): void => {
      if (rejected.push((error as { code?: string }).code) > 20) throw error;
    };
    let seq = 0;
    const write = (): Promise<unknown> => store.add(queue, [newJob()], { caller: 'p', seq });

    // Time stands still, so that a slow machine is not taken for the end of the pause.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    onTestFinished(() => clock.mockRestore());

    // One reply of a replica: the next client finds the primary. A call that another node has not answered may have been carried out.
    const other = nodes[0] as TestServer;
    await other.stop();
    const flying = store.status(elsewhere).catch((error: unknown) => error);
    await mislead(made[0] as Cluster, { primary, demoted });
    seq = 1;
    await expect(write()).rejects.toMatchObject({ code: 'STORE_READONLY', retryable: true });
    expect(await flying).toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
    other.resume();
    await insist(write, failed);
    expect(made.length).toBeGreaterThan(1);

    // The next one is misled as well: it stays, so that the calls of other slots go on. (It registers the queue before that.)
    seq = 2;
    await write();
    const clients = made.length;
    await mislead(made.at(-1) as Cluster, { primary, demoted });
    rejected = [];
    seq = 3;
    for (let call = 0; call < 20; call += 1) await write().catch(failed);
    expect(rejected).toEqual(Array(20).fill('STORE_READONLY'));
    expect(made).toHaveLength(clients);

    clock.mockReturnValue(performance.now() + 5_001);
    await expect(write()).rejects.toMatchObject({ code: 'STORE_READONLY' });
    await insist(write);
    expect(made).toHaveLength(clients + 1);
  });

  test('is refused in time when one of its nodes accepts connections and never replies', async () => {
    const proxies = await Promise.all(cluster.nodes.map((node) => FaultProxy.start(node)));
    onTestFinished(async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))));
    const places = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
    const natMap = Object.fromEntries(cluster.nodes.map(({ port }, n) => [`127.0.0.1:${port}`, places[n]]));
    // The client asks one node for the others, and then all of them: it must be another node that never replies.
    for (const mute of proxies.slice(1)) {
      mute.swallow('both');
      const store = new RedisStore({ cluster: places.slice(0, 1), natMap, prefix, connectTimeout: 500 });
      onTestFinished(() => store.close());
      await expect(store.open()).rejects.toThrow('did not answer within 500 ms');
      mute.heal();
      await store.open();
      for (const queue of (await queuePerNode()).values()) await works(store, queue, `healed-${mute.port}`);
    }
  });

  test('is found by the address of one node, by a list of nodes, or by an instance', async () => {
    const [first, second] = cluster.nodes as [TestServer, TestServer];
    const client = new Cluster([{ host: '127.0.0.1', port: first.port }], { lazyConnect: true });
    const connected = new Cluster([{ host: '127.0.0.1', port: first.port }]);
    for (const each of [client, connected]) onTestFinished(() => each.disconnect());
    const ways = [
      { url: second.url },
      { port: second.port },
      { cluster: [{ host: '127.0.0.1', port: first.port }] },
      { cluster: [`127.0.0.1:${second.port}`] },
      { client },
      { client: connected },
      { client: new Redis(first.port, { lazyConnect: true }) },
    ];
    for (const [index, options] of ways.entries()) {
      const store = await openStore({ ...options, prefix });
      for (const queue of (await queuePerNode()).values()) await works(store, queue, `way-${index}`);
      await store.close();
    }
    expect(client.status).toBe('wait');
  });

  test('renews sessions of queues on different nodes in one call', async () => {
    const store = await openStore({ url: cluster.url, prefix });
    const queues = [...(await queuePerNode()).values()];
    await Promise.all(queues.map((queue) => store.openSession(newSession({ queue }))));
    expect(await store.renew(queues.map((queue) => ({ queue, id: 's', acked: 0 })))).toEqual(
      queues.map(() => ({ alive: true, notices: [] })),
    );
  });

  test('wakes watchers, whichever node the queue lies on', async () => {
    const [store, peer] = [await openStore({ url: cluster.url, prefix }), await openStore({ url: cluster.url, prefix })];
    for (const queue of (await queuePerNode()).values()) {
      let calls = 0;
      store.watch(queue, () => void (calls += 1));
      await until('the watcher is called', () => calls === 1);
      await sleep(300);
      await peer.add(queue, [newJob()], { caller: 'p', seq: 1 });
      await until('the watcher is called', () => calls > 1, 3_000);
    }
  });

  test('goes on after its connections are killed and its scripts are flushed', async () => {
    const store = await openStore({ url: cluster.url, prefix });
    for (const [round, node] of cluster.nodes.entries()) {
      await killClients(node);
      await askRedis(node.port, 'SCRIPT FLUSH');
      for (const queue of (await queuePerNode()).values()) await works(store, queue, `${round}`);
    }
  });

  test('keeps a queue when its slot moves to another node', async () => {
    const store = await openStore({ url: cluster.url, prefix });
    await works(store, 'moving', 'before');
    await store.add('moving', [newJob({ id: 'kept' })], { caller: 'p', seq: 1 });
    const slot = await slotOf('moving');
    const from = await nodeOf('moving');
    const to = cluster.nodes.find((node) => node !== from) as TestServer;
    await moveSlot(slot, from, to);
    onTestFinished(() => moveSlot(slot, to, from));
    expect((await store.jobs('moving', ['kept'])).jobs[0]?.state).toBe('waiting');
    await store.change('moving', ['kept'], { kind: 'remove' });
    await works(store, 'moving', 'after');
  });

  test('rejects calls of a node that does not reply, and serves those of other nodes', async () => {
    const store = await openStore({ url: cluster.url, prefix, commandTimeout: 800 });
    const queues = await queuePerNode();
    const [node, stuck] = [...queues][1] as [TestServer, string];
    const free = [...queues.values()].filter((queue) => queue !== stuck);
    await works(store, stuck, 'before');
    await node.stop();
    try {
      const took = stopwatch();
      await expect(store.status(stuck)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
      expect(took()).toBeLessThan(paced(4_000));
      for (const queue of free) expect(await insist(() => store.status(queue))).toMatchObject({ paused: false });
    } finally {
      node.resume();
    }
    await cluster.whole();
    await works(store, stuck, 'after');
  });

  test('keeps its sessions unsuspected when their connection is replaced', async () => {
    const [store, owner] = [await openStore({ url: cluster.url, prefix }), await openStore({ url: cluster.url, prefix })];
    await owner.openSession(newSession());
    for (const node of cluster.nodes) {
      await killClients(node);
      await insist(() => store.probe('q'));
      await until('the suspicion ends', async () => (await insist(() => store.sessions('q')))[0]?.suspected === false);
    }
    await sleep(1_200);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    await owner.close();
    await until('the session is suspected', async () => 'dueInMs' in (await store.probe('q')));
  });
});

interface Failover {
  nodes: TestServer[];
  primary: TestServer;
  demoted: TestServer;
  queue: string;
  elsewhere: string;
}

/**
 * A cluster of two primaries, of which the first is a replica now, and so is every other node of its slots. Resolves when all nodes say
 * so. `queue` lies on those slots, `elsewhere` on those of the other primary, which is the first of `nodes`.
 */
async function clusterAfterFailover(): Promise<Failover> {
  const { nodes, close, url } = await startRedisCluster(2, { replicas: true });
  onTestFinished(close);
  const [demoted, other, primary, moved] = nodes as [TestServer, TestServer, TestServer, TestServer];
  await askRedis(primary.port, 'CLUSTER FAILOVER TAKEOVER');
  await follows(demoted);
  await until('the replica knows its new primary', async () =>
    (await askRedis(moved.port, `CLUSTER REPLICATE ${await idOf(primary)}`)).startsWith('+OK'),
  );
  await follows(moved);
  let [queue, elsewhere] = ['q', 'q'];
  while ((await slotOf(queue)) >= 8_192) queue += 'q';
  while ((await slotOf(elsewhere)) < 8_192) elsewhere += 'q';
  // Nodes do not name a replica that has got nothing yet.
  const store = await openStore({ url, prefix });
  await works(store, queue, 'before');
  await store.close();
  // The first slots have three nodes, and this is the first of them.
  const ownSlots = new RegExp(`\\*5\r\n:0\r\n:8191\r\n\\*.\r\n.*\r\n127.0.0.1\r\n:${primary.port}\r\n`);
  await until('all nodes name both replicas', async () => {
    const maps = await Promise.all(nodes.map(({ port }) => askRedis(port, 'CLUSTER SLOTS')));
    return maps.every((map) => ownSlots.test(map));
  });
  return { nodes: [other, demoted, primary, moved], primary, demoted, queue, elsewhere };
}

/** An instance for the option `client`, and the clients that a store has made from it. */
function spyOn([first]: TestServer[]): { template: Cluster; made: Cluster[] } {
  const template = new Cluster([{ host: '127.0.0.1', port: first?.port ?? 0 }], { lazyConnect: true });
  onTestFinished(() => template.disconnect());
  const made: Cluster[] = [];
  const duplicate = template.duplicate.bind(template);
  template.duplicate = (...given) => {
    const client = duplicate(...given);
    made.push(client);
    return client;
  };
  return { template, made };
}

/** Makes a client take the demoted node for the primary, on a connection on which that node runs scripts itself. */
async function mislead(client: Cluster, { primary, demoted }: { primary: TestServer; demoted: TestServer }): Promise<void> {
  const node = client.nodes('slave').find(({ options }) => options.port === demoted.port);
  await node?.call('readonly');
  const { slots } = client as unknown as { slots: string[][] };
  for (const keys of new Set(slots)) if (keys[0] === `127.0.0.1:${primary.port}`) keys[0] = `127.0.0.1:${demoted.port}`;
}

async function idOf({ port }: TestServer): Promise<string> {
  return (await askRedis(port, 'CLUSTER MYID')).split('\r\n')[1] ?? '';
}

async function moveSlot(slot: number, from: TestServer, to: TestServer): Promise<void> {
  const [source, target] = [await idOf(from), await idOf(to)];
  await askRedis(to.port, `CLUSTER SETSLOT ${slot} IMPORTING ${source}`);
  await askRedis(from.port, `CLUSTER SETSLOT ${slot} MIGRATING ${target}`);
  const client = new Redis(from.port);
  try {
    const keys = (await client.cluster('GETKEYSINSLOT', slot, 1_000)) as string[];
    if (keys.length > 0) await client.call('migrate', ['127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys]);
  } finally {
    client.disconnect();
  }
  for (const { port } of [to, from, ...cluster.nodes]) await askRedis(port, `CLUSTER SETSLOT ${slot} NODE ${target}`);
}
