// On connections of its own, the PostgreSQL store takes fast paths for what most calls are (add_plain, claim_plain, settle_plain, and
// statements for renewals and sweeps). They must return, count and record what the slow paths do, which a pool of the user's takes.
import { Pool } from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { LINK_STATES } from '../../../src/job/family.js';
import type { Keep, Outcome } from '../../../src/job/outcome.js';
import type { ClaimedJob, NewJob } from '../../../src/job/record.js';
import type { ClaimReply } from '../../../src/store/contract/index.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newDatabase, newJob, newJobs, newServer, newSession, openStore } from './support.js';

async function longWays(url: string): Promise<PostgresStore> {
  const pool = new Pool({ connectionString: url, max: 2 });
  const store = await openStore({ pool });
  onTestFinished(() => pool.end());
  return store;
}

/** Numbers from 0 to `below`, the same in every run. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

function shown(reply: ClaimReply | undefined): unknown {
  if (reply === undefined) return undefined;
  const { jobs, nextInMs, limitedMs, ...rest } = reply;
  const seen = jobs.map(({ token: _token, fence: _fence, processedOn: _on, ...job }) => job);
  return { ...rest, jobs: seen, next: nextInMs !== undefined, limited: limitedMs !== undefined };
}

/** What a worker and a producer may do; one of `plainness` times something that is not plain. Answers what they were told. */
async function live(store: PostgresStore, seed: number, plainness: number): Promise<unknown[]> {
  const roll = dice(seed);
  const said: unknown[] = [];
  const held: ClaimedJob[] = [];
  let produced = 0;
  let seq = 0;
  await store.openSession(newSession());
  await store.configure('q', { metrics: { points: 10 } });
  for (let step = 0; step < 150; step += 1) {
    const what = roll(plainness) === 0 ? roll(21) : roll(18);
    if (what < 6) {
      const plain = roll(plainness) > 0;
      const odd = () =>
        [{ priority: 1 }, { lifo: true }, { lockKey: `k${roll(2)}` }, { delayMs: 3_600_000 }, { id: `${roll(60)}` }][roll(5)];
      const jobs = Array.from({ length: 1 + roll(3) }, () => newJob({ timestamp: 1, ...(!plain && odd()) }));
      produced += 1;
      for (let times = 0; times <= roll(2); times += 1) said.push(await store.add('q', jobs, { caller: 'p', seq: produced }));
    } else if (what < 9) {
      seq += 1;
      const request = { session: 's', seq, count: roll(3), by: 'me' };
      for (let times = 0; times <= roll(2); times += 1) {
        const reply = await store.claim('q', request);
        if (times === 0) held.push(...reply.jobs);
        said.push(shown(reply));
      }
    } else if (what < 18) {
      const some = held.splice(0, 1 + roll(3));
      if (some.length === 0) continue;
      const outcomes: Outcome[] = some.map(completed);
      const odd = () => roll(4 * plainness) === 0;
      if (odd()) outcomes.push(completed({ ...(some[0] as ClaimedJob), id: 'none' }));
      if (odd()) outcomes.push({ ...completed(some[0] as ClaimedJob), token: 's:1' });
      if (odd()) outcomes.push(outcomes[0] as Outcome);
      if (odd()) await store.change('q', [(some[0] as ClaimedJob).id], { kind: 'revoke', reason: 'test' });
      seq += 1;
      for (let times = 0; times <= roll(2); times += 1) {
        const reply = await store.settle('q', outcomes, { caller: 's', seq }, { session: 's', seq, count: roll(4), by: 'me' });
        if (times === 0) held.push(...(reply.claimed?.jobs ?? []));
        said.push([reply.results, shown(reply.claimed)]);
      }
    } else if (what === 18) {
      await store.configure('q', { paused: roll(2) === 0 });
    } else if (what === 19) {
      await store.configure('q', { cap: roll(2) === 0 ? { maxActive: 5 } : null });
    } else {
      await store.configure('q', { rate: roll(2) === 0 ? { max: 2, durationMs: 3_600_000 } : null });
    }
    const { counts, metrics, window } = await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } });
    said.push(counts, metrics?.count, window?.used);
  }
  expect((await store.status('q', { metrics: { kind: 'completed', start: 0, end: 0 } })).metrics?.count).toBeGreaterThan(0);
  const lists = ['waiting', 'prioritized', 'active', 'completed'] as const;
  for (const list of lists)
    said.push((await store.jobs('q', { lists: [list], start: 0, end: -1, asc: true })).jobs.map(({ id }) => id));
  const { events } = await store.events('q', 0, 10_000);
  // The two runs have due times of their own.
  said.push(events.map(({ id: _id, delay, ...event }) => ({ ...event, due: typeof delay })));
  return said;
}

