import Database from 'better-sqlite3';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Keep, Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { JobWrite, Store } from '../../../src/store/contract/index.js';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { CompletedRuns } from '../../../src/store/sqlite/state/completed-run.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const COUNT = 40;

function completed({ id: jobId, token }: Pick<ClaimedJob, 'id' | 'token'>, value = 'null', keep: Keep = {}): Outcome {
  return { kind: 'completed', jobId, token, value, keep };
}

async function claimAll(store: Store, queue = 'q', session = 's', seq = 1): Promise<ClaimedJob[]> {
  await store.openSession(newSession({ queue, id: session }));
  const { jobs } = await store.claim(queue, { session, seq, count: COUNT });
  expect(jobs).toHaveLength(COUNT);
  return jobs;
}

/** A store with jobs 1 to 40, all of them claimed by `s`. */
async function withClaimed(): Promise<{ store: Store; jobs: ClaimedJob[] }> {
  const store = await openStore({ path: newFile() });
  const added = Array.from({ length: COUNT }, () => newJob());
  await store.add('q', added, { caller: 'p', seq: 1 });
  return { store, jobs: await claimAll(store) };
}

async function idsOf(store: Store, list: 'completed' | 'active' | 'waiting', queue = 'q'): Promise<string[]> {
  return (await store.jobs(queue, { lists: [list], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id);
}

afterEach(() => void vi.restoreAllMocks());

describe('jobs that are completed in a run on SQLite', () => {
  it('are as they would be one by one', async () => {
    const { store, jobs } = await withClaimed();
    const { last } = await store.events('q', undefined, 100);
    const results = await store.settle(
      'q',
      jobs.map((job) => completed(job, '"sent"')),
    );
    expect(results).toEqual({ results: jobs.map(() => 'done') });
    const { jobs: records } = await store.jobs('q', { lists: ['completed'], start: 0, end: -1, asc: true });
    expect(records.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    for (const record of records) {
      expect(record).toMatchObject({ state: 'completed', returnvalue: '"sent"', attemptsMade: 1, attemptsStarted: 1 });
      expect(record.finishedOn).toBeGreaterThanOrEqual(record.processedOn as number);
    }
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: COUNT });
    expect(await store.locks('q', { session: 's' })).toEqual([]);
    const told = (await store.events('q', last, 100)).events.map(({ name, jobId, returnvalue }) => [name, jobId, returnvalue]);
    expect(told).toEqual([...jobs.map(({ id }) => ['completed', id, '"sent"']), ['drained', undefined, undefined]]);
  });

  it('stay unchanged if their lock is lost', async () => {
    const { store, jobs } = await withClaimed();
    await store.change('q', ['7', '12'], { kind: 'revoke', reason: 'cancelled' });
    const { results } = await store.settle(
      'q',
      jobs.map((job) => completed(job)),
    );
    expect(results).toEqual(jobs.map(({ id }) => (id === '7' || id === '12' ? 'lost' : 'done')));
    expect(await idsOf(store, 'completed')).toEqual(jobs.map(({ id }) => id).filter((id) => id !== '7' && id !== '12'));
    expect(await idsOf(store, 'active')).toEqual([]);
    const records = (await store.jobs('q', ['7', '12'])).jobs;
    expect(records.map((record) => record?.state)).not.toContain('completed');
    expect((await store.status('q')).counts.completed).toBe(COUNT - 2);
  });

  it('stay unchanged if another owner holds them, or if they are gone', async () => {
    const { store, jobs } = await withClaimed();
    await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    const theirs = await claimAll(store, 'q', 'next');
    expect(theirs.map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
    const stale = jobs.map((job) => completed(job));
    expect(await store.settle('q', stale)).toEqual({ results: jobs.map(() => 'lost') });
    expect(await idsOf(store, 'completed')).toEqual([]);
    const done = theirs.map((job) => completed(job));
    expect(await store.settle('q', done)).toEqual({ results: jobs.map(() => 'done') });
    expect(await store.settle('q', done)).toEqual({ results: jobs.map(() => 'done') });
    expect(await store.settle('q', stale)).toEqual({ results: jobs.map(() => 'lost') });
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: COUNT });
    await store.change('q', ['3', '40'], { kind: 'remove' });
    const { results } = await store.settle('q', stale);
    expect(results).toEqual(jobs.map(({ id }) => (id === '3' || id === '40' ? 'missing' : 'lost')));
  });

  it('are not mixed up when a token comes with the id of another job', async () => {
    const { store, jobs } = await withClaimed();
    const shifted = jobs.slice(1).map(({ id }, index) => completed({ id, token: (jobs[index] as ClaimedJob).token }));
    expect(await store.settle('q', shifted)).toEqual({ results: shifted.map(() => 'lost') });
    expect(await idsOf(store, 'active')).toHaveLength(COUNT);
  });

  it('are not mixed up when an id is stored out of order', async () => {
    const store = await openStore({ path: newFile() });
    const ids = ['3', undefined, undefined, 'x', ...Array.from({ length: COUNT - 4 }, () => undefined)];
    const added = ids.map((id) => newJob(id === undefined ? {} : { id }));
    await store.add('q', added, { caller: 'p', seq: 1 });
    const [, ...jobs] = await claimAll(store);
    expect(jobs.slice(0, 4).map(({ id }) => id)).toEqual(['1', '2', 'x', '4']);
    // The token is that of x, which stands where 3 would.
    const outcomes = jobs.map(({ id, token }) => completed({ id: id === 'x' ? '3' : id, token }));
    expect(await store.settle('q', outcomes)).toEqual({ results: jobs.map(({ id }) => (id === 'x' ? 'lost' : 'done')) });
    expect(await idsOf(store, 'active')).toEqual(['3', 'x']);
  });

  it.each([
    ['all of them, of another session', 0, COUNT],
    ['one of them, of another session', 9, 10],
  ])('take no token that only looks like theirs: %s', async (_, from, to) => {
    const { store, jobs } = await withClaimed();
    const forged = (index: number): boolean => index >= from && index < to;
    const outcomes = jobs.map((job, index) => completed(forged(index) ? { id: job.id, token: `other:${job.fence}` } : job));
    const { results } = await store.settle('q', outcomes);
    expect(results).toEqual(jobs.map((_job, index) => (forged(index) ? 'lost' : 'done')));
    expect(await idsOf(store, 'active')).toEqual(jobs.filter((_job, index) => forged(index)).map(({ id }) => id));
  });

  it('are found when those of another queue were added between them', async () => {
    const store = await openStore({ path: newFile() });
    for (let seq = 1; seq <= COUNT; seq += 1) {
      for (const queue of ['q', 'other']) await store.add(queue, [newJob()], { caller: 'p', seq });
    }
    const jobs = await claimAll(store);
    const others = await claimAll(store, 'other');
    expect(
      await store.settle(
        'q',
        jobs.map((job) => completed(job)),
      ),
    ).toEqual({ results: jobs.map(() => 'done') });
    expect(await idsOf(store, 'completed')).toEqual(jobs.map(({ id }) => id));
    expect(await idsOf(store, 'active', 'other')).toEqual(others.map(({ id }) => id));
  });

  it('free the keys of the jobs among them that have one', async () => {
    const store = await openStore({ path: newFile() });
    const added = Array.from({ length: COUNT }, (_, n) => newJob(n === 9 ? { lockKey: 'k' } : {}));
    await store.add('q', added, { caller: 'p', seq: 1 });
    const jobs = await claimAll(store);
    await store.add('q', [newJob({ id: 'next', lockKey: 'k' })], { caller: 'p', seq: 2 });
    expect((await store.claim('q', { session: 's', seq: 2, count: 1 })).jobs).toEqual([]);
    const outcomes = jobs.map((job) => completed(job));
    expect(await store.settle('q', outcomes)).toEqual({ results: jobs.map(() => 'done') });
    expect(await idsOf(store, 'completed')).toHaveLength(COUNT);
    expect((await store.claim('q', { session: 's', seq: 3, count: 1 })).jobs.map(({ id }) => id)).toEqual(['next']);
  });

  it('are trimmed like any others', async () => {
    const { store, jobs } = await withClaimed();
    const outcomes = jobs.map((job): Outcome => ({ ...completed(job), keep: { count: 3 } }) as Outcome);
    expect(await store.settle('q', outcomes)).toEqual({ results: jobs.map(() => 'done') });
    expect(await idsOf(store, 'completed')).toEqual(['38', '39', '40']);
  });

  it('are deleted if they are not kept, and their events have even large and different values', async () => {
    const { store, jobs } = await withClaimed();
    const { last } = await store.events('q', undefined, 100);
    const values = jobs.map(({ id }) => JSON.stringify(id.padEnd(5000, '.')));
    const outcomes = jobs.map((job, index) => completed(job, values[index], { count: 0 }));
    const call = { caller: 's', seq: 2 };
    const results = jobs.map(() => 'done');
    expect(await store.settle('q', outcomes, call)).toEqual({ results });
    // The reply was lost.
    expect(await store.settle('q', outcomes, call)).toEqual({ results });
    expect(await store.settle('q', outcomes)).toEqual({ results: jobs.map(() => 'missing') });
    expect(await store.locks('q', { session: 's' })).toEqual([]);
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 0 });
    const told = (await store.events('q', last, 100)).events.map(({ name, jobId, returnvalue }) => [name, jobId, returnvalue]);
    expect(told).toEqual([...jobs.map(({ id }, index) => ['completed', id, values[index]]), ['drained', undefined, undefined]]);
  });

  it('are deleted one by one if they have logs, a key or an entry', async () => {
    const store = await openStore({ path: newFile() });
    const more: Partial<NewJob>[] = [{}, {}, { lockKey: 'k' }, { deduplication: { id: 'd' } }];
    const added = Array.from({ length: COUNT }, (_, n) => newJob(more[n] ?? {}));
    await store.add('q', added, { caller: 'p', seq: 1 });
    const jobs = await claimAll(store);
    await store.write('q', [{ kind: 'log', jobId: '2', row: 'logged' }]);
    const removed = jobs.map((job) => completed(job, 'null', { count: 0 }));
    const inRun = vi.spyOn(CompletedRuns.prototype, 'complete');
    expect(await store.settle('q', removed)).toEqual({ results: jobs.map(() => 'done') });
    expect(inRun.mock.results.map(({ value }) => value as boolean[])).toEqual([jobs.map((_, n) => n < 1 || n > 3)]);
    expect(await idsOf(store, 'completed')).toEqual([]);
    expect(await idsOf(store, 'active')).toEqual([]);
    // The row number of a deleted job is free again: no log of that job may be left.
    await store.add('q', [newJob(), newJob({ id: 'logged' })], { caller: 'p', seq: 2 });
    expect((await store.logs('q', 'logged', { start: 0, end: -1, asc: true })).logs).toEqual([]);
  });

  it('are missing if they were deleted before, and the others are deleted', async () => {
    const { store, jobs } = await withClaimed();
    const removed = jobs.map((job) => completed(job, 'null', { count: 0 }));
    await store.settle('q', [removed[7], removed[20]] as Outcome[]);
    const { results } = await store.settle('q', removed);
    expect(results).toEqual(jobs.map((_, n) => (n === 7 || n === 20 ? 'missing' : 'done')));
    expect((await store.status('q')).counts).toMatchObject({ active: 0, completed: 0 });
  });

  it('are not settled as a run if few in a row have the same way to be kept', async () => {
    const { store, jobs } = await withClaimed();
    const inRun = vi.spyOn(CompletedRuns.prototype, 'complete');
    const outcomes = jobs.map((job, n) => completed(job, 'null', n % 10 === 9 ? { count: 0 } : {}));
    expect(await store.settle('q', outcomes)).toEqual({ results: jobs.map(() => 'done') });
    expect(inRun).not.toHaveBeenCalled();
    expect(await idsOf(store, 'completed')).toEqual(jobs.filter((_, n) => n % 10 !== 9).map(({ id }) => id));
  });

  it.each<[string, Keep, number]>([
    ['by count', { count: COUNT - 30 }, 30],
    ['by age, all of them', { ageMs: 0 }, COUNT],
    ['by both', { count: 3, ageMs: 60_000 }, COUNT - 3],
  ])('are trimmed with their logs, links and steps: %s', async (_, keep, trimmed) => {
    const file = newFile();
    const store = await openStore({ path: file });
    const parent = { queue: 'q', id: 'parent' };
    await store.add('q', [newJob({ id: 'parent', waitsForChildren: true })], { caller: 'p', seq: 1 });
    const added = Array.from({ length: COUNT }, (_job, n) => newJob(n === 5 ? { parents: [parent] } : {}));
    await store.add('q', added, { caller: 'p', seq: 2 });
    const jobs = await claimAll(store);
    const [logged, stepped] = [jobs[2], jobs[8]] as [ClaimedJob, ClaimedJob];
    await store.write('q', [
      { kind: 'log', jobId: logged.id, row: 'logged' },
      { kind: 'step', jobId: stepped.id, token: stepped.token, name: 'step', value: '1' },
    ]);
    // One by one: within a run, these jobs would be stored as finished after the others.
    const before = jobs.slice(0, 9).map((job) => completed(job));
    for (const outcome of before) await store.settle('q', [outcome]);
    await store.settle(
      'q',
      jobs.slice(9).map((job) => completed(job, 'null', keep)),
    );
    expect(await idsOf(store, 'completed')).toEqual(jobs.slice(trimmed).map(({ id }) => id));
    expect((await store.status('q')).counts.completed).toBe(COUNT - trimmed);
    const db = new Database(file);
    afterwards(() => db.close());
    for (const table of ['logs', 'steps']) expect(db.prepare(`SELECT * FROM ${table}`).all()).toEqual([]);
  });

  // Whatever the order of the outcomes, and whatever has become of the locks meanwhile. Memory knows no runs.
  it.each(seeds(12))('end as they do in memory (%i)', async (seed) => {
    const memory = new MemoryStore();
    afterwards(() => memory.close());
    await memory.open();
    const keeps = [{}, { count: 0 }];
    const expected = await play(memory, randomFrom(seed), { keeps });
    expect(await play(await openStore({ path: newFile() }), randomFrom(seed), { keeps })).toEqual(expected);
  });

  // Memory trims after each job, SQLite after each call. Jobs whose rows are not consecutive are settled one by one.
  it.each(seeds(12).flatMap((seed) => [true, false].map((marked) => ({ seed, marked }))))(
    'end as they do one by one, however they are kept: $seed, marked $marked',
    async ({ seed, marked }) => {
      const counted = [{ count: 7 }, { count: 7, ageMs: 60_000 }, { count: 30 }];
      const keeps = [{}, { count: 0 }, { ageMs: 0 }, { ageMs: 60_000 }, ...(marked ? [] : counted)];
      const inRun = vi.spyOn(CompletedRuns.prototype, 'complete');
      const expected = await play(await openStore({ path: newFile() }), randomFrom(seed), { keeps, marked, isApart: true });
      for (const { value } of inRun.mock.results) expect(value).not.toContain(true);
      expect(await play(await openStore({ path: newFile() }), randomFrom(seed), { keeps, marked })).toEqual(expected);
    },
  );
});

