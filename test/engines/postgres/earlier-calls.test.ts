// Functions that only processes of earlier versions call. They must do what they did there, beside processes of this version.
import { expect, test } from 'vitest';
import type { ClaimedJob } from '../../../src/job/record.js';
import { newClient, newDatabase, newJob, newSession, openStore } from './support.js';

const STATE = { waiting: 1, delayed: 2, completed: 4, failed: 5 };

async function start() {
  const url = await newDatabase();
  const store = await openStore({ url });
  const client = await newClient(url);
  const call = async (text: string, values: unknown[]): Promise<unknown> => {
    const { rows } = await client.query<{ reply: string }>(`SELECT holdfast.${text} AS reply`, values);
    return JSON.parse(rows[0]?.reply ?? 'null');
  };
  await store.openSession(newSession());
  let seq = 0;
  const add = async (...jobs: Parameters<typeof newJob>): Promise<void> =>
    void (await store.add('q', jobs.map(newJob), { caller: 'p', seq: ++seq }));
  const cleaned = async (): Promise<unknown[]> =>
    (await store.events('q', 0, 1_000)).events.flatMap(({ name, count }) => (name === 'cleaned' ? [count] : []));
  return { store, call, add, cleaned };
}

test('clear_jobs names states, where waiting jobs have any priority, and records only what it removed', async () => {
  const { store, call, add, cleaned } = await start();
  await add({ id: 'w' });
  await add({ id: 'p', priority: 2 });
  await add({ id: 'd', delayMs: 60_000 });
  const clear = (states: number[], age: number | null, limit: number) =>
    call('clear_jobs($1, $2::smallint[], $3, $4)', ['q', states, age, limit]);
  expect(await clear([STATE.completed], null, 10)).toEqual([]);
  expect(await clear([STATE.waiting], 60_000, 10)).toEqual([]);
  expect(await clear([STATE.waiting], null, 10)).toEqual(['w', 'p']);
  expect(await clear([STATE.waiting, STATE.delayed], null, 10)).toEqual(['d']);
  expect(await call('tell_cleaned($1, $2)', ['q', 3])).toEqual([]);
  expect(await cleaned()).toEqual([2, 1, 3]);
  expect((await store.status('q')).counts).toMatchObject({ waiting: 0, prioritized: 0, delayed: 0 });
});

test('requeue moves the jobs of several states and counts them; revoke says of each job whether it was active', async () => {
  const { store, call, add } = await start();
  for (const id of ['a', 'b', 'c']) await add({ id });
  await add({ id: 'later', delayMs: 60_000 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 3 });
  const [a, b, c] = jobs as [ClaimedJob, ClaimedJob, ClaimedJob];
  await store.settle('q', [
    { kind: 'completed', jobId: a.id, token: a.token, value: '1', keep: {} },
    { kind: 'failed', jobId: b.id, token: b.token, reason: 'r', stacktrace: '[]', keep: {} },
  ]);
  expect(await call('revoke($1, $2, $3)', ['q', ['ghost', c.id, 'later', c.id], 'r'])).toEqual([false, true, false, false]);
  const requeue = (limit: number) =>
    call('requeue($1, $2::smallint[], $3, $4)', [
      'q',
      [STATE.waiting, STATE.completed, STATE.failed, STATE.delayed],
      null,
      limit,
    ]);
  expect([await requeue(2), await requeue(5), await requeue(5)]).toEqual([2, 1, 0]);
  expect((await store.status('q')).counts).toMatchObject({ waiting: 4, delayed: 0, active: 0, completed: 0, failed: 0 });
});
