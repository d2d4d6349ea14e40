// Facet: schedules. What put, advance, pause and remove do, under which versions, and how schedules are read.
import assert from 'node:assert/strict';
import type {
  ScheduleChange,
  ScheduleQuery,
  ScheduleRecord,
  ScheduleReply,
  SchedulesFound,
  Slot,
} from '../../store/contract/index.js';
import { between, only, sorted } from './expect.js';
import { completed, newJob } from './samples.js';
import type { Scene } from './scene.js';
import type { Body, Test } from './suite.js';

export const ID = 'a:b "daily" 😀';
const STEP_MS = 60_000;

/** Returns the n-th slot of a schedule. `job` overrides fields of its job. */
export function slot(count: number, { dueInMs = 0, id = ID, ...job }: Partial<Slot['job']> & { dueInMs?: number } = {}): Slot {
  const at = count * STEP_MS;
  return { at, dueInMs, count, job: { ...newJob(), ...job, id: jobId(count, id) } };
}

export function jobId(count: number, id = ID): string {
  return `repeat:${id}:${count * STEP_MS}`;
}

type Put = Extract<ScheduleChange, { kind: 'put' }>;

export function putOf(difference: Partial<Put> = {}): Put {
  return { kind: 'put', id: ID, version: 0, spec: '{"every":60000}', serial: false, next: slot(1), ...difference };
}

export async function schedule(scene: Scene, change: ScheduleChange): Promise<ScheduleReply> {
  return only(await scene.store.schedule(scene.queue, [change]));
}

/** Makes a change that must be done, and returns the record. */
export async function done(scene: Scene, change: ScheduleChange): Promise<ScheduleRecord> {
  const { status, record } = await schedule(scene, change);
  assert.deepEqual([status, record?.id], ['done', change.id]);
  return record as ScheduleRecord;
}

export async function schedules(scene: Scene, query: ScheduleQuery): Promise<SchedulesFound> {
  const { schedules: found } = await scene.store.status(scene.queue, { schedules: query });
  assert(found !== undefined, 'status has the schedules that the query asked for');
  return found;
}

/** Returns the number of all schedules. */
export async function countOf(scene: Scene): Promise<number | undefined> {
  return (await schedules(scene, { count: true })).count;
}

export async function recordOf(scene: Scene, id = ID): Promise<ScheduleRecord> {
  return only((await schedules(scene, { ids: [id] })).records);
}

/** Makes a schedule and claims its next job, so that the schedule is owing. */
export async function owing(scene: Scene, difference: Partial<Put> = {}): Promise<ScheduleRecord> {
  const { id } = await done(scene, putOf(difference));
  await scene.claimOne(await scene.session());
  const record = await recordOf(scene, id);
  assert.equal(record.state, 'owing');
  return record;
}

/** Asserts the rule of schedules: each running one has one next job, which is not finished; all others but paused ones have none. */
export async function ruleHolds(scene: Scene): Promise<void> {
  for (const { id, state, serial, nextJobId } of (await schedules(scene, { start: 0, end: -1, asc: true })).records) {
    if (state !== 'running') {
      if (state !== 'paused') assert.equal(nextJobId, undefined, `${id} is ${state} and has no next job`);
      continue;
    }
    const job = await scene.job(nextJobId ?? assert.fail(`${id} is running and has a next job`));
    assert.equal(job.scheduleId, id);
    assert(['waiting', 'delayed', ...(serial ? ['active'] : [])].includes(job.state), `the next job of ${id} is ${job.state}`);
  }
}

/** Returns a `test` whose tests assert the rule when they have ended. */
export function ruled(test: Test): (title: string, body: Body) => void {
  return (title, body) =>
    test(title, async (scene) => {
      await body(scene);
      await ruleHolds(scene);
    });
}

export function scheduling(test: Test): void {
  puts(ruled(test));
  replacing(ruled(test), ruled(test.needs('changing')));
  triggers(ruled(test));
  advances(ruled(test));
  pauses(ruled(test));
  removals(ruled(test));
  reading(test);
}

