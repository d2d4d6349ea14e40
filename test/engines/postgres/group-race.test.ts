// Many connections claim, settle, hand back and sweep jobs of groups at once. In every snapshot of the database, no group has more active
// jobs than it may have, and at the end no place is lost.
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob } from '../../../src/job/record.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJob, newSession, openStore } from './support.js';
import { paced } from '../../support/wait/pace.js';
import { until } from '../../support/wait/until.js';

const GROUPS = ['a', 'b', 'c', 'd'];
const MOST: Record<string, number> = { a: 1, b: 2, c: 3, d: 3 };
const EACH = 60;
const WORKERS = 6;

/** A worker settles each job in one of these ways, the first time that it gets the job. */
const WAYS: ((job: ClaimedJob) => Outcome)[] = [
  completed,
  ({ id, token }) => ({ kind: 'release', jobId: id, token }),
  ({ id, token }) => ({ kind: 'retry', jobId: id, token, reason: 'r', stacktrace: '[]', delayMs: 0, lifo: false }),
  ({ id, token }) => ({ kind: 'delay', jobId: id, token, delayMs: 1 }),
  ({ id, token }) => ({ kind: 'failed', jobId: id, token, reason: 'r', stacktrace: '[]', keep: {} }),
];

const waysBack = new Set(['release', 'retry', 'delay']);

async function start(): Promise<{ url: string; store: PostgresStore; admin: Client }> {
  const url = await newDatabase();
  const store = await openStore({ url });
  await store.configure('q', { groups: { maxActive: 3 } });
  for (const key of ['a', 'b']) await store.configure('q', { group: { key, maxActive: MOST[key] ?? 0 } });
  return { url, store, admin: await newClient(url) };
}

/** Returns the groups that have more active jobs than they may have. One statement sees one snapshot. */
async function tooMany(admin: Client): Promise<unknown[]> {
  const { rows } = await admin.query<{ key: string; jobs: number }>(
    `SELECT extras::json ->> 'g' AS key, count(*)::int AS jobs FROM holdfast.jobs WHERE state = 3 AND marks & 1 > 0 GROUP BY 1`,
  );
  return rows.filter(({ key, jobs }) => jobs > (MOST[key] ?? 0));
}

test('no group has more active jobs than it may have at any moment, and none loses a place', {
  timeout: paced(120_000),
}, async () => {
  const { url, store, admin } = await start();
  const jobs = GROUPS.flatMap((group) => Array.from({ length: EACH }, (_, n) => newJob({ id: `${group}${n}`, group })));
  const total = jobs.length + 40;
  let watching = true;
  let looks = 0;
  const wrong: unknown[] = [];
  const watched = (async () => {
    for (; watching; looks += 1) wrong.push(...(await tooMany(admin)));
  })();
  // An operator sets the same limits again and again: that changes nothing, and must not wait in a circle with claims.
  const operating = (async () => {
    while (watching) {
      await store.configure('q', { groups: { maxActive: 3 }, group: { key: 'a', maxActive: 1 }, blockedMs: 0 });
      await store.configure('q', { group: { key: 'b', maxActive: 2 } });
    }
  })();
  const seen = new Map<string, number>();
  const isDone = async (): Promise<boolean> => {
    const { counts } = await store.status('q');
    return counts.completed + counts.failed === total;
  };
  const work = async (n: number): Promise<void> => {
    const own = await openStore({ url });
    let session = `s${n}-0`;
    await own.openSession(newSession({ id: session, slots: 10, maxStalls: 1000 }));
    for (let seq = 1, lives = 0; !(await isDone()); seq += 1) {
      // Some claims name jobs, some take turns.
      const jobIds = seq % 5 === 0 ? GROUPS.map((group) => `${group}${(seq * 7 + n) % EACH}`) : undefined;
      const { jobs: got } = await own.claim('q', { session, seq, count: 1 + (seq % 4), ...(jobIds && { jobIds }) });
      seq += 1;
      if (seq % 17 === 0) {
        // It crashes with what it holds, and comes back as another session.
        await own.closeSessions([{ queue: 'q', id: session }], 'crashed');
        lives += 1;
        session = `s${n}-${lives}`;
        await own.openSession(newSession({ id: session, slots: 10, maxStalls: 1000 }));
        seq = 0;
        continue;
      }
      if (seq % 13 === 0 && got[0]) await own.change('q', [got[0].id], { kind: 'revoke', reason: 'test' });
      const outcomes = got.map((job, index): Outcome => {
        const times = (seen.get(job.id) ?? 0) + 1;
        seen.set(job.id, times);
        const way = (WAYS[(seq + index) % WAYS.length] ?? completed)(job);
        return times > 2 && waysBack.has(way.kind) ? completed(job) : way;
      });
      if (outcomes.length > 0) await own.settle('q', outcomes, { caller: session, seq }, { session, seq, count: 0 });
      await own.sweep('q', 10);
    }
  };
  const adding = (async () => {
    for (let from = 0, seq = 1; from < jobs.length; from += 20, seq += 1)
      await store.add('q', jobs.slice(from, from + 20), { caller: 'p', seq });
    await store.add(
      'q',
      Array.from({ length: 40 }, () => newJob()),
      { caller: 'p', seq: 1000 },
    );
  })();
  await Promise.all([adding, ...Array.from({ length: WORKERS }, (_, n) => work(n))]);
  watching = false;
  await Promise.all([watched, operating]);
  expect(wrong).toEqual([]);
  expect(looks).toBeGreaterThan(20);
  const { groups } = await store.status('q', { groups: { keys: GROUPS } });
  expect(groups?.groups.map(({ active, waiting }) => [active, waiting])).toEqual(GROUPS.map(() => [0, 0]));
  // Each group can be used to the full again.
  await store.openSession(newSession({ id: 'last', slots: 100 }));
  await store.add(
    'q',
    GROUPS.flatMap((group) => Array.from({ length: 5 }, () => newJob({ group }))),
    { caller: 'p', seq: 2000 },
  );
  const { jobs: last } = await store.claim('q', { session: 'last', seq: 1, count: 100 });
  expect(GROUPS.map((key) => last.filter(({ group }) => group === key).length)).toEqual(GROUPS.map((key) => MOST[key]));
});

