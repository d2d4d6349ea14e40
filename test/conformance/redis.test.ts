import { afterAll, describe, it } from 'vitest';
import { RedisStore } from '../../src/store/redis/index.js';
import { conformance } from '../../src/testing/index.js';
import { startRedis } from '../support/servers/redis.js';
import { RedisUnderTest, UNIT } from './redis-under-test.js';

const given = process.env['REDIS_URL'];
let started: ReturnType<typeof start> | undefined;

async function start() {
  // Not the shared one: some of these tests keep a server busy.
  const server = given === undefined || given === '' ? await startRedis() : undefined;
  return { server, redis: new RedisUnderTest(server?.url ?? given ?? '', 'single') };
}

afterAll(async () => {
  const running = await started;
  await running?.redis.close();
  await running?.server?.close();
});

conformance({
  describe,
  it,
  name: 'redis',
  clock: 'moved',
  capabilities: new RedisStore().capabilities,
  unit: UNIT,
  async open() {
    started ??= start();
    return (await started).redis.open();
  },
});
