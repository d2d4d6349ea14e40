// S4-4: an empty list does no I/O. It is watched from outside: on the wire of a server, and at the binding of SQLite.
import { createRequire } from 'node:module';
import { openStore, type Store } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LOCK_ENGINES, newScene, type Engine, type Scene } from '../support/scenes/scene.js';
import { FaultProxy } from '../support/servers/proxy.js';

const CALL = { caller: 'somebody', seq: 1 };

/** Every verb that takes a list, with none. */
const EMPTY: Record<string, (store: Store) => Promise<unknown>> = {
  add: (store) => store.add('work', [], CALL),
  settle: (store) => store.settle('work', []),
  'settle with a call': (store) => store.settle('work', [], CALL),
  renew: (store) => store.renew([]),
  closeSessions: (store) => store.closeSessions([], 'crashed'),
  checkSessions: (store) => store.checkSessions([]),
  extend: (store) => store.extend('work', []),
  acquire: (store) => store.acquire('work', []),
  letGo: (store) => store.letGo('work', []),
  write: (store) => store.write('work', []),
  'change: promote': (store) => store.change('work', [], { kind: 'promote' }),
  'change: remove': (store) => store.change('work', [], { kind: 'remove' }),
  'change: revoke': (store) => store.change('work', [], { kind: 'revoke', reason: 'none' }),
  jobs: (store) => store.jobs('work', []),
  'locks of jobs': (store) => store.locks('work', { jobIds: [] }),
  'locks with names': (store) => store.locks('work', { names: [] }),
};

interface Watched {
  store: Store;
  /** How often something went to the store so far. */
  seen(): number;
}

async function watched(engine: Engine): Promise<Watched> {
  const scene = await newScene(engine);
  const { url, seen } = engine === 'sqlite' ? watchBinding(scene) : await watchWire(scene);
  const store = await openStore(url);
  onTestFinished(() => store.close());
  // What a store does once, at the first use of a queue.
  await store.jobs('work', ['nobody']);
  return { store, seen };
}

async function watchWire({ url: direct }: Scene): Promise<{ url: string; seen(): number }> {
  const proxy = await FaultProxy.start({ port: Number(new URL(direct).port) });
  onTestFinished(() => proxy.close());
  return { url: proxy.url(direct), seen: () => proxy.counts.requests };
}

/** Prototypes of the databases and statements of every binding that the store may have chosen. */
function bindings(): object[] {
  const require = createRequire(import.meta.url);
  const found: object[] = [];
  for (const [name, pick] of Object.entries({ 'better-sqlite3': (all: unknown) => all, 'node:sqlite': databaseOf })) {
    try {
      const Database = pick(require(name)) as new (path: string) => { prepare(sql: string): object; close(): void };
      const probe = new Database(':memory:');
      found.push(Object.getPrototypeOf(probe.prepare('SELECT 1')) as object, Database.prototype as object);
      probe.close();
    } catch {
      // This runtime does not have it.
    }
  }
  return found;
}

function databaseOf(module: unknown): unknown {
  return (module as { DatabaseSync: unknown }).DatabaseSync;
}

function watchBinding({ url }: Scene): { url: string; seen(): number } {
  let seen = 0;
  for (const prototype of bindings()) {
    for (const name of ['run', 'get', 'all', 'exec', 'prepare']) {
      const right = Reflect.get(prototype, name) as ((...args: unknown[]) => unknown) | undefined;
      if (right === undefined) continue;
      const counted = function (this: unknown, ...args: unknown[]): unknown {
        seen += 1;
        return right.apply(this, args);
      };
      Object.defineProperty(prototype, name, { value: counted, configurable: true, writable: true });
      onTestFinished(() => void Object.defineProperty(prototype, name, { value: right, configurable: true, writable: true }));
    }
  }
  return { url, seen: () => seen };
}

/** What was seen while this was done: the least of a few tries, because a store does things of its own now and then. */
async function seenDuring({ seen }: Watched, act: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < 5 && least > 0; tries += 1) {
    const before = seen();
    await act();
    // What was sent goes through the proxy with the next turns of the loop.
    for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    least = Math.min(least, seen() - before);
  }
  return least;
}

describe.each(LOCK_ENGINES)('S4-4 on %s', (engine) => {
  test('S4-4 an empty list does no I/O, whatever the verb', async () => {
    const all = await watched(engine);
    for (const [verb, call] of Object.entries(EMPTY))
      expect([verb, await seenDuring(all, () => call(all.store))]).toEqual([verb, 0]);
  });

  test('S4-4 (N) a list of one does I/O', async () => {
    const all = await watched(engine);
    expect(await seenDuring(all, () => all.store.jobs('work', ['nobody']))).toBeGreaterThan(0);
    expect(await seenDuring(all, () => all.store.renew([{ queue: 'work', id: 'nobody', acked: 0 }]))).toBeGreaterThan(0);
  });
});
