import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type {
  ClaimReply,
  ScheduleChange,
  ScheduleRecord,
  ScheduleReply,
  Slot,
  Store,
} from '../../../src/store/contract/index.js';
import { ManualClock } from '../../../src/testing/index.js';
import { afterwards, newFile, newJob, newSession, openStore, StoreProcess } from './support.js';

function slot(count: number, at = count, dueInMs = 0): Slot {
  return { at, dueInMs, count, job: { ...newJob(), id: `repeat:s:${count}` } };
}

function putOf(change: Partial<Extract<ScheduleChange, { kind: 'put' }>> = {}): ScheduleChange {
  return { kind: 'put', id: 's', version: 0, spec: '{}', serial: false, next: slot(1), ...change };
}

async function recordOf(store: Store, queue = 'q'): Promise<ScheduleRecord> {
  const { schedules } = await store.status(queue, { schedules: { ids: ['s'] } });
  return schedules?.records[0] ?? expect.fail('the schedule exists');
}

function look(file: string): Database.Database {
  const db = new Database(file);
  afterwards(() => db.close());
  return db;
}

describe('a queue without schedules on SQLite', () => {
  it('reads and writes no table of schedules', async () => {
    const file = newFile();
    const store = await openStore({ path: file });
    const db = look(file);
    db.exec('DROP TABLE schedules');
    await store.openSession(newSession());
    await store.add('q', [newJob(), newJob(), newJob({ deduplication: { id: 'd' } })], { caller: 'p', seq: 1 });
    const { jobs } = await store.claim('q', { session: 's', seq: 1, count: 3 });
    const outcomes = jobs.map(({ id, token }) => ({ kind: 'completed', jobId: id, token, value: '1', keep: {} }) as const);
    const { results } = await store.settle('q', outcomes, { caller: 's', seq: 2 }, { session: 's', seq: 2, count: 1 });
    expect(results).toEqual(['done', 'done', 'done']);
    expect(await store.probe('q')).toEqual({ sessions: 1 });
    expect(await store.sweep('q', 10)).toEqual({ stalled: [], failed: [], more: false });
    await store.forget('q', { all: true });
    expect(db.prepare('SELECT scheduled FROM queues').pluck().all()).toEqual([0]);
    await expect(store.schedule('q', [putOf()])).rejects.toMatchObject({ code: 'STORE_FAILED' });
  });
});

describe('a schedule on SQLite whose next job was changed without it', () => {
  const taken = { claimed: 'UPDATE jobs SET state = 3', finished: 'UPDATE jobs SET state = 4', removed: 'DELETE FROM jobs' };

  async function takenBy(change: string, serial: boolean) {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    await store.schedule('q', [putOf({ serial, next: slot(1, clock.wall()) })]);
    const db = look(file);
    db.exec(change);
    const before = await recordOf(store);
    await store.sweep('q', 10);
    expect(await recordOf(store)).toEqual(before);
    clock.advance(61_000);
    return { store, db, before, clock };
  }

  it.each(Object.entries(taken))('is owing after a sweep a minute later (%s)', async (_, change) => {
    const { store, db, before } = await takenBy(change, false);
    const woken = new Promise<void>((resolve) => afterwards(store.watch('q', resolve)));
    await store.sweep('q', 10);
    const { nextJobId: _next, ...rest } = before;
    expect(await recordOf(store)).toEqual({ ...rest, state: 'owing', version: before.version + 1 });
    expect(db.prepare('SELECT marks FROM jobs').pluck().all()).toEqual(change.startsWith('DELETE') ? [] : [0]);
    await woken;
    expect((await store.probe('q')).undone).toBe(true);
    const advance: ScheduleChange = { kind: 'advance', id: 's', version: before.version + 1, next: slot(2) };
    expect((await store.schedule('q', [advance]))[0]?.status).toBe('done');
  });

  it('goes on if it is serial and the job runs, and is owing when the job has ended', async () => {
    const { store, db, before, clock } = await takenBy(taken.claimed, true);
    await store.sweep('q', 10);
    expect(await recordOf(store)).toEqual(before);
    db.exec(taken.finished);
    clock.advance(11_000);
    await store.sweep('q', 10);
    expect((await recordOf(store)).state).toBe('owing');
  });

  it('is found with others in bounded sweeps', async () => {
    const file = newFile();
    const clock = new ManualClock();
    const store = await openStore({ path: file, clock });
    const puts = Array.from({ length: 25 }, (_, n) => putOf({ id: `s${n}`, next: slot(n + 1) }));
    await store.schedule('q', puts);
    look(file).exec(taken.removed);
    const owing = async (): Promise<number | undefined> => {
      await store.sweep('q', 10);
      return (await store.status('q', { schedules: { owing: true, limit: 100 } })).schedules?.records.length;
    };
    expect([await owing(), await owing(), await owing()]).toEqual([10, 20, 25]);
  });
});