/**
 * A worker in a queue with groups of different lengths and limits. One of `plainness` times something happens that the fast path does not
 * know. Returns what the store replied, and the groups after each step.
 */
async function takeTurns(store: PostgresStore, seed: number, plainness: number): Promise<unknown[]> {
  const roll = dice(seed);
  const odd = (): boolean => roll(plainness) === 0;
  const said: unknown[] = [];
  const held: ClaimedJob[] = [];
  await store.openSession(newSession({ slots: 100 }));
  await store.configure('q', { groups: seed % 2 === 0 ? { maxActive: 1 + roll(4) } : null, metrics: { points: 10 } });
  for (let step = 1; step <= 120; step += 1) {
    const what = roll(20);
    if (what < 5) {
      const jobs = Array.from({ length: 1 + roll(6) }, () =>
        newJob({
          timestamp: 1,
          group: `g${roll(1 + roll(7))}`,
          ...(roll(6) === 0 && { priority: 1 + roll(2) }),
          ...(roll(9) === 0 && { lifo: true }),
        }),
      );
      said.push(await store.add('q', jobs, { caller: 'p', seq: step }));
    } else if (what === 5) {
      await store.configure('q', {
        group: { key: `g${roll(7)}`, paused: roll(2) === 0, maxActive: [null, 1, 3][roll(3)] ?? null },
      });
    } else if (what === 6 && odd()) {
      const rate = roll(2) === 0 ? { max: 2, durationMs: 3_600_000 } : null;
      await store.configure('q', { group: { key: `g${roll(7)}`, rate } });
    } else if (what === 7 && odd()) {
      await store.add('q', [newJob({ timestamp: 1 })], { caller: 'p', seq: step });
    } else {
      const outcomes: Outcome[] = held.splice(0, roll(6)).map(completed);
      const count = roll(12);
      for (let times = 0; times <= (odd() ? 1 : 0); times += 1) {
        const reply = await store.settle('q', outcomes, { caller: 's', seq: step }, { session: 's', seq: step, count, by: 'me' });
        if (times === 0) held.push(...(reply.claimed?.jobs ?? []));
        said.push([reply.results, shown(reply.claimed)]);
      }
    }
    const { counts, groups } = await store.status('q', { groups: { limit: 100 } });
    said.push(
      counts,
      groups?.groups.map(({ limitedMs, ...group }) => ({ ...group, limited: limitedMs !== undefined })),
    );
  }
  const { events } = await store.events('q', 0, 10_000);
  said.push(events.map(({ id: _id, ...event }) => event));
  return said;
}

/**
 * A worker whose finished jobs are removed: all at once, or above a count or an age. One of `plainness` times something happens that the
 * fast path does not know. Returns what the store replied, and what is left of the jobs.
 */
