// Changes of schedules against one another and against claims and ends of their next jobs, on many connections; and the second net.
import type { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import type { ScheduleChange, ScheduleRecord, ScheduleReply, Slot } from '../../../src/store/contract/index.js';
import type { PostgresStore } from '../../../src/store/postgres/index.js';
import { blocked, completed, deadlocks, newClient, newDatabase, newJob, newSession, openStore, shuffled } from './support.js';
import { until } from '../../support/wait/until.js';

/** The slots passed long ago. The name of the job tells its schedule to the events. */
const slot = (id: string, count: number, dueInMs = 0): Slot => ({
  at: count * 1_000,
  dueInMs,
  count,
  job: { ...newJob({ name: id }), id: `repeat:${id}:${count * 1_000}` },
});

const put = (id: string, version: number, next: Slot, serial = false): ScheduleChange => ({
  kind: 'put',
  id,
  version,
  spec: '{}',
  serial,
  next,
});

async function one(store: PostgresStore, change: ScheduleChange): Promise<ScheduleReply> {
  return (await store.schedule('q', [change]))[0] as ScheduleReply;
}

async function records(store: PostgresStore): Promise<ScheduleRecord[]> {
  return (await store.status('q', { schedules: { start: 0, end: -1, asc: true } })).schedules?.records ?? [];
}

async function waitsFor(watcher: Client, count: number): Promise<void> {
  await until(`${count} connections wait`, async () => (await blocked(watcher)) === count);
}

const NO_ROW_LOCK = `CREATE OR REPLACE FUNCTION holdfast.lock_schedule(_queue int, _id text, _made boolean)
  RETURNS holdfast.schedules LANGUAGE sql AS 'SELECT * FROM holdfast.schedules WHERE queue = _queue AND id = _id'`;
const NO_ORDER = `CREATE OR REPLACE FUNCTION holdfast.lock_schedules(_queue int, _schedules text[], _made boolean[])
  RETURNS void LANGUAGE sql AS ''`;

test('a storm of claims, ends and changes deadlocks nowhere, and no schedule has two next jobs', async () => {
  const url = await newDatabase();
  const stores = await Promise.all(Array.from({ length: 4 }, () => openStore({ url, max: 4 })));
  const [first] = stores as [PostgresStore];
  const ids = ['a', 'b', 'c', 'd'];
  const counts = new Map(ids.map((id) => [id, 1]));
  const nextSlot = (id: string): Slot => {
    counts.set(id, (counts.get(id) ?? 0) + 1);
    return slot(id, counts.get(id) ?? 0);
  };
  for (const id of ids) await one(first, put(id, 0, slot(id, 1), id < 'c'));
  let changing = true;
  const change = async (store: PostgresStore, n: number): Promise<void> => {
    for (let turn = 1; turn <= 40; turn += 1) {
      const found = shuffled(await records(store), turn + n);
      const changes = found.slice(0, 1 + (turn % 3)).map(({ id, version, state, serial }): ScheduleChange => {
        if (state === 'owing') return { kind: 'advance', id, version, next: nextSlot(id) };
        if ((turn + n) % 5 === 0) return { kind: 'pause', id, version };
        return (turn + n) % 11 === 0 ? { kind: 'remove', id, version } : put(id, version, nextSlot(id), serial);
      });
      await store.schedule('q', [...changes, put('a', 0, nextSlot('a'), true), put('d', 0, nextSlot('d'))]);
    }
  };
  const consume = async (store: PostgresStore, session: string): Promise<void> => {
    await store.openSession(newSession({ id: session }));
    for (let seq = 1, outcomes: ReturnType<typeof completed>[] = []; changing || outcomes.length > 0; seq += 1) {
      const { claimed } = await store.settle('q', outcomes, { caller: session, seq }, { session, seq, count: 3 });
      outcomes = (claimed?.jobs ?? []).map(completed);
    }
  };
  const consumers = stores.map((store, n) => consume(store, `s${n}`));
  await Promise.all(stores.flatMap((store, n) => [change(store, 2 * n), change(store, 2 * n + 1)]));
  changing = false;
  await Promise.all(consumers);

  expect(await deadlocks(url)).toBe(0);
  const client = await newClient(url);
  const { rows: marked } = await client.query<{ id: string }>('SELECT id FROM holdfast.jobs WHERE marks <> 0');
  const kept = await records(first);
  const nexts = kept.flatMap(({ nextJobId }) => nextJobId ?? []);
  expect(marked.map(({ id }) => id).sort()).toEqual(nexts.sort());
  for (const { state, nextJobId } of kept) expect(nextJobId !== undefined).toBe(state === 'running');
  const { counts: left } = await first.status('q');
  const { rows } = await client.query(`SELECT FROM holdfast.jobs WHERE state <= 2`);
  expect(left.waiting + left.delayed + left.prioritized).toBe(rows.length);
  expect(left.completed).toBeGreaterThan(20);
}, 60_000);

describe('a change beside a claim that has the next job and not yet the schedule', () => {
  async function race(change: (record: ScheduleRecord) => ScheduleChange, ordered: boolean): Promise<[unknown, number, number]> {
    const url = await newDatabase();
    const store = await openStore({ url });
    const [claim, watcher] = [await newClient(url), await newClient(url)];
    const { record } = await one(store, put('a', 0, slot('a', 1, 3_600_000)));
    if (!ordered) await watcher.query(NO_ORDER);
    await claim.query('BEGIN; SET search_path TO holdfast');
    await claim.query('SELECT FROM jobs FOR UPDATE');
    const changed = one(store, change(record as ScheduleRecord)).then(
      ({ status }) => status,
      () => 'an error',
    );
    await waitsFor(watcher, 1);
    const owed = await claim.query(`SELECT owe(queue, 'a', id) FROM jobs`).then(
      () => 'owing',
      () => 'an error',
    );
    await claim.query('COMMIT');
    const results = [await changed, owed];
    return [results, (await records(store)).length, await deadlocks(url)];
  }
  const changes: Record<string, (record: ScheduleRecord) => ScheduleChange> = {
    put: ({ version }) => put('a', version, slot('a', 2)),
    pause: ({ id, version }) => ({ kind: 'pause', id, version }),
    remove: ({ id, version }) => ({ kind: 'remove', id, version }),
  };
  for (const [kind, change] of Object.entries(changes)) {
    test(`${kind} waits for the claim and is stale`, async () => {
      expect(await race(change, true)).toEqual([['stale', 'owing'], 1, 0]);
    });
  }

  test('put and claim would deadlock if the schedule were locked first (negative control)', async () => {
    const [, , found] = await race(changes.put as NonNullable<typeof changes.put>, false);
    // The store repeats the call that the server ended, so only the server's count shows it.
    expect(found).toBeGreaterThan(0);
  });
});

describe('two changes of one version at once', () => {
  async function race(kind: 'advance' | 'put', locked: boolean): Promise<[string[], number]> {
    const url = await newDatabase();
    const store = await openStore({ url, max: 4 });
    const [holder, watcher] = [await newClient(url), await newClient(url)];
    await store.openSession(newSession());
    let { record } = await one(store, put('a', 0, slot('a', 1)));
    await store.claim('q', { session: 's', seq: 1, count: 1 });
    [record] = await records(store);
    const version = record?.version ?? 0;
    expect(record?.state).toBe('owing');
    if (!locked) await watcher.query(NO_ROW_LOCK);
    await holder.query('BEGIN; SELECT FROM holdfast.schedules FOR UPDATE');
    const both = [2, 3].map((n) =>
      one(store, kind === 'put' ? put('a', version, slot('a', n)) : { kind, id: 'a', version, next: slot('a', n) }),
    );
    await waitsFor(watcher, 2);
    await holder.query('COMMIT');
    const statuses = (await Promise.all(both)).map(({ status }) => status);
    return [statuses.sort(), (await store.status('q')).counts.waiting];
  }
  for (const kind of ['advance', 'put'] as const) {
    test(`${kind}: one is done, the other is stale`, async () => {
      expect(await race(kind, true)).toEqual([['done', 'stale'], 1]);
    });
  }

  test('two advances would make two jobs without the lock of the schedule (negative control)', async () => {
    expect(await race('advance', false)).toEqual([['done', 'done'], 2]);
  });
});

test('a sweep does not wait for a schedule, and ends the run of a serial one when the schedule is free', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const holder = await newClient(url);
  await store.openSession(newSession({ maxStalls: 0 }));
  await one(store, put('a', 0, slot('a', 1), true));
  await store.claim('q', { session: 's', seq: 1, count: 1 });
  await holder.query('UPDATE holdfast.sessions SET expires_at = 0, look_at = 0');
  await holder.query('BEGIN; SELECT FROM holdfast.schedules FOR UPDATE');
  expect((await store.sweep('q', 10)).failed).toEqual([]);
  await holder.query('COMMIT');
  expect((await store.sweep('q', 10)).failed).toEqual(['repeat:a:1000']);
  expect(await records(store)).toMatchObject([{ id: 'a', state: 'owing' }]);
});

