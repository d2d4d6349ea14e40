import { afterAll, describe, it } from 'vitest';
import { RedisStore } from '../../src/store/redis/index.js';
import { conformance } from '../../src/testing/index.js';
import { paced } from '../support/pace.js';
import { startRedisCluster } from '../support/servers/redis-cluster.js';
import { redisUnderTest } from './redis-under-test.js';

let started: ReturnType<typeof startRedisCluster> | undefined;
afterAll(async () => (await started)?.close());

conformance({
  describe,
  it,
  name: 'redis cluster',
  capabilities: new RedisStore().capabilities,
  unit: paced(40),
  async open() {
    started ??= startRedisCluster(3);
    // The address of one node is enough: it is recognised as part of a cluster.
    return redisUnderTest((await started).url);
  },
});