function puts(test: (title: string, body: Body) => void): void {
  test('put makes a schedule and its next job, and records the events of add', async (scene) => {
    const record = await done(scene, putOf({ next: slot(1, { data: '"one"', priority: 3 }) }));
    const { version: _, ...rest } = record;
    const next = { at: STEP_MS, count: 1, nextJobId: jobId(1) };
    assert.deepEqual(rest, { id: ID, spec: '{"every":60000}', serial: false, state: 'running', ...next });
    assert.deepEqual(await recordOf(scene), record);
    const { data, priority, state, scheduleId, name } = await scene.job(jobId(1));
    assert.deepEqual([data, priority, state, scheduleId, name], ['"one"', 3, 'waiting', ID, 'work']);
    assert.deepEqual(await eventsSince(scene, 0), [`added ${jobId(1)}`, `waiting ${jobId(1)}`]);
  });

  test('the job of a slot is delayed by dueInMs, whatever its own delay says', async (scene) => {
    await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(5), delayMs: 1 }) }));
    assert.deepEqual(await scene.list('delayed'), [jobId(1)]);
    await scene.pass(6);
    assert.deepEqual(await scene.order(), [jobId(1)]);
    await done(scene, putOf({ id: 'late', next: slot(1, { id: 'late', dueInMs: -scene.ms(5), delayMs: scene.ms(50) }) }));
    assert.deepEqual(await scene.list('waiting'), [jobId(1, 'late')]);
  });

  test('version 0 means that the schedule must not exist', async (scene) => {
    const record = await done(scene, putOf());
    assert.deepEqual(await schedule(scene, putOf({ spec: 'other', next: slot(2) })), { status: 'stale', record });
    assert.equal(await scene.stateOf(jobId(2)), 'missing');
    assert.deepEqual(await schedule(scene, putOf({ id: 'unknown', version: 7 })), { status: 'missing' });
  });

  test('a put under an old version changes nothing', async (scene) => {
    const first = await done(scene, putOf());
    const second = await done(scene, putOf({ version: first.version, spec: 'second', next: slot(2) }));
    assert.equal(second.version, first.version + 1);
    const stale = putOf({ version: first.version, spec: 'third', next: slot(3) });
    assert.deepEqual(await schedule(scene, stale), { status: 'stale', record: second });
    assert.deepEqual(await scene.list('waiting'), [jobId(2)]);
  });

  test('a put without a slot makes a schedule that has ended', async (scene) => {
    const { state, at, count, nextJobId, version } = await done(scene, putOf({ next: undefined }));
    assert.deepEqual([state, at, count, nextJobId], ['ended', 0, 0, undefined]);
    assert.equal((await done(scene, putOf({ version }))).state, 'running');
    const { record } = await schedule(scene, putOf({ version: version + 1, next: undefined }));
    assert.deepEqual([record?.state, record?.at], ['ended', STEP_MS]);
    assert.deepEqual(await scene.list('waiting'), []);
  });

  test('a put whose job id is taken changes nothing and records duplicated', async (scene) => {
    await scene.add({ id: jobId(2), data: '"mine"' });
    assert.deepEqual(await schedule(scene, putOf({ next: slot(2) })), { status: 'taken' });
    assert.equal(await countOf(scene), 0);
    const record = await done(scene, putOf());
    const after = await scene.lastEvent();
    const reply = await schedule(scene, putOf({ version: record.version, spec: 'other', next: slot(2) }));
    assert.deepEqual(reply, { status: 'taken', record });
    assert.deepEqual(await eventsSince(scene, after), [`duplicated ${jobId(2)}`]);
    assert.equal((await scene.job(jobId(2))).data, '"mine"');
  });

  test('fifty puts at once make one schedule and one job', async (scene) => {
    const puts = Array.from({ length: 50 }, (_, n) => schedule(scene, putOf({ next: slot(n + 1) })));
    const statuses = (await Promise.all(puts)).map(({ status }) => status);
    assert.deepEqual(sorted(statuses), ['done', ...Array.from({ length: 49 }, () => 'stale')]);
    assert.equal((await scene.list('waiting')).length, 1);
  });

  test('one call changes many schedules, in order', async (scene) => {
    const puts = ['x', 'y'].map((id) => putOf({ id, next: slot(1, { id }) }));
    const replies = await scene.store.schedule(scene.queue, [...puts, putOf({ id: 'x', next: slot(2, { id: 'x' }) })]);
    assert.deepEqual(
      replies.map(({ status, record }) => [status, record?.id]),
      [
        ['done', 'x'],
        ['done', 'y'],
        ['stale', 'x'],
      ],
    );
    assert.deepEqual(await scene.store.schedule(scene.queue, []), []);
  });

  test('a schedule belongs to its queue alone', async (scene) => {
    const other = scene.at(`${scene.queue}-other`);
    const { version } = await done(scene, putOf());
    assert.deepEqual(await schedule(other, { kind: 'remove', id: ID, version }), { status: 'missing' });
    await done(other, putOf({ spec: 'other' }));
    assert.equal((await recordOf(scene)).spec, '{"every":60000}');
    assert.equal(await countOf(other), 1);
  });
}