test('a sweep makes schedules owing whose next jobs were taken by something else than a claim', async () => {
  const url = await newDatabase();
  const store = await openStore({ url });
  const client = await newClient(url);
  for (const id of ['active', 'finished', 'gone', 'serial', 'waits']) await one(store, put(id, 0, slot(id, 1), id === 'serial'));
  await one(store, put('young', 0, { ...slot('young', 1), at: Date.now() }));
  await client.query(`UPDATE holdfast.jobs SET state = 3, session = 'old' WHERE name IN ('active', 'serial');
    UPDATE holdfast.jobs SET state = 4 WHERE name = 'finished';
    DELETE FROM holdfast.jobs WHERE name IN ('gone', 'young');
    UPDATE holdfast.holdfast_schema SET pruned_at = 0`);
  await store.sweep('q', 10);
  await store.sweep('q', 10);
  const found = Object.fromEntries((await records(store)).map(({ id, state }) => [id, state]));
  expect(found).toEqual({
    active: 'owing',
    finished: 'owing',
    gone: 'owing',
    serial: 'running',
    waits: 'running',
    young: 'running',
  });
  const { rows } = await client.query(`SELECT name FROM holdfast.jobs WHERE marks <> 0 ORDER BY 1`);
  expect(rows.map(({ name }) => name)).toEqual(['serial', 'waits']);
});
