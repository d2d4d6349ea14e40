// How the server carries out the statements of every verb: through the index that was made for it, whatever it believes of the tables.
// A walk through a whole list would be noticed only in a queue with a million jobs.
import { Pool, type PoolClient } from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Outcome } from '../../../src/job/outcome.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { completed, newClient, newJob, newServer, newSession, openStore } from './support.js';
import { retryFrom } from '../../../src/testing/conformance/samples.js';

interface Node {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: Node[];
}

interface Statement {
  sql: string;
  plan: Node;
}

const EXPLAINED = {
  shared_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_nested_statements': 'on',
  'auto_explain.log_level': 'notice',
  'auto_explain.log_format': 'json',
};

const LARGE = new Set(['jobs', 'journal', 'events', 'logs', 'freed_keys', 'named', 'lock_places', 'metrics', 'group_notes']);

function nodes(node: Node): Node[] {
  return [node, ...(node.Plans ?? []).flatMap(nodes)];
}

function sortsRows(node: Node): boolean {
  return node['Node Type'] === 'Sort' && nodes(node).some((below) => below['Relation Name'] !== undefined);
}

/** Every verb, with everything that it may be asked for. */
async function useAll(store: PostgresStore): Promise<void> {
  const add = [newJob(), newJob({ priority: 1 }), newJob({ delayMs: 1 }), newJob({ delayMs: 60_000 }), newJob({ id: 'mine' })];
  await store.openSession(newSession());
  await store.openSession(newSession({ id: 'short', durationMs: 1 }));
  await store.add('q', [...add, ...Array.from({ length: 20 }, () => newJob())], { caller: 'p', seq: 1 });
  await store.claim('q', { session: 's', seq: 1, count: 2, limit: { max: 100, durationMs: 1_000 } });
  const { jobs } = await store.claim('q', { session: 's', seq: 2, count: 12 });
  const [a, b, c, d, e, f] = jobs;
  if (!a || !b || !c || !d || !e || !f) return expect.fail('there are jobs');
  const keep = { count: 1, ageMs: 1 };
  const refs = { a: { jobId: a.id, token: a.token }, b: { jobId: b.id, token: b.token }, c: { jobId: c.id, token: c.token } };
  await store.extend('q', [{ ...refs.a, durationMs: 1 }]);
  await store.extend('q', [{ ...refs.a, durationMs: 60_000, alone: true }]);
  await store.write('q', [
    { ...refs.a, kind: 'progress', progress: '1' },
    { ...refs.a, kind: 'log', row: 'r', keep: 1 },
    { ...refs.a, kind: 'data', data: '{}' },
    { kind: 'event', name: 'mine', args: '{}' },
  ]);
  await store.configure('q', { metrics: { points: 2 }, rate: { max: 100, durationMs: 1_000 } });
  await store.settle(
    'q',
    [
      { ...refs.a, kind: 'completed', value: '1', keep },
      { ...refs.b, kind: 'failed', reason: 'r', stacktrace: '[]', keep },
      { ...refs.c, kind: 'completed', value: '1', keep: { count: 0 } },
    ],
    { caller: 's', seq: 3 },
    { session: 's', seq: 3, count: 2 },
  );
  await store.settle('q', [completed(d)], { caller: 's', seq: 4 });
  await store.settle('q', [completed(e)], { caller: 's', seq: 5 });
  await store.claim('q', { session: 'short', seq: 1, count: 2, timedMs: 1 });
  await store.change('q', [f.id], { kind: 'revoke', reason: 'test' });
  await store.renew([{ queue: 'q', id: 's', acked: 0 }]);
  await store.change('q', [f.id], { kind: 'priority', priority: 2, lifo: true });
  await store.change('q', [d.id], retryFrom('completed'));
  await store.change('q', ['4'], { kind: 'delay', delayMs: 5 });
  await store.change('q', ['4'], { kind: 'promote' });
  await store.sweep('q', 10);
  await store.probe('q');
  await useLocks(store);
  await useGroups(store);
  await usePlainly(store);
  await store.jobs('q', ['1', '2']);
  await store.locks('q', { jobIds: ['1'] });
  await store.locks('q', { session: 's' });
  await store.sessions('q');
  await store.logs('q', a.id, { start: 0, end: -1, asc: true });
  for (const name of ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'] as const) {
    await store.jobs('q', { lists: [name], start: 0, end: 10, asc: false });
  }
  await store.events('q', 0, 10);
  await store.status('q', { priorities: [0, 1], metrics: { kind: 'completed', start: 0, end: -1 } });
  await store.forget('q', { events: 5 });
  await store.change('q', { lists: ['completed'], limit: 1 }, retryFrom('completed'));
  await store.change('q', { lists: ['failed'], limit: 1 }, retryFrom('failed'));
  await store.change('q', { lists: ['delayed'], limit: 1 }, { kind: 'promote' });
  const lists = ['completed', 'failed', 'delayed', 'waiting', 'prioritized'] as const;
  await store.change('q', { lists: [...lists], olderThanMs: 0, limit: 2 }, { kind: 'remove' });
  await store.change('q', ['mine'], { kind: 'remove' });
  await store.closeSessions([{ queue: 'q', id: 's' }], 'crashed');
  await store.configure('q', { paused: true });
  await store.configure('q', { blockedMs: 1 });
  await store.forget('q', { all: true });
}