test('no group has more active jobs than it may have while many workers settle and claim in one call', {
  timeout: paced(60_000),
}, async () => {
  const { url, store, admin } = await start();
  const jobs = Array.from({ length: EACH }, () => GROUPS.map((group) => newJob({ group }))).flat();
  await store.add('q', jobs, { caller: 'p', seq: 1 });
  const wrong: unknown[] = [];
  let left = jobs.length;
  const work = async (session: string): Promise<void> => {
    const own = await openStore({ url });
    await own.openSession(newSession({ id: session, slots: 10 }));
    let { jobs: held } = await own.claim('q', { session, seq: 1, count: 3 });
    for (let seq = 2; left > 0; seq += 1) {
      const call = { caller: session, seq };
      const { results, claimed } = await own.settle('q', held.map(completed), call, { session, seq, count: 1 + (seq % 4) });
      left -= results.filter((result) => result === 'done').length;
      held = claimed?.jobs ?? [];
    }
  };
  const watching = (async () => {
    while (left > 0) wrong.push(...(await tooMany(admin)));
  })();
  await Promise.all([watching, ...Array.from({ length: WORKERS }, (_, n) => work(`s${n}`))]);
  expect(wrong).toEqual([]);
  // A claim applies the notes that settles left where other calls held the rows of groups.
  await store.openSession(newSession({ id: 'last', slots: 100 }));
  await store.add(
    'q',
    GROUPS.flatMap((group) => Array.from({ length: 5 }, () => newJob({ group }))),
    { caller: 'p', seq: 2 },
  );
  const { jobs: last } = await store.claim('q', { session: 'last', seq: 1, count: 100 });
  expect(GROUPS.map((key) => last.filter(({ group }) => group === key).length)).toEqual(GROUPS.map((key) => MOST[key]));
  expect(await deadlocks(url)).toBe(0);
});

test('a claim goes on with the next group while another transaction holds the first one', async () => {
  const { url, store } = await start();
  await store.openSession(newSession());
  await store.add(
    'q',
    ['a', 'b', 'c'].map((group) => newJob({ id: group, group })),
    { caller: 'p', seq: 1 },
  );
  const first = await store.claim('q', { session: 's', seq: 1, count: 1 });
  expect(first.jobs.map(({ id }) => id)).toEqual(['a']);
  const blocker = await newClient(url);
  await blocker.query(`BEGIN; SELECT FROM holdfast.groups WHERE key = 'b' FOR UPDATE`);
  expect((await store.claim('q', { session: 's', seq: 2, count: 5 })).jobs.map(({ id }) => id)).toEqual(['c']);
  const waits = await store.claim('q', { session: 's', seq: 3, count: 5 });
  expect(waits.jobs).toEqual([]);
  expect(waits.nextInMs).toBeLessThan(1_000);
  await blocker.query('COMMIT');
  expect((await store.claim('q', { session: 's', seq: 4, count: 5 })).jobs.map(({ id }) => id)).toEqual(['b']);
});

