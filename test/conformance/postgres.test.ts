// On a real server, in a database of its own, whose clock the suite moves.
import { Client } from 'pg';
import { afterAll, describe, it } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { conformance } from '../../src/testing/index.js';
import { movableClock } from '../support/servers/postgres-clock.js';
import { freshDatabase } from '../support/servers/shared.js';
import { openAndDie } from './orphan.mjs';

let started: ReturnType<typeof start> | undefined;

async function start() {
  const database = await freshDatabase();
  const options = { url: database.url };
  const connect = async (): Promise<PostgresStore> => {
    const store = new PostgresStore(options);
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
    const store = await connect();
    return {
      store,
      advance: (ms) => clock.advance(ms),
      peer: connect,
      reopen: connect,
      orphan: (session) => openAndDie('postgres-orphan.mjs', { options, session }),
      close: () => store.close(),
    };
  },
});
