import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { Store } from '../../../src/store/contract/index.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const Q = 'q';
const parentJob = (id: string): NewJob => newJob({ id, waitsForChildren: true });
const kidOf = (parent: string, id: string, more: Partial<NewJob> = {}): NewJob =>
  newJob({ id, parents: [{ queue: Q, id: parent }], ...more });
const completed = ({ id: jobId, token }: ClaimedJob): Outcome => ({
  kind: 'completed',
  jobId,
  token,
  value: JSON.stringify(jobId),
  keep: {},
});

async function withSession(file = newFile()): Promise<Store> {
  const store = await openStore({ path: file });
  await store.openSession(newSession({ queue: Q, id: 's', durationMs: 600_000 }));
  return store;
}

let seq = 0;
async function claim(store: Store, jobIds: string[]): Promise<ClaimedJob[]> {
  seq += 1;
  const { jobs } = await store.claim(Q, { session: 's', seq, count: jobIds.length, jobIds });
  expect(jobs).toHaveLength(jobIds.length);
  return jobs;
}

async function countsOf(store: Store, id: string): Promise<unknown> {
  return (await store.children(Q, id, { states: ['pending'], limit: 1 })).counts;
}

async function stateOf(store: Store, id: string): Promise<string | undefined> {
  return (await store.jobs(Q, [id])).jobs[0]?.state;
}

