// A failover under the store: sentinels make a replica the primary, and the store finds it by itself.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { isRetryable } from '../../../src/errors.js';
import { freePort } from '../../support/servers/free-port.js';
import { folderOf } from '../../support/servers/programs.js';
import { askRedis } from '../../support/servers/redis.js';
import { newJob, newServer, newSession, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';

const LIMIT_MS = paced(40_000);

/** Watches the primary on this port. */
async function startSentinel(primary: number): Promise<{ port: number; client: Redis }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-sentinel-'));
  const port = await freePort();
  const lines = [`port ${port}`, `sentinel monitor main 127.0.0.1 ${primary} 1`];
  lines.push('sentinel down-after-milliseconds main 500', 'sentinel failover-timeout main 3000');
  await writeFile(join(folder, 'sentinel.conf'), `${lines.join('\n')}\n`);
  const child = spawn(join(await folderOf('redis'), 'redis-server'), [join(folder, 'sentinel.conf'), '--sentinel'], {
    stdio: 'ignore',
  });
  const client = new Redis(port, { retryStrategy: () => 50 });
  client.on('error', () => undefined);
  onTestFinished(async () => {
    client.disconnect();
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
    await rm(folder, { recursive: true, force: true });
  });
  await client.ping();
  return { port, client };
}

test('calls go on at the new primary after a Sentinel failover, and fences grow', { timeout: LIMIT_MS }, async () => {
  const settings = { 'repl-diskless-sync-delay': '0' };
  const primary = await newServer({ settings });
  const replica = await newServer({ settings: { ...settings, replicaof: `127.0.0.1 ${primary.port}` } });
  // As the primary sees it: before the replica's first acknowledgement, which it sends once a second, writes are held back for it.
  await until('the replica follows', async () => (await askRedis(primary.port, 'INFO replication')).includes('state=online'));
  const { port, client } = await startSentinel(primary.port);
  await until('Sentinel knows the replica', async () =>
    JSON.stringify(await client.call('sentinel', ['replicas', 'main'])).includes(`${replica.port}`),
  );

  const store = await openStore({ sentinels: [{ host: '127.0.0.1', port }], name: 'main' });
  await store.openSession(newSession());
  await store.add('q', [newJob(), newJob()], { caller: 'p', seq: 1 });
  const before = (await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs[0];
  await until('the replica has the queue', async () => (await askRedis(replica.port, 'EXISTS {holdfast:q}:meta')).includes(':1'));
  await primary.kill();
  const deadline = performance.now() + 15_000;
  for (;;) {
    try {
      const after = (await store.claim('q', { session: 's', seq: 2, count: 1 })).jobs[0];
      expect(after?.fence).toBeGreaterThan(before?.fence ?? Number.NaN);
      break;
    } catch (error) {
      if (!(isRetryable(error) || (error as { code?: string }).code === 'STORE_READONLY') || performance.now() > deadline)
        throw error;
      await sleep(50);
    }
  }
  expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
});
