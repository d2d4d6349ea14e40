import { afterAll, describe, it } from 'vitest';
import { RedisStore } from '../../src/store/redis/index.js';
import { conformance } from '../../src/testing/index.js';
import { paced } from '../support/pace.js';
import { startRedis } from '../support/servers/redis.js';
import { redisUnderTest, removeKeys } from './redis-under-test.js';

const given = process.env['REDIS_URL'];
let started: ReturnType<typeof startRedis> | undefined;
afterAll(async () => {
  if (given !== undefined) await removeKeys(given);
  await (await started)?.close();
});

async function url(): Promise<string> {
  if (given !== undefined) return given;
  started ??= startRedis();
  return (await started).url;
}

conformance({
  describe,
  it,
  name: 'redis',
  capabilities: new RedisStore().capabilities,
  unit: paced(40),
  open: async () => redisUnderTest(await url()),
});