describe('children that complete in one call on SQLite', () => {
  it('are as they would be one by one, and their links have their results', async () => {
    const store = await withSession();
    await store.add(Q, [parentJob('p'), ...['a', 'b', 'c'].map((id) => kidOf('p', id))], { caller: 'c', seq: 1 });
    const jobs = await claim(store, ['a', 'b', 'c']);
    const { last } = await store.events(Q, undefined, 100);
    expect(await store.settle(Q, jobs.map(completed))).toEqual({ results: ['done', 'done', 'done'] });
    const { links } = await store.children(Q, 'p', { states: ['processed'], limit: 10 });
    expect(links.map(({ child, text }) => [child.id, text])).toEqual(['a', 'b', 'c'].map((id) => [id, JSON.stringify(id)]));
    for (const record of (await store.jobs(Q, ['a', 'b', 'c'])).jobs)
      expect(record).toMatchObject({ state: 'completed', attemptsMade: 1, returnvalue: JSON.stringify(record?.id) });
    const told = (await store.events(Q, last, 100)).events.map(({ name, jobId }) => [name, jobId]);
    expect(told).toEqual([...['a', 'b', 'c'].map((id) => ['completed', id]), ['waiting', 'p']]);
    expect(await stateOf(store, 'p')).toBe('waiting');
    expect(await store.locks(Q, { session: 's' })).toEqual([]);
  });

  it('write the counts of their parent once', async () => {
    const file = newFile();
    const store = await withSession(file);
    const kids = Array.from({ length: 30 }, (_, n) => `k${n}`);
    await store.add(Q, [parentJob('p'), ...kids.map((id) => kidOf('p', id))], { caller: 'c', seq: 1 });
    const jobs = await claim(store, kids);
    const db = new Database(file);
    afterwards(() => db.close());
    db.exec(
      'CREATE TABLE written (id TEXT); CREATE TRIGGER watch AFTER UPDATE ON families BEGIN INSERT INTO written VALUES (new.id); END',
    );
    await store.settle(Q, jobs.map(completed));
    expect(db.prepare('SELECT id FROM written').pluck().all()).toEqual(['p']);
    expect(await countsOf(store, 'p')).toMatchObject({ pending: 0, processed: 30 });
  });

  it('let their parent complete in the same call, if it comes after them', async () => {
    const store = await withSession();
    await store.add(Q, [newJob({ id: 'p' }), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    const [parent, ...kids] = await claim(store, ['p', 'a', 'b']);
    const outcomes = [...kids, parent as ClaimedJob].map(completed);
    expect((await store.settle(Q, outcomes)).results).toEqual(['done', 'done', 'done']);
    expect(await stateOf(store, 'p')).toBe('completed');
  });

  it('do not let their parent complete in the same call, if it comes before the last one of them', async () => {
    const store = await withSession();
    await store.add(Q, [newJob({ id: 'p' }), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    const [parent, a, b] = (await claim(store, ['p', 'a', 'b'])) as [ClaimedJob, ClaimedJob, ClaimedJob];
    expect((await store.settle(Q, [a, parent, b].map(completed))).results).toEqual(['done', 'pending', 'done']);
    expect(await stateOf(store, 'p')).toBe('active');
  });

  it('change nothing if their lock is lost, and count once if the same outcome comes twice', async () => {
    const store = await withSession();
    await store.add(Q, [parentJob('p'), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    const [a, b] = (await claim(store, ['a', 'b'])) as [ClaimedJob, ClaimedJob];
    await store.change(Q, ['b'], { kind: 'revoke', reason: 'test' });
    expect((await store.settle(Q, [a, b, a].map(completed))).results).toEqual(['done', 'lost', 'done']);
    expect(await countsOf(store, 'p')).toMatchObject({ pending: 1, processed: 1 });
    expect(await stateOf(store, 'p')).toBe('waiting-children');
  });

  it('free their lock key for the next job', async () => {
    const store = await withSession();
    const keyed = ['a', 'b'].map((id) => kidOf('p', id, { lockKey: 'key' }));
    await store.add(Q, [parentJob('p'), ...keyed], { caller: 'c', seq: 1 });
    await store.settle(Q, (await claim(store, ['a'])).map(completed));
    seq += 1;
    const { jobs } = await store.claim(Q, { session: 's', seq, count: 10 });
    expect(jobs.map(({ id }) => id)).toEqual(['b']);
  });

  it('count again when they were retried and complete for the second time', async () => {
    const store = await withSession();
    await store.add(Q, [parentJob('p'), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    await store.settle(Q, (await claim(store, ['a'])).map(completed));
    await store.change(Q, ['a'], { kind: 'retry', from: 'completed', resetAttemptsMade: false, resetAttemptsStarted: false });
    await store.settle(Q, (await claim(store, ['a', 'b'])).map(completed));
    expect(await countsOf(store, 'p')).toMatchObject({ pending: 0, processed: 2 });
    expect(await stateOf(store, 'p')).toBe('waiting');
  });

  it('report to a parent that they got during their run', async () => {
    const store = await withSession();
    await store.add(Q, [parentJob('p'), kidOf('p', 'a')], { caller: 'c', seq: 1 });
    const jobs = await claim(store, ['a']);
    await store.add(Q, [parentJob('later'), kidOf('later', 'a', { shares: true })], { caller: 'c', seq: 2 });
    await store.settle(Q, jobs.map(completed));
    expect([await stateOf(store, 'p'), await stateOf(store, 'later')]).toEqual(['waiting', 'waiting']);
  });

  it('report to no parent that was taken from them during their run', async () => {
    const store = await withSession();
    await store.add(Q, [parentJob('p'), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    const jobs = await claim(store, ['a']);
    await store.change(Q, ['p'], { kind: 'unlink', child: { queue: Q, id: 'a' } });
    await store.settle(Q, jobs.map(completed));
    expect(await countsOf(store, 'p')).toEqual({ pending: 1, processed: 0, failed: 0, ignored: 0 });
  });

  it('report to their parent if another store has claimed them', async () => {
    const file = newFile();
    const store = await withSession(file);
    const other = await openStore({ path: file });
    await store.add(Q, [parentJob('p'), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 });
    await other.settle(Q, (await claim(store, ['a', 'b'])).map(completed));
    expect(await stateOf(store, 'p')).toBe('waiting');
  });

  it('give back the place in their group', async () => {
    const store = await withSession();
    await store.configure(Q, { groups: { maxActive: 1 } });
    const kids = ['a', 'b'].map((id) => kidOf('p', id, { group: 'g' }));
    await store.add(Q, [parentJob('p'), ...kids], { caller: 'c', seq: 1 });
    const inOrder = async () => {
      seq += 1;
      return (await store.claim(Q, { session: 's', seq, count: 10 })).jobs;
    };
    const jobs = await inOrder();
    expect(jobs.map(({ id }) => id)).toEqual(['a']);
    await store.settle(Q, jobs.map(completed));
    expect((await inOrder()).map(({ id }) => id)).toEqual(['b']);
    expect(await countsOf(store, 'p')).toMatchObject({ pending: 1, processed: 1 });
  });
});