/** Keys, caps, jobs by their ids, named locks. */
async function useLocks(store: PostgresStore): Promise<void> {
  const keyed = ['k', 'k', 'l', 'l', 'm'].map((lockKey, n) => newJob({ id: `${lockKey}${n}`, lockKey, lifo: n % 2 === 0 }));
  await store.add('q', keyed, { caller: 'p', seq: 2 });
  await store.add('q', [newJob({ id: 'k9', lockKey: 'k' }), newJob({ id: 'k0', lockKey: 'k' })], { caller: 'p', seq: 3 });
  await store.claim('q', { session: 's', seq: 6, count: 1, jobIds: ['m4'] });
  await store.configure('q', { cap: { maxActive: 50 } });
  const { jobs } = await store.claim('q', { session: 's', seq: 7, count: 30 });
  expect(jobs.filter(({ id }) => /^[kl]/.test(id))).toHaveLength(2);
  await store.claim('q', { session: 's', seq: 8, count: 30 });
  await store.settle('q', jobs.map(completed), { caller: 's', seq: 9 }, { session: 's', seq: 9, count: 30 });
  for (const name of ['waiting', 'prioritized'] as const) {
    await store.jobs('q', { lists: [name], start: 0, end: 10, asc: true });
  }
  const wishes = ['a', 'b', 'a'].map((name, n) => ({ name, token: `t${n}`, session: 's', keepPlaceMs: 1_000 }));
  await store.acquire('q', wishes);
  await store.acquire('q', wishes);
  await store.locks('q', { names: ['a', 'b'] });
  await store.letGo('q', wishes.slice(1));
}

/** A queue of its own: one with groups takes other ways. */
async function useGroups(store: PostgresStore): Promise<void> {
  await store.openSession(newSession({ queue: 'grouped' }));
  const jobs = ['g', 'g', 'g', 'h', 'h'].map((group, n) => newJob({ id: `${group}${n}`, group }));
  await store.add('grouped', [...jobs, newJob({ group: 'i', delayMs: 1 }), newJob()], { caller: 'p', seq: 1 });
  await store.configure('grouped', { groups: { maxActive: 2, rate: { max: 50, durationMs: 60_000 } } });
  await store.configure('grouped', { group: { key: 'h', rate: { max: 1, durationMs: 60_000 } } });
  const { jobs: claimed } = await store.claim('grouped', { session: 's', seq: 1, count: 3 });
  expect(claimed).toHaveLength(3);
  await store.claim('grouped', { session: 's', seq: 2, count: 2, jobIds: ['g2', 'h4'] });
  await store.settle('grouped', claimed.map(completed), { caller: 's', seq: 3 }, { session: 's', seq: 3, count: 3 });
  await store.jobs('grouped', { group: 'g', start: 0, end: 10, asc: true });
  await store.status('grouped', { groups: { keys: ['g', 'h'] } });
  await store.status('grouped', { groups: { limit: 5 } });
  await store.closeSessions([{ queue: 'grouped', id: 's' }], 'crashed');
  await store.sweep('grouped', 10);
}

/** What most calls are. */
async function usePlainly(store: PostgresStore): Promise<void> {
  await store.openSession(newSession({ queue: 'plain' }));
  for (let seq = 1; seq <= 12; seq += 1) await store.add('plain', [newJob()], { caller: 'p', seq });
  await store.claim('plain', { session: 's', seq: 1, count: 1 });
  let { jobs } = await store.claim('plain', { session: 's', seq: 2, count: 1 });
  for (let seq = 3; seq <= 6; seq += 1) {
    const reply = await store.settle(
      'plain',
      jobs.map(completed),
      { caller: 's', seq },
      { session: 's', seq, count: seq === 4 ? 3 : 1 },
    );
    jobs = reply.claimed?.jobs ?? [];
  }
  for (const [n, keep] of [{ count: 0 }, { count: 0 }, { count: 2, ageMs: 1 }].entries()) {
    const call = { caller: 's', seq: 7 + n };
    const outcomes = jobs.map((job) => ({ ...completed(job), keep }) as Outcome);
    jobs = (await store.settle('plain', outcomes, call, { session: 's', seq: 7 + n, count: 2 })).claimed?.jobs ?? [];
  }
  await store.renew([{ queue: 'plain', id: 's', acked: 0 }]);
  await store.sweep('plain', 10);
}

