// Adds of one deduplication id against one another and against the ends of its owner, on many connections and in transactions of the user.
import type { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { Deduplication } from '../../../src/job/deduplication.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { until } from '../../support/wait/until.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJob, newSession, openStore, shuffled } from './support.js';

const IDS = ['a', 'b', 'c'];
const MODES: Omit<Deduplication, 'id'>[] = [{}, { keepLastIfActive: true }, { replaceDelayed: true }];

/** The name of the job tells its deduplication id to the events. */
const unique = (id: string, mode: Omit<Deduplication, 'id'> = {}, rest: Partial<NewJob> = {}): NewJob =>
  newJob({ name: id, deduplication: { id, ...mode }, ...rest });

async function entriesOf(client: Client): Promise<{ id: string; job: string }[]> {
  return (await client.query<{ id: string; job: string }>('SELECT id, job FROM holdfast.dedup ORDER BY id')).rows;
}

describe('a storm of adds and ends', () => {
  test('deadlocks nowhere, lets one job of an id live at a time, and leaves no entry', async () => {
    const url = await newDatabase();
    const stores = await Promise.all(Array.from({ length: 4 }, () => openStore({ url, max: 4 })));
    const [first] = stores as [PostgresStore];
    let adding = true;
    const produce = async (store: PostgresStore, producer: number): Promise<void> => {
      for (let seq = 1; seq <= 40; seq += 1) {
        const ids = shuffled([...IDS], seq + producer).slice(0, 1 + (seq % 3));
        const jobs = ids.map((id, n) => unique(id, MODES[(seq + n + producer) % 3], seq % 4 === 0 ? { delayMs: 5 } : {}));
        await store.add('q', jobs, { caller: `p${producer}`, seq });
      }
    };
    const consume = async (store: PostgresStore, session: string): Promise<void> => {
      await store.openSession(newSession({ id: session }));
      for (let seq = 1, held: ClaimedJob[] = []; adding || held.length > 0; seq += 1) {
        const outcomes = held.map((job, n) =>
          (seq + n) % 2 === 0
            ? completed(job)
            : ({ kind: 'failed', jobId: job.id, token: job.token, reason: 'r', stacktrace: '[]', keep: {} } as const),
        );
        const { results, claimed } = await store.settle('q', outcomes, { caller: session, seq }, { session, seq, count: 3 });
        expect(results.every((result) => result === 'done')).toBe(true);
        held = claimed?.jobs ?? [];
      }
    };
    const consumers = stores.flatMap((store, n) => [consume(store, `s${n}`), consume(store, `t${n}`)]);
    await Promise.all(stores.flatMap((store, n) => [produce(store, 2 * n), produce(store, 2 * n + 1)]));
    adding = false;
    await Promise.all(consumers);
    await first.change('q', { lists: ['waiting', 'delayed'], limit: 1_000 }, { kind: 'remove' });

    expect(await deadlocks(url)).toBe(0);
    const live = new Map<string, string>();
    const names = new Map<string, string>();
    const twice: string[] = [];
    const { events } = await first.events('q', 0, 20_000);
    for (const { name, jobId = '', jobName } of events) {
      if (name === 'added') {
        names.set(jobId, jobName as string);
        if (live.has(jobName as string)) twice.push(`${jobId} beside ${live.get(jobName as string)}`);
        live.set(jobName as string, jobId);
      } else if (['completed', 'failed', 'removed'].includes(name)) live.delete(names.get(jobId) ?? '');
    }
    expect(twice).toEqual([]);
    expect(events.filter(({ name }) => name === 'completed').length).toBeGreaterThan(20);
    expect(events.filter(({ name }) => name === 'deduplicated').length).toBeGreaterThan(20);
    expect(await entriesOf(await newClient(url))).toEqual([]);
  }, 60_000);

  test('runs the last of the drafts that came while the owner ran', async () => {
    const url = await newDatabase();
    const stores = await Promise.all(Array.from({ length: 3 }, () => openStore({ url, max: 4 })));
    const [store] = stores as [PostgresStore];
    await store.openSession(newSession());
    await store.add('q', [unique('a', { keepLastIfActive: true })], { caller: 'p', seq: 1 });
    for (let round = 1; round <= 5; round += 1) {
      const { jobs } = await store.claim('q', { session: 's', seq: 2 * round - 1, count: 1 });
      const drafts = Array.from({ length: 12 }, (_, n) =>
        (stores[n % 3] as PostgresStore).add('q', [unique('a', { keepLastIfActive: true }, { data: `${n}` })], {
          caller: `${round}-${n}`,
          seq: 1,
        }),
      );
      await Promise.all(drafts);
      await store.add('q', [unique('a', { keepLastIfActive: true }, { data: `"last ${round}"` })], {
        caller: 'p',
        seq: round + 1,
      });
      await store.settle('q', jobs.map(completed));
      expect((await store.jobs('q', { lists: ['waiting'], start: 0, end: -1, asc: true })).jobs).toMatchObject([
        { data: `"last ${round}"`, deduplicationId: 'a' },
      ]);
    }
  }, 60_000);
});