function replacing(test: (title: string, body: Body) => void, changing: (title: string, body: Body) => void): void {
  const kinds: Record<string, (scene: Scene) => Slot> = {
    delayed: (scene) => slot(1, { dueInMs: scene.ms(1_000) }),
    waiting: () => slot(1),
    prioritized: () => slot(1, { priority: 5 }),
  };
  for (const [list, make] of Object.entries(kinds)) {
    for (const sameSlot of [true, false]) {
      test(`put replaces a next job that is ${list}, ${sameSlot ? 'also under the same id' : 'by another slot'}`, async (scene) => {
        const { version } = await done(scene, putOf({ next: make(scene) }));
        const after = await scene.lastEvent();
        const next = slot(sameSlot ? 1 : 2, { data: '"new"' });
        const record = await done(scene, putOf({ version, spec: 'new', next }));
        assert.deepEqual([record.spec, record.nextJobId, record.at], ['new', next.job.id, next.at]);
        assert.deepEqual(await scene.list('delayed'), []);
        assert.deepEqual(await scene.list('prioritized'), []);
        assert.deepEqual(await scene.list('waiting'), [next.job.id]);
        assert.equal((await scene.job(next.job.id)).data, '"new"');
        const expected = [`removed ${jobId(1)} ${list === 'delayed' ? 'delayed' : 'waiting'}`, `added ${next.job.id}`];
        assert.deepEqual(await eventsSince(scene, after), [...expected, `waiting ${next.job.id}`]);
      });
    }
  }

  test('put leaves a job that has started, and takes over from an owing schedule', async (scene) => {
    const { version } = await owing(scene);
    const record = await done(scene, putOf({ version, next: slot(2) }));
    assert.deepEqual([record.state, record.nextJobId], ['running', jobId(2)]);
    assert.equal(await scene.stateOf(jobId(1)), 'active');
    assert.deepEqual(await schedules(scene, { owing: true, limit: 10 }).then(({ records }) => records), []);
  });

  test('a put under the id of its own job that has started is taken', async (scene) => {
    const record = await owing(scene);
    assert.deepEqual(await schedule(scene, putOf({ version: record.version })), { status: 'taken', record });
    assert.equal(await scene.stateOf(jobId(1)), 'active');
  });

  changing('put replaces a next job that was promoted', async (scene) => {
    const { version } = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    await scene.store.change(scene.queue, [jobId(1)], { kind: 'promote' });
    assert.equal((await recordOf(scene)).version, version);
    await done(scene, putOf({ version, next: slot(2) }));
    assert.deepEqual(await scene.list('waiting'), [jobId(2)]);
  });
}

function triggers(test: (title: string, body: Body) => void): void {
  test('a job that was triggered names its schedule, which its claim and its end leave as it is', async (scene) => {
    const record = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    await scene.addOne({ id: 'by-hand', triggeredBy: ID });
    await scene.addOne({ id: 'urgent', triggeredBy: ID, priority: 3 });
    assert.equal((await scene.job('by-hand')).scheduleId, ID);
    const session = await scene.session();
    const first = await scene.claimOne(session);
    const second = await scene.claimOne(session);
    assert.deepEqual([first.id, first.scheduleId, first.debt], ['by-hand', ID, undefined]);
    assert.deepEqual([second.id, second.scheduleId, second.debt], ['urgent', ID, undefined]);
    const outcomes = [first, second].map((job) => completed(job));
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes)).results, ['done', 'done']);
    assert.deepEqual([(await scene.job('by-hand')).scheduleId, (await scene.job('urgent')).scheduleId], [ID, ID]);
    assert.deepEqual(await recordOf(scene), record);
  });
}