async function removeFinished(url: string, store: PostgresStore, seed: number, plainness: number): Promise<unknown[]> {
  const roll = dice(seed);
  const odd = (): boolean => roll(plainness) === 0;
  const keeps: Keep[] = [{ count: 0 }, { count: 3 }, { ageMs: 0 }, { count: 5, ageMs: 3_600_000 }, { count: 0, ageMs: 0 }, {}];
  const said: unknown[] = [];
  const held: ClaimedJob[] = [];
  await store.openSession(newSession({ slots: 100 }));
  await store.configure('q', { metrics: { points: 10 } });
  for (let step = 1; step <= 120; step += 1) {
    const jobs = Array.from({ length: roll(6) }, () =>
      newJob({ timestamp: 1, ...(odd() && { lockKey: `k${roll(2)}` }), ...(odd() && { group: 'g' }) }),
    );
    if (jobs.length > 0) await store.add('q', jobs, { caller: 'p', seq: step });
    const keep = keeps[roll(keeps.length)] as Keep;
    const outcomes = held.splice(0, roll(5)).map((job): Outcome => {
      const value = JSON.stringify('v'.repeat(odd() ? 5000 : roll(9)));
      return { ...completed(job), value, keep: odd() ? (keeps[roll(keeps.length)] as Keep) : keep } as Outcome;
    });
    const [first] = outcomes as { jobId: string; token: string }[];
    if (first !== undefined) {
      const { jobId, token } = first;
      if (odd()) await store.write('q', [{ jobId, token, kind: 'log', row: 'r' }]);
      if (odd()) await store.change('q', [jobId], { kind: 'revoke', reason: 'test' });
      if (odd()) outcomes.push({ ...(outcomes[0] as Outcome), token: 's:1' });
      if (odd()) outcomes.push(outcomes[0] as Outcome);
      if (odd()) outcomes.push({ ...(outcomes[0] as Outcome), jobId: 'none' });
    }
    const count = roll(6);
    // A repeated call takes the ordinary path, and so do the calls after it.
    for (let times = roll(40) === 0 ? 0 : 1; times < 2; times += 1) {
      const reply = await store.settle('q', outcomes, { caller: 's', seq: step }, { session: 's', seq: step, count, by: 'me' });
      if (times === 1) held.push(...(reply.claimed?.jobs ?? []));
      said.push([reply.results, shown(reply.claimed)]);
    }
    const { counts, metrics } = await store.status('q', { metrics: { kind: 'completed', start: 0, end: -1 } });
    said.push(counts, metrics?.count);
  }
  const { events } = await store.events('q', 0, 10_000);
  said.push(events.map(({ id: _id, ...event }) => event));
  const admin = await newClient(url);
  const rows = async (sql: string) => (await admin.query(sql)).rows as unknown[];
  said.push(await rows('SELECT id, state, attempts_made, returnvalue FROM holdfast.jobs ORDER BY state, ord, id'));
  said.push(await rows('SELECT job, row FROM holdfast.logs ORDER BY job, number'));
  return said;
}

/** A worker whose jobs are children, of one parent or two, or plain jobs. Returns what the store replied, and the links of the parents. */
async function endChildren(store: PostgresStore, seed: number, plainness: number): Promise<unknown[]> {
  const roll = dice(seed);
  const odd = (): boolean => roll(plainness) === 0;
  const said: unknown[] = [];
  const held: ClaimedJob[] = [];
  const parents: string[] = [];
  await store.openSession(newSession({ queue: 'c', slots: 100 }));
  for (let step = 1; step <= 60; step += 1) {
    if (step % 6 === 1) {
      const names = Array.from({ length: 1 + roll(2) }, (_, n) => `p${step}-${n}`);
      const links = names.map((id) => ({ queue: 'p', id, onFailure: { link: 'failed', release: 'now', doom: true } as const }));
      const children = Array.from({ length: 8 }, (_, n) =>
        newJob({
          queue: 'c',
          id: `c${step}-${n}`,
          timestamp: 1,
          ...(roll(5) > 0 && { parents: roll(2) === 0 ? links : links.slice(0, 1) }),
        }),
      );
      const family = [...names.map((id) => newJob({ queue: 'p', id, timestamp: 1, waitsForChildren: true })), ...children];
      const replies = await store.add('c', family, { caller: 'p', seq: step });
      said.push(replies.map(({ status }) => status));
      parents.push(...names);
    }
    const outcomes = held.splice(0, 1 + roll(4)).map((job): Outcome => {
      if (!odd()) return completed(job);
      if (roll(2) === 0) return { ...completed(job), token: 's:1' };
      return { kind: 'failed', jobId: job.id, token: job.token, reason: 'r', stacktrace: '[]', keep: {} };
    });
    if (odd() && outcomes[0] !== undefined) outcomes.push(outcomes[0]);
    for (let times = 0; times <= (odd() ? 1 : 0); times += 1) {
      const call = { caller: 's', seq: step };
      const { results, claimed } = await store.settle('c', outcomes, call, { session: 's', seq: step, count: 3, by: 'me' });
      if (times === 0) held.push(...(claimed?.jobs ?? []));
      // A slow path looks for messages after it has written its own.
      said.push(
        results,
        claimed?.jobs.map(({ id }) => id),
        claimed?.drained,
      );
    }
    const links = await Promise.all(parents.map((id) => store.children('p', id, { states: [...LINK_STATES], limit: 100 })));
    said.push(links, (await store.status('c')).counts, (await store.status('p')).counts);
  }
  const { events } = await store.events('c', 0, 10_000);
  said.push(events.map(({ id: _id, ...event }) => event));
  return said;
}

