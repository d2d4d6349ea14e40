// A Redis Cluster under load: the connections to all its nodes are ended one after the other, and the node that has the queue is killed
// and comes back.
import { expect, onTestFinished, test } from 'vitest';
import { switchboardOf } from '../support/servers/connections.js';
import { Crew } from '../support/processes/crew.js';
import { sleep } from '../support/wait/until.js';
import { askRedis } from '../support/servers/redis.js';
import { type RedisCluster, startRedisCluster } from '../support/servers/redis-cluster.js';
import type { TestServer } from '../support/servers/server.js';
import { paced } from '../support/wait/pace.js';

async function newCluster(): Promise<RedisCluster> {
  // The other nodes go on serving what is theirs while one is away.
  const settings = { appendonly: 'yes', appendfsync: 'always', 'cluster-require-full-coverage': 'no' };
  const cluster = await startRedisCluster(3, { settings });
  onTestFinished(() => cluster.close());
  return cluster;
}

async function load(connection: string): Promise<Crew> {
  const crew = await Crew.on(connection);
  for (const _ of [1, 2]) {
    crew.worker({ connection, options: { concurrency: 8, lockRenewTime: 200, stalledInterval: 500 } });
    crew.producer({ connection });
  }
  await Promise.all(crew.members.map((member) => member.ready()));
  return crew;
}

async function homeOf(queue: string, { nodes }: RedisCluster): Promise<TestServer> {
  for (const node of nodes) {
    const reply = await askRedis(node.port, `EXISTS {holdfast:${queue}}`);
    if (!reply.includes('MOVED')) return node;
  }
  throw new Error('No node has the queue.');
}

test('connections to the nodes of a cluster are ended one after the other: nothing is lost, doubled or stalled', {
  timeout: paced(60_000),
}, async () => {
  const cluster = await newCluster();
  const crew = await load(cluster.url);
  const switchboards = await Promise.all(cluster.nodes.map((node) => switchboardOf('redis', node)));
  let cut = 0;
  for (let round = 0; round < 2; round += 1) {
    for (const switchboard of switchboards) {
      for (const { id } of await switchboard.connections()) {
        await switchboard.cut(id);
        cut += 1;
        await sleep(20);
      }
    }
    await crew.more('finished', 30, 15_000);
  }
  expect(cut).toBeGreaterThanOrEqual(2 * 6);
  const { complaints } = await crew.finish();
  expect(complaints).toEqual([]);
  expect(crew.count('stalled')).toBe(0);
  expect(crew.count('aborted')).toBe(0);
});

test('the node of a cluster that has the queue is killed and comes back: all recover by themselves, nothing acknowledged is lost', {
  timeout: paced(60_000),
}, async () => {
  const cluster = await newCluster();
  const crew = await load(cluster.url);
  await crew.more('finished', 50);
  const home = await homeOf('work', cluster);
  await home.kill();
  await home.restart();
  await cluster.whole();
  await crew.more('finished', 50, 20_000);
  const { complaints } = await crew.finish();
  expect(complaints).toEqual([]);
  expect(crew.count('stalled')).toBe(0);
  for (const { role, errors } of crew.workers.map((member) => ({ role: member.role, errors: member.errors() }))) {
    expect(errors.length, `${role}:\n${errors.join('\n')}`).toBeLessThanOrEqual(8);
    expect(errors.some((error) => error.startsWith('STORE_UNAVAILABLE'))).toBe(true);
  }
});
