import Database from 'better-sqlite3';
import { describe, expect, it, vi } from 'vitest';
import type { NewJob } from '../../../src/job/record.js';
import type { ClaimReply, SettleReply, Store } from '../../../src/store/contract/index.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

const PARENTS = 'parents';
const KIDS = 'kids';
const MOST_AT_ONCE = 1_000;

const parentJob = (id: string, more: Partial<NewJob> = {}): NewJob => newJob({ id, waitsForChildren: true, ...more });
const kidOf = (parent: string, id: string, more: Partial<NewJob> = {}): NewJob =>
  newJob({ id, queue: KIDS, parents: [{ queue: PARENTS, id: parent }], ...more });
const completed = ({ id, token }: { id: string; token: string }, keep: object = {}) =>
  ({ kind: 'completed', jobId: id, token, value: '"v"', keep }) as const;

async function withSessions(store: Store): Promise<void> {
  for (const queue of [PARENTS, KIDS]) await store.openSession(newSession({ queue, id: 's', durationMs: 600_000 }));
}

/** Adds a parent with children k0, k1 and so on, in calls of at most a thousand jobs. */
async function addFamily(store: Store, parent: string, count: number): Promise<void> {
  const kids = Array.from({ length: count }, (_, n) => kidOf(parent, `${parent}-k${n}`));
  for (let first = 0, seq = 1; first < count; first += MOST_AT_ONCE, seq += 1) {
    const some = kids.slice(first, first + MOST_AT_ONCE);
    await store.add(PARENTS, first === 0 ? [parentJob(parent), ...some] : some, { caller: `producer of ${parent}`, seq });
  }
}

async function stateOf(store: Store, id: string, queue = PARENTS): Promise<string | undefined> {
  return (await store.jobs(queue, [id])).jobs[0]?.state;
}

async function countsOf(store: Store, id: string): Promise<unknown> {
  return (await store.children(PARENTS, id, { states: ['pending'], limit: 1 })).counts;
}

function tableOf(file: string, sql: string): () => unknown[] {
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  const statement = db.prepare(sql).raw();
  return () => statement.all();
}