test('an add of several ids and another one do not deadlock when an owner ends in the middle of the first', async () => {
  const url = await newDatabase();
  const [store, other] = [await openStore({ url }), await openStore({ url })];
  const [user, watcher] = [await newClient(url), await newClient(url)];
  await store.openSession(newSession());
  await store.add('q', [unique('b')], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
  await user.query('BEGIN');
  await store.add('q', [newJob({ id: 'same' })], { caller: 'u', seq: 1 }, user);
  // It waits for the transaction of the user between the look at the entries and the job with the id b.
  const first = store.add('q', [newJob({ id: 'same' }), unique('b'), unique('c', { keepLastIfActive: true })], {
    caller: 'p',
    seq: 2,
  });
  await until('the first add waits', async () => (await blocked(watcher)) === 1);
  let hasEnded = false;
  const ended = store.settle('q', jobs.map(completed)).then(() => (hasEnded = true));
  await until('the owner has ended, or its end waits for the first add', async () => hasEnded || (await blocked(watcher)) === 2);
  const before = await blocked(watcher);
  const second = other.add('q', [unique('b'), unique('c', { keepLastIfActive: true })], { caller: 'o', seq: 1 });
  await until('the second add waits too', async () => (await blocked(watcher)) > before);
  await user.query('COMMIT');
  await Promise.all([first, ended, second]);
  expect(await deadlocks(url)).toBe(0);
});

describe('an add beside an open transaction of the user that took the entry', () => {
  /** Replies of the add when the transaction has ended. `locks`: false takes the lock of the entry away. */
  async function race(locks: boolean): Promise<unknown> {
    const url = await newDatabase();
    const store = await openStore({ url });
    const [user, watcher] = [await newClient(url), await newClient(url)];
    // An entry that is there and does not count.
    await store.add('q', [newJob()], { caller: 'p', seq: 1 });
    await watcher.query(`INSERT INTO holdfast.dedup (queue, id, job) SELECT queue, 'a', 'gone' FROM holdfast.queues`);
    if (!locks) {
      await watcher.query(`CREATE OR REPLACE FUNCTION holdfast.lock_entry(_queue int, _id text) RETURNS void LANGUAGE sql AS ''`);
    }
    await user.query('BEGIN');
    expect(await store.add('q', [unique('a', {}, { id: 'theirs' })], { caller: 'u', seq: 1 }, user)).toEqual([
      { id: 'theirs', status: 'added' },
    ]);
    const added = store.add('q', [unique('a', {}, { id: 'ours' })], { caller: 'p', seq: 2 });
    await until('the add waits', async () => (await blocked(watcher)) === 1);
    await user.query('COMMIT');
    return added;
  }

  test('waits for it, and then finds its job', async () => {
    expect(await race(true)).toEqual([{ id: 'theirs', status: 'deduplicated' }]);
  });

  test('would make a second owner without the lock of the entry (negative control)', async () => {
    expect(await race(false)).toEqual([{ id: 'ours', status: 'added' }]);
  });
});

describe('an add in a transaction of the user', () => {
  test('owns its entry after the commit, and none after a rollback', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const user = await newClient(url);
    for (const [end, owner] of [
      ['ROLLBACK', undefined],
      ['COMMIT', '2'],
    ] as const) {
      await user.query('BEGIN');
      const replies = await store.add('q', [unique('a'), unique('a')], { caller: 'u', seq: 1 }, user);
      expect(replies.map(({ status }) => status)).toEqual(['added', 'deduplicated']);
      await user.query(end);
      const { deduplication } = await store.status('q', { deduplication: ['a'] });
      expect(deduplication?.[0] === undefined).toBe(owner === undefined);
    }
    expect((await store.status('q')).counts.waiting).toBe(1);
  });

  test('keeps a draft that the end of the owner waits for, unless it is rolled back', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const [user, watcher] = [await newClient(url), await newClient(url)];
    await store.openSession(newSession());
    for (const [seq, end, waiting] of [
      [1, 'ROLLBACK', 0],
      [2, 'COMMIT', 1],
    ] as const) {
      await store.add('q', [unique('a', { keepLastIfActive: true })], { caller: 'p', seq });
      const { jobs } = await store.claim('q', { session: 's', seq, count: 1 });
      await user.query('BEGIN');
      await store.add('q', [unique('a', { keepLastIfActive: true })], { caller: 'u', seq: 1 }, user);
      const settled = store.settle('q', jobs.map(completed));
      await until('the end of the owner waits', async () => (await blocked(watcher)) === 1);
      // A sweep does not wait for the entry.
      await store.sweep('q', 10);
      await user.query(end);
      expect((await settled).results).toEqual(['done']);
      expect((await store.status('q')).counts.waiting).toBe(waiting);
    }
  });
});
