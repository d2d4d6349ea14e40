// The servers that all test files share: started by the first who asks, once, and ended with the run.
import { Client } from 'pg';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import setup from '../../support/servers/global.js';
import { hasEnded } from '../../support/servers/processes.js';
import { askRedis } from '../../support/servers/redis.js';
import { emptyDatabase, freshDatabase, OFFICE, shared } from '../../support/servers/shared.js';

let teardown: (() => Promise<void>) | undefined;

// The office of this file, beside the one of the run.
beforeEach(() => {
  for (const variable of [OFFICE, 'REDIS_URL', 'DATABASE_URL']) vi.stubEnv(variable, undefined);
});
afterEach(async () => {
  await teardown?.();
  teardown = undefined;
  vi.unstubAllEnvs();
});

const portOf = (url: string): number => Number(new URL(url).port);

test('two callers get the same shared server, which ends with the run', async () => {
  teardown = await setup();
  const [first, second] = await Promise.all([shared('redis'), shared('redis')]);
  expect(first).toBe(second);
  const pid = Number(/process_id:(\d+)/.exec(await askRedis(portOf(first), 'INFO server'))?.[1]);
  expect(hasEnded(pid)).toBe(false);
  await teardown?.();
  teardown = undefined;
  expect(hasEnded(pid)).toBe(true);
});

test('the set-up of a second project uses the shared servers of the first, and does not close them', async () => {
  teardown = await setup();
  expect(await setup()).toBeUndefined();
});

test('a server that the environment names is used and left alone', async () => {
  vi.stubEnv('REDIS_URL', 'redis://redis.test:1');
  vi.stubEnv('DATABASE_URL', 'postgres://postgres.test:1/jobs');
  teardown = await setup();
  expect(await shared('redis')).toBe('redis://redis.test:1');
  expect(await shared('postgres')).toBe('postgres://postgres.test:1/jobs');
});

test.each([
  ['empty', emptyDatabase],
  ['migrated', freshDatabase],
])('databases that are %s: one for each who asks, and they can be dropped under open connections', async (kind, make) => {
  teardown = await setup();
  const [mine, yours] = await Promise.all([make(), make()]);
  const client = new Client({ connectionString: mine.url });
  const lost = new Promise((resolve) => client.on('error', () => undefined).once('end', resolve));
  await client.connect();
  await client.query('CREATE TABLE mine ()');
  const { rows } = await client.query(`SELECT FROM pg_namespace WHERE nspname = 'holdfast'`);
  expect(rows).toHaveLength(kind === 'empty' ? 0 : 1);
  await mine.drop();
  await lost;
  const other = new Client({ connectionString: yours.url });
  await other.connect();
  await expect(other.query('SELECT FROM mine')).rejects.toThrow('does not exist');
  await other.end();
  await yours.drop();
  await expect(new Client({ connectionString: mine.url }).connect()).rejects.toThrow('does not exist');
});

test('the error for a missing server program says what to type', async () => {
  vi.stubEnv('PATH', '/nowhere');
  vi.stubEnv('HOLDFAST_TEST_INSTALLED_IN_VAIN', 'redis-server');
  teardown = await setup();
  await expect(shared('redis')).rejects.toThrow('apt-get install -y --no-install-recommends redis-server');
});

test('the error without the global set-up says what is missing', async () => {
  await expect(shared('redis')).rejects.toThrow('globalSetup');
});