function seeds(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n + 1);
}

/** A small generator, the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Play {
  keeps: Keep[];
  /** Jobs of another queue are added between the jobs. */
  isApart?: boolean;
  /** Some jobs have a key, an entry, a group or a step. Such a job of a run is stored as finished after the others. */
  marked?: boolean;
}

async function play(store: Store, random: () => number, { keeps, isApart = false, marked = true }: Play): Promise<unknown> {
  const pick = (count: number): number => Math.floor(random() * count);
  const oneOf = <T>(list: readonly T[]): T => list[pick(list.length)] as T;
  const specials: Partial<NewJob>[] = [{ lockKey: 'k' }, { deduplication: { id: 'd' } }, { group: 'g' }];
  const special = marked && pick(3) === 0 ? { [pick(COUNT)]: oneOf(specials) } : {};
  const named = pick(2) === 0 ? { 4: { id: 'named' } } : {};
  const added = Array.from({ length: COUNT }, (_, n) => newJob({ ...named[n as 4], ...special[n] }));
  await store.configure('q', { metrics: { points: 5 } });
  for (let n = 0, seq = 1; n < COUNT; n += isApart ? 1 : COUNT, seq += 1) {
    await store.add('q', added.slice(n, isApart ? n + 1 : COUNT), { caller: 'p', seq });
    if (isApart) await store.add('other', [newJob()], { caller: 'p', seq });
  }
  const jobs = await claimAll(store);
  const lost = jobs.filter(() => pick(30) === 0).map(({ id }) => id);
  if (lost.length > 0) await store.change('q', lost, { kind: 'revoke', reason: 'cancelled' });
  for (const { id: jobId, token } of jobs.filter(() => pick(30) === 0)) {
    const log: JobWrite = { kind: 'log', jobId, row: 'logged' };
    await store.write('q', [marked ? oneOf([log, { kind: 'step', jobId, token, name: 'step', value: '1' }]) : log]);
  }
  const keep = oneOf(keeps);
  const outcomes = jobs.map(
    (job): Outcome => completed(job, pick(40) === 0 ? '1' : 'null', pick(30) === 0 ? oneOf(keeps) : keep),
  );
  for (let swaps = pick(3); swaps > 0; swaps -= 1) {
    const [a, b] = [pick(COUNT), pick(COUNT)];
    [outcomes[a], outcomes[b]] = [outcomes[b] as Outcome, outcomes[a] as Outcome];
  }
  if (pick(3) === 0) outcomes.splice(pick(COUNT), 0, oneOf(outcomes));
  const { last } = await store.events('q', undefined, 100);
  const call = { caller: 's', seq: 2 };
  const { results } = await store.settle('q', outcomes, call);
  expect((await store.settle('q', outcomes, call)).results).toEqual(results);
  const records = (await store.jobs('q', { lists: ['completed'], start: 0, end: -1, asc: true })).jobs;
  if (marked) records.sort((a, b) => (a.id < b.id ? -1 : 1));
  const { counts, metrics } = await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } });
  const { events } = await store.events('q', last, 100);
  return {
    results,
    completed: records.map(({ id, returnvalue, attemptsMade }) => [id, returnvalue, attemptsMade]),
    waiting: await idsOf(store, 'waiting'),
    events: events.map(({ id: _id, timestamp: _at, ...event }) => event),
    logs: await Promise.all(jobs.map(async ({ id }) => (await store.logs('q', id, { start: 0, end: -1, asc: true })).logs)),
    counts,
    finished: metrics?.count,
  };
}
