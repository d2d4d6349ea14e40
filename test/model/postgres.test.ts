// On a real server. Its functions all ask one for the time, which reads it from a table here.
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { type FreshDatabase, freshDatabase } from '../support/servers/shared.js';
import { agreeWithMemory } from './check.js';

const clock = new ManualClock();
const connections: PostgresStore[] = [];
let database: FreshDatabase;
let client: Client;

beforeAll(async () => {
  database = await freshDatabase();
  for (const _ of [1, 2]) {
    const store = new PostgresStore({ url: database.url });
    await store.open();
    connections.push(store);
  }
  client = new Client({ connectionString: database.url });
  await client.connect();
  // CREATE OR REPLACE makes a function that nobody calls, should the store come to ask another one: then nothing would agree.
  await client.query(`
    CREATE TABLE holdfast.model_clock (now double precision NOT NULL);
    INSERT INTO holdfast.model_clock VALUES (${clock.wall()});
    CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS double precision LANGUAGE sql VOLATILE
      AS 'SELECT now FROM holdfast.model_clock'`);
});
afterAll(async () => {
  for (const store of connections) await store.close();
  await client?.end();
  await database?.drop();
});

async function showTime(_queue: string, now: number): Promise<void> {
  await client.query('UPDATE holdfast.model_clock SET now = $1', [now]);
}

test('postgres does what the memory store does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await agreeWithMemory(async () => ({ clock, connections, showTime, lazyKeys: true }), { runs: 30 });
});
