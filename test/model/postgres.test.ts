// On a real server, whose clock shows what the test says.
import { Client } from 'pg';
import { afterAll, beforeAll, test } from 'vitest';
import { PostgresStore } from '../../src/store/postgres/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { shownClock } from '../support/servers/postgres-clock.js';
import { type FreshDatabase, freshDatabase } from '../support/servers/shared.js';
import { agreeWithMemory } from './check.js';
import { keepFamilies } from './families.js';

const clock = new ManualClock();
const connections: PostgresStore[] = [];
let database: FreshDatabase;
let client: Client;
let clockOfStore: Awaited<ReturnType<typeof shownClock>>;

beforeAll(async () => {
  database = await freshDatabase();
  for (const _ of [1, 2]) {
    const store = new PostgresStore({ url: database.url });
    await store.open();
    connections.push(store);
  }
  client = new Client({ connectionString: database.url });
  await client.connect();
  clockOfStore = await shownClock(client, clock.wall());
});
afterAll(async () => {
  for (const store of connections) await store.close();
  await client?.end();
  await database?.drop();
});

async function showTime(_queue: string, now: number): Promise<void> {
  await clockOfStore.show(now);
}

test('postgres does what the memory store does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await agreeWithMemory(async () => ({ clock, connections, showTime, lazyKeys: true }), { runs: 30 });
});

test('postgres keeps families as the model does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await keepFamilies(async () => ({ clock, connections, showTime, lazyKeys: true }), { runs: 1, steps: 60 });
});
