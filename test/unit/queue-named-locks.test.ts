import { setMaxListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { outcomeOf, until } from '../support/wait/until.js';
import { newSession } from './store-samples.js';
import { newGate } from '../support/wait/gate.js';
import { stopwatch } from '../support/wait/stopwatch.js';

let store: FaultyStore;
let queues: Queue[];
let errors: Error[];

function newQueue(options = {}): Queue {
  const queue = new Queue('mail', { connection: store, ...options });
  queue.on('error', (error) => errors.push(error));
  queues.push(queue);
  return queue;
}

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  queues = [];
  errors = [];
});
afterEach(async () => {
  store.clear();
  await Promise.all(queues.map((queue) => queue.close()));
});

const refused = (code: string) => expect.objectContaining({ code });

describe('a named lock', () => {
  test('has one owner at a time, each with its own token and a greater fence', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const first = await a.takeLock('invoice:42');
    expect(first).toMatchObject({ name: 'invoice:42', held: true });
    expect(first?.expiresAt).toBeGreaterThan(Date.now());
    expect(await b.takeLock('invoice:42')).toBeUndefined();
    expect(await a.takeLock('invoice:42')).toBeUndefined();
    expect(await b.takeLock('invoice:43')).toMatchObject({ held: true });
    expect(first?.remainingMs).toBeGreaterThan(0);
    expect(() => first?.assert()).not.toThrow();
    expect(await first?.release()).toBe(true);
    expect(first).toMatchObject({ held: false, remainingMs: 0 });
    expect(() => first?.assert()).toThrow(refused('LOCK_LOST'));
    expect(await first?.release()).toBe(true);
    const second = await b.takeLock('invoice:42');
    expect(second?.fence).toBeGreaterThan(first?.fence ?? Number.NaN);
    expect(second?.token).not.toBe(first?.token);
  });

  test('can be looked up from outside while it is held, with the number of waiters', async () => {
    const queue = newQueue({ instanceId: 'blue:1' });
    expect(await queue.getNamedLock('x')).toBeUndefined();
    const lock = await queue.takeLock('x', { durationMs: 5000 });
    const waiting = queue.takeLock('x', { waitMs: 60_000 });
    await until('one to wait', async () => (await queue.getNamedLock('x'))?.waiting === 1);
    expect(await queue.getNamedLock('x')).toMatchObject({
      name: 'x',
      fence: lock?.fence,
      owner: { pid: process.pid, name: 'queue', instance: 'blue:1' },
    });
    const { until: end = 0, endsInMs = 0 } = (await queue.getNamedLock('x')) ?? {};
    expect(endsInMs).toBeLessThanOrEqual(5000);
    expect(end - Date.now()).toBeGreaterThan(3000);
    await lock?.release();
    await (await waiting)?.release();
    expect(await queue.getNamedLock('x')).toBeUndefined();
  });

  test('refuses invalid names and options', async () => {
    const queue = newQueue();
    for (const name of ['', 'x'.repeat(501), 'holdfast:leader', 7, 'a\0b', '\ud800']) {
      await expect(queue.takeLock(name as string)).rejects.toThrow(refused('INVALID_OPTION'));
      await expect(queue.lock(name as string, () => 1)).rejects.toThrow(refused('INVALID_OPTION'));
    }
    for (const options of [{ durationMs: 0 }, { waitMs: -1 }, { waitMs: Number.NaN }, { signal: {} }, null]) {
      await expect(queue.takeLock('x', options as object)).rejects.toThrow(refused('INVALID_OPTION'));
    }
    await expect(queue.lock('x', {}, 'work' as never)).rejects.toThrow(refused('INVALID_OPTION'));
    expect(store.calls('acquire')).toBe(0);
    for (const options of [{ lockDuration: 5 }, { lockRenewTime: 30_000 }, { maxStalledCount: -1 }, { instanceId: '' }]) {
      expect(() => new Queue('mail', { connection: store, ...options })).toThrow(refused('INVALID_OPTION'));
    }
    expect(await queue.takeLock('x'.repeat(500))).toMatchObject({ held: true });
  });

  test('is kept alive for as long as its holder lives, and lost when the store has ended its session', async () => {
    const queue = newQueue();
    const lock = await queue.takeLock('x', { durationMs: 200 });
    await store.answered('renew', 3);
    expect(lock?.held).toBe(true);
    const [session] = await store.sessions('mail');
    await store.closeSessions([{ queue: 'mail', id: session?.id ?? '' }], 'closed');
    await until('the loss to be told', () => lock?.signal.aborted);
    expect(lock?.held).toBe(false);
    expect(String(lock?.signal.reason)).toContain('lock lost: "x"');
    expect(await lock?.release()).toBe(false);
    expect(await queue.takeLock('x', { durationMs: 200 })).toMatchObject({ held: true });
  });

  test('is no longer trusted before it expires when it cannot be renewed', async () => {
    const queue = newQueue();
    store.on('renew', { fault: 'fail' });
    const lock = await queue.takeLock('x', { durationMs: 400 });
    const trustEnds = performance.now() + (lock?.expiresAt ?? Number.NaN) - Date.now();
    const lockEnds = performance.now() + ((await queue.getNamedLock('x'))?.endsInMs ?? 0);
    expect(trustEnds).toBeLessThan(lockEnds - 10);
    await until('the signal', () => lock?.signal.aborted);
    expect(lock?.held).toBe(false);
    expect(performance.now()).toBeGreaterThan(trustEnds - 10);
  });

  test('uses one session for each duration, and none after it was idle for that long', async () => {
    const queue = newQueue();
    const locks = await Promise.all(
      ['a', 'b', 'c'].map((name) => queue.takeLock(name, { durationMs: name === 'c' ? 400 : 300 })),
    );
    expect(new Set((await store.sessions('mail')).map(({ durationMs }) => durationMs))).toEqual(new Set([300, 400]));
    expect(await store.sessions('mail')).toHaveLength(2);
    for (const lock of locks) await lock?.release();
    await until('the sessions to be closed', async () => (await store.sessions('mail')).length === 0);
    expect(await queue.takeLock('a', { durationMs: 300 })).toMatchObject({ held: true });
  });
});

