// Jobs that completed and stay have a statement of their own (settle.ts), and what it misses is judged one by one. Together they must
// answer, count and tell what any other batch would.
import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJobs, newSession, openStore, shuffled } from './support.js';
import { until } from '../../support/wait/until.js';

async function claimed(store: PostgresStore, count: number): Promise<ClaimedJob[]> {
  await store.add('q', newJobs(count), { caller: 'p', seq: 1 });
  await store.openSession(newSession());
  return (await store.claim('q', { session: 's', seq: 1, count })).jobs;
}

async function told(store: PostgresStore, name: string): Promise<(string | undefined)[]> {
  const { events } = await store.events('q', 0, 10_000);
  return events.filter((event) => event.name === name).map(({ jobId }) => jobId);
}

test('a completed batch settles each owned job once, and changes nothing for others', async () => {
  const store = await openStore({ url: await newDatabase() });
  const jobs = await claimed(store, 5);
  const [a, b, c, d, e] = jobs as [ClaimedJob, ClaimedJob, ClaimedJob, ClaimedJob, ClaimedJob];
  await store.change('q', [b.id], { kind: 'revoke', reason: 'test' });
  const batch: Outcome[] = [e, b, a, { ...c, id: 'none' }, c, a].map(completed);
  const { results } = await store.settle('q', batch, { caller: 's', seq: 2 });
  expect(results).toEqual(['done', 'lost', 'done', 'missing', 'done', 'done']);
  expect(await told(store, 'completed')).toEqual([e.id, a.id, c.id]);
  expect((await store.status('q')).counts).toMatchObject({ active: 1, waiting: 1, completed: 3 });
  expect((await store.jobs('q', { lists: ['completed'], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id)).toEqual([
    e.id,
    a.id,
    c.id,
  ]);
  // None of a batch is owned any more.
  expect((await store.settle('q', [completed(b), { ...completed(a), token: d.token }])).results).toEqual(['lost', 'lost']);
  expect(await told(store, 'completed')).toHaveLength(3);
});

test('a completed batch waits for a concurrent write to one of its jobs, and settles as a whole', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const jobs = await claimed(store, 4);
  const writer = await newClient(url);
  await writer.query(`BEGIN; UPDATE holdfast.jobs SET progress = '7' WHERE id = '${jobs[1]?.id}'`);
  const settling = store.settle('q', jobs.map(completed), { caller: 's', seq: 2 });
  await until('the batch waits', async () => (await blocked(writer)) > 0);
  await writer.query('COMMIT');
  expect((await settling).results).toEqual(['done', 'done', 'done', 'done']);
  expect((await store.jobs('q', [jobs[1]?.id ?? ''])).jobs).toMatchObject([
    { state: 'completed', progress: '7', returnvalue: '1' },
  ]);
  expect(new Set(await told(store, 'completed'))).toEqual(new Set(jobs.map(({ id }) => id)));
});

test.each([
  [1, 'the ordinary path'],
  [3, 'the ordinary path'],
  [1, 'the fast path'],
  [3, 'the fast path'],
])('%i completed jobs that are removed settle as done after a concurrent write to one of them, on %s', async (count, path) => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const jobs = await claimed(store, count);
  const writer = await newClient(url);
  await writer.query(`BEGIN; UPDATE holdfast.jobs SET progress = '7' WHERE id = '${jobs[0]?.id}'`);
  const outcomes = jobs.map((job) => ({ ...completed(job), keep: { count: 0 } }));
  const request = path === 'the fast path' ? { session: 's', seq: 2, count: 1 } : undefined;
  const settling = store.settle('q', outcomes, { caller: 's', seq: 2 }, request);
  await until('the call waits', async () => (await blocked(writer)) > 0);
  await writer.query('COMMIT');
  expect((await settling).results).toEqual(jobs.map(() => 'done'));
  expect(new Set(await told(store, 'completed'))).toEqual(new Set(jobs.map(({ id }) => id)));
  expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 0 });
});

test('overlapping completed batches never deadlock, and each job has one event', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const jobs = await claimed(store, 300);
  const outcomes = jobs.map(completed);
  // Another transaction holds them all up in the middle of their ids, so that all are under way when they go on.
  const writer = await newClient(url);
  await writer.query(`BEGIN; UPDATE holdfast.jobs SET progress = '7' WHERE id = '${jobs[150]?.id}'`);
  const settling = Array.from({ length: 10 }, (_, n) => store.settle('q', shuffled(outcomes, n + 1)));
  await until('several batches wait', async () => (await blocked(writer)) > 3);
  await writer.query('COMMIT');
  const replies = await Promise.all(settling);
  expect(new Set(replies.flatMap(({ results }) => results))).toEqual(new Set(['done']));
  expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 300 });
  expect((await told(store, 'completed')).length).toBe(300);
  expect(await deadlocks(url)).toBe(0);
});

test('the smallest retention of a completed batch applies', async () => {
  const store = await openStore({ url: await newDatabase() });
  const jobs = await claimed(store, 6);
  const keeping = (job: ClaimedJob | undefined, count?: number): Outcome =>
    ({ ...completed(job as ClaimedJob), keep: count === undefined ? {} : { count } }) as Outcome;
  await store.settle('q', [keeping(jobs[0]), keeping(jobs[1]), keeping(jobs[2])]);
  await store.settle('q', [keeping(jobs[3], 4), keeping(jobs[4], 2), keeping(jobs[5])]);
  expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 2 });
  expect((await store.jobs('q', { lists: ['completed'], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id)).toEqual([
    jobs[4]?.id,
    jobs[5]?.id,
  ]);
});
