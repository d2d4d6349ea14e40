// Facet: settings of groups: rates and blocks on the store's clock, and what lists, counts and queries show of groups.
import assert from 'node:assert/strict';
import type { GroupInfo, GroupQuery } from '../../store/contract/index.js';
import { between, eventually, ids, nth, only } from './expect.js';
import { jobsOf, maxActive, setGroup } from './groups.js';
import { completed, released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

function rate(scene: Scene, max: number, units: number): Promise<void> {
  return scene.store.configure(scene.queue, { groups: { rate: { max, durationMs: scene.ms(units) } } });
}

async function found(scene: Scene, query: GroupQuery): Promise<GroupInfo[]> {
  return (await scene.store.status(scene.queue, { groups: query })).groups?.groups ?? assert.fail('no groups in the status');
}

export function groupSettings(test: Test): void {
  rates(test);
  blocks(test);
  views(test);
  others(test);
}

function rates(test: Test): void {
  test('a group gives out as many jobs per window as its rate allows', async (scene) => {
    await rate(scene, 2, 50);
    await scene.add(...jobsOf('a', 5), ...jobsOf('b', 1), ...jobsOf(undefined, 3));
    const session = await scene.session();
    const { jobs, nextInMs, limitedMs, drained } = await scene.tryClaim(session, 10);
    assert.deepEqual(ids(jobs), ['plain1', 'a1', 'b1', 'plain2', 'a2', 'plain3']);
    assert.deepEqual([limitedMs, drained], [undefined, false]);
    between(nextInMs, scene.ms(40), scene.ms(50), 'nextInMs');
    // A job that has ended does not give its claim back.
    await scene.finish(...jobs.map((job) => completed(job)));
    assert.deepEqual(await scene.claim(session, 10), []);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a3', 'a4']);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a5']);
  });

  test('the window of a group opens with its first claim', async (scene) => {
    await rate(scene, 2, 50);
    await scene.add(...jobsOf('a', 4));
    const session = await scene.session();
    await scene.pass(30);
    assert.deepEqual(ids(await scene.claim(session, 1)), ['a1']);
    await scene.pass(30);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a2']);
    await scene.pass(21);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a3', 'a4']);
  });

  test('a rate of its own counts for a group instead of that of all groups', async (scene) => {
    await rate(scene, 1, 50);
    await setGroup(scene, { key: 'a', rate: { max: 3, durationMs: scene.ms(100) } });
    await scene.add(...jobsOf('a', 5), ...jobsOf('b', 3));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a1', 'b1', 'a2', 'a3']);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 10)), ['b2']);
    await scene.pass(51);
    await setGroup(scene, { key: 'a', rate: null });
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a4', 'b3']);
    assert.deepEqual(await scene.claim(session, 10), []);
  });

  test('a limit of its own leaves the other limit of all groups in force', async (scene) => {
    await scene.store.configure(scene.queue, { groups: { maxActive: 4, rate: { max: 2, durationMs: scene.ms(50) } } });
    await setGroup(scene, { key: 'a', maxActive: 3 });
    await scene.add(...jobsOf('a', 5));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a1', 'a2']);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a3']);
  });

  test('a rate of its own still counts for a group that was paused and resumed', async (scene) => {
    await rate(scene, 1, 500);
    await setGroup(scene, { key: 'a', rate: { max: 3, durationMs: scene.ms(500) } });
    await scene.add(...jobsOf('a', 5));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 2)), ['a1', 'a2']);
    await setGroup(scene, { key: 'a', paused: true });
    assert.deepEqual(ids(await scene.claim(session, 5)), []);
    await setGroup(scene, { key: 'a', paused: false });
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a3']);
  });

  test('a rate that is removed or raised opens the group at once', async (scene) => {
    await rate(scene, 1, 500);
    await scene.add(...jobsOf('a', 4));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a1']);
    await rate(scene, 2, 500);
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a2']);
    await scene.store.configure(scene.queue, { groups: null });
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a3', 'a4']);
  });

  test('a job that is handed back does not give its claim back to the window', async (scene) => {
    await rate(scene, 1, 50);
    await scene.add(...jobsOf('a', 2));
    const session = await scene.session();
    await scene.finish(released(await scene.claimOne(session)));
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a1']);
  });

  test.needs('claims-by-id')('a claim by id goes past the rate, and counts in the window', async (scene) => {
    await rate(scene, 1, 50);
    await scene.add(...jobsOf('a', 4));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 2, { jobIds: ['a4', 'a3'] })), ['a4', 'a3']);
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a1']);
  });

  test('a window lets a group that is full or paused not be awaited', async (scene) => {
    await scene.store.configure(scene.queue, { groups: { maxActive: 1, rate: { max: 1, durationMs: scene.ms(50) } } });
    await scene.add(...jobsOf('a', 2));
    const session = await scene.session();
    const { jobs, nextInMs } = await scene.tryClaim(session, 5);
    assert.deepEqual([ids(jobs), nextInMs], [['a1'], undefined]);
    await scene.finish(completed(only(jobs)));
    between((await scene.tryClaim(session, 5)).nextInMs, scene.ms(30), scene.ms(50), 'nextInMs');
    await setGroup(scene, { key: 'a', paused: true });
    assert.equal((await scene.tryClaim(session, 5)).nextInMs, undefined);
  });

  test.needs('changing')('a window without waiting jobs is not awaited', async (scene) => {
    await rate(scene, 1, 50);
    await scene.add(...jobsOf('a', 2), ...jobsOf('b', 2));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1)), ['a1']);
    await scene.pass(20);
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b1']);
    await scene.store.change(scene.queue, ['a2'], { kind: 'remove' });
    between((await scene.tryClaim(session, 5)).nextInMs, scene.ms(40), scene.ms(50), 'nextInMs');
    await scene.store.change(scene.queue, ['b2'], { kind: 'remove' });
    const { nextInMs, drained } = await scene.tryClaim(session, 5);
    assert.deepEqual([nextInMs, drained], [undefined, true]);
  });
}

