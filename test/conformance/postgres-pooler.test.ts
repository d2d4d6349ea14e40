// The part of the suite that has to do with connections, behind PgBouncer, which hands out connections by the transaction.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, it } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { conformance, type TestRunner } from '../../src/testing/index.js';
import { paced } from '../support/wait/pace.js';
import { startPgbouncer } from '../support/servers/pgbouncer.js';
import { freshDatabase } from '../support/servers/shared.js';

// They say nothing about connections, and some of them take long.
const LEFT_OUT = new Set(
  'ordering keeping fencing sweeping locks revoking control changing inspecting values isolation'
    .split(' ')
    .concat('random work'),
);

const group: TestRunner['describe'] = describe;

let started: ReturnType<typeof start> | undefined;

async function start() {
  const database = await freshDatabase();
  return { database, pooler: await startPgbouncer(database.url) };
}

afterAll(async () => {
  const running = await started;
  await running?.pooler.close();
  await running?.database.drop();
});

conformance({
  describe: (title, body) => (LEFT_OUT.has(title) ? undefined : group(title, body)),
  it,

  name: 'postgres behind a pooler',
  capabilities: { ...new PostgresStore({}).capabilities, crashHints: false, fallibleHints: false },
  unit: paced(60),
  async open() {
    started ??= start();
    const { url } = (await started).pooler;
    const connect = async (): Promise<PostgresStore> => {
      const store = new PostgresStore({ url });
      await store.open();
      return store;
    };
    const store = await connect();
    return { store, advance: (ms) => sleep(ms), peer: connect, reopen: connect, close: () => store.close() };
  },
});
