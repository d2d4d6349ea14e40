import type * as holdfast from 'holdfast';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/contract/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { previousBuild } from '../../support/processes/previous-build.js';
import { afterwards, newFile, newJob, newSession, openStore } from './support.js';

const grouped = (group: string, count: number, more: object = {}) =>
  Array.from({ length: count }, (_, n) => newJob({ id: `${group}${n + 1}`, group, ...more }));

async function claimed(store: Store, session: string, seq: number, count = 10): Promise<string[]> {
  return (await store.claim('q', { session, seq, count })).jobs.map(({ id }) => id);
}

function look(file: string): Database.Database {
  const db = new Database(file, { readonly: true });
  afterwards(() => db.close());
  return db;
}

/** A store of the previous version on the same file. It shares the clock of the host. */
async function olderStore(file: string): Promise<Store> {
  const previous = ((await import(previousBuild())) as { default: typeof holdfast }).default;
  const store = await previous.openStore(`sqlite:${file}`);
  afterwards(() => store.close());
  return store as unknown as Store;
}

describe('groups on SQLite', () => {
  it('leave no row behind when their jobs, blocks and windows have ended', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.openSession(newSession({ id: 's', durationMs: 1_000_000 }));
    await store.configure('q', { groups: { rate: { max: 5, durationMs: 1_000 } } });
    await store.add('q', [...grouped('a', 2), ...grouped('b', 1), newJob()], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 4 });
    await store.settle(
      'q',
      jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } })),
    );
    const rows = look(file).prepare('SELECT key FROM groups').pluck();
    expect(rows.all()).toEqual(['a', 'b']);
    await store.sweep('q', 10);
    expect(rows.all()).toEqual(['a', 'b']);
    clock.advance(1_001);
    await store.sweep('q', 1);
    expect(rows.all()).toHaveLength(1);
    await store.sweep('q', 10);
    expect(rows.all()).toEqual([]);
  });

  it('leave jobs without a group, and queues without groups, as they are', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    await store.add('q', [newJob({ lockKey: 'k' }), newJob()], { caller: 'p', seq: 1 });
    const db = look(file);
    const state = () => db.prepare('SELECT keyed, rules, (SELECT count(*) FROM groups) FROM queues').raw().all();
    expect(state()).toEqual([[1, null, 0]]);
    expect(db.prepare('SELECT lockKey, marks FROM jobs ORDER BY job').raw().all()).toEqual([
      ['k', 0],
      [null, 0],
    ]);
    await store.add('other', grouped('g', 1), { caller: 'p', seq: 1 });
    expect(state()).toEqual([
      [1, null, 1],
      [1, '{"groups":{}}', 1],
    ]);
  });

  it('are not mistaken for lock keys of the same name', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 's' }));
    const keys = ['k', '\ufffdk', '\u00ffk'];
    await store.add('q', [...keys.map((lockKey, n) => newJob({ id: `key${n}`, lockKey })), ...grouped('k', 2)], {
      caller: 'p',
      seq: 1,
    });
    expect((await claimed(store, 's', 1)).toSorted()).toEqual(['k1', 'k2', 'key0', 'key1', 'key2']);
  });

  it('are served in turn when 100,000 of them wait, at the cost of a few', async () => {
    const store = await openStore({ path: newFile(), synchronous: 'normal' });
    await store.openSession(newSession({ id: 's', slots: 100 }));
    await store.configure('q', { groups: { maxActive: 1, rate: { max: 100, durationMs: 600_000 } } });
    const few = await timeOf(store, 'few', 100);
    const many = await timeOf(store, 'many', 100_000);
    expect(many / few).toBeLessThan(5);
  });
});

describe('a process of the previous version beside groups on SQLite', () => {
  it('claims no job of a group, however it lets jobs of groups wait', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const older = await olderStore(file);
    await store.configure('q', { groups: { maxActive: 1 } });
    await older.openSession(newSession({ id: 'older' }));
    // The sweep of the older process lets g1 wait, its claim the delayed job, and its change the failed one.
    await store.add('q', [...grouped('g', 2), ...grouped('late', 1, { delayMs: 1 }), ...grouped('failed', 1)], {
      caller: 'p',
      seq: 1,
    });
    await store.openSession(newSession({ id: 's', maxStalls: 5 }));
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 3 });
    expect(jobs.map(({ id }) => id)).toEqual(expect.arrayContaining(['g1', 'failed1']));
    const failure = { kind: 'failed' as const, reason: 'r', stacktrace: '[]', keep: {} };
    const failed = jobs.filter(({ id }) => id !== 'g1').map(({ id, token }) => ({ ...failure, jobId: id, token }));
    await store.settle('q', failed);
    await older.change('q', ['failed1', 'late1'], {
      kind: 'retry',
      from: 'failed',
      resetAttemptsMade: false,
      resetAttemptsStarted: false,
    });
    await older.closeSessions([{ queue: 'q', id: 's' }], 'crashed');
    expect(await claimed(older, 'older', 1)).toEqual([]);
    expect((await store.status('q')).counts).toMatchObject({ waiting: 4, active: 0 });
    // A sweep of this version finds what the older one has moved.
    await store.openSession(newSession({ id: 't' }));
    await store.sweep('q', 10);
    expect((await claimed(store, 't', 1)).toSorted()).toEqual(['failed1', 'g1', 'late1']);
    expect((await store.status('q', { groups: { keys: ['g'] } })).groups?.groups).toMatchObject([{ active: 1, waiting: 1 }]);
  });

  it('frees a place in a group at the next sweep of this version', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const older = await olderStore(file);
    await store.configure('q', { groups: { maxActive: 1 } });
    await store.add('q', grouped('g', 3), { caller: 'p', seq: 1 });
    await store.openSession(newSession({ id: 's' }));
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 5 });
    await older.settle(
      'q',
      jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: {} })),
    );
    expect(await claimed(store, 's', 2)).toEqual([]);
    await store.sweep('q', 10);
    expect(await claimed(store, 's', 3)).toEqual(['g2']);
  });
});

/** Adds one job for each of many groups, and returns the time of a claim, the shortest of several. */
async function timeOf(store: Store, name: string, groups: number): Promise<number> {
  const chunk = 1_000;
  for (let from = 0; from < groups; from += chunk) {
    const jobs = Array.from({ length: Math.min(chunk, groups - from) }, (_, n) => newJob({ group: `${name}${from + n}` }));
    await store.add('q', [...jobs, ...jobs], { caller: name, seq: from + 1 });
  }
  const times: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const start = performance.now();
    const { jobs } = await store.claim('q', { session: 's', seq: (seq += 1), count: 2 });
    times.push(performance.now() - start);
    expect(jobs).toHaveLength(2);
  }
  return Math.min(...times);
}

let seq = 0;