test('a transaction of a user that adds a job of a group holds up neither claims nor adds of the group', async () => {
  const { url, store } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'c1', group: 'c' })], { caller: 'p', seq: 1 });
  const user = await newClient(url);
  await user.query('BEGIN');
  await store.add('q', [newJob({ id: 'late', group: 'c' }), newJob({ id: 'new', group: 'e' })], { caller: 'u', seq: 1 }, user);
  await store.add('q', [newJob({ id: 'c2', group: 'c' }), newJob({ id: 'e2', group: 'e' })], { caller: 'p', seq: 2 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 9 });
  expect(jobs.map(({ id }) => id)).toEqual(['c1', 'e2', 'c2']);
  await user.query('COMMIT');
  expect((await store.claim('q', { session: 's', seq: 2, count: 9 })).jobs.map(({ id }) => id)).toEqual(['late', 'new']);
});

test('a settle of a job of a group waits for no lock of the group', async () => {
  const { url, store } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'a1', group: 'a' }), newJob({ id: 'a2', group: 'a' })], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 9 });
  const blocker = await newClient(url);
  await blocker.query('BEGIN; SELECT FROM holdfast.groups FOR UPDATE');
  expect((await store.settle('q', jobs.map(completed), { caller: 's', seq: 2 })).results).toEqual(['done']);
  await blocker.query('COMMIT');
  expect((await store.claim('q', { session: 's', seq: 3, count: 9 })).jobs.map(({ id }) => id)).toEqual(['a2']);
});

test('a claim of a queue whose groups are full writes nothing', async () => {
  const { store, admin } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'a1', group: 'a' }), newJob({ id: 'a2', group: 'a' })], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 9 });
  expect(jobs.map(({ id }) => id)).toEqual(['a1']);
  const version = async (): Promise<unknown> => (await admin.query('SELECT xmin, xmax FROM holdfast.callers ORDER BY id')).rows;
  const before = await version();
  expect((await store.claim('q', { session: 's', seq: 2, count: 9 })).jobs).toEqual([]);
  expect(await version()).toEqual(before);
});

test('a sweep removes groups without jobs and settings', async () => {
  const { store, admin } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'd1', group: 'd' }), newJob({ id: 'e1', group: 'e' })], { caller: 'p', seq: 1 });
  const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 2 });
  await store.settle('q', jobs.filter(({ group }) => group === 'e').map(completed), { caller: 's', seq: 2 });
  await admin.query('UPDATE holdfast.holdfast_schema SET pruned_at = 0');
  await store.sweep('q', 10);
  const { rows } = await admin.query<{ key: string }>('SELECT key FROM holdfast.groups ORDER BY key');
  expect(rows.map(({ key }) => key)).toEqual(['', 'a', 'b', 'd']);
});

test('a sweep leaves the groups of new jobs to claims, unless these are behind', async () => {
  const { store, admin } = await start();
  const add = (groups: number, seq: number): Promise<unknown> =>
    store.add(
      'q',
      Array.from({ length: groups }, (_, n) => newJob({ group: `${seq}-${n}` })),
      { caller: 'p', seq },
    );
  const notes = async (): Promise<number | undefined> =>
    (await admin.query<{ n: number }>('SELECT count(*)::int AS n FROM holdfast.group_notes')).rows[0]?.n;
  await add(1_000, 1);
  await store.sweep('q', 10);
  expect(await notes()).toBe(1_000);
  let seq = 1;
  // One add in 32 folds the journal itself. The sweep after it finds nothing to do, and leaves the notes to the next one.
  await until('a sweep to apply notes', async () => {
    await add(1, (seq += 1));
    await store.sweep('q', 10);
    return ((await notes()) ?? 0) < 1_000;
  });
});

test.each(['in turn', 'by id'])('new limits of all groups apply to a group whose row a claim %s makes meanwhile', async (way) => {
  const { url, store, admin } = await start();
  await store.configure('q', { groups: { maxActive: 1 } });
  await store.openSession(newSession());
  await store.openSession(newSession({ id: 'slow' }));
  // The first claim in a server writes the row of the queue, so it would hold up the change of the limits.
  await store.add('q', [newJob({ id: 'c1', group: 'c' })], { caller: 'p', seq: 1 });
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  await store.add('q', [newJob({ id: 'n1', group: 'n' }), newJob({ id: 'n2', group: 'n' })], { caller: 'p', seq: 2 });
  // So would the row of the jobs without a group, which a claim in turn writes unless another claim holds it.
  await admin.query(`BEGIN; SELECT FROM holdfast.groups WHERE key = '' FOR UPDATE`);
  const slow = await newClient(url);
  await slow.query('BEGIN');
  const { rows } = await slow.query<{ reply: string }>(
    `SELECT holdfast.claim('q', 'slow', 1, 9, $1, 'slow', NULL, NULL, NULL, false, 2147483647) AS reply`,
    [way === 'by id' ? ['n1'] : null],
  );
  expect(rows[0]?.reply).toContain('n1');
  await admin.query('COMMIT');
  let isSet = false;
  const set = store.configure('q', { groups: { maxActive: 2 } }).then(() => {
    isSet = true;
  });
  await until('the change of the limits ends or waits', async () => isSet || (await blocked(admin)) === 1);
  await slow.query('COMMIT');
  await set;
  expect((await store.claim('q', { session: 's', seq: 2, count: 9 })).jobs.map(({ id }) => id)).toEqual(['n2']);
});

