// The clock of a PostgreSQL store under a test's hand. All functions of the store ask `clock_ms()` for the time; here it reads a table.
import type { Client } from 'pg';

export interface MovableClock {
  /** Lets time pass at once: for every connection to this database. */
  advance(ms: number): Promise<void>;
}

/** The clock goes on by itself, and `advance` moves it forward. */
export async function movableClock(client: Client): Promise<MovableClock> {
  await replaceClock(client, 0, `date_part('epoch', clock_timestamp()) * 1000 + `);
  return { advance: async (ms) => void (await client.query('UPDATE holdfast.test_clock SET ms = ms + $1', [ms])) };
}

/** The clock stands still at the time that was shown last. */
export async function shownClock(client: Client, ms: number): Promise<{ show(ms: number): Promise<void> }> {
  await replaceClock(client, ms, '');
  return { show: async (now) => void (await client.query('UPDATE holdfast.test_clock SET ms = $1', [now])) };
}

// CREATE OR REPLACE makes a function that nothing calls, should the store come to ask another one: then no time would pass.
async function replaceClock(client: Client, ms: number, before: string): Promise<void> {
  await client.query(`
    CREATE TABLE holdfast.test_clock (ms double precision NOT NULL);
    INSERT INTO holdfast.test_clock VALUES (${ms});
    CREATE OR REPLACE FUNCTION holdfast.clock_ms() RETURNS double precision LANGUAGE sql VOLATILE
      AS $$ SELECT ${before}ms FROM holdfast.test_clock $$`);
}
