import { afterAll, describe, it } from 'vitest';
import { RedisStore } from '../../src/store/redis/index.js';
import { conformance } from '../../src/testing/index.js';
import { startRedisCluster } from '../support/servers/redis-cluster.js';
import { RedisUnderTest, UNIT } from './redis-under-test.js';

let started: ReturnType<typeof start> | undefined;

async function start() {
  const cluster = await startRedisCluster(3);
  // The address of one node is enough: it is recognised as part of a cluster.
  return { cluster, redis: new RedisUnderTest(cluster.url, 'cluster') };
}

afterAll(async () => {
  const running = await started;
  await running?.redis.close();
  await running?.cluster.close();
});

conformance({
  describe,
  it,
  name: 'redis cluster',
  clock: 'moved',
  capabilities: new RedisStore().capabilities,
  unit: UNIT,
  async open() {
    started ??= start();
    return (await started).redis.open();
  },
});