function blocks(test: Test): void {
  test('a blocked group gives out no job in turn until the block ends', async (scene) => {
    await scene.add(...jobsOf('a', 2), ...jobsOf('b', 1));
    await setGroup(scene, { key: 'a', blockedMs: scene.ms(50) });
    const session = await scene.session();
    const { jobs, nextInMs } = await scene.tryClaim(session, 5);
    assert.deepEqual(ids(jobs), ['b1']);
    between(nextInMs, scene.ms(40), scene.ms(50), 'nextInMs');
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a1', 'a2']);
  });

  test.needs('claims-by-id')('a claim by id goes past the block of a group', async (scene) => {
    await scene.add(...jobsOf('a', 2));
    await setGroup(scene, { key: 'a', blockedMs: scene.ms(50) });
    assert.deepEqual(ids(await scene.claim(await scene.session(), 1, { jobIds: ['a2'] })), ['a2']);
  });

  test('a block of 0 ms ends the block and the window of a group', async (scene) => {
    await rate(scene, 1, 500);
    await scene.add(...jobsOf('a', 3));
    const session = await scene.session();
    await setGroup(scene, { key: 'a', blockedMs: scene.ms(500) });
    assert.deepEqual(await scene.claim(session, 5), []);
    await setGroup(scene, { key: 'a', blockedMs: 0 });
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a1']);
    await setGroup(scene, { key: 'a', blockedMs: 0 });
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a2']);
  });

  test('a block does not end the window, nor the window the block', async (scene) => {
    await rate(scene, 1, 100);
    await scene.add(...jobsOf('a', 3));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a1']);
    await setGroup(scene, { key: 'a', blockedMs: scene.ms(50) });
    await scene.pass(51);
    assert.deepEqual(await scene.claim(session, 5), []);
    await setGroup(scene, { key: 'a', blockedMs: scene.ms(100) });
    await scene.pass(51);
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.pass(51);
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a2']);
  });

  test('settings of a group and of the queue change in one step', async (scene) => {
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 4));
    await scene.store.configure(scene.queue, {
      paused: true,
      groups: { maxActive: 1 },
      group: { key: 'b', maxActive: 2, rate: { max: 9, durationMs: scene.ms(10) }, blockedMs: scene.ms(50), paused: true },
    });
    const { paused, groups } = await scene.store.status(scene.queue, { groups: { keys: ['b'] } });
    const { limitedMs, ...info } = only(groups?.groups ?? []);
    between(limitedMs, scene.ms(40), scene.ms(50), 'limitedMs');
    assert.deepEqual([paused, groups?.rules], [true, { maxActive: 1 }]);
    const own = { maxActive: 2, rate: { max: 9, durationMs: scene.ms(10) } };
    assert.deepEqual(info, { key: 'b', paused: true, active: 0, ...own, waiting: 4 });
  });
}

