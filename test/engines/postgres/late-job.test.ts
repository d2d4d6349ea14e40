// A job that is added while a call names its id, and moves on before that call ends. The call has locked its jobs before, so that job is
// missing for it.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newSession, openStore } from './support.js';
import { until } from '../../support/wait/until.js';

interface Stopped {
  store: PostgresStore;
  gate: Client;
  /** Lets the call go on from its stop, and waits until it stands at the next one. */
  pass: (stop: number) => Promise<void>;
}

/** Makes a call of a function that stops after it has locked its jobs, and again before `then`. */
async function stopped(
  verb: string,
  then: string,
  call: (store: PostgresStore, caller: Client) => Promise<unknown>,
): Promise<Stopped & { reply: Promise<unknown> }> {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.openSession(newSession({ id: 's' }));
  const [caller, gate] = [await newClient(url), await newClient(url)];
  const { rows } = await gate.query<{ text: string }>(`SELECT pg_get_functiondef('holdfast.${verb}'::regproc) AS text`);
  const stops = (rows[0]?.text ?? '')
    .replace(/FOR UPDATE\) j\s*\)?;/, '$& PERFORM pg_advisory_xact_lock(1);')
    .replace(then, `PERFORM pg_advisory_xact_lock(2); ${then}`);
  expect(stops.match(/pg_advisory_xact_lock/g)).toHaveLength(2);
  await gate.query(stops);
  await gate.query('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
  const standsAt = async (stop: number): Promise<void> => {
    const waiting = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = ${stop}
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
    await until(`the call stands at ${stop}`, async () => (await gate.query(waiting)).rowCount === 1);
  };
  const pass = async (stop: number): Promise<void> => {
    await gate.query(`SELECT pg_advisory_unlock(${stop})`);
    if (stop === 1) await standsAt(2);
  };
  const reply = call(store, caller);
  await standsAt(1);
  return { store, gate, pass, reply };
}

const calling =
  (text: string) =>
  async (_: PostgresStore, caller: Client): Promise<unknown> => {
    const { rows } = await caller.query<{ reply: string }>(`SELECT holdfast.${text} AS reply`);
    return JSON.parse(rows[0]?.reply ?? 'null');
  };

test('a removal leaves a job alone that was added after it locked its jobs, and counts stay true', async () => {
  const { store, pass, reply } = await stopped(
    'remove_jobs',
    'IF _gone.rows IS NOT NULL THEN',
    calling(`remove_jobs('q', '{goes}')`),
  );
  const jobs = [newJob({ id: 'stays', lockKey: 'k' }), newJob({ id: 'goes', lockKey: 'k', lifo: true })];
  await store.add('q', jobs, { caller: 'p', seq: 1 });
  await pass(1);
  const claimed = await store.claim('q', { session: 's', seq: 1, count: 5 });
  await pass(2);

  expect(claimed.jobs.map(({ id }) => id)).toEqual(['goes']);
  expect(await reply).toEqual(['missing']);
  expect((await store.status('q')).counts).toMatchObject({ waiting: 1, active: 1 });
});

test('a revoke says nothing of a job that was added after it locked its jobs, and that finishes', async () => {
  const { store, gate, pass, reply } = await stopped(
    'revoke_jobs',
    'IF _held.ids IS NOT NULL THEN',
    calling(`revoke_jobs('q', '{goes}', 'reason')`),
  );
  await store.add('q', [newJob({ id: 'goes' })], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
  await pass(1);
  expect((await store.settle('q', jobs.map(completed))).results).toEqual(['done']);
  await pass(2);

  expect(await reply).toEqual(['missing']);
  expect((await gate.query('SELECT FROM holdfast.revocations')).rowCount).toBe(0);
  expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 1 });
});

test('a change of priority leaves a job alone that was added after it locked its jobs, and counts stay true', async () => {
  const arrays = `ARRAY['priority'], ARRAY['goes'], ARRAY[NULL::smallint], ARRAY[5::float8], ARRAY[false], ARRAY[false]`;
  const { store, pass, reply } = await stopped(
    'change_jobs',
    '_statuses := _statuses || _status;',
    calling(`change_jobs('q', ${arrays})`),
  );
  await store.add('q', [newJob({ id: 'goes' })], { caller: 'p', seq: 1 });
  await pass(1);
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  await pass(2);
  expect(await reply).toEqual(['missing']);
  expect((await store.status('q')).counts).toMatchObject({ waiting: 0, prioritized: 0, active: 1 });
});

test('a claim by id does not get a job that was added after it locked its jobs, and that another session has got', async () => {
  const request = { session: 's', seq: 1, count: 1, jobIds: ['goes'] };
  const claim = async (store: PostgresStore): Promise<unknown> => {
    await store.openSession(newSession({ id: 'other' }));
    await store.add('q', [newJob({ id: 'runs' }), newJob({ id: 'waits' })], { caller: 'p', seq: 1 });
    // The first claim in a server holds the queue.
    await store.claim('q', { session: 'other', seq: 1, count: 1 });
    return (await store.claim('q', request)).jobs.map(({ id }) => id);
  };
  const { store, pass, reply } = await stopped('grant_by_id', 'WITH waiting AS', claim);
  await store.add('q', [newJob({ id: 'goes' })], { caller: 'p', seq: 2 });
  await pass(1);
  const other = await store.claim('q', { session: 'other', seq: 2, count: 2 });
  expect(other.jobs.map(({ id }) => id).sort()).toEqual(['goes', 'waits']);
  await pass(2);
  expect(await reply).toEqual([]);
  expect((await store.status('q')).counts).toMatchObject({ waiting: 0, active: 3 });
});
