// Many calls on few connections. To wait for one of them is no outage, as long as the server replies to those that have one.
import { Pool } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { newClient, newDatabase, newJobs, newSession, openStore } from './support.js';

const CALLS = 40;
const CALL_MS = 50;
/** A fraction of what all calls together take. */
const PATIENCE_MS = 300;

test.each(['its own pool', 'a pool of the user'])('PostgreSQL serves many calls on one connection of %s', async (kind) => {
  const url = await newDatabase();
  const pool = kind === 'its own pool' ? undefined : new Pool({ connectionString: url, max: 1 });
  onTestFinished(() => pool?.end());
  const store = await openStore({ ...(pool ? { pool } : { url, max: 1 }), connectTimeoutMs: PATIENCE_MS, notify: false });
  onTestFinished(() => store.close());
  await store.openSession(newSession());
  await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
  const admin = await newClient(url);
  await admin.query(`ALTER FUNCTION holdfast.status(text) RENAME TO status_itself;
    CREATE FUNCTION holdfast.status(_name text) RETURNS text LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(${CALL_MS / 1000}); RETURN holdfast.status_itself(_name); END'`);
  const calls = await Promise.allSettled(Array.from({ length: CALLS }, () => store.status('q')));
  expect(calls.filter(({ status }) => status === 'rejected')).toEqual([]);
  // While the server replies to nothing, no call waits for ever.
  await admin.query('BEGIN; LOCK holdfast.queues IN ACCESS EXCLUSIVE MODE');
  const first = store.status('q').catch(() => undefined);
  await expect(store.status('q')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', retryable: true });
  await admin.query('COMMIT');
  await first;
});