function views(test: Test): void {
  test('counts and lists show the waiting jobs of groups, after all others', async (scene) => {
    await scene.add({ id: 'a2', group: 'a', priority: 2 }, { id: 'a1', group: 'a', priority: 1 }, ...jobsOf('b', 2));
    await scene.add({ id: 'first' }, { id: 'soon', priority: 9 }, { id: 'b0', group: 'b', lifo: true });
    const { counts } = await scene.store.status(scene.queue);
    assert.deepEqual([counts.waiting, counts.prioritized, counts.active], [4, 3, 0]);
    assert.deepEqual(await scene.list('waiting'), ['first', 'b0', 'b1', 'b2']);
    assert.deepEqual(await scene.list('waiting', false), ['b2', 'b1', 'b0', 'first']);
    assert.deepEqual(await scene.list('prioritized'), ['soon', 'a1', 'a2']);
    assert.equal((await scene.job('a1')).group, 'a');
    assert.equal((await scene.job('first')).group, undefined);
  });

  test('the waiting jobs of a group are listed in the order of their turns, in pages', async (scene) => {
    await scene.add(...jobsOf('a', 3), { id: 'late', group: 'a', priority: 3 }, { id: 'ahead', group: 'a', lifo: true });
    await scene.add(...jobsOf('b', 1), ...jobsOf(undefined, 1), { id: 'delayed', group: 'a', delayMs: scene.ms(500) });
    const list = async (start: number, end: number, asc = true, group = 'a'): Promise<string[]> =>
      ids((await scene.store.jobs(scene.queue, { group, start, end, asc })).jobs);
    assert.deepEqual(await list(0, -1), ['ahead', 'a1', 'a2', 'a3', 'late']);
    assert.deepEqual(await list(1, 2), ['a1', 'a2']);
    assert.deepEqual(await list(-2, -1), ['a3', 'late']);
    assert.deepEqual(await list(0, 1, false), ['late', 'a3']);
    assert.deepEqual(await list(0, -1, true, 'unknown'), []);
    await scene.claim(await scene.session(), 2);
    assert.deepEqual(await list(0, -1), ['a1', 'a2', 'a3', 'late']);
  });

  test('groups are found by key, also those that do not exist', async (scene) => {
    await scene.add(...jobsOf('a', 3), ...jobsOf('b', 1));
    await scene.claim(await scene.session(), 2);
    await setGroup(scene, { key: 'set', maxActive: 7 });
    assert.deepEqual(await found(scene, { keys: ['b', 'unknown', 'a', 'set'] }), [
      { key: 'b', paused: false, active: 1, waiting: 0 },
      { key: 'unknown', paused: false, active: 0, waiting: 0 },
      { key: 'a', paused: false, active: 1, waiting: 2 },
      { key: 'set', paused: false, active: 0, maxActive: 7, waiting: 0 },
    ]);
  });

  test('groups with jobs or settings are listed in pages by the bytes of their keys', async (scene) => {
    await scene.add(...jobsOf('b', 1), ...jobsOf('C', 1), ...jobsOf('a', 1), ...jobsOf('gone', 1));
    await scene.add({ id: 'delayed', group: 'delayed', delayMs: scene.ms(500) });
    await setGroup(scene, { key: 'paused', paused: true });
    await setGroup(scene, { key: 'unset', maxActive: 3 });
    await setGroup(scene, { key: 'unset', maxActive: null });
    const jobs = await scene.claim(await scene.session(), 4);
    await scene.finish(...jobs.filter(({ group }) => group === 'gone' || group === 'a').map((job) => completed(job)));
    const page = async (limit: number, after?: string): Promise<string[]> =>
      (await found(scene, { limit, ...(after !== undefined && { after }) })).map(({ key }) => key);
    assert.deepEqual(await page(10), ['C', 'b', 'paused']);
    assert.deepEqual(await page(2), ['C', 'b']);
    assert.deepEqual(await page(2, 'b'), ['paused']);
    assert.deepEqual(await page(2, 'paused'), []);
  });

  test('a limited group says for how long', async (scene) => {
    await rate(scene, 1, 50);
    await scene.add(...jobsOf('a', 2), ...jobsOf('b', 1));
    await scene.claim(await scene.session(), 1);
    const [a, b] = await found(scene, { limit: 5 });
    between(a?.limitedMs, scene.ms(40), scene.ms(50), 'limitedMs');
    assert.equal(b?.limitedMs, undefined);
    await scene.pass(51);
    assert.deepEqual(
      (await found(scene, { limit: 5 })).map(({ limitedMs }) => limitedMs),
      [undefined, undefined],
    );
  });

  test('forget deletes the settings of groups of an emptied queue', async (scene) => {
    await scene.store.configure(scene.queue, { groups: { maxActive: 1 }, group: { key: 'a', paused: true } });
    await scene.store.forget(scene.queue, { all: true });
    assert.deepEqual((await scene.store.status(scene.queue, { groups: { limit: 5 } })).groups, { groups: [] });
    await scene.add(...jobsOf('a', 2));
    assert.deepEqual(await scene.order(), ['a1', 'a2']);
  });

  test('forget keeps the limits of all groups while a session is open', async (scene) => {
    const rules = { maxActive: 1, rate: { max: 5, durationMs: 60_000 } };
    const rulesNow = async () => (await scene.store.status(scene.queue, { groups: { limit: 5 } })).groups;
    const session = await scene.session();
    await scene.store.configure(scene.queue, { groups: rules, group: { key: 'a', maxActive: 3 } });
    await scene.store.forget(scene.queue, { all: true });
    assert.deepEqual(await rulesNow(), { rules, groups: [] });
    await scene.add(...jobsOf('a', 2), ...jobsOf('b', 2));
    const jobs = await scene.claim(session, 4);
    assert.deepEqual(
      jobs.map(({ id }) => id),
      ['a1', 'b1'],
    );
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    await scene.store.forget(scene.queue, { all: true });
    assert.deepEqual((await rulesNow())?.rules, undefined);
  });

  test('drained is recorded when the last job of a group has finished', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('a', 2));
    const session = await scene.session();
    const drains = async (): Promise<number> => (await scene.events()).filter(({ name }) => name === 'drained').length;
    await scene.finish(completed(await scene.claimOne(session)));
    assert.equal(await drains(), 0);
    await scene.finish(completed(await scene.claimOne(session)));
    assert.equal(await drains(), 1);
  });
}

