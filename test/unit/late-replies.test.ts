// SessionCalls about locks that are answered late or never, while their repetition is answered.
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { takeTime, type Time } from '../support/wait/time.js';

vi.mock('../../src/runtime/timers.js', () => import('../support/wait/process-timers.js'));

let time: Time;
let store: FaultyStore;
let queue: Queue;

beforeEach(() => {
  time = takeTime();
  store = new FaultyStore(new MemoryStore());
  queue = new Queue('q', { connection: store });
  queue.on('error', () => undefined);
});

afterEach(async () => {
  store.clear();
  const closing = queue.close();
  await time.pass(100);
  await closing;
  vi.useRealTimers();
});

/** Lets time pass until there is an answer. */
async function passingTime<T>(answer: Promise<T>): Promise<T> {
  let isThere = false;
  const there = answer.finally(() => (isThere = true));
  for (let rounds = 0; !isThere && rounds < 100; rounds += 1) {
    await time.pass(100);
    await turn();
  }
  expect(isThere).toBe(true);
  return there;
}

test('keeps a named lock when the reply to an earlier request arrives after that to the retry', async () => {
  const late = store.on('acquire', { fault: 'hold-reply', times: 1 });
  const lock = await passingTime(queue.takeLock('x', { waitMs: 60_000 }));
  expect(late.holding).toBe(1);
  late.release();
  await turn();
  await time.pass(100);
  await turn();
  expect(store.calls('letGo')).toBe(0);
  expect(lock?.held).toBe(true);
  expect(await queue.getNamedLock('x')).toMatchObject({ fence: lock?.fence });
});

test('leaves nothing locked when a request for a named lock is applied after its release', async () => {
  const late = store.on('acquire', { fault: 'hang', times: 1 });
  const lock = await passingTime(queue.takeLock('x', { waitMs: 60_000 }));
  expect(await passingTime(lock?.release() ?? Promise.resolve(false))).toBe(true);
  late.release();
  await turn();
  await time.pass(100);
  await turn();
  expect(await queue.getNamedLock('x')).toBeUndefined();
});

test('opens another session when the store never replies to the first opening', async () => {
  store.on('openSession', { fault: 'hang', times: 1 });
  const lock = await passingTime(queue.takeLock('x', { durationMs: 2000, waitMs: 60_000 }));
  expect(lock?.held).toBe(true);
  expect(store.calls('openSession')).toBe(2);
});

test('trusts a shortening extension before its reply', async () => {
  const added = await queue.add('work', {});
  await passingTime(added.takeLock());
  expect(added.lock.held).toBe(true);
  store.on('extend', { fault: 'hold-reply' });
  const before = added.lock.expiresAt;
  void added.extendLock(added.lock.token, 1000).catch(() => undefined);
  await store.answered('extend');
  expect(added.lock.expiresAt).toBeLessThan(before - 20_000);
});
