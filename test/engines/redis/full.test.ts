// A Redis that has reached its maxmemory and evicts nothing: adds are refused, and everything that makes room goes on, also for workers
// that start then.
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../../src/queue/queue.js';
import { Worker } from '../../../src/worker/worker.js';
import { until } from '../../support/wait/until.js';
import { newJob, newServer, newSession, openStore } from './support.js';

const DATA = JSON.stringify('x'.repeat(200_000));

/** A server that has no room for another job, with some jobs in it. */
async function fullServer(): Promise<{ url: string; client: Redis; added: number }> {
  const { url } = await newServer({ settings: { 'maxmemory-policy': 'noeviction' } });
  const client = new Redis(url);
  onTestFinished(() => client.disconnect());
  const store = await openStore({ url });
  let added = 0;
  const add = async (): Promise<unknown> => store.add('q', [newJob({ data: DATA })], { caller: 'p', seq: ++added });
  while (added < 20) await add();
  const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
  await client.config('SET', 'maxmemory', used - 100_000);
  await expect(add()).rejects.toMatchObject({ code: 'STORE_FULL', retryable: true });
  return { url, client, added: added - 1 };
}

test('on a full Redis a new worker runs the jobs, and adds go on when there is room', async () => {
  const { url, added } = await fullServer();
  const queue = new Queue('q', { connection: url });
  const errors: unknown[] = [];
  queue.on('error', () => undefined);
  const worker = new Worker('q', () => Promise.resolve('done'), {
    connection: url,
    concurrency: 3,
    removeOnComplete: { count: 0 },
  });
  worker.on('error', (error) => errors.push(error));
  onTestFinished(() => Promise.all([worker.close(), queue.close()]).then(() => undefined));
  const finished: unknown[] = [];
  worker.on('completed', ({ id }) => finished.push(id));
  await until('all jobs to be done', () => finished.length === added);
  const late = await queue.add('late', {});
  await until('the late job', () => finished.includes(late.id));
  expect(errors).toEqual([]);
});

test('on a full Redis an add rejects after its time, and says that the job was not added', async () => {
  const { url, added } = await fullServer();
  const queue = new Queue('q', { connection: url, addTimeoutMs: 3000 });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  await queue.waitUntilReady();
  await expect(queue.add('late', DATA)).rejects.toMatchObject({ code: 'STORE_FULL', retryable: true, store: 'redis' });
  expect(await queue.count()).toBe(added);
});

test('on a full Redis sessions open, renew, claim, settle, sweep, lock and close, and nothing is done twice', async () => {
  const { url, client } = await fullServer();
  const store = await openStore({ url });
  // No script of this store is known to the server.
  await client.script('FLUSH');
  await store.openSession(newSession());
  await store.openSession(newSession({ id: 't', durationMs: 1 }));
  expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 4 });
  expect(jobs.map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
  const [one, two, three, four] = jobs.map(({ id: jobId, token }) => ({ jobId, token }));
  if (!one || !two || !three || !four) return expect.fail('four were to be claimed');
  expect(await store.extend('q', [{ ...four, durationMs: 1000 }])).toEqual(['done']);
  const { results, claimed } = await store.settle(
    'q',
    [
      { kind: 'failed', ...one, reason: 'r', stacktrace: '[]', keep: {} },
      { kind: 'release', ...two },
      { kind: 'completed', ...three, value: '1', keep: { count: 0 } },
    ],
    { caller: 's', seq: 2 },
    { session: 's', seq: 2, count: 1 },
  );
  expect([results, claimed?.jobs.map(({ id }) => id)]).toEqual([['done', 'done', 'done'], ['2']]);
  expect(await store.acquire('q', [{ name: 'n', token: 'x', session: 's', keepPlaceMs: 0 }])).toMatchObject([{ status: 'held' }]);
  expect(await store.letGo('q', [{ name: 'n', token: 'x' }])).toEqual(['done']);
  await store.configure('q', { paused: true });
  await store.configure('q', { paused: false });
  await until('the short session to be swept', async () => {
    await store.sweep('q', 10);
    return (await store.sessions('q')).length === 1;
  });
  await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
  expect((await store.status('q')).counts).toMatchObject({ active: 0, failed: 1, waiting: 18, completed: 0 });
  await expect(store.write('q', [{ kind: 'progress', jobId: '2', progress: DATA }])).rejects.toMatchObject({
    code: 'STORE_FULL',
  });
});
