// On a real server, in a database of its own, whose clock the suite moves.
import { Client } from 'pg';
import { afterAll, describe, it } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { conformance } from '../../src/testing/index.js';
import { movableClock } from '../support/servers/postgres-clock.js';
import { freshDatabase } from '../support/servers/shared.js';
import { openAndDie } from './orphan.mjs';

/** A store that knows whether a test has closed it. */
class TestStore extends PostgresStore {
  isClosed = false;

  override close(): Promise<void> {
    this.isClosed = true;
    return super.close();
  }
}

let started: ReturnType<typeof start> | undefined;
/** The store of the test before. On a new connection, the server would parse and plan each function of the store anew. */
let idle: TestStore | undefined;

async function start() {
  const database = await freshDatabase();
  const options = { url: database.url };
  const connect = async (): Promise<TestStore> => {
    const store = new TestStore(options);
    await store.open();
    return store;
  };
  await (await connect()).close();
  const client = new Client({ connectionString: database.url });
  await client.connect();
  return { database, options, connect, client, clock: await movableClock(client) };
}

afterAll(async () => {
  const running = await started;
  await idle?.close();
  await running?.client.end();
  await running?.database.drop();
});

conformance({
  describe,
  it,
  name: 'postgres',

  clock: 'moved',
  capabilities: new PostgresStore({}).capabilities,
  // No test waits for it, and the shortest lock, three of them, goes through the pauses of a busy machine.
  unit: 400,
  async open() {
    started ??= start();
    const { options, connect, clock } = await started;
    const store = idle ?? (await connect());
    idle = undefined;
    return {
      store,
      advance: (ms) => clock.advance(ms),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie('postgres-orphan.mjs', { options, session }),
      close: async () => {
        if (!store.isClosed) idle = store;
      },
    };
  },
});
