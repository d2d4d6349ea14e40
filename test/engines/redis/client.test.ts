// The ioredis client that programs of BullMQ ask a queue or a RedisConnection for.
import type { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, RedisConnection } from '../../../src/index.js';
import { freePort } from '../../support/servers/free-port.js';
import { until } from '../../support/wait/until.js';
import { newServer } from './support.js';

test('a queue and a RedisConnection of one server share the client of the store', async () => {
  const { url } = await newServer();
  const queue = new Queue('mail', { connection: url });
  const connection = new RedisConnection(url, { blocking: false });
  const client: Redis = await queue.client;
  expect([client.status, await client.set('mine', 'kept')]).toEqual(['ready', 'OK']);
  expect(await connection.client).toBe(client);
  await queue.close();
  expect(await client.get('mine')).toBe('kept');
  await connection.close();
  await expect(connection.client).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(queue.client).rejects.toMatchObject({ code: 'CLOSED' });
  await until('the client to end', () => client.status === 'end');
});

test('a RedisConnection rejects and emits `error` if the server cannot be reached', async () => {
  const connection = new RedisConnection({ port: await freePort() });
  const errors: Error[] = [];
  connection.on('error', (error) => errors.push(error));
  await expect(connection.client).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
  expect(errors).toEqual([expect.objectContaining({ code: 'STORE_UNAVAILABLE' })]);
  await connection.disconnect();
});

test('a queue on another store says what to do instead of giving a client', async () => {
  const queue = new Queue('mail', { connection: 'memory:' });
  onTestFinished(() => queue.close());
  const message = expect.stringMatching(/queue\.client is a client of Redis.*memory.*of your own/);
  await expect(queue.client).rejects.toMatchObject({ code: 'STORE_UNSUPPORTED', message });
});
