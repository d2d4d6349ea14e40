// A job that is added while a call removes it by its id, and claimed before that call ends.
import { expect, test, vi } from 'vitest';
import { newClient, newDatabase, newJob, newSession, openStore } from './support.js';

test('a removal leaves a job alone that was added after it locked its jobs, and counts stay true', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession({ id: 's' }));
  const [remover, gate] = [await newClient(url), await newClient(url)];

  // The function, with a stop after it has locked its jobs and another before it deletes them.
  const { rows } = await gate.query<{ text: string }>(`SELECT pg_get_functiondef('holdfast.remove_jobs'::regproc) AS text`);
  const text = rows[0]?.text ?? '';
  const stops = text
    .replace('holdfast.remove_jobs', 'holdfast.remove_with_stops')
    .replace(/FOR UPDATE\) j\s*\)?;/, '$& PERFORM pg_advisory_xact_lock(1);')
    .replace('IF _gone.rows IS NOT NULL THEN', 'PERFORM pg_advisory_xact_lock(2); $&');
  expect(stops.match(/pg_advisory_xact_lock/g)).toHaveLength(2);
  await gate.query(stops);
  await gate.query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
  const stopsAt = (lock: number): Promise<void> =>
    vi.waitFor(async () => {
      const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${lock}`;
      expect((await gate.query(waiting)).rowCount).toBe(1);
    }, 20_000);

  const removed = remover.query<{ reply: string }>(`SELECT holdfast.remove_with_stops('q', '{goes}') AS reply`);
  await stopsAt(1);
  const jobs = [newJob({ id: 'stays', lockKey: 'k' }), newJob({ id: 'goes', lockKey: 'k', lifo: true })];
  await store.add('q', jobs, { caller: 'p', seq: 1 });
  await gate.query('SELECT pg_advisory_unlock(1)');
  await stopsAt(2);
  const claimed = await store.claim('q', { session: 's', seq: 1, count: 5 });
  await gate.query('SELECT pg_advisory_unlock(2)');

  expect(claimed.jobs.map(({ id }) => id)).toEqual(['goes']);
  expect((await removed).rows[0]?.reply).toBe('["missing"]');
  expect((await store.status('q')).counts).toMatchObject({ waiting: 1, active: 1 });
});