function advances(test: (title: string, body: Body) => void): void {
  test('advance adds the next job of an owing schedule', async (scene) => {
    const { version } = await owing(scene);
    const after = await scene.lastEvent();
    const record = await done(scene, { kind: 'advance', id: ID, version, next: slot(2, { dueInMs: scene.ms(5) }) });
    const expected = { version: version + 1, state: 'running', at: 2 * STEP_MS, count: 2, nextJobId: jobId(2) };
    assert.deepEqual(record, { ...record, ...expected, spec: '{"every":60000}', serial: false });
    assert.equal((await scene.job(jobId(2))).scheduleId, ID);
    assert.deepEqual(await eventsSince(scene, after), [`added ${jobId(2)}`, `delayed ${jobId(2)}`]);
    await scene.pass(6);
    assert.deepEqual(await scene.order(), [jobId(2)]);
    assert.equal((await recordOf(scene)).state, 'owing');
  });

  test('advance without a slot ends the schedule', async (scene) => {
    const { version } = await owing(scene);
    const record = await done(scene, { kind: 'advance', id: ID, version, next: undefined });
    assert.deepEqual([record.state, record.at, record.count, record.nextJobId], ['ended', STEP_MS, 1, undefined]);
    assert.deepEqual(await schedule(scene, { kind: 'advance', id: ID, version: version + 1, next: slot(2) }), {
      status: 'stale',
      record,
    });
  });

  test('two advances of one debt make one job', async (scene) => {
    const { version } = await owing(scene);
    const race = [2, 2, 3].map((n) => schedule(scene, { kind: 'advance', id: ID, version, next: slot(n) }));
    const replies = await Promise.all(race);
    assert.deepEqual(sorted(replies.map(({ status }) => status)), ['done', 'stale', 'stale']);
    assert.equal((await scene.list('waiting')).length, 1);
    const { nextJobId } = await recordOf(scene);
    for (const { record } of replies) assert.equal(record?.nextJobId, nextJobId, 'each reply has the record as it is');
  });

  test('a repeated advance is stale and shows what the first one made', async (scene) => {
    const { version } = await owing(scene);
    const change = { kind: 'advance', id: ID, version, next: slot(2) } as const;
    const record = await done(scene, change);
    assert.deepEqual(await schedule(scene, change), { status: 'stale', record });
    assert.deepEqual(await scene.list('waiting'), [jobId(2)]);
  });

  test('a schedule that is not owing is not advanced', async (scene) => {
    const record = await done(scene, putOf());
    const { version } = record;
    const advance = { kind: 'advance', id: ID, next: slot(2) } as const;
    assert.deepEqual(await schedule(scene, { ...advance, version }), { status: 'stale', record });
    const paused = await done(scene, { kind: 'pause', id: ID, version });
    assert.deepEqual(await schedule(scene, { ...advance, version: version + 1 }), { status: 'stale', record: paused });
    assert.deepEqual(await schedule(scene, { ...advance, id: 'unknown', version }), { status: 'missing' });
    assert.equal(await scene.stateOf(jobId(2)), 'missing');
  });

  test('an advance whose job id is taken leaves the debt and records duplicated', async (scene) => {
    const record = await owing(scene);
    await scene.add({ id: jobId(2), delayMs: scene.ms(1_000) });
    const after = await scene.lastEvent();
    const { version } = record;
    assert.deepEqual(await schedule(scene, { kind: 'advance', id: ID, version, next: slot(2) }), { status: 'taken', record });
    assert.deepEqual(await eventsSince(scene, after), [`duplicated ${jobId(2)}`]);
    assert.equal((await done(scene, { kind: 'advance', id: ID, version, next: slot(3) })).count, 3);
  });

  test('a debt of a schedule that was removed and made again is not cleared', async (scene) => {
    const old = await owing(scene);
    await removed(scene, { kind: 'remove', id: ID, version: old.version });
    await scene.pass(1);
    const fresh = await owing(scene, { next: slot(5) });
    assert(fresh.version > old.version, `${fresh.version} is greater than ${old.version}`);
    const { status } = await schedule(scene, { kind: 'advance', id: ID, version: old.version, next: slot(2) });
    assert.equal(status, 'stale');
  });
}

