// A queue that is closed asks the store to forget it. A call that may still arrive must find the store's memory of it, or its jobs would
// be added twice.
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';

function place(): { store: FaultyStore; queue: Queue } {
  const store = new FaultyStore(new MemoryStore());
  onTestFinished(() => store.close());
  const queue = new Queue('mail', { connection: store, addTimeoutMs: 300 });
  queue.on('error', () => undefined);
  return { store, queue };
}

test('forgets the caller of a closed queue once when every add had a reply at its first try', async () => {
  const { store, queue } = place();
  const call = store.called('add', 1);
  await queue.add('first', {});
  await queue.add('second', {});
  const forgotten = store.called('forget', 1);
  await queue.close();
  await queue.close();
  const { caller } = (await call).args[2];
  expect((await forgotten).args).toEqual(['mail', { caller }]);
  expect(store.calls('forget')).toBe(1);
});

test('forgets nothing for a queue that added nothing', async () => {
  const { store, queue } = place();
  await queue.count();
  await queue.close();
  expect(store.calls('forget')).toBe(0);
});

test('keeps the caller after a lost reply, so that a late first try adds nothing after close', async () => {
  const { store, queue } = place();
  store.on('add', { fault: 'drop-reply', times: 1 });
  const call = store.called('add', 1);
  await queue.add('first', {});
  await queue.add('second', {});
  await queue.close();
  expect(store.calls('forget')).toBe(0);
  const { args } = await call;
  await expect(store.add(...args)).rejects.toMatchObject({ code: 'STORE_FAILED' });
  expect((await store.jobs('mail', { lists: ['waiting'], start: 0, end: -1, asc: true })).jobs).toHaveLength(2);
});

test('keeps the caller of a call that never had a reply', async () => {
  const { store, queue } = place();
  const held = store.on('add', { fault: 'hold-reply', times: 1 });
  const call = store.called('add', 1);
  await expect(queue.add('first', {})).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await queue.close();
  held.release();
  expect(store.calls('forget')).toBe(0);
  const { args } = await call;
  await store.add(...args);
  expect((await store.jobs('mail', { lists: ['waiting'], start: 0, end: -1, asc: true })).jobs).toHaveLength(1);
});

test('closes soon although the store does not reply', async () => {
  const { store, queue } = place();
  await queue.add('first', {});
  const held = store.on('forget', { fault: 'hang' });
  await queue.close();
  held.release();
});
