// The SQLite store as the conformance suite wants it: a file of its own for each test, under a clock that the suite moves. Plain JavaScript, because
// test/runtimes runs it without a test runner, on the build.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openAndDie } from './orphan.mjs';

/**
 * @param {{ SqliteStore: typeof import('../../src/store/sqlite/index.js').SqliteStore, ManualClock: typeof import('../../src/testing/index.js').ManualClock, synchronous?: 'full' | 'normal' }} parts
 * @returns {Pick<import('../../src/testing/index.js').ConformanceOptions, 'name' | 'capabilities' | 'clock' | 'open'>}
 */
export function sqliteUnderTest({ SqliteStore, ManualClock, synchronous = 'full' }) {
  return {
    name: 'sqlite',
    capabilities: new SqliteStore({ path: 'unopened.db' }).capabilities,
    clock: 'manual',
    async open() {
      const directory = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'));
      const path = join(directory, 'jobs.db');
      const clock = new ManualClock();
      const connect = async () => {
        const store = new SqliteStore({ path, clock, synchronous });
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
  };
}
