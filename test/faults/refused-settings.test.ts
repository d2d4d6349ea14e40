// A store that refuses a setting of a worker for good. The worker must neither ignore a limit nor wait silently.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Queue, Worker } from '../../src/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/index.js';

const refusal = new HoldfastError('OPTION_UNSUPPORTED', 'This store has no groups.', { option: 'group' });
const LIMITED = { group: { concurrency: 1 } } as const;

let store: FaultyStore;
let queue: Queue;
let worker: Worker | undefined;
let errors: unknown[];

beforeEach(async () => {
  store = new FaultyStore(new MemoryStore());
  await store.open();
  queue = new Queue('mail', { connection: store });
  errors = [];
});

afterEach(async () => {
  store.clear();
  await worker?.close(true);
  await queue.close();
  await store.close();
});

function startWorker(options: { autorun?: boolean; group?: { concurrency: number } } = {}): Worker {
  worker = new Worker('mail', async () => 'ran', { ...options, lockRenewTime: 20, connection: store });
  worker.on('error', (error) => errors.push(error));
  return worker;
}

test('run() and waitUntilReady() reject, and no job starts, when the store refuses a limit', async () => {
  store.on('configure', { fault: 'fail', error: refusal });
  await queue.add('welcome', {});
  const refused = startWorker({ ...LIMITED, autorun: false });
  await expect(refused.run()).rejects.toBe(refusal);
  await expect(refused.waitUntilReady()).rejects.toBe(refusal);
  expect(errors).toEqual([refusal]);
  expect(refused.isRunning()).toBe(false);
  expect(store.calls('claim')).toBe(0);
  refused.concurrency = 5;
  // The call under way may carry the slots of before.
  for (let n = 0; n < 2; n += 1) await store.answered('renew');
  expect(await queue.getWorkers()).toEqual([]);
});

test('the error is emitted once and health() names it when the store refuses a limit of a worker that starts by itself', async () => {
  store.on('configure', { fault: 'fail', error: refusal });
  const refused = startWorker(LIMITED);
  await expect(refused.waitUntilReady()).rejects.toBe(refusal);
  expect(errors).toEqual([refusal]);
  expect(refused.isHealthy()).toBe(false);
  expect(refused.health().reasons).toEqual([
    expect.stringMatching(/^OPTION_UNSUPPORTED: .* takes no job\. This store has no groups\.$/),
  ]);
});

test('a worker whose start was refused runs when run() is called again and the store accepts', async () => {
  const rule = store.on('configure', { fault: 'fail', error: refusal });
  const refused = startWorker({ ...LIMITED, autorun: false });
  await expect(refused.run()).rejects.toBe(refusal);
  rule.remove();
  const completed = new Promise((resolve) => refused.once('completed', (_job, result) => resolve(result)));
  const ended = refused.run();
  await refused.waitUntilReady();
  await queue.add('welcome', {});
  expect(await completed).toBe('ran');
  expect(refused.isHealthy()).toBe(true);
  expect(await queue.getWorkersCount()).toBe(1);
  await refused.close();
  await expect(ended).resolves.toBeUndefined();
});

test('run() rejects when the store cannot be watched', async () => {
  const broken = new Error('no watch');
  store.watch = () => {
    throw broken;
  };
  const refused = startWorker({ autorun: false });
  await expect(refused.run()).rejects.toBe(broken);
  await expect(refused.waitUntilReady()).rejects.toBe(broken);
  expect(refused.health().reasons).toEqual([expect.stringMatching(/^STORE_FAILED: .*no watch$/)]);
  expect(errors).toEqual([broken]);
});

test('waitUntilReady() waits and rejects nothing while the store only fails for a time', async () => {
  store.on('configure', { fault: 'fail', times: 2 });
  const patient = startWorker(LIMITED);
  await patient.waitUntilReady();
  expect(store.calls('configure')).toBe(3);
  expect(patient.isRunning()).toBe(true);
});

test('waitUntilReady() resolves when the worker is closed during its start', async () => {
  store.on('configure', { fault: 'hang' });
  const called = store.called('configure');
  const starting = startWorker(LIMITED);
  const ready = starting.waitUntilReady();
  await called;
  await starting.close(true);
  await ready;
});
