import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/store/contract/index.js';
import { ManualClock } from '../../../src/testing/index.js';
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

describe('new limits for all groups on SQLite', () => {
  it('are set without a write to the rows of the groups', async () => {
    const { store, writes } = await crowd(2_000);
    for (const groups of [{ maxActive: 1 }, { rate: { max: 1, durationMs: 60_000 } }, { maxActive: 0 }, null]) {
      await store.configure('q', { groups });
      expect(writes()).toBe(0);
    }
  });

  it('open many groups again for the next claims, in the order of their turns, with few writes each', async () => {
    const { store, writes, names } = await crowd(1_000);
    await store.configure('q', { groups: { maxActive: 0 } });
    while ((await store.claim('q', { session: 's', seq: (seq += 1), count: 10 })).more === true);
    writes();
    await store.configure('q', { groups: { maxActive: 1 } });
    const order: string[] = [];
    for (let round = 0; round < 100; round += 1) {
      const ids = await claimed(store, 's', (seq += 1));
      expect(ids).toHaveLength(10);
      expect(writes()).toBeLessThan(300);
      order.push(...ids);
    }
    expect(order).toEqual(names.map((name) => `${name}1`));
    expect(await claimed(store, 's', (seq += 1))).toEqual([]);
    // A group that was full under a limit is full under a lower one, so nothing is looked at again.
    await store.configure('q', { groups: { maxActive: 0 } });
    await store.configure('q', { groups: { maxActive: 1 } });
    writes();
    expect(await claimed(store, 's', (seq += 1))).toEqual([]);
    expect(writes()).toBe(0);
  });

  it('open many groups again whose windows are used up, in the order of their turns', async () => {
    const { store, writes, names } = await crowd(500);
    await store.configure('q', { groups: { rate: { max: 1, durationMs: 600_000 } } });
    for (let round = 0; round < 50; round += 1) expect(await claimed(store, 's', (seq += 1))).toHaveLength(10);
    expect(await claimed(store, 's', (seq += 1))).toEqual([]);
    writes();
    await store.configure('q', { groups: { rate: { max: 2, durationMs: 600_000 } } });
    const order: string[] = [];
    for (let round = 0; round < 50; round += 1) {
      order.push(...(await claimed(store, 's', (seq += 1))));
      expect(writes()).toBeLessThan(300);
    }
    expect(order).toEqual(names.map((name) => `${name}2`));
    expect(await claimed(store, 's', (seq += 1))).toEqual([]);
  });

  it('close many groups in several claims, and no claim takes a job beyond them', async () => {
    const { store, writes } = await crowd(1_000);
    const { jobs } = await store.claim('q', { session: 's', seq: (seq += 1), count: 1_000 });
    expect(jobs).toHaveLength(1_000);
    await store.configure('q', { groups: { maxActive: 1 } });
    writes();
    let claims = 0;
    for (let more: boolean | undefined = true; more === true; claims += 1) {
      const reply = await store.claim('q', { session: 's', seq: (seq += 1), count: 10 });
      expect(reply.jobs).toEqual([]);
      expect(writes()).toBeLessThan(300);
      more = reply.more;
    }
    expect(claims).toBeGreaterThan(2);
    const [first] = jobs.slice(700);
    const { id: jobId = '', token = '', group } = first ?? {};
    await store.settle('q', [{ kind: 'completed', jobId, token, value: '1', keep: {} }]);
    expect(await claimed(store, 's', (seq += 1))).toEqual([`${group}2`]);
  });

  it('end the rests of many groups in several claims', async () => {
    const clock = new ManualClock();
    const { store, writes, names } = await crowd(2_000, clock);
    await store.configure('q', { groups: { rate: { max: 1, durationMs: 1_000 } } });
    expect((await store.claim('q', { session: 's', seq: (seq += 1), count: 2_000 })).jobs).toHaveLength(2_000);
    clock.advance(1_001);
    writes();
    const order: string[] = [];
    while (order.length < 2_000) {
      const ids = await claimed(store, 's', (seq += 1), 50);
      expect(ids.length).toBeGreaterThan(0);
      expect(writes()).toBeLessThan(1_000);
      order.push(...ids);
    }
    expect(order.toSorted()).toEqual(names.map((name) => `${name}2`).toSorted());
  });
});

