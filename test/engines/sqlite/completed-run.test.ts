import { describe, expect, it } from 'vitest';
import type { Outcome, SettleStatus } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { Store } from '../../../src/store/contract/index.js';
import { MemoryStore } from '../../../src/store/memory/index.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const COUNT = 40;

function completed({ id: jobId, token }: Pick<ClaimedJob, 'id' | 'token'>, value = 'null'): Outcome {
  return { kind: 'completed', jobId, token, value, keep: {} };
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

  // Whatever the order of the outcomes, and whatever has become of the locks meanwhile. Memory knows no runs.
  it.each(Array.from({ length: 12 }, (_, n) => n + 1))('end as they do in memory (%i)', async (seed) => {
    const random = randomFrom(seed);
    const memory = new MemoryStore();
    afterwards(() => memory.close());
    await memory.open();
    const [expected, actual] = [await play(memory, randomFrom(seed)), await play(await openStore({ path: newFile() }), random)];
    expect(actual).toEqual(expected);
  });
});

/** A small generator, the same numbers for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed * 2_654_435_761;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

async function play(store: Store, random: () => number): Promise<unknown> {
  const pick = (count: number): number => Math.floor(random() * count);
  await store.add(
    'q',
    Array.from({ length: COUNT }, (_, n) => newJob(n === 4 && pick(2) === 0 ? { id: 'named' } : {})),
    {
      caller: 'p',
      seq: 1,
    },
  );
  const jobs = await claimAll(store);
  const lost = jobs.filter(() => pick(30) === 0).map(({ id }) => id);
  if (lost.length > 0) await store.change('q', lost, { kind: 'revoke', reason: 'cancelled' });
  const outcomes = jobs.map((job): Outcome => completed(job, pick(40) === 0 ? '1' : 'null'));
  for (let swaps = pick(3); swaps > 0; swaps -= 1) {
    const [a, b] = [pick(COUNT), pick(COUNT)];
    [outcomes[a], outcomes[b]] = [outcomes[b] as Outcome, outcomes[a] as Outcome];
  }
  if (pick(3) === 0) outcomes.splice(pick(COUNT), 0, outcomes[pick(COUNT)] as Outcome);
  const { results } = (await store.settle('q', outcomes)) as { results: SettleStatus[] };
  const values = (await store.jobs('q', { lists: ['completed'], start: 0, end: -1, asc: true })).jobs.map(
    (record) => record.returnvalue,
  );
  const { counts } = await store.status('q');
  return { results, completed: await idsOf(store, 'completed'), waiting: await idsOf(store, 'waiting'), values, counts };
}
