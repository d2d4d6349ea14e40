// Functions that only processes of earlier versions call. They must do what they did there, beside processes of this version.
import { expect, test } from 'vitest';
import type { ClaimedJob } from '../../../src/job/record.js';
import { newClient, newDatabase, newJob, newSession, openStore } from './support.js';

const STATE = { waiting: 1, delayed: 2, completed: 4, failed: 5 };

async function start() {
  const url = await newDatabase();
  const store = await openStore({ url });
  const client = await newClient(url);
  // As a process sets it for its fast paths.
  await client.query('SET search_path TO holdfast');
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

test('pause, limit_queue and cap_queue change one setting each, and leave a rate that they do not know', async () => {
  const { store, call, add } = await start();
  for (const id of ['a', 'b', 'c']) await add({ id });
  const rate = { max: 2, durationMs: 60_000 };
  await store.configure('q', { rate, metrics: { points: 3 } });
  await call('pause($1, $2)', ['q', true]);
  await call('cap_queue($1, $2)', ['q', 5]);
  await call('limit_queue($1, $2)', ['q', 60_000]);
  expect(await store.status('q')).toMatchObject({
    paused: true,
    cap: { maxActive: 5 },
    rate,
    blockedMs: expect.any(Number) as number,
  });
  await call('pause($1, $2)', ['q', false]);
  await call('cap_queue($1, $2)', ['q', null]);
  await call('limit_queue($1, $2)', ['q', 0]);
  const status = await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } });
  expect([status.paused, status.cap, status.blockedMs, status.rate]).toEqual([false, undefined, undefined, rate]);
  expect(status.metrics).toEqual({ count: 0, points: [], total: 0 });
});

test('a claim of an earlier version keeps to the rate of the queue, and its settle counts in the metrics', async () => {
  const { store, call, add } = await start();
  for (const id of ['a', 'b', 'c']) await add({ id });
  await store.configure('q', { rate: { max: 2, durationMs: 60_000 }, metrics: { points: 3 } });
  const claim = (seq: number) => call('claim_plain($1, $2, $3, $4, $5)', ['q', 's', seq, 5, null]);
  const taken = (await claim(1)) as { jobs: [ids: string[], ...unknown[]][] };
  expect(taken.jobs[0]?.[0]).toEqual(['a', 'b']);
  expect(await claim(2)).toMatchObject({ jobs: [], limited: expect.any(Number) as number, next: expect.any(Number) as number });
  expect(await call('status($1)', ['q'])).toMatchObject({
    limited: expect.any(Number) as number,
    counts: { waiting: 1, active: 2 },
  });
  const fences = (await store.locks('q', { session: 's' })).map(({ fence }) => fence);
  const settled = ['q', 's', 3, ['a', 'b'], fences, ['1', '2'], 5, null];
  expect(await call('settle_plain($1, $2, $3, $4, $5, $6, $7, $8)', settled)).toMatchObject({
    results: 'dd',
    claimed: { jobs: [] },
  });
  expect((await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } })).metrics?.count).toBe(2);
});

test('a claim of an earlier version takes turns between groups, and keeps to their limits', async () => {
  const { store, call, add } = await start();
  for (const id of ['a1', 'a2', 'a3', 'b1']) await add({ id, group: id.slice(0, 1) });
  await store.configure('q', { groups: { maxActive: 2 } });
  const taken = (await call('claim_plain($1, $2, $3, $4, $5)', ['q', 's', 1, 9, null])) as { jobs: [ids: string[]][] };
  expect(taken.jobs[0]?.[0]).toEqual(['a1', 'b1', 'a2']);
  const [first] = await store.locks('q', { session: 's' });
  const settled = ['q', 's', 2, ['a1'], [first?.fence], ['1'], 9, null];
  const reply = (await call('settle_plain($1, $2, $3, $4, $5, $6, $7, $8)', settled)) as {
    results: string;
    claimed: { jobs: [ids: string[]][] };
  };
  expect(reply.results).toBe('d');
  expect(reply.claimed.jobs[0]?.[0]).toEqual(['a3']);
});

test('renewals get no notice of a cancel, which earlier versions would take for a revocation, and the job still fails', async () => {
  const { store, call, add } = await start();
  await add({ id: 'a' });
  await add({ id: 'b' });
  await store.claim('q', { session: 's', seq: 1, count: 2 });
  await store.change('q', ['a'], { kind: 'cancel', reason: 'not needed' });
  await store.change('q', ['b'], { kind: 'revoke', reason: 'r' });
  const told = (await call('renew_one($1, $2, $3, $4)', ['q', 's', 0, null])) as unknown[][];
  expect(told.map(([, job, , reason]) => [job, reason])).toEqual([['b', 'r']]);
  expect(await call('unsuspected($1, $2)', [['q'], ['s']])).toEqual([true]);
  await call('close_sessions($1, $2, $3)', [['q'], ['s'], false]);
  const { jobs } = await store.jobs('q', ['a', 'b']);
  expect(jobs.map((job) => [job?.state, job?.failedReason])).toEqual([
    ['failed', 'not needed'],
    ['waiting', undefined],
  ]);
});