async function removed(scene: Scene, change: ScheduleChange): Promise<void> {
  assert.deepEqual(await schedule(scene, change), { status: 'done' });
}

function pauses(test: (title: string, body: Body) => void): void {
  for (const list of ['delayed', 'waiting'] as const) {
    test(`pause removes a next job that is ${list}, and takes back its count`, async (scene) => {
      const { version } = await done(scene, putOf({ next: slot(4, { dueInMs: list === 'delayed' ? scene.ms(1_000) : 0 }) }));
      const after = await scene.lastEvent();
      const record = await done(scene, { kind: 'pause', id: ID, version });
      assert.deepEqual([record.state, record.version, record.count, record.nextJobId], ['paused', version + 1, 3, undefined]);
      assert.deepEqual(await eventsSince(scene, after), [`removed ${jobId(4)} ${list}`]);
      assert.equal(await scene.stateOf(jobId(4)), 'missing');
      assert.equal((await done(scene, putOf({ version: version + 1, next: slot(4) }))).state, 'running');
    });
  }

  test('pause of an owing schedule ends the debt', async (scene) => {
    const { version } = await owing(scene);
    const record = await done(scene, { kind: 'pause', id: ID, version });
    assert.deepEqual([record.state, record.count], ['paused', 1]);
    const { records } = await schedules(scene, { owing: true, limit: 10 });
    assert.deepEqual(records, []);
    assert.equal((await scene.tryClaim(await scene.session())).undone, undefined);
  });

  test('pause under an old version, or of an unknown schedule, changes nothing', async (scene) => {
    const record = await done(scene, putOf());
    const { version } = record;
    assert.deepEqual(await schedule(scene, { kind: 'pause', id: ID, version: version - 1 }), { status: 'stale', record });
    assert.deepEqual(await schedule(scene, { kind: 'pause', id: 'unknown', version }), { status: 'missing' });
    assert.deepEqual(await scene.list('waiting'), [jobId(1)]);
  });
}

function removals(test: (title: string, body: Body) => void): void {
  test('remove deletes the schedule and a delayed next job', async (scene) => {
    const { version } = await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(1_000) }) }));
    const after = await scene.lastEvent();
    await removed(scene, { kind: 'remove', id: ID, version });
    assert.deepEqual(await eventsSince(scene, after), [`removed ${jobId(1)} delayed`]);
    assert.equal(await scene.stateOf(jobId(1)), 'missing');
    assert.equal(await countOf(scene), 0);
    assert.deepEqual(await schedule(scene, { kind: 'remove', id: ID, version }), { status: 'missing' }, 'repeated');
  });

  test('remove leaves a waiting next job as an ordinary job', async (scene) => {
    const { version } = await done(scene, putOf());
    await removed(scene, { kind: 'remove', id: ID, version });
    const job = await scene.claimOne(await scene.session());
    assert.deepEqual([job.id, job.debt], [jobId(1), undefined]);
    assert.equal(await countOf(scene), 0);
  });

  test('remove of an owing schedule ends the debt', async (scene) => {
    const { version } = await owing(scene);
    await removed(scene, { kind: 'remove', id: ID, version });
    assert.equal((await scene.tryClaim(await scene.session())).undone, undefined);
    assert.deepEqual(await schedule(scene, { kind: 'advance', id: ID, version, next: slot(2) }), { status: 'missing' });
  });

  test('remove under an old version, or of an unknown schedule, changes nothing', async (scene) => {
    const record = await done(scene, putOf());
    const { version } = record;
    assert.deepEqual(await schedule(scene, { kind: 'remove', id: ID, version: version - 1 }), { status: 'stale', record });
    assert.deepEqual(await schedule(scene, { kind: 'remove', id: 'unknown', version }), { status: 'missing' });
    assert.deepEqual(await recordOf(scene), record);
  });
}