describe('waiting for a named lock', () => {
  test('serves waiters in the order of their requests, across queues', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const first = await a.takeLock('x');
    const order: string[] = [];
    const waiting: Promise<unknown>[] = [];
    for (const [who, queue] of [
      ['b1', b],
      ['a1', a],
      ['b2', b],
    ] as const) {
      waiting.push(queue.lock('x', () => order.push(who)));
      await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === waiting.length);
    }
    await first?.release();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'a1', 'b2']);
  });

  test('wakes the next waiter at once', async () => {
    const [a, b] = [newQueue(), newQueue()];
    for (let round = 0; round < 3; round += 1) {
      const first = await a.takeLock('x');
      const waiting = b.takeLock('x', { waitMs: 10_000 });
      await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
      const took = stopwatch();
      await first?.release();
      await (await waiting)?.release();
      expect(took()).toBeLessThan(300);
    }
  });

  test('does not miss a release between the reply and the start of the watch', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const first = await a.takeLock('x');
    const held = store.on('acquire', { fault: 'hold-reply', times: 1 });
    const waiting = b.takeLock('x', { waitMs: 10_000 });
    await until('the answer to be held', () => held.holding > 0);
    await first?.release();
    const took = stopwatch();
    held.release();
    expect(await waiting).toMatchObject({ held: true });
    expect(took()).toBeLessThan(500);
  });

  test('does not miss a wake-up that overtakes the reply of a request', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const first = await a.takeLock('x');
    const waiting = b.takeLock('x', { waitMs: 10_000 });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    const held = store.on('acquire', { fault: 'hold-reply', times: 1 });
    await a.add('noise', {});
    await until('the answer to be held', () => held.holding > 0);
    await first?.release();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const took = stopwatch();
    held.release();
    expect(await waiting).toMatchObject({ held: true });
    expect(took()).toBeLessThan(500);
  });

  test('takes about a second longer after a lost wake-up', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const first = await a.takeLock('x');
    store.losesWakeUps = true;
    const waiting = b.takeLock('x', { waitMs: 10_000 });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    const took = stopwatch();
    await first?.release();
    expect(await waiting).toMatchObject({ held: true });
    expect(took()).toBeLessThan(5000);
  });

  test('gets the lock of a dead owner as soon as it expires, without a wake-up', async () => {
    const queue = newQueue();
    const start = performance.now();
    const took = stopwatch();
    await store.openSession(newSession({ queue: 'mail', id: 'dead', durationMs: 300, slots: 0 }));
    await store.acquire('mail', [{ name: 'x', token: 't', session: 'dead', keepPlaceMs: 0 }]);
    expect(await queue.takeLock('x', { waitMs: 5000 })).toMatchObject({ held: true });
    expect(performance.now() - start).toBeGreaterThan(299);
    expect(took()).toBeLessThan(900);
  });

  test('costs about one call a second, whatever the number of waiters', async () => {
    const [a, b] = [newQueue(), newQueue()];
    await a.takeLock('x');
    const over = new AbortController();
    setMaxListeners(0, over.signal);
    const waiting = Array.from({ length: 50 }, () =>
      b.takeLock('x', { waitMs: 60_000, signal: over.signal }).catch(() => undefined),
    );
    await until('all to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 50);
    const before = store.calls('acquire');
    await new Promise((resolve) => setTimeout(resolve, 2200));
    expect(store.calls('acquire') - before).toBeLessThanOrEqual(4);
    over.abort();
    await Promise.all(waiting);
    await until('all to have left', async () => (await a.getNamedLock('x'))?.waiting === 0);
    expect(store.calls('letGo')).toBeLessThanOrEqual(3);
  });

  test('polls no more on a busy queue', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const lock = await a.takeLock('x');
    const waiting = b.takeLock('x', { waitMs: 60_000 });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    const before = store.calls('acquire');
    for (const end = performance.now() + 1000; performance.now() < end; ) await a.add('noise', {});
    expect(store.calls('acquire') - before).toBeLessThan(25);
    await lock?.release();
    expect(await waiting).toMatchObject({ held: true });
  });

  test('returns undefined from takeLock and rejects lock with TIMEOUT after waitMs, and gives the place up', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const lock = await a.takeLock('x');
    expect(await b.takeLock('x', { waitMs: 50 })).toBeUndefined();
    await expect(b.lock('x', { waitMs: 50 }, () => 'never')).rejects.toThrow(refused('TIMEOUT'));
    await expect(b.lock('x', { waitMs: 0 }, () => 'never')).rejects.toThrow(refused('TIMEOUT'));
    await until('the places to be given up', async () => (await a.getNamedLock('x'))?.waiting === 0);
    await lock?.release();
    expect(await a.takeLock('x')).toMatchObject({ held: true });
  });

  test('rejects with the reason of an aborted signal, and gives the place up', async () => {
    const [a, b] = [newQueue(), newQueue()];
    await a.takeLock('x');
    const over = new AbortController();
    const waiting = b.takeLock('x', { waitMs: 60_000, signal: over.signal });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    over.abort('changed my mind');
    await expect(waiting).rejects.toBe('changed my mind');
    await until('the place to be given up', async () => (await a.getNamedLock('x'))?.waiting === 0);
    await expect(b.lock('y', { signal: over.signal }, () => 1)).rejects.toBe('changed my mind');
    expect(await a.getNamedLock('y')).toBeUndefined();
  });

  test('rejects with CLOSED when the queue is closed', async () => {
    const [a, b] = [newQueue(), newQueue()];
    await a.takeLock('x');
    const waiting = b.takeLock('x', { waitMs: 60_000 });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    const failure = waiting.catch((error: unknown) => error);
    await b.close();
    expect(await failure).toMatchObject({ code: 'CLOSED' });
    expect((await a.getNamedLock('x'))?.waiting).toBe(0);
    await expect(b.takeLock('x')).rejects.toThrow(refused('CLOSED'));
  });
});