describe('families on SQLite', () => {
  it('release a parent once when its last two children end at once in two processes', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const families = Array.from({ length: 40 }, (_, n) => `p${n}`);
    for (const id of families) await addFamily(store, id, 2);
    const processes = await Promise.all([0, 1].map(() => StoreProcess.start(file)));
    const settle = await Promise.all(
      processes.map(async (one, number) => {
        const session = `s${number}`;
        await one.call('open');
        await one.call('openSession', newSession({ queue: KIDS, id: session }));
        const jobIds = families.map((id) => `${id}-k${number}`);
        const { jobs } = await one.call<ClaimReply>('claim', KIDS, { session, seq: 1, count: 100, jobIds });
        expect(jobs).toHaveLength(families.length);
        return async () => {
          const results: unknown[] = [];
          for (const job of jobs) results.push(...(await one.call<SettleReply>('settle', KIDS, [completed(job)])).results);
          return results;
        };
      }),
    );
    const replies = await Promise.all(settle.map((run) => run()));
    expect(replies.flat()).toEqual(Array.from({ length: 2 * families.length }, () => 'done'));
    const { events } = await store.events(PARENTS, 0, 10_000);
    const released = events.filter(({ prev }) => prev === 'waiting-children').map(({ jobId }) => String(jobId));
    expect(released.toSorted()).toEqual(families.toSorted());
    expect((await store.status(PARENTS)).counts).toMatchObject({ waiting: families.length, 'waiting-children': 0 });
  });

  it('wake a watcher of the parent in another process, and one of another store in this process', async () => {
    const file = newFile();
    const [store, near] = [await openStore({ path: file }), await openStore({ path: file })];
    await addFamily(store, 'p', 1);
    await addFamily(store, 'q', 1);
    const other = await StoreProcess.start(file);
    await other.call('open');
    await other.call('openSession', newSession({ queue: KIDS, id: 's' }));
    const { jobs } = await other.call<ClaimReply>('claim', KIDS, { session: 's', seq: 1, count: 2 });
    let woken = 0;
    const unwatch = store.watch(PARENTS, () => (woken += 1));
    afterwards(unwatch);
    await other.call('settle', KIDS, [completed(jobs[0] as { id: string; token: string })]);
    await expect.poll(() => woken, { timeout: 10_000 }).toBe(1);
    await near.settle(KIDS, [completed(jobs[1] as { id: string; token: string })]);
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(woken).toBe(2);
  });

  it('wake no watcher of the parent for a child that is not the last one', async () => {
    const store = await openStore({ path: newFile() });
    await withSessions(store);
    await addFamily(store, 'p', 2);
    let woken = 0;
    afterwards(store.watch(PARENTS, () => (woken += 1)));
    const { jobs } = await store.claim(KIDS, { session: 's', seq: 1, count: 1 });
    await store.settle(
      KIDS,
      jobs.map((job) => completed(job)),
    );
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(woken).toBe(0);
  });

  it('survive the end of the process right after the call that ends the last child', async () => {
    const file = newFile();
    const other = await StoreProcess.start(file);
    await other.call('open');
    await other.call('openSession', newSession({ queue: KIDS, id: 's' }));
    await other.call('add', PARENTS, [parentJob('p'), kidOf('p', 'k', { deadLetter: 'letters' })], { caller: 'a', seq: 1 });
    const { jobs } = await other.call<ClaimReply>('claim', KIDS, { session: 's', seq: 1, count: 1 });
    const [job] = jobs;
    await other.call('settle', KIDS, [
      { kind: 'failed', jobId: 'k', token: job?.token, reason: 'r', stacktrace: '[]', keep: { count: 0 } },
    ]);
    await other.kill();
    const store = await openStore({ path: file });
    expect(await stateOf(store, 'p')).toBe('waiting');
    expect((await store.status('letters')).counts.waiting).toBe(1);
  });

  it('share a transaction with other calls of a turn, and are rolled back and repeated with them', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await withSessions(store);
    const time = vi.spyOn(performance, 'now').mockReturnValue(performance.now());
    afterwards(() => time.mockRestore());
    const [added, refused, claimed] = await Promise.allSettled([
      store.add(PARENTS, [parentJob('p'), kidOf('p', 'a'), kidOf('p', 'b')], { caller: 'c', seq: 1 }),
      store.openSession(newSession({ queue: KIDS, id: 's' })),
      store.claim(KIDS, { session: 's', seq: 1, count: 2 }),
    ]);
    expect([added.status, refused.status, claimed.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    const { jobs } = (claimed as PromiseFulfilledResult<ClaimReply>).value;
    const rows = tableOf(file, 'SELECT queue, first, last FROM events');
    const before = rows().length;
    const replies = await Promise.all([
      ...jobs.map((job) => store.settle(KIDS, [completed(job)])),
      store.claim(PARENTS, { session: 's', seq: 1, count: 5 }),
    ]);
    expect((replies.at(-1) as ClaimReply).jobs.map(({ id }) => id)).toEqual(['p']);
    // One row of events for each queue: one commit.
    expect(rows().length - before).toBe(2);
    expect((await store.status(PARENTS)).counts).toMatchObject({ active: 1, waiting: 0, 'waiting-children': 0 });
  });

  it('release a parent when a thousand children end in one transaction', async () => {
    const store = await openStore({ path: newFile() });
    await withSessions(store);
    await addFamily(store, 'p', 1_000);
    const { jobs } = await store.claim(KIDS, { session: 's', seq: 1, count: 1_000 });
    expect(jobs).toHaveLength(1_000);
    const { results } = await store.settle(
      KIDS,
      jobs.map((job) => completed(job, { count: 0 })),
    );
    expect(results.every((status) => status === 'done')).toBe(true);
    expect(await countsOf(store, 'p')).toEqual({ pending: 0, processed: 1_000, failed: 0, ignored: 0 });
    expect(await stateOf(store, 'p')).toBe('waiting');
  });

  it('count children of a completed run one by one, and leave plain jobs of the run on the fast path', async () => {
    const store = await openStore({ path: newFile() });
    await withSessions(store);
    await store.add(PARENTS, [parentJob('p')], { caller: 'c', seq: 1 });
    const kids = Array.from({ length: 40 }, (_, n) => newJob(n % 5 === 0 ? { parents: [{ queue: PARENTS, id: 'p' }] } : {}));
    await store.add(PARENTS, [parentJob('p2'), newJob({ parents: [{ queue: PARENTS, id: 'p2' }] })], { caller: 'c', seq: 2 });
    await store.add(KIDS, kids, { caller: 'c', seq: 1 });
    const { jobs } = await store.claim(KIDS, { session: 's', seq: 1, count: 40 });
    expect(jobs.map(({ id }) => id)).toEqual(kids.map((_, n) => String(n + 1)));
    await store.settle(
      KIDS,
      jobs.map((job) => completed(job)),
    );
    expect((await store.status(KIDS)).counts).toMatchObject({ completed: 40, active: 0 });
    expect(await countsOf(store, 'p')).toEqual({ pending: 0, processed: 8, failed: 0, ignored: 0 });
  });

  it('cost the same per child with ten thousand children and with a hundred', { timeout: 120_000 }, async () => {
    const store = await openStore({ path: newFile(), synchronous: 'normal' });
    await withSessions(store);
    let seq = 0;
    const costOf = async (families: string[], count: number): Promise<{ add: number; end: number }> => {
      const began = process.cpuUsage();
      for (const id of families) await addFamily(store, id, count);
      const add = used(began);
      let end = 0;
      for (let left = families.length * count; left > 0; left -= 100) {
        seq += 1;
        const { jobs } = await store.claim(KIDS, { session: 's', seq, count: 100 });
        const before = process.cpuUsage();
        await store.settle(
          KIDS,
          jobs.map((job) => completed(job, { count: 0 })),
        );
        end += used(before);
      }
      return { add, end };
    };
    await costOf(['warm'], 1_000);
    const many = await costOf(
      Array.from({ length: 100 }, (_, n) => `small${n}`),
      100,
    );
    const one = await costOf(['large'], 10_000);
    expect(await stateOf(store, 'large')).toBe('waiting');
    expect(one.end / many.end).toBeLessThan(2);
    expect(one.add / many.add).toBeLessThan(2);
  });

  it('remove a chain of families that is deeper than the stack', { timeout: 60_000 }, async () => {
    const store = await openStore({ path: newFile(), synchronous: 'normal' });
    const depth = 12_000;
    const chain = Array.from({ length: depth }, (_, n) =>
      newJob({ id: `j${n}`, waitsForChildren: n < depth - 1, ...(n > 0 && { parents: [{ queue: PARENTS, id: `j${n - 1}` }] }) }),
    );
    for (let first = 0, seq = 1; first < depth; first += MOST_AT_ONCE, seq += 1) {
      const some = chain.slice(first, first + MOST_AT_ONCE);
      // The last job of a call has no child yet. It goes to waiting, and the next call makes it a parent nevertheless.
      await store.add(PARENTS, some, { caller: 'c', seq });
    }
    await store.change(PARENTS, ['j0'], { kind: 'remove', children: true });
    expect(Object.values((await store.status(PARENTS)).counts).every((count) => count === 0)).toBe(true);
  });

  it('are removed by a selection in several transactions, each with a bounded number of children', async () => {
    const store = await openStore({ path: newFile() });
    for (let n = 0; n < 12; n += 1) await addFamily(store, `p${n}`, 100);
    const { last } = await store.events(PARENTS, undefined, 1);
    const { changed } = await store.change(
      PARENTS,
      { lists: ['waiting-children'], limit: 100 },
      { kind: 'remove', children: true },
    );
    expect(changed).toHaveLength(12);
    // Each step records its event.
    const { events } = await store.events(PARENTS, last, 100);
    expect(events.filter(({ name }) => name === 'cleaned').map(({ count }) => count)).toEqual([5, 5, 2]);
    expect((await store.status(KIDS)).counts.waiting).toBe(0);
  });

  it('leave no row behind when a parent is removed, trimmed or removed on finishing', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await withSessions(store);
    const rows = tableOf(file, 'SELECT (SELECT count(*) FROM links), (SELECT count(*) FROM families)');
    for (const id of ['removed', 'gone', 'trimmed']) await addFamily(store, id, 1);
    const kids = (await store.claim(KIDS, { session: 's', seq: 1, count: 3 })).jobs;
    await store.settle(
      KIDS,
      kids.map((job) => completed(job)),
    );
    expect(rows()).toEqual([[3, 3]]);
    await store.change(PARENTS, ['removed'], { kind: 'remove' });
    expect(rows()).toEqual([[2, 2]]);
    const { jobs } = await store.claim(PARENTS, { session: 's', seq: 1, count: 2, jobIds: ['gone', 'trimmed'] });
    await store.settle(
      PARENTS,
      jobs.map((job) => completed(job, job.id === 'gone' ? { count: 0 } : {})),
    );
    expect(rows()).toEqual([[1, 1]]);
    await store.add(PARENTS, [newJob({ id: 'later' })], { caller: 'c', seq: 1 });
    const later = (await store.claim(PARENTS, { session: 's', seq: 2, count: 1 })).jobs;
    await store.settle(
      PARENTS,
      later.map((job) => completed(job, { count: 1 })),
    );
    expect(rows()).toEqual([[0, 0]]);
  });

  it('leave jobs and queues without families as they are', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await withSessions(store);
    await store.add(KIDS, [newJob(), newJob({ lockKey: 'k' })], { caller: 'c', seq: 1 });
    expect(tableOf(file, 'SELECT marks, extras FROM jobs')()).toEqual([
      [0, null],
      [0, null],
    ]);
    expect(tableOf(file, 'SELECT parents, rules FROM queues')()).toEqual([
      [0, null],
      [0, null],
    ]);
  });

  it('return large results of children in several pages', async () => {
    const store = await openStore({ path: newFile() });
    await withSessions(store);
    await addFamily(store, 'p', 12);
    const { jobs } = await store.claim(KIDS, { session: 's', seq: 1, count: 12 });
    const value = JSON.stringify('x'.repeat(1024 * 1024));
    for (const job of jobs) await store.settle(KIDS, [{ ...completed(job), value }]);
    const found: string[] = [];
    let pages = 0;
    for (let after: string | undefined; pages === 0 || after !== undefined; pages += 1) {
      const reply = await store.children(PARENTS, 'p', {
        states: ['processed'],
        limit: 100,
        ...(after !== undefined && { after }),
      });
      found.push(...reply.links.map(({ child }) => child.id));
      after = reply.next;
    }
    expect(found.toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
    expect(pages).toBeGreaterThan(1);
  });
});

function used(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