describe('the fast paths of PostgreSQL', () => {
  test.each([
    [1, 2],
    [2, 10],
    [3, 40],
    [4, 1_000],
  ])('return, count and record what the slow paths do (seed %i, plain %i times of that and one)', async (seed, plainness) => {
    const short = await live(await openStore({ url: await newDatabase() }), seed, plainness);
    const long = await live(await longWays(await newDatabase()), seed, plainness);
    expect(short).toEqual(long);
  });

  test.each([
    [1, 1_000],
    [2, 1_000],
    [3, 1_000],
    [4, 1_000],
    [5, 20],
    [6, 5],
  ])('take the turns of groups as the slow paths do (seed %i, plain %i times of that and one)', async (seed, plainness) => {
    const short = await takeTurns(await openStore({ url: await newDatabase() }), seed, plainness);
    const long = await takeTurns(await longWays(await newDatabase()), seed, plainness);
    expect(short).toEqual(long);
  });

  test.each([
    [1, 1_000],
    [2, 1_000],
    [3, 20],
    [4, 4],
  ])('report the ends of children as the slow paths do (seed %i, plain %i times of that and one)', async (seed, plainness) => {
    const short = await endChildren(await openStore({ url: await newDatabase() }), seed, plainness);
    const long = await endChildren(await longWays(await newDatabase()), seed, plainness);
    expect(short).toEqual(long);
  });

  test.each([
    [1, 1_000],
    [2, 1_000],
    [3, 100],
    [4, 20],
    [5, 4],
  ])('remove finished jobs as the slow paths do (seed %i, plain %i times of that and one)', async (seed, plainness) => {
    const [one, other] = [await newDatabase(), await newDatabase()];
    const short = await removeFinished(one, await openStore({ url: one }), seed, plainness);
    const long = await removeFinished(other, await longWays(other), seed, plainness);
    expect(short).toEqual(long);
  });

  const add = (options: Partial<NewJob>) => (store: PostgresStore) =>
    store.add('q', [newJob({ timestamp: 1, ...options })], { caller: 'x', seq: 1 });
  test.each<[string, (store: PostgresStore) => Promise<unknown>]>([
    ['is paused', (store) => store.configure('q', { paused: true })],
    ['is limited', (store) => store.configure('q', { blockedMs: 60_000 })],
    ['has a cap', (store) => store.configure('q', { cap: { maxActive: 1 } })],
    ['has a rate', (store) => store.configure('q', { rate: { max: 1, durationMs: 60_000 } })],
    ['has a window', (store) => store.claim('q', { session: 's', seq: 2, count: 1, limit: { max: 1, durationMs: 60_000 } })],
    ['has a job with a priority', add({ priority: 1 })],
    ['has a job that goes first', add({ lifo: true })],
    ['has a job with a key', add({ lockKey: 'k' })],
    ['has a delayed job', add({ delayMs: 60_000 })],
    [
      'has a delayed job that is due',
      (store) => add({ delayMs: 1 })(store).then(() => new Promise((resolve) => setTimeout(resolve, 20))),
    ],
    ['no longer has the session', (store) => store.closeSessions([{ queue: 'q', id: 's' }], 'closed')],
  ])('give way to a queue that %s', async (_, make) => {
    const told = async (store: PostgresStore): Promise<unknown[]> => {
      await store.openSession(newSession());
      await store.add('q', Array<NewJob>(9).fill(newJob({ timestamp: 1 })), { caller: 'p', seq: 1 });
      const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 2 });
      await make(store);
      const claimed = await store.claim('q', { session: 's', seq: 3, count: 2 });
      const settled = await store.settle('q', jobs.map(completed), { caller: 's', seq: 4 }, { session: 's', seq: 4, count: 8 });
      const limited = await store.claim('q', { session: 's', seq: 5, count: 1, limit: { max: 2, durationMs: 60_000 } });
      return [shown(claimed), settled.results, shown(settled.claimed), shown(limited), (await store.status('q')).counts];
    };
    expect(await told(await openStore({ url: await newDatabase() }))).toEqual(await told(await longWays(await newDatabase())));
  });

  test('are not used when a key comes free, or a user took the next id', async () => {
    const store = await openStore({ url: await newDatabase() });
    await store.openSession(newSession());
    const keyed = ['a', 'b'].map((id) => newJob({ id, lockKey: 'k' }));
    await store.add('q', [...keyed, newJob({ id: '2' })], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 9 });
    expect(jobs.map(({ id }) => id)).toEqual(['a', '2']);
    const { results, claimed } = await store.settle(
      'q',
      jobs.map(completed),
      { caller: 's', seq: 2 },
      { session: 's', seq: 2, count: 1 },
    );
    expect([results, claimed?.jobs.map(({ id }) => id)]).toEqual([['done', 'done'], ['b']]);
    expect(await store.add('q', newJobs(1), { caller: 'p', seq: 2 })).toEqual([{ id: '1', status: 'added' }]);
    expect(await store.add('q', newJobs(1), { caller: 'p', seq: 3 })).toEqual([{ id: '3', status: 'added' }]);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 2, active: 1, completed: 2 });
  });

  test('are used as a whole for plain jobs, one or many', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 9 });
    const admin = await newClient(url);
    // A call that takes the slow path fails from here on.
    await admin.query('DROP FUNCTION holdfast.add, holdfast.claim, holdfast.settle, holdfast.sweep, holdfast.notify_changes');
    for (let seq = 2; seq <= 20; seq += 1) {
      expect(await store.add('q', newJobs(1), { caller: 'p', seq })).toEqual([{ id: String(seq), status: 'added' }]);
    }
    expect((await store.claim('q', { session: 's', seq: 2, count: 1 })).jobs).toHaveLength(1);
    const next = await store.settle('q', jobs.map(completed), { caller: 's', seq: 3 }, { session: 's', seq: 3, count: 1 });
    const more = await store.settle(
      'q',
      next.claimed?.jobs.map(completed) ?? [],
      { caller: 's', seq: 4 },
      { session: 's', seq: 4, count: 5 },
    );
    expect(more.claimed?.jobs).toHaveLength(5);
    const none = await store.settle(
      'q',
      more.claimed?.jobs.map(completed) ?? [],
      { caller: 's', seq: 5 },
      { session: 's', seq: 5, count: 0 },
    );
    expect([none.results, none.claimed?.jobs]).toEqual([Array(5).fill('done'), []]);
    expect(await store.sweep('q', 100)).toEqual({ stalled: [], failed: [], more: false });
    expect((await store.status('q')).counts).toMatchObject({ waiting: 12, active: 1, completed: 7 });
  });

  test('are used as a whole for jobs that are removed, and not if these have a log or rules of their own', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession());
    await store.add('q', newJobs(40), { caller: 'p', seq: 1 });
    let { jobs } = await store.claim('q', { session: 's', seq: 1, count: 2 });
    const admin = await newClient(url);
    // A call that takes the slow path fails from here on.
    await admin.query('DROP FUNCTION holdfast.settle');
    let seq = 1;
    const settle = async (keeps: (job: number) => Keep, count: number) => {
      seq += 1;
      const outcomes = jobs.map((job, n): Outcome => ({ ...completed(job), keep: keeps(n) }) as Outcome);
      const { results, claimed } = await store.settle('q', outcomes, { caller: 's', seq }, { session: 's', seq, count });
      expect(results).toEqual(jobs.map(() => 'done'));
      jobs = claimed?.jobs ?? [];
      return (await store.status('q')).counts;
    };
    expect(await settle(() => ({ count: 0 }), 1)).toMatchObject({ active: 1, completed: 0 });
    expect(await settle(() => ({ count: 0 }), 3)).toMatchObject({ active: 3, completed: 0 });
    expect(await settle(() => ({ count: 2 }), 1)).toMatchObject({ active: 1, completed: 2 });
    expect(await settle(() => ({ count: 2, ageMs: 3_600_000 }), 4)).toMatchObject({ active: 4, completed: 2 });
    expect(await settle(() => ({ ageMs: 3_600_000 }), 2)).toMatchObject({ active: 2, completed: 6 });
    expect(await settle(() => ({ ageMs: 0 }), 2)).toMatchObject({ active: 2, completed: 0 });
    await expect(settle((n) => ({ count: n }), 1)).rejects.toThrow('42883');
    expect(await settle(() => ({ count: 0 }), 1)).toMatchObject({ active: 1, completed: 0 });
    const [job] = jobs as [ClaimedJob];
    await store.write('q', [{ jobId: job.id, token: job.token, kind: 'log', row: 'r' }]);
    await expect(settle(() => ({ count: 0 }), 1)).rejects.toThrow('42883');
    expect((await store.status('q')).counts).toMatchObject({ active: 1, completed: 0 });
  });

  test('keep a session visible that is renewed while it settles', async () => {
    const store = await openStore({ url: await newDatabase() });
    await store.openSession(newSession());
    await store.add('q', newJobs(400), { caller: 'p', seq: 1 });
    let { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    let running = true;
    const renewing = (async () => {
      while (running) expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
    })();
    for (let seq = 2; jobs.length > 0; seq += 1) {
      const { results, claimed } = await store.settle(
        'q',
        jobs.map(completed),
        { caller: 's', seq },
        { session: 's', seq, count: 1 },
      );
      expect([results, claimed?.sessionAlive]).toEqual([['done'], true]);
      jobs = claimed?.jobs ?? [];
    }
    running = false;
    await renewing;
    expect((await store.status('q')).counts).toMatchObject({ waiting: 0, active: 0, completed: 400 });
  });
});

