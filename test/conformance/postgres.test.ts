// On a real server, whose clock cannot be moved, in a database that nobody else uses.
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, it } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { conformance, type NewSession } from '../../src/testing/index.js';
import { freshDatabase } from '../support/servers/shared.js';

const ORPHAN = fileURLToPath(new URL('fixtures/postgres-orphan.mjs', import.meta.url));

let database: ReturnType<typeof freshDatabase> | undefined;
afterAll(async () => (await database)?.drop());

conformance({
  describe,
  it,
  name: 'postgres',
  capabilities: new PostgresStore({}).capabilities,
  unit: 30,
  async open() {
    database ??= freshDatabase();
    const options = { url: (await database).url };
    const connect = async (): Promise<PostgresStore> => {
      const store = new PostgresStore(options);
      await store.open();
      return store;
    };
    const store = await connect();
    return {
      store,
      advance: (ms) => sleep(ms),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie(options, session),
      close: () => store.close(),
    };
  },
});

function openAndDie(options: { url: string }, session: NewSession): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [ORPHAN, JSON.stringify({ options, session })], (_error, _stdout, stderr) => {
      if (child.signalCode === 'SIGKILL') resolve();
      else reject(new Error(`The process that was to die ended otherwise: ${stderr}`));
    });
  });
}
