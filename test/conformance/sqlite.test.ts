import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { conformance, ManualClock } from '../../src/testing/index.js';
import { openAndDie } from './orphan.js';

conformance({
  describe,
  it,
  name: 'sqlite',
  capabilities: new SqliteStore({ path: 'unopened.db' }).capabilities,
  clock: 'manual',
  async open() {
    const directory = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'));
    const path = join(directory, 'jobs.db');
    const clock = new ManualClock();
    const connect = async (): Promise<SqliteStore> => {
      const store = new SqliteStore({ path, clock });
      await store.open();
      return store;
    };
    const store = await connect();
    return {
      store,
      advance: async (ms) => clock.advance(ms),
      stepWall: (ms) => clock.stepWall(ms),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie('orphan.mjs', { path, session, monotonic: clock.monotonic(), wall: clock.wall() }),
      async close() {
        await store.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  },
});
