import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { conformance, ManualClock } from '../../src/testing/index.js';

const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-conformance-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let files = 0;

conformance({
  describe,
  it,
  name: 'sqlite',
  capabilities: new SqliteStore({ path: 'unused.db' }).capabilities,
  clock: 'manual',
  async open() {
    const clock = new ManualClock();
    const file = path.join(folder, `${(files += 1)}.db`);
    const another = async (): Promise<SqliteStore> => {
      const store = new SqliteStore({ path: file, clock });
      await store.open();
      return store;
    };
    const store = await another();
    return {
      store,
      advance: async (ms) => clock.advance(ms),
      stepWall: (ms) => clock.stepWall(ms),
      peer: another,
      reopen: another,
      close: () => store.close(),
    };
  },
});
