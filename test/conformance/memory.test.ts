import { describe, it } from 'vitest';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore, SyncStore } from '../../src/store/memory/index.js';
import { type Clock, conformance, FaultyStore, ManualClock } from '../../src/testing/index.js';

function run(name: string, make: (clock: Clock) => Store): void {
  conformance({
    describe,
    it,
    name,
    capabilities: make(new ManualClock()).capabilities,
    clock: 'manual',
    async open() {
      const clock = new ManualClock();
      const store = make(clock);
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

run('memory', (clock) => new MemoryStore({ clock }));
run('memory with two lanes', (clock) => new MemoryStore({ clock, lanes: 2 }));
run('sync', (clock) => new SyncStore({ clock }));
// As long as nobody tells it to fail, it must not be noticed.
run('a store that could fail', (clock) => new FaultyStore(new MemoryStore({ clock })));