describe('forgetting a queue on SQLite', () => {
  it('lets other connections renew their sessions between its steps, with many groups, schedules or entries', async () => {
    const { store, file, names } = await crowd(2_000);
    const slot = (id: string) => ({ at: 1, dueInMs: 1_000, count: 1, job: { ...newJob(), id } });
    const puts = names
      .slice(0, 1_000)
      .map((id) => ({ kind: 'put' as const, id, version: 0, spec: '{}', serial: false, next: slot(id) }));
    await store.schedule('schedules', puts);
    await store.add(
      'entries',
      names.map((id) => newJob({ deduplication: { id } })),
      { caller: 'p', seq: 1 },
    );
    const other = await openStore({ path: file, synchronous: 'normal' });
    for (const queue of ['q', 'schedules', 'entries']) {
      let isForgotten = false;
      const forgetting = store.forget(queue, { all: true }).then(() => (isForgotten = true));
      let renewals = 0;
      for (; !isForgotten; renewals += 1) await other.renew([{ queue: 'q', id: 's', acked: 0 }]);
      await forgetting;
      expect(renewals).toBeGreaterThan(3);
    }
  });

  it('lets a group come into line again that had a turn before', async () => {
    const store = await openStore({ path: newFile() });
    await store.openSession(newSession({ id: 's' }));
    await store.add('q', grouped('g', 3), { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 1 });
    await store.settle(
      'q',
      jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: { count: 0 } })),
    );
    await store.change('q', { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
    await store.forget('q', { all: true });
    await store.add('q', grouped('g', 1), { caller: 'p', seq: 2 });
    expect(await claimed(store, 's', 2)).toEqual(['g1']);
  });

  it('leaves groups with jobs in line, at the first number, without their settings', async () => {
    const { store, names } = await crowd(500);
    await store.configure('q', { groups: { maxActive: 1 }, group: { key: names[400] ?? '', paused: true } });
    const { jobs } = await store.claim('q', { session: 's', seq: (seq += 1), count: 450 });
    const started = new Set(jobs.map(({ group }) => group));
    const empty = names.slice(100, 300).map((name) => `${name}2`);
    await store.change('q', empty, { kind: 'remove' });
    await store.settle(
      'q',
      jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: {} })),
    );
    await store.forget('q', { all: true });
    const { groups } = await store.status('q', { groups: { limit: 1_000 } });
    // The session is open, so the limits of all groups stay.
    expect(groups?.rules).toEqual({ maxActive: 1 });
    expect(groups?.groups.map(({ key }) => key)).toEqual([...names.slice(0, 100), ...names.slice(300)]);
    expect(groups?.groups.filter(({ paused }) => paused)).toEqual([]);
    const order = await claimed(store, 's', (seq += 1), 300);
    expect(order).toEqual(groups?.groups.map(({ key }) => `${key}${started.has(key) ? 2 : 1}`));
  });
});

interface Crowd {
  store: Store;
  file: string;
  names: string[];
  writes: () => number;
}

/** A store with two waiting jobs in each of many groups. `writes` returns the rows of groups that were written since its last call. */
async function crowd(count: number, clock?: ManualClock): Promise<Crowd> {
  const file = newFile();
  const store = await openStore({ path: file, synchronous: 'normal', ...(clock !== undefined && { clock }) });
  await store.openSession(newSession({ id: 's', slots: count, durationMs: 1_000_000 }));
  const names = Array.from({ length: count }, (_, n) => `group${String(n).padStart(5, '0')}-`);
  await store.add(
    'q',
    names.flatMap((name) => grouped(name, 2)),
    { caller: 'p', seq: 1 },
  );
  const db = new Database(file);
  afterwards(() => db.close());
  db.exec('CREATE TABLE written (key TEXT)');
  for (const [verb, row] of [
    ['INSERT', 'new'],
    ['UPDATE', 'new'],
    ['DELETE', 'old'],
  ])
    db.exec(`CREATE TRIGGER written${verb} AFTER ${verb} ON groups BEGIN INSERT INTO written VALUES (${row}.key); END`);
  return { store, file, names, writes: () => db.prepare('DELETE FROM written').run().changes };
}

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