type Ways = 'short' | 'long';

/** Connections of the store's own take fast paths, and those of a user's pool do not. */
async function plans(url: string, ways: Ways): Promise<Statement[]> {
  const statements: Statement[] = [];
  const emit = Pool.prototype.emit;
  const spy = vi.spyOn(Pool.prototype, 'emit').mockImplementation(function (
    this: Pool,
    event: string | symbol,
    ...told: unknown[]
  ) {
    if (event === 'connect') {
      (told[0] as PoolClient).on('notice', ({ message = '' }) => {
        const found = /plan:\s*(\{[\s\S]*)$/.exec(message)?.[1];
        if (found === undefined) return;
        const { 'Query Text': sql, Plan: plan } = JSON.parse(found) as { 'Query Text': string; Plan: Node };
        statements.push({ sql: sql.replace(/\s+/g, ' '), plan });
      });
    }
    return emit.call(this, event, ...told);
  });
  onTestFinished(() => spy.mockRestore());
  const pool = ways === 'long' ? new Pool({ connectionString: url, max: 1 }) : undefined;
  const store = await openStore({ ...(pool ? { pool } : { url, max: 1 }), notify: false });
  statements.length = 0;
  await useAll(store);
  await store.close();
  await pool?.end();
  return statements;
}

describe('the statements of the PostgreSQL store', () => {
  test.each<[tables: string, ways: Ways, sql: string]>([
    ['that were never analyzed', 'long', ''],
    ['that were never analyzed', 'short', ''],
    ['that were empty when it looked', 'long', 'ANALYZE'],
    ['that were empty when it looked', 'short', 'ANALYZE'],
    [
      'of one queue with many jobs',
      'long',
      `INSERT INTO holdfast.queues (name) VALUES ('other');
       INSERT INTO holdfast.jobs (queue, state, priority, ord, added, added_at, delay, timestamp, id, name, opts, data, session, fence, lock_key)
       SELECT 1, n % 7 - 1, n % 2, n, n, 0, 0, 0, n, 'n', '{}', '{}', 'x', n, CASE WHEN n % 7 < 2 THEN 'k' || n % 50 END
       FROM generate_series(1, 4200) n;
       ANALYZE`,
    ],
  ])('find their rows through the index that was made for them, with tables %s, on %s ways', async (_, ways, sql) => {
    const { url } = await newServer({ settings: EXPLAINED });
    await openStore({ url, notify: false });
    if (sql !== '') await (await newClient(url)).query(sql);
    const all = await plans(url, ways);
    expect(all.length).toBeGreaterThan(150);
    for (const name of ['settle_plain', 'settle_trimmed'])
      expect(all.some(({ sql: text }) => text.includes(name))).toBe(ways === 'short');
    const scans = all.flatMap(({ sql: text, plan }) => nodes(plan).map((node) => ({ sql: text, ...node })));
    const large = scans.filter((node) => LARGE.has(node['Relation Name'] ?? ''));
    expect(large.length).toBeGreaterThan(100);
    const through = new Set(['Index Scan', 'Index Only Scan', 'Tid Scan', 'ModifyTable']);
    expect(large.filter((node) => !through.has(node['Node Type']))).toEqual([]);
    // All jobs of a queue are in the primary key: only an id leads to one of them.
    expect(large.filter((node) => node['Index Name'] === 'jobs_pkey' && !/\bid = /.test(node['Index Cond'] ?? ''))).toEqual([]);
    // A query for the first rows of a list does not sort the list, but for those that say so. `place + 0` sorts the places of one token.
    const sorted = all.filter(({ plan }) =>
      nodes(plan).some((node) => node['Node Type'] === 'Limit' && nodes(node).some(sortsRows)),
    );
    const few = /ORDER BY added|all_of_them|merged ORDER BY|ORDER BY behind|ORDER BY place \+ 0/;
    expect(sorted.filter(({ sql: text }) => !few.test(text))).toEqual([]);
    for (const index of ['waiting', 'of_key', 'taken', 'delayed', 'active', 'finished', 'ending', 'pkey']) {
      expect(large.some((node) => node['Index Name'] === `jobs_${index}`)).toBe(true);
    }
    for (const index of ['groups_in_turn', 'groups_resting'])
      expect(scans.some((node) => node['Index Name'] === index)).toBe(true);
  });
});