test('a claim does not wait for a change of the limits, and takes jobs of new groups afterwards', async () => {
  const { url, store } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'c1', group: 'c' })], { caller: 'p', seq: 1 });
  expect((await store.claim('q', { session: 's', seq: 1, count: 1 })).jobs.map(({ id }) => id)).toEqual(['c1']);
  await store.add('q', [newJob({ id: 'n1', group: 'n' }), newJob({ id: 'plain' })], { caller: 'p', seq: 2 });
  const operator = await newClient(url);
  await operator.query(`BEGIN; SELECT holdfast.configure('q', '{"groups": {"maxActive": 2}}')`);
  const { jobs, nextInMs } = await store.claim('q', { session: 's', seq: 2, count: 9 });
  expect(jobs.map(({ id }) => id)).toEqual(['plain']);
  expect(nextInMs).toBeLessThan(1_000);
  await operator.query('COMMIT');
  expect((await store.claim('q', { session: 's', seq: 3, count: 9 })).jobs.map(({ id }) => id)).toEqual(['n1']);
});

test('settings of a new group and a claim that finds its first job do not wait for one another', async () => {
  const { url, store, admin } = await start();
  await store.openSession(newSession());
  await store.add('q', [newJob({ id: 'c1', group: 'c' })], { caller: 'p', seq: 1 });
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  await store.add('q', [newJob({ id: 'n1', group: 'n' })], { caller: 'p', seq: 2 });
  const blocker = await newClient(url);
  await blocker.query('BEGIN; SELECT FROM holdfast.queues FOR NO KEY UPDATE');
  const claimed = store.claim('q', { session: 's', seq: 2, count: 9, limit: { max: 100, durationMs: 1_000 } });
  await until('the claim waits', async () => (await blocked(admin)) === 1);
  const set = store.configure('q', { group: { key: 'n', maxActive: 1 } });
  await until('the change waits', async () => (await blocked(admin)) === 2);
  await blocker.query('COMMIT');
  await Promise.all([claimed, set]);
  expect(await deadlocks(url)).toBe(0);
});

test.each(['a claim', 'a settle'])(
  '%s that began before another claim, and locks its groups after it, does not put them before those',
  async (verb) => {
    const url = await newDatabase();
    const store = await openStore({ url });
    const admin = await newClient(url);
    for (const id of ['s', 'slow']) await store.openSession(newSession({ id, slots: 10 }));
    const add = (groups: string[], seq: number): Promise<unknown> =>
      store.add(
        'q',
        groups.map((group) => newJob({ group })),
        { caller: 'p', seq },
      );
    const groupsOf = async (seq: number, count: number): Promise<(string | undefined)[]> =>
      (await store.claim('q', { session: 's', seq, count })).jobs.map(({ group }) => group);
    await add(['0', '0', ...GROUPS, ...GROUPS], 1);
    const { jobs } = await store.claim('q', { session: 'slow', seq: 1, count: 1 });
    // The next settle learns that the queue has groups, so that the one after it takes the fast path.
    const first = await store.settle('q', jobs.map(completed), { caller: 'slow', seq: 2 }, { session: 'slow', seq: 2, count: 0 });
    expect(first.results).toEqual(['done']);
    // A claim that applies notes waits here, after it has begun and before it locks the groups that come first.
    await admin.query(`CREATE FUNCTION holdfast.hold() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN OLD; END';
    CREATE TRIGGER hold BEFORE DELETE ON holdfast.group_notes FOR EACH ROW EXECUTE FUNCTION holdfast.hold()`);
    await admin.query('SELECT pg_advisory_lock(4711)');
    await add(['z'], 2);
    const request = { session: 'slow', seq: 3, count: 1 };
    const slow =
      verb === 'a claim'
        ? store.claim('q', request)
        : store.settle('q', [], { caller: 'slow', seq: 3 }, request).then(({ claimed }) => claimed);
    await until('the slow call waits', async () => (await blocked(admin)) === 1);
    expect(await groupsOf(1, 2)).toEqual(['a', 'b']);
    await admin.query('SELECT pg_advisory_unlock(4711)');
    expect((await slow)?.jobs.map(({ group }) => group)).toEqual(['c']);
    expect(await groupsOf(2, 6)).toEqual(['d', '0', 'z', 'a', 'b', 'c']);
  },
);