function others(test: Test): void {
  test.needs('changing')('a selection removes waiting jobs of groups, the oldest first', async (scene) => {
    await scene.add(...jobsOf('a', 2), ...jobsOf(undefined, 1), ...jobsOf('b', 1));
    const remove = async (limit: number): Promise<string[]> =>
      (await scene.store.change(scene.queue, { lists: ['waiting'], limit }, { kind: 'remove' })).changed;
    assert.deepEqual(await remove(2), ['a1', 'a2']);
    assert.deepEqual(await remove(9), ['plain1', 'b1']);
    assert.equal((await scene.store.status(scene.queue)).counts.waiting, 0);
    assert.equal((await scene.tryClaim(await scene.session(), 5)).drained, true);
  });

  test.needs('changing')('a changed priority moves a job within its group', async (scene) => {
    await scene.add(...jobsOf('a', 3), ...jobsOf('b', 1));
    await scene.store.change(scene.queue, ['a1'], { kind: 'priority', priority: 5, lifo: false });
    await scene.store.change(scene.queue, ['a3'], { kind: 'priority', priority: 0, lifo: true });
    assert.deepEqual(await scene.order(), ['a3', 'b1', 'a2', 'a1']);
  });

  test.needs('deduplication')('a draft waits in the group that it was added with', async (scene) => {
    await maxActive(scene, 1);
    const deduplication = { id: 'd', keepLastIfActive: true };
    await scene.add({ id: 'one', group: 'a', deduplication });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await scene.add({ id: 'two', group: 'b', deduplication }, ...jobsOf('b', 1));
    assert.deepEqual(ids(await scene.claim(session, 5)), ['b1']);
    await scene.finish(completed(job));
    assert.deepEqual([await scene.stateOf('two'), (await scene.job('two')).group], ['waiting', 'b']);
    assert.deepEqual(await scene.claim(session, 5), []);
  });

  test.needs('schedules')('the next job of a schedule waits in its group', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('g', 1));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const slot = {
      name: 'work',
      data: '{}',
      opts: '{}',
      priority: 0,
      delayMs: 0,
      lifo: false,
      timestamp: 1,
      id: 's1',
      group: 'g',
    };
    const next = { at: 1, dueInMs: 0, count: 1, job: slot };
    await scene.store.schedule(scene.queue, [{ kind: 'put', id: 's', version: 0, spec: '{}', serial: false, next }]);
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.finish(completed(job));
    assert.deepEqual(ids(await scene.claim(session, 5)), ['s1']);
  });

  test.needs('waking')('a watcher of jobs is called when a place is free or a group is resumed', async (scene) => {
    await maxActive(scene, 1);
    await setGroup(scene, { key: 'b', paused: true });
    await scene.add(...jobsOf('a', 2), ...jobsOf('b', 1));
    const jobs = await scene.claim(await scene.session(), 5);
    let calls = 0;
    const stop = scene.store.watch(scene.queue, () => (calls += 1), 'jobs');
    await scene.finish(completed(nth(jobs, 0)));
    await eventually(() => calls > 0, 'a wake-up for the free place');
    const before = calls;
    await setGroup(scene, { key: 'b', paused: false });
    await eventually(() => calls > before, 'a wake-up for the resumed group');
    stop();
  });
}
