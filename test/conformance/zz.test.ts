import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, it } from 'vitest';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { type Clock, systemClock, conformance, type NewSession } from '../../src/testing/index.js';

const ORPHAN = fileURLToPath(new URL('fixtures/orphan.mjs', import.meta.url));

conformance({
  describe,
  it,
  name: 'sqlite',
  capabilities: new SqliteStore({ path: 'unopened.db' }).capabilities,
  unit: 100,
  async open() {
    const directory = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'));
    const path = join(directory, 'jobs.db');
    
    const connect = async (): Promise<SqliteStore> => {
      const store = new SqliteStore({ path });
      await store.open();
      return store;
    };
    const store = await connect();
    return {
      store,
      advance: (ms) => new Promise((r) => setTimeout(r, ms)),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie(path, session, systemClock),
      async close() {
        await store.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  },
});

function openAndDie(path: string, session: NewSession, clock: Clock): Promise<void> {
  const plan = JSON.stringify({ path, session, monotonic: clock.monotonic(), wall: clock.wall() });
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [ORPHAN, plan], (_error, _stdout, stderr) => {
      if (child.signalCode === 'SIGKILL') resolve();
      else reject(new Error(`The process that was to die ended otherwise: ${stderr}`));
    });
  });
}
