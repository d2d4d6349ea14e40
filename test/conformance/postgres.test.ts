// On a real server, whose clock cannot be moved, in a database that nobody else uses.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, it } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { conformance } from '../../src/testing/index.js';
import { paced } from '../support/pace.js';
import { freshDatabase } from '../support/servers/shared.js';
import { openAndDie } from './orphan.mjs';

let database: ReturnType<typeof freshDatabase> | undefined;
afterAll(async () => (await database)?.drop());

conformance({
  describe,
  it,
  name: 'postgres',
  capabilities: new PostgresStore({}).capabilities,
  // The shortest sessions live for three of them, through up to nine calls with a commit each: at 30 they were over too soon where
  // others keep the cores and the disk busy.
  unit: paced(60),
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
      orphan: (session) => openAndDie('postgres-orphan.mjs', { options, session }),
      close: () => store.close(),
    };
  },
});
