// Only what comes free wakes: were everybody in line woken by each grant too, each turn would cost twice as many asks.
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/contract/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { newFile, newSession, openStore } from '../engines/sqlite/support.js';

const STORES: Record<string, () => Promise<Store>> = {
  memory: async () => new MemoryStore(),
  sqlite: () => openStore({ path: newFile() }),
};

describe.each(Object.entries(STORES))('named locks on %s', (_, open) => {
  it('wake waiters on release, not on a grant or a new place in line', async () => {
    const store = await open();
    await store.openSession(newSession());
    let woken = 0;
    const stop = store.watch('q', () => (woken += 1));
    const wish = async (token: string) => {
      const [grant] = await store.acquire('q', [{ name: 'x', token, session: 's', keepPlaceMs: 60_000 }]);
      // A wake-up would come within the next turn of the loop.
      for (let n = 0; n < 3; n += 1) await turn();
      return grant?.status;
    };
    expect([await wish('a'), await wish('b'), await wish('c'), woken]).toEqual(['held', 'taken', 'taken', 0]);
    await store.letGo('q', [{ name: 'x', token: 'a' }]);
    await expect.poll(() => woken).toBe(1);
    expect([await wish('b'), woken]).toEqual(['held', 1]);
    stop();
    await store.close();
  });
});
