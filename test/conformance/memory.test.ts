import { describe, it } from 'vitest';
import type { Store } from '../../src/store/contract.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { conformance, FaultyStore, ManualClock } from '../../src/testing/index.js';

function run(name: string, wrap: (store: Store) => Store): void {
  conformance({
    describe,
    it,
    name,
    capabilities: new MemoryStore().capabilities,
    clock: 'manual',
    async open() {
      const clock = new ManualClock();
      const store = wrap(new MemoryStore({ clock }));
      await store.open();
      return {
        store,
        advance: async (ms) => clock.advance(ms),
        stepWall: (ms) => clock.stepWall(ms),
        close: () => store.close(),
      };
    },
  });
}

run('memory', (store) => store);
// As long as nobody tells it to fail, it must not be noticed.
run('a store that could fail', (store) => new FaultyStore(store));
