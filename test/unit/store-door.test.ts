// The door of all stores, on an engine whose replies come when the test says so. The conformance suite tests it on real engines.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Door, type Operations } from '../../src/store/door.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { operations } from '../../src/store/memory/operations.js';
import { Memory } from '../../src/store/memory/state/memory.js';
import { type Gate, newGate, openGates } from '../support/wait/gate.js';

class GatedStore extends Door<Memory> {
  readonly capabilities = new MemoryStore().capabilities;
  readonly starts: Gate<Memory>[] = [];
  stopped = false;

  constructor(given: Partial<Operations<Memory>> = {}) {
    super({ ...operations, ...given });
  }

  describe(): undefined {
    return undefined;
  }

  protected start(): Promise<Memory> {
    const gate = newGate<Memory>();
    this.starts.push(gate);
    return gate.opened;
  }

  protected async stop(opened: Promise<Memory | undefined>, calls: Promise<void>): Promise<void> {
    await opened;
    await calls;
    this.stopped = true;
  }
}

let store: GatedStore;
let replies: Gate<number>[];

beforeEach(() => {
  replies = [];
  store = new GatedStore({
    forget: () => {
      const reply = newGate<number>();
      replies.push(reply);
      return reply.opened;
    },
  });
});

afterEach(openGates);

async function opened(): Promise<GatedStore> {
  const opening = store.open();
  store.starts.at(-1)?.open(new Memory(undefined));
  await opening;
  return store;
}

/** Lets everything happen that needs no gate. */
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe('opening a store', () => {
  test('starts the engine once for two calls of open', async () => {
    await Promise.all([store.open(), opened()]);
    expect(store.starts).toHaveLength(1);
  });

  test('starts the engine again after a failed start', async () => {
    const first = store.open();
    store.starts[0]?.fail(new Error('no server'));
    await expect(first).rejects.toThrow('no server');
    await opened();
    expect(await store.queues(1)).toEqual([]);
  });

  test('rejects a call before open, and says what to do', async () => {
    await expect(store.queues(1)).rejects.toMatchObject({
      code: 'STORE_CLOSED',
      store: 'memory',
      message: expect.stringMatching(/call open\(\)/),
    });
    expect(() => store.watch('q', () => undefined)).toThrow('call open()');
  });

  test('stays closed when the engine starts after close', async () => {
    const opening = store.open();
    const closing = store.close();
    store.starts[0]?.open(new Memory(undefined));
    await Promise.all([opening, closing]);
    await expect(store.queues(1)).rejects.toMatchObject({ code: 'STORE_CLOSED', message: expect.stringMatching(/was closed/) });
    await expect(store.open()).rejects.toMatchObject({ code: 'STORE_CLOSED' });
    expect(store.starts).toHaveLength(1);
  });
});

describe('closing a store', () => {
  test('waits until the last call in flight has its reply', async () => {
    await opened();
    const calls = [store.forget('q', { all: true }), store.forget('q', { all: true })];
    const closing = store.close();
    replies[0]?.open(1);
    await turn();
    expect(store.stopped).toBe(false);
    replies[1]?.open(2);
    await closing;
    expect(await Promise.all(calls)).toEqual([1, 2]);
  });

  test('does not wait for a call that has failed', async () => {
    await opened();
    const call = store.forget('q', { all: true });
    replies[0]?.fail(new Error('gone'));
    await expect(call).rejects.toThrow('gone');
    await store.close();
    expect(store.stopped).toBe(true);
  });

  test('rejects later calls while it waits', async () => {
    await opened();
    const call = store.forget('q', { all: true });
    const closing = store.close();
    await expect(store.forget('q', { all: true })).rejects.toMatchObject({ code: 'STORE_CLOSED', store: 'memory' });
    expect(replies).toHaveLength(1);
    replies[0]?.open(1);
    await Promise.all([call, closing]);
  });

  test('stops the engine once for two calls of close', async () => {
    await opened();
    expect(store.close()).toBe(store.close());
  });
});

describe('a call of a store', () => {
  test('begins before the verb returns', async () => {
    await opened();
    const call = store.forget('q', { all: true });
    expect(replies).toHaveLength(1);
    replies[0]?.open(3);
    expect(await call).toBe(3);
  });

  test('rejects when the operation throws at once', async () => {
    store = new GatedStore({
      sweep: () => {
        throw new Error('broken');
      },
    });
    await opened();
    await expect(store.sweep('q', 1)).rejects.toThrow('broken');
    await store.close();
  });

  test('with a transaction rejects when the store has none, also for an empty list', async () => {
    await opened();
    for (const jobs of [[], [{ name: 'n', data: '{}', opts: '{}', timestamp: 0, priority: 0, delayMs: 0, lifo: false }]])
      await expect(store.add('q', jobs, { caller: 'c', seq: 1 }, {})).rejects.toMatchObject({ code: 'OPTION_UNSUPPORTED' });
    expect(await store.queues(1)).toEqual([]);
  });
});