describe('a renewal on PostgreSQL', () => {
  test('changes the row of its session and no index', async () => {
    const url = await newDatabase();
    const store = await openStore({ url, max: 1 });
    await store.openSession(newSession());
    for (let n = 0; n < 200; n += 1) await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
    const admin = await newClient(url);
    const updates = async () =>
      (
        await admin.query(
          `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'sessions'`,
        )
      ).rows[0];
    // A connection hands in its statistics with a call that comes a second after the last time.
    await expect
      .poll(async () => (await store.status('q')) && (await updates())?.all, { timeout: 5_000, interval: 300 })
      .toBeGreaterThanOrEqual(200);
    const { all, hot } = await updates();
    // A page may be full while another transaction, even of another database, still sees all of it.
    expect(hot).toBeGreaterThan(0.9 * all);
  });

  test('keeps its session visible to sweeps in time after the server clock was set back', async () => {
    const url = await newDatabase();
    const admin = await newClient(url);
    for (const store of [await openStore({ url }), await longWays(url)]) {
      await store.openSession(newSession());
      // As it was left by a clock that was an hour ahead.
      await admin.query(`UPDATE holdfast.sessions SET expires_at = expires_at + 3600000, look_at = look_at + 3600000`);
      for (const renewals of [[{ id: 's' }], [{ id: 's' }, { id: 'unknown' }]]) {
        await store.renew(renewals.map(({ id }) => ({ queue: 'q', id, acked: 0 })));
        expect((await admin.query('SELECT FROM holdfast.sessions WHERE look_at <= expires_at')).rowCount).toBe(1);
      }
      await store.closeSessions([{ queue: 'q', id: 's' }], 'closed');
    }
  });
});