function reading(test: Test): void {
  test('status lists schedules by slot and then by id, in both directions', async (scene) => {
    const slots: [string, number][] = [
      ['c', 2],
      ['a', 1],
      ['b', 1],
      ['d', 3],
    ];
    for (const [id, n] of slots) await done(scene, putOf({ id, next: slot(n, { id }) }));
    const listed = async (start: number, end: number, asc: boolean): Promise<string> => {
      const { records } = await schedules(scene, { start, end, asc });
      return records.map(({ id }) => id).join('');
    };
    assert.equal(await listed(0, -1, true), 'abcd');
    assert.equal(await listed(0, -1, false), 'dcba');
    assert.equal(await listed(1, 2, true), 'bc');
    assert.equal(await listed(3, 9, true), 'd');
    assert.equal(await listed(4, 9, true), '');
    const { records } = await schedules(scene, { ids: ['d', 'unknown', 'a'] });
    assert.deepEqual(
      records.map(({ id }) => id),
      ['d', 'a'],
    );
  });

  test('status lists owing schedules, at most as many as asked for', async (scene) => {
    for (const id of ['a', 'b', 'c']) await done(scene, putOf({ id, next: slot(1, { id }) }));
    await scene.claim(await scene.session(), 2);
    assert.equal((await schedules(scene, { owing: true, limit: 10 })).records.length, 2);
    assert.equal((await schedules(scene, { owing: true, limit: 1 })).records.length, 1);
    await ruleHolds(scene);
  });

  test('status counts schedules if the query asks for their number, and only then', async (scene) => {
    assert.equal(await countOf(scene), 0);
    for (const id of ['a', 'b', 'c']) await done(scene, putOf({ id, next: slot(1, { id }) }));
    await scene.claim(await scene.session(), 1);
    const { records, count } = await schedules(scene, { count: true });
    assert.deepEqual([records, count], [[], 3]);
    for (const query of [{ ids: ['a'] }, { owing: true as const, limit: 5 }, { start: 0, end: -1, asc: true }])
      assert.equal((await schedules(scene, query)).count, undefined);
  });

  test('status without a query for schedules has none', async (scene) => {
    await done(scene, putOf());
    assert.equal((await scene.store.status(scene.queue)).schedules, undefined);
  });

  test('the store tells its wall clock, which goes on as time passes', async (scene) => {
    const { now } = await schedules(scene, { ids: [] });
    assert.equal(now, Math.floor(now));
    await scene.pass(5);
    const { now: later } = await schedules(scene, { ids: [] });
    between(later - now, scene.ms(5), scene.ms(5) + 60_000, 'the wall clock');
  });

  test.manual('the wall clock of the store follows steps, and delays do not', async (scene) => {
    const { now } = await schedules(scene, { ids: [] });
    await done(scene, putOf({ next: slot(1, { dueInMs: scene.ms(5) }) }));
    scene.stepWall(86_400_000);
    assert.equal((await schedules(scene, { ids: [] })).now, now + 86_400_000);
    assert.deepEqual(await scene.claim(await scene.session()), []);
    await scene.pass(6);
    const job = await scene.claimOne(await scene.session());
    assert.equal(job.debt?.now, now + 86_400_000 + scene.ms(6));
  });

  test.shared('a schedule that one connection made is advanced by another', async (scene) => {
    const peer = await scene.peer();
    const { version } = await owing(scene);
    assert.equal((await done(peer, { kind: 'advance', id: ID, version, next: slot(2) })).nextJobId, jobId(2));
    assert.equal((await recordOf(scene)).version, version + 1);
  });

  test.durable('schedules outlive the store object', async (scene) => {
    const { version } = await owing(scene);
    await done(scene, putOf({ id: 'second', next: slot(1, { id: 'second', dueInMs: scene.ms(1_000) }) }));
    const again = await scene.reopen();
    assert.equal((await recordOf(again)).state, 'owing');
    await done(again, { kind: 'advance', id: ID, version, next: slot(2) });
    assert.equal(await countOf(again), 2);
    await ruleHolds(again);
  });
}

/** Returns the events after an id, as "name job prev". */
export async function eventsSince(scene: Scene, after: number): Promise<string[]> {
  const events = await scene.events(after);
  return events.map(({ name, jobId: id, prev }) => [name, id, prev].filter((part) => part !== undefined).join(' '));
}
