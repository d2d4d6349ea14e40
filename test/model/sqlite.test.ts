import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, test } from 'vitest';
import { SqliteStore } from '../../src/store/sqlite/index.js';
import { ManualClock } from '../../src/testing/index.js';
import { agreeWithMemory } from './check.js';
import { keepFamilies } from './families.js';

const clock = new ManualClock();
const connections: SqliteStore[] = [];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-model-'));
  for (const _ of [1, 2]) {
    const store = new SqliteStore({ path: join(folder, 'jobs.db'), clock });
    await store.open();
    connections.push(store);
  }
});
afterAll(async () => {
  for (const store of connections) await store.close();
  await rm(folder, { recursive: true, force: true });
});

test('sqlite does what the memory store does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await agreeWithMemory(async () => ({ clock, connections }), { runs: 70 });
});

test('sqlite keeps families as the model does, whatever the sequence of verbs', { timeout: 3_600_000 }, async () => {
  await keepFamilies(async () => ({ clock, connections }), { runs: 3 });
});