describe('a sweep on PostgreSQL', () => {
  test('completes when the store is closed while it is in flight', async () => {
    const url = await newDatabase();
    const other = await openStore({ url });
    for (let round = 0; round < 5; round += 1) {
      const store = await openStore({ url, max: 1 });
      await other.openSession(newSession({ id: `s${round}`, durationMs: 1 }));
      const sweeping = store.sweep('q', 100);
      await store.close();
      expect(await sweeping).toMatchObject({ more: false });
    }
  });

  test('finds dead sessions behind any number of renewed ones', async () => {
    const url = await newDatabase();
    const admin = await newClient(url);
    for (const store of [await openStore({ url }), await longWays(url)]) {
      const ids = Array.from({ length: 450 }, (_, n) => `renewed-${n}`);
      await Promise.all(ids.map((id) => store.openSession(newSession({ id }))));
      await store.openSession(newSession({ id: 'dead', durationMs: 1 }));
      await admin.query(`UPDATE holdfast.sessions SET look_at = 0 WHERE id LIKE 'renewed-%'`);
      let calls = 0;
      for (let more = true; more; calls += 1) ({ more } = await store.sweep('q', 100));
      expect(calls).toBe(3);
      expect((await store.sessions('q')).filter(({ id }) => id === 'dead')).toEqual([]);
      expect((await admin.query('SELECT FROM holdfast.sessions WHERE look_at > expires_at OR look_at < since')).rowCount).toBe(0);
      await store.closeSessions(
        ids.map((id) => ({ queue: 'q', id })),
        'closed',
      );
    }
  });

  test('finds a session that is no longer renewed', async () => {
    const url = await newDatabase();
    const store = await openStore({ url });
    await store.openSession(newSession({ durationMs: 300 }));
    await store.add('q', newJobs(1), { caller: 'p', seq: 1 });
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    const until = performance.now() + 700;
    while (performance.now() < until) {
      expect(await store.renew([{ queue: 'q', id: 's', acked: 0 }])).toEqual([{ alive: true, notices: [] }]);
      expect(await store.sweep('q', 100)).toEqual({ stalled: [], failed: [], more: false });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await expect.poll(async () => (await store.sweep('q', 100)).stalled, { timeout: 5_000 }).toEqual(['1']);
  });

  test('is planned by an earlier sweep that found nothing', async () => {
    const server = await newServer({
      settings: {
        shared_preload_libraries: 'pg_stat_statements',
        'pg_stat_statements.track': 'all',
        'pg_stat_statements.track_planning': 'on',
      },
    });
    const admin = await newClient(server.url);
    await admin.query('CREATE EXTENSION pg_stat_statements');
    const plans = `SELECT sum(plans)::int AS plans, sum(calls)::int AS calls FROM pg_stat_statements WHERE query LIKE 'WITH held AS%'`;
    for (const [empty, planned] of [
      [0, 1],
      [4, 0],
    ]) {
      // One connection, so that it is known which one it was.
      const store = await openStore({ url: server.url, schema: `after${empty}`, max: 1, notify: false });
      await store.openSession(newSession({ durationMs: 500 }));
      await store.add('q', newJobs(3), { caller: 'p', seq: 1 });
      await store.claim('q', { session: 's', seq: 1, count: 3 });
      for (let n = 0; n < (empty as number); n += 1) await store.sweep('q', 50);
      await expect.poll(async () => (await store.sessions('q'))[0]?.expiresInMs, { timeout: 5_000 }).toBeLessThan(0);
      await admin.query('SELECT pg_stat_statements_reset()');
      expect((await store.sweep('q', 50)).stalled).toHaveLength(3);
      expect((await admin.query(plans)).rows).toEqual([{ plans: planned, calls: 1 }]);
    }
  });
});
