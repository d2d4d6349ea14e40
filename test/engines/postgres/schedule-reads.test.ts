// The rows that PostgreSQL reads for a query of schedules, in a queue with many schedules.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { ScheduleChange } from '../../../src/store/contract/index.js';
import { newClient, newDatabase, newJob, openStore } from './support.js';

const SCHEDULES = 500;
const IDS = Array.from({ length: SCHEDULES }, (_, n) => `s${n}`);

const FEW = 20;

const CALLS = {
  'by id': `schedules_of('q', '{s7,s8}', NULL, NULL, NULL, NULL)`,
  'of owing schedules': `schedules_of('q', NULL, 10, NULL, NULL, NULL)`,
  'of the first positions': `schedules_of('q', NULL, NULL, 0, 4, true)`,
};
const COUNT = `schedules_of('q', NULL, NULL, NULL, NULL, NULL)`;

test.each(Object.entries(CALLS))('a query %s does not read the other schedules', async (_, call) => {
  const client = await withSchedules();
  expect(await rowsRead(client, call)).toBeLessThan(FEW);
  // The control: a query that must read all schedules.
  expect(await rowsRead(client, COUNT)).toBeGreaterThanOrEqual(SCHEDULES);
});

async function withSchedules(): Promise<Client> {
  const url = await newDatabase();
  const store = await openStore({ url });
  const puts = IDS.map((id): ScheduleChange => {
    const next = { at: 1, dueInMs: 60_000, count: 1, job: { ...newJob(), id: `job of ${id}` } };
    return { kind: 'put', id, version: 0, spec: '{}', serial: false, next };
  });
  await store.schedule('q', puts);
  const client = await newClient(url);
  await client.query('SET search_path TO holdfast');
  return client;
}

/** Returns how many rows of schedules a call reads. */
async function rowsRead(client: Client, call: string): Promise<number> {
  await client.query('BEGIN');
  await client.query(`SELECT ${call}`);
  const { rows } = await client.query<{ read: number }>(
    `SELECT (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int AS read
     FROM pg_stat_xact_user_tables WHERE relname = 'schedules'`,
  );
  await client.query('COMMIT');
  return rows[0]?.read ?? 0;
}
