// close() while the lock thread is still starting, or still opening its store: when close() resolves, the thread has ended, so no file of the
// store is opened after it. Runs the built package, because a thread cannot load TypeScript.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Worker as Thread } from 'node:worker_threads';
import { type Connection, Queue, Worker, type WorkerOptions } from 'holdfast';
import { expect, onTestFinished, test } from 'vitest';
import { newScene } from '../support/scenes/scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';

const SLOW_THREAD = fileURLToPath(new URL('./fixtures/slow-thread.mjs', import.meta.url));
const SLOW_STORE = fileURLToPath(new URL('./fixtures/slow-store.mjs', import.meta.url));
const LOCK_MS = paced(600);
process.env['THREAD_START_MS'] = String(5 * LOCK_MS);

/** The threads that the test starts from now on. */
function watchThreads(): Thread[] {
  const threads: Thread[] = [];
  const started = (message: unknown): void => void threads.push((message as { worker: Thread }).worker);
  subscribe('worker_threads', started);
  onTestFinished(() => void unsubscribe('worker_threads', started));
  return threads;
}

function newWorker(connection: Connection, options: WorkerOptions): { worker: Worker; errors: Error[] } {
  const worker = new Worker('work', () => undefined, { connection, lockDuration: LOCK_MS, ...options });
  onTestFinished(() => worker.close());
  const errors: Error[] = [];
  worker.on('error', (error) => errors.push(error));
  return { worker, errors };
}

function expectEnded(threads: Thread[]): void {
  expect(threads).toHaveLength(1);
  // Node gives a thread that has ended this number.
  expect(threads.map(({ threadId }) => threadId)).toEqual([-1]);
}

test('two workers are closed while their thread is starting', async () => {
  const { url, store } = await newScene('sqlite');
  const threads = watchThreads();
  const both = [1, 2].map(() => newWorker(url, { lockThreadEntry: SLOW_THREAD }));
  await until('both sessions', async () => (await store.sessions('work')).length === 2);
  await Promise.all(both.map(({ worker }) => worker.close()));
  expectEnded(threads);
  expect(both.flatMap(({ errors }) => errors)).toEqual([]);
  expect(await store.sessions('work')).toEqual([]);
});

test('a worker is closed while its thread is opening the store', async () => {
  const { url, store, folder } = await newScene('sqlite');
  const threads = watchThreads();
  const began = join(folder, 'began');
  const { worker, errors } = newWorker({ module: SLOW_STORE, options: { url, began } }, {});
  await until('the thread to open the store', () => existsSync(began));
  await worker.close();
  expectEnded(threads);
  expect(errors).toEqual([]);
  expect(await store.sessions('work')).toEqual([]);
});

test('a queue with a named lock is closed while its thread is starting', async () => {
  const { url, store } = await newScene('sqlite');
  const threads = watchThreads();
  const queue = new Queue('work', { connection: url, lockDuration: LOCK_MS, lockThreadEntry: SLOW_THREAD });
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  await queue.takeLock('mine');
  await queue.close();
  expectEnded(threads);
  expect(errors).toEqual([]);
  expect(await store.sessions('work')).toEqual([]);
});