describe('work under queue.lock', () => {
  test('returns its result, and releases the lock, also when it throws', async () => {
    const queue = newQueue();
    expect(await queue.lock('x', async (lock) => [lock.held, lock.name])).toEqual([true, 'x']);
    await expect(queue.lock('x', { durationMs: 1000 }, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await queue.getNamedLock('x')).toBeUndefined();
  });

  test('has its signal aborted and its result refused when the lock is lost', async () => {
    const queue = newQueue();
    const started = newGate();
    const working = queue.lock('x', { durationMs: 200 }, async (lock) => {
      started.open();
      await until('the loss', () => lock.signal.aborted);
      return 'rests on nothing';
    });
    await started.opened;
    const [session] = await store.sessions('mail');
    await store.closeSessions([{ queue: 'mail', id: session?.id ?? '' }], 'closed');
    await expect(working).rejects.toThrow(refused('LOCK_LOST'));
  });

  test('keeps its result when the lock lapsed but no other owner got it', async () => {
    const queue = newQueue();
    const rule = store.on('renew', { fault: 'fail' });
    const value = await queue.lock('x', { durationMs: 200 }, async (lock) => {
      await until('the loss', () => lock.signal.aborted);
      return 'nobody else was here';
    });
    expect(value).toBe('nobody else was here');
    rule.remove();
  });

  test('is awaited when the queue is closed', async () => {
    const queue = newQueue();
    const [started, end] = [newGate(), newGate()];
    const working = queue.lock('x', async (lock) => {
      started.open();
      await end.opened;
      return lock.held;
    });
    await started.opened;
    const closing = queue.close();
    expect(await outcomeOf(closing, 50)).toBe('pending');
    end.open();
    expect(await working).toBe(true);
    await closing;
    expect(await store.sessions('mail')).toEqual([]);
  });

  test('loses a lock of takeLock when the queue is closed, and its signal is aborted', async () => {
    const queue = newQueue();
    const lock = await queue.takeLock('x');
    await queue.close();
    expect(lock?.held).toBe(false);
    expect(lock?.signal.aborted).toBe(true);
    expect(await newQueue().takeLock('x')).toMatchObject({ held: true });
  });
});

describe('a named lock with a store that fails', () => {
  test('is requested again under the same token after a lost reply', async () => {
    const queue = newQueue();
    store.on('acquire', { fault: 'drop-reply', times: 2 });
    const lock = await queue.takeLock('x', { waitMs: 5000 });
    expect(lock).toMatchObject({ held: true });
    expect((await store.locks('mail', { names: ['x'] }))[0]).toMatchObject({ token: lock?.token, waiting: 0 });
    expect(errors).toHaveLength(1);
  });

  test('rejects and releases the lock when the reply to the only request is lost', async () => {
    const [a, b] = [newQueue(), newQueue()];
    await a.takeLock('warm');
    store.on('acquire', { fault: 'drop-reply', times: 1 });
    await expect(a.takeLock('x')).rejects.toThrow(refused('STORE_UNAVAILABLE'));
    expect(await b.takeLock('x', { waitMs: 2000 })).toMatchObject({ held: true });
  });

  test('releases a lock that arrives after waiting has ended', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const over = new AbortController();
    const held = store.on('acquire', { fault: 'hold-reply', times: 1 });
    const waiting = a.takeLock('x', { waitMs: 60_000, signal: over.signal });
    await until('the grant to be held', () => held.holding > 0);
    over.abort(new Error('too late'));
    await expect(waiting).rejects.toThrow('too late');
    held.release();
    expect(await b.takeLock('x', { waitMs: 2000 })).toMatchObject({ held: true });
  });

  test('repeats the release until the store has replied', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const lock = await a.takeLock('x');
    store.on('letGo', { fault: 'fail', times: 3 });
    expect(await lock?.release()).toBe(true);
    expect(await b.takeLock('x')).toMatchObject({ held: true });
  });

  test('reports an outage once, and waits until it is over', async () => {
    const queue = newQueue();
    const rule = store.on('acquire', { fault: 'fail' });
    const waiting = queue.takeLock('x', { waitMs: 10_000 });
    await until('some tries', () => rule.struck >= 3);
    rule.remove();
    expect(await waiting).toMatchObject({ held: true });
    expect(errors).toEqual([refused('STORE_UNAVAILABLE')]);
  });

  test('rejects with TIMEOUT and the cause when the store was away for all of waitMs', async () => {
    const queue = newQueue();
    store.on('acquire', { fault: 'fail' });
    const failure = (await queue.takeLock('x', { waitMs: 200 }).catch((error: unknown) => error)) as HoldfastError;
    expect(failure).toMatchObject({ code: 'TIMEOUT', cause: { code: 'STORE_UNAVAILABLE' } });
  });

  test('rejects at once on a failure that is not retryable', async () => {
    const queue = newQueue();
    store.on('acquire', { fault: 'fail', error: new HoldfastError('STORE_READONLY', 'read only') });
    await expect(queue.takeLock('x', { waitMs: 60_000 })).rejects.toThrow(refused('STORE_READONLY'));
    expect(errors).toEqual([]);
  });

  test('waits again under a new session when its session died', async () => {
    const [a, b] = [newQueue(), newQueue()];
    const lock = await a.takeLock('x');
    const waiting = b.takeLock('x', { waitMs: 10_000, durationMs: 5000 });
    await until('it to stand in line', async () => (await a.getNamedLock('x'))?.waiting === 1);
    const session = (await store.sessions('mail')).find(({ durationMs }) => durationMs === 5000);
    await store.closeSessions([{ queue: 'mail', id: session?.id ?? '' }], 'closed');
    await lock?.release();
    expect(await waiting).toMatchObject({ held: true });
  });
});

test('closes although the store does not reply', async () => {
  const queue = newQueue({ lockDuration: 300 });
  const lock = await queue.takeLock('x');
  store.on('letGo', { fault: 'hang' });
  store.on('closeSessions', { fault: 'hang' });
  store.on('renew', { fault: 'hang' });
  const releasing = lock?.release();
  const took = stopwatch();
  await queue.close();
  expect(took()).toBeLessThan(3000);
  // It was ours when it was given back; the store ends it by itself.
  expect(await releasing).toBe(true);
});
