// The names of queues live outside of the queues' slots (registry.ts).
import { expect, test } from 'vitest';
import { killClients, newJob, newServer, newSession, openStore, openWithClient } from './support.js';
import { askRedis } from '../../support/servers/redis.js';

const KEY = '{holdfast:}:queues';

test('only the first add of a queue on a connection writes its name', async () => {
  const { store, client } = await openWithClient();
  const writes = async () => /cmdstat_zadd:calls=(\d+)/.exec(await client.info('commandstats'))?.[1];
  await store.add('q', [newJob()], { caller: 'p', seq: 1 });
  expect(await store.queues(10)).toEqual(['q']);
  await client.config('RESETSTAT');
  await store.add('q', [newJob()], { caller: 'p', seq: 2 });
  await store.add('q', [newJob()], { caller: 'p', seq: 3 });
  // Each of the two adds writes its place among the waiting jobs.
  expect(await writes()).toBe('2');
});

test('a session that opens writes the name again, and so does the first add on a new connection', async () => {
  const server = await newServer();
  const store = await openStore({ url: server.url });
  await store.add('q', [newJob()], { caller: 'p', seq: 1 });
  await askRedis(server.port, `DEL ${KEY}`);
  expect(await store.queues(10)).toEqual([]);
  await store.openSession(newSession());
  expect(await store.queues(10)).toEqual(['q']);
  await askRedis(server.port, `DEL ${KEY}`);
  await killClients(server);
  await expect.poll(() => store.status('q').then(() => true)).toBe(true);
  await store.add('q', [newJob()], { caller: 'p', seq: 2 });
  expect(await store.queues(10)).toEqual(['q']);
});

test('an add succeeds although its name cannot be written, and the next one tries again', async () => {
  const { store, client } = await openWithClient();
  await client.set(KEY, 'of another type');
  await store.add('q', [newJob()], { caller: 'p', seq: 1 });
  await expect(store.queues(10)).rejects.toMatchObject({ name: 'HoldfastError' });
  await client.del(KEY);
  await store.add('q', [newJob()], { caller: 'p', seq: 2 });
  expect(await store.queues(10)).toEqual(['q']);
});