it('a debt of a process that was killed before it advanced its schedule is cleared by another one', async () => {
  const file = newFile();
  const store = await openStore({ path: file });
  const { version = 0 } = (await store.schedule('q', [putOf()]))[0]?.record ?? {};
  const other = await StoreProcess.start(file);
  await other.call('open');
  await other.call('openSession', newSession());
  const { jobs } = await other.call<ClaimReply>('claim', 'q', { session: 's', seq: 1, count: 1 });
  expect(jobs[0]?.debt).toMatchObject({ id: 's', state: 'owing', version: version + 1 });
  await other.kill();
  expect((await store.probe('q')).undone).toBe(true);
  const [debt] = (await store.status('q', { schedules: { owing: true, limit: 5 } })).schedules?.records ?? [];
  expect(debt?.version).toBe(version + 1);
  const advance: ScheduleChange = { kind: 'advance', id: 's', version: version + 1, next: slot(2) };
  expect((await store.schedule('q', [advance]))[0]).toMatchObject({ status: 'done', record: { nextJobId: 'repeat:s:2' } });
  expect((await store.probe('q')).undone).toBeUndefined();
});

describe('two processes that change a schedule of one SQLite file at once', () => {
  const ROUNDS = 10;
  /** A store that does not count versions, and lets an advanced schedule stay owing. */
  const BROKEN = `
    CREATE TRIGGER made AFTER INSERT ON schedules BEGIN
      UPDATE schedules SET version = 7, state = CASE WHEN NEW.count > 1 THEN 'owing' ELSE NEW.state END
      WHERE queue = NEW.queue AND id = NEW.id;
    END;
    CREATE TRIGGER owing AFTER UPDATE OF version ON schedules WHEN NEW.version <> 7 BEGIN
      UPDATE schedules SET version = 7 WHERE queue = NEW.queue AND id = NEW.id;
    END;`;

  type Call = (by: StoreProcess, queue: string, version: number, n: number) => Promise<boolean>;
  const change =
    (make: (version: number, n: number) => ScheduleChange): Call =>
    async (by, queue, version, n) =>
      (await by.call<ScheduleReply[]>('schedule', queue, [make(version, n)]))[0]?.status === 'done';
  /** True if the claim took the first job of the schedule, and carries its debt. */
  const claim: Call = async (by, queue) => {
    const { jobs } = await by.call<ClaimReply>('claim', queue, { session: 's', seq: 9, count: 1 });
    return jobs[0]?.id === 'repeat:s:1' && jobs[0].debt !== undefined;
  };
  const advance = change((version, n) => ({ kind: 'advance', id: 's', version, next: slot(n) }));
  const races: Record<string, { calls: [Call, Call]; owing: boolean }> = {
    'two advances': { calls: [advance, advance], owing: true },
    'a claim and a put': { calls: [claim, change((version, n) => putOf({ version, next: slot(n) }))], owing: false },
    'a claim and a removal': { calls: [claim, change((version) => ({ kind: 'remove', id: 's', version }))], owing: false },
  };

  /** Returns how many of the rounds each of the calls won alone, and how many both won. */
  async function race({ calls, owing }: (typeof races)[string], isBroken: boolean): Promise<{ alone: number; both: number }> {
    const file = newFile();
    const store = await openStore({ path: file });
    if (isBroken) look(file).exec(BROKEN);
    const processes = await Promise.all([StoreProcess.start(file), StoreProcess.start(file)]);
    for (const one of processes) await one.call('open');
    const count = { alone: 0, both: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const queue = `q${round}`;
      await store.openSession(newSession({ queue }));
      await store.schedule(queue, [putOf()]);
      if (owing) await store.claim(queue, { session: 's', seq: 1, count: 1 });
      const { version } = await recordOf(store, queue);
      const won = await Promise.all(
        calls.map((call, index) => call(processes[index] as StoreProcess, queue, version, 2 + index)),
      );
      const winners = won.filter(Boolean).length;
      if (winners === 2) count.both += 1;
      if (winners === 1) count.alone += 1;
    }
    return count;
  }

  it.each(Object.entries(races))('of %s, one wins', async (_, calls) => {
    expect(await race(calls, false)).toEqual({ alone: ROUNDS, both: 0 });
  });

  it('both win where the file does not count versions', async () => {
    expect((await race(races['two advances'] as (typeof races)[string], true)).both).toBe(ROUNDS);
  });
});
