// Facet: groups. Claims take turns between groups, and at most `maxActive` jobs of a group are active at any moment.
import assert from 'node:assert/strict';
import type { ClaimedJob, NewJob } from '../../job/record.js';
import type { GroupSettings, SessionEnd } from '../../store/contract/index.js';
import { ids, nth, only, sorted } from './expect.js';
import type { Level } from './levels.js';
import { completed, delayed, failed, released, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';
import { ODD_TEXTS } from './values.js';

/** Returns jobs `<group><n>` of a group; without a group `<n>`. */
export function jobsOf(group: string | undefined, count: number, more: Partial<NewJob> = {}): Partial<NewJob>[] {
  const own = group === undefined ? {} : { group };
  return Array.from({ length: count }, (_, n) => ({ id: `${group ?? 'plain'}${n + 1}`, ...own, ...more }));
}

export function setGroup(scene: Scene, settings: GroupSettings): Promise<void> {
  return scene.store.configure(scene.queue, { group: settings });
}

export function maxActive(scene: Scene, most: number | undefined): Promise<void> {
  return scene.store.configure(scene.queue, { groups: most === undefined ? null : { maxActive: most } });
}

interface Leaving {
  how: string;
  /** Makes job `g1` leave active. */
  leave(scene: Scene, job: ClaimedJob, session: string): Promise<unknown>;
  /** The id of the job that can be claimed then. */
  next: string;
  brief?: boolean;
  timedUnits?: number;
  maxStalls?: number;
  /** The level that it needs beside `groups`. */
  level?: Level;
}

const revoke = (scene: Scene, { id }: ClaimedJob) => scene.store.change(scene.queue, [id], { kind: 'revoke', reason: 'r' });
const closeSession = (how: SessionEnd) => (scene: Scene, _job: ClaimedJob, id: string) =>
  scene.store.closeSessions([{ queue: scene.queue, id }], how);
const dieAndSweep = async (scene: Scene) => {
  await scene.perish();
  await scene.sweep();
};
const extendAloneAndSweep = async (scene: Scene, { id, token }: ClaimedJob) => {
  await scene.store.extend(scene.queue, [{ jobId: id, token, durationMs: scene.ms(3), alone: true }]);
  await dieAndSweep(scene);
};

/** All ways out of active. A job that goes back to the front is the next one again. */
const LEAVINGS: Leaving[] = [
  { how: 'its job is completed', next: 'g2', leave: (scene, job) => scene.finish(completed(job)) },
  { how: 'its job is completed and removed', next: 'g2', leave: (scene, job) => scene.finish(completed(job, { count: 0 })) },
  { how: 'its job has failed', next: 'g2', leave: (scene, job) => scene.finish(failed(job)) },
  { how: 'its job has failed and is removed', next: 'g2', leave: (scene, job) => scene.finish(failed(job, { count: 0 })) },
  { how: 'its job is retried', next: 'g2', leave: (scene, job) => scene.finish(retried(job)) },
  { how: 'its job is retried at the front', next: 'g1', leave: (scene, job) => scene.finish(retried(job, 0, true)) },
  { how: 'its job is retried with a delay', next: 'g2', leave: (scene, job) => scene.finish(retried(job, scene.ms(900))) },
  { how: 'its job is delayed', next: 'g2', leave: (scene, job) => scene.finish(delayed(job, scene.ms(900))) },
  { how: 'its job is released', next: 'g1', leave: (scene, job) => scene.finish(released(job)) },
  { how: 'the lock of its job is revoked', next: 'g1', leave: revoke, level: 'changing' },
  { how: 'the session of its job is closed', next: 'g1', leave: closeSession('closed') },
  { how: 'the session of its job is closed as a crash', next: 'g1', leave: closeSession('crashed') },
  {
    how: 'the session of its job is closed as a crash over the stall limit',
    next: 'g2',
    leave: closeSession('crashed'),
    maxStalls: 0,
  },
  { how: 'its job has stalled', next: 'g1', leave: dieAndSweep, brief: true },
  { how: 'its job has stalled over the stall limit', next: 'g2', leave: dieAndSweep, brief: true, maxStalls: 0 },
  { how: 'the timed lock of its job has ended', next: 'g1', leave: dieAndSweep, timedUnits: 3, level: 'timed-locks' },
  { how: 'the lock of its job has left its session and ended', next: 'g1', leave: extendAloneAndSweep, level: 'timed-locks' },
];

export function groups(test: Test): void {
  turns(test);
  line(test);
  limits(test);
}

function turns(test: Test): void {
  test('groups take turns, and the jobs without a group take turns as one more group', async (scene) => {
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 2), ...jobsOf(undefined, 2), ...jobsOf('c', 1));
    const expected = ['plain1', 'a1', 'b1', 'c1', 'plain2', 'a2', 'b2', 'a3', 'a4'];
    assert.deepEqual(await scene.order(), expected);
  });

  test('the turns go on from claim to claim and from session to session', async (scene) => {
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 4));
    const [one, two] = [await scene.session(), await scene.session()];
    assert.deepEqual(ids(await scene.claim(one, 3)), ['a1', 'b1', 'a2']);
    assert.deepEqual(ids(await scene.claim(two, 1)), ['b2']);
    assert.deepEqual(ids(await scene.claim(one, 2)), ['a3', 'b3']);
  });

  test('small groups do not wait for the jobs of a large one', async (scene) => {
    await scene.add(...jobsOf('large', 200));
    await scene.add(...jobsOf('small', 10), ...jobsOf('tiny', 1));
    const first = ids(await scene.claim(await scene.session(), 23));
    assert.deepEqual(first.filter((id) => !id.startsWith('large')).length, 11);
  });

  test('jobs of one group are claimed by priority, then front to back', async (scene) => {
    await scene.add(
      { id: 'late', group: 'g', priority: 9 },
      { id: 'soon', group: 'g', priority: 1 },
      { id: 'first', group: 'g' },
      { id: 'second', group: 'g' },
      { id: 'ahead', group: 'g', lifo: true },
    );
    assert.deepEqual(await scene.order(), ['ahead', 'first', 'second', 'soon', 'late']);
  });

  test('a priority does not bring a job before the turn of its group', async (scene) => {
    await scene.add({ id: 'a1', group: 'a', priority: 9 }, { id: 'a2', group: 'a', priority: 9 }, ...jobsOf('b', 2));
    assert.deepEqual(await scene.order(), ['a1', 'b1', 'a2', 'b2']);
  });

  test('groups with the same number in line are ordered by the bytes of their keys', async (scene) => {
    // UTF-16 would put the last two the other way round.
    const keys = ['B', 'a', '\u{e000}', '\u{1f600}'];
    await scene.add(...keys.toReversed().map((group) => ({ id: group, group })));
    assert.deepEqual(await scene.order(), keys);
  });

  test.needs('keys')('lock keys apply among the jobs without a group', async (scene) => {
    await scene.add({ id: 'k1', lockKey: 'k' }, { id: 'k2', lockKey: 'k' }, { id: 'free' }, ...jobsOf('g', 2));
    assert.deepEqual(await scene.order(), ['k1', 'g1', 'free', 'g2']);
  });

  test('one claim of a settle takes the next turn', async (scene) => {
    await scene.add(...jobsOf('a', 3), ...jobsOf('b', 3));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const claim = scene.request(session, 2, { seq: call.seq });
    const reply = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(ids(reply.claimed?.jobs ?? []), ['b1', 'a2']);
    const again = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(again.claimed?.jobs, reply.claimed?.jobs);
    assert.deepEqual(ids(await scene.claim(session, 2)), ['b2', 'a3']);
  });

  test('a repeated claim returns the same jobs and takes no turn', async (scene) => {
    await maxActive(scene, 2);
    await scene.add(...jobsOf('a', 3), ...jobsOf('b', 3));
    const request = scene.request(await scene.session(), 1);
    const { jobs } = await scene.store.claim(scene.queue, request);
    assert.deepEqual((await scene.store.claim(scene.queue, request)).jobs, jobs);
    assert.deepEqual(await scene.order(), ['b1', 'a2', 'b2']);
  });
}

function line(test: Test): void {
  test('a group that comes back into line gets the number of the last turn', async (scene) => {
    await scene.add(...jobsOf('a', 1), ...jobsOf('b', 3));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1)), ['a1']);
    await scene.add({ id: 'a2', group: 'a' });
    assert.deepEqual(await scene.order(), ['b1', 'a2', 'b2', 'b3']);
  });

  test('a group that is full keeps its number in line', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('b', 2), ...jobsOf('c', 2));
    const jobs = await scene.claim(await scene.session(), 5);
    await scene.add(...jobsOf('a', 1));
    await scene.finish(...jobs.map((job) => completed(job)));
    assert.deepEqual(await scene.order(), ['b2', 'a1', 'c2']);
  });

  test.needs('changing')('a group whose jobs were removed keeps its number until a claim looks at it', async (scene) => {
    await scene.add(...jobsOf('z', 1), ...jobsOf('b', 4));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b1']);
    await scene.store.change(scene.queue, ['z1'], { kind: 'remove' });
    await scene.add({ id: 'z2', group: 'z' });
    assert.deepEqual(ids(await scene.claim(session, 2)), ['z2', 'b2']);
    await scene.add({ id: 'z3', group: 'z' });
    await scene.claim(session, 1);
    await scene.store.change(scene.queue, ['z3'], { kind: 'remove' });
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b4']);
  });

  test.needs('changing')('a claim puts a group out of line that it finds first without a job', async (scene) => {
    await scene.add(...jobsOf('z', 1), ...jobsOf('b', 4));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b1']);
    await scene.store.change(scene.queue, ['z1'], { kind: 'remove' });
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b2']);
    await scene.add({ id: 'z2', group: 'z' });
    assert.deepEqual(ids(await scene.claim(session, 2)), ['b3', 'z2']);
  });

  test.needs('claims-by-id')('a claim by id takes no turn and leaves the group in line', async (scene) => {
    await scene.add(...jobsOf('z', 1), ...jobsOf('b', 3));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1)), ['b1']);
    assert.deepEqual(ids(await scene.claim(session, 1, { jobIds: ['z1'] })), ['z1']);
    await scene.add({ id: 'z2', group: 'z' });
    assert.deepEqual(await scene.order(), ['z2', 'b2', 'b3']);
  });

  test('jobs without a group use up no turns while no group with room is in line', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('a', 2));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await scene.add(...jobsOf(undefined, 4));
    assert.deepEqual(ids(await scene.claim(session, 2)), ['plain1', 'plain2']);
    await scene.add(...jobsOf('b', 1));
    await scene.finish(completed(job));
    assert.deepEqual(await scene.order(), ['plain3', 'a2', 'b1', 'plain4']);
  });

  test('a job of a group that falls due or is handed back waits in its group', async (scene) => {
    await scene.add({ id: 'b1', group: 'b', delayMs: scene.ms(5) }, ...jobsOf('a', 3));
    await scene.pass(6);
    const session = await scene.session();
    const jobs = await scene.claim(session, 3);
    assert.deepEqual(ids(jobs), ['a1', 'b1', 'a2']);
    await scene.finish(released(nth(jobs, 1)), released(nth(jobs, 0)));
    assert.deepEqual(await scene.order(), ['a1', 'b1', 'a3']);
  });
}

function limits(test: Test): void {
  test('at most maxActive jobs of each group are active, and other jobs are not held up', async (scene) => {
    await maxActive(scene, 2);
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 1), ...jobsOf(undefined, 3));
    const [one, two] = [await scene.session(), await scene.session()];
    assert.deepEqual(ids(await scene.claim(one, 10)), ['plain1', 'a1', 'b1', 'plain2', 'a2', 'plain3']);
    const { jobs, drained, nextInMs } = await scene.tryClaim(two, 10);
    assert.deepEqual([jobs, drained, nextInMs], [[], false, undefined]);
    assert.equal(await scene.stateOf('a3'), 'waiting');
  });

  for (const { how, leave, next, brief, timedUnits, maxStalls = 5, level = 'groups' } of LEAVINGS) {
    test.needs(level)(`a place in a group is free again when ${how}`, async (scene) => {
      await maxActive(scene, 1);
      await scene.add(...jobsOf('g', 3));
      const session = await scene.session({ maxStalls, ...(brief && { durationMs: scene.ms(5) }) });
      const timed = timedUnits === undefined ? {} : { timedMs: scene.ms(timedUnits) };
      await leave(scene, await scene.claimOne(session, timed), session);
      const other = await scene.session();
      assert.deepEqual(ids(await scene.claim(other, 10)), [next]);
      assert.deepEqual(await scene.claim(other, 10), []);
    });
  }

  test('a settle gives the place of its job to the claim of the same call', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('g', 3));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const claim = scene.request(session, 5, { seq: call.seq });
    const reply = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(ids(reply.claimed?.jobs ?? []), ['g2']);
    const again = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(again.claimed?.jobs, reply.claimed?.jobs);
    assert.deepEqual(await scene.claim(session, 5), []);
  });

  test('a refused or repeated finish frees no place', async (scene) => {
    await maxActive(scene, 2);
    await scene.add(...jobsOf('g', 5));
    const session = await scene.session();
    const jobs = await scene.claim(session, 5);
    assert.deepEqual(await scene.settle(completed({ ...nth(jobs, 0), token: 'stale' })), ['lost']);
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.finish(completed(nth(jobs, 0)));
    await scene.finish(completed(nth(jobs, 0)));
    assert.deepEqual(ids(await scene.claim(session, 5)), ['g3']);
  });

  test('an expired session keeps the places of its jobs until a sweep', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('g', 2));
    await scene.claimOne(await scene.briefSession());
    await scene.perish();
    const other = await scene.session();
    assert.deepEqual(await scene.claim(other, 5), []);
    await scene.sweep();
    assert.deepEqual(ids(await scene.claim(other, 5)), ['g1']);
  });

  test('a maxActive of its own counts for a group instead of that of all groups', async (scene) => {
    await maxActive(scene, 2);
    await setGroup(scene, { key: 'a', maxActive: 3 });
    await setGroup(scene, { key: 'b', maxActive: 1 });
    await scene.add(...jobsOf('a', 5), ...jobsOf('b', 5), ...jobsOf('c', 5));
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 15)), ['a1', 'b1', 'c1', 'a2', 'c2', 'a3']);
    await setGroup(scene, { key: 'b', maxActive: null });
    assert.deepEqual(ids(await scene.claim(session, 15)), ['b2']);
    await maxActive(scene, undefined);
    assert.deepEqual(sorted(ids(await scene.claim(session, 15))), ['b3', 'b4', 'b5', 'c3', 'c4', 'c5']);
  });

  test('a maxActive below the number of active jobs holds until enough of them left', async (scene) => {
    await scene.add(...jobsOf('g', 6));
    const session = await scene.session();
    const jobs = await scene.claim(session, 3);
    await maxActive(scene, 2);
    await scene.finish(completed(nth(jobs, 0)));
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.finish(completed(nth(jobs, 1)));
    assert.deepEqual(ids(await scene.claim(session, 5)), ['g4']);
  });

  test('a paused group gives out no job and keeps its own maxActive', async (scene) => {
    await setGroup(scene, { key: 'a', maxActive: 2 });
    await setGroup(scene, { key: 'a', paused: true });
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 1));
    const session = await scene.session();
    const { jobs, drained } = await scene.tryClaim(session, 10);
    assert.deepEqual([ids(jobs), drained], [['b1'], false]);
    if (scene.has('claims-by-id')) assert.deepEqual(await scene.claim(session, 1, { jobIds: ['a1'] }), []);
    await setGroup(scene, { key: 'a', paused: false });
    assert.deepEqual(ids(await scene.claim(session, 10)), ['a1', 'a2']);
  });

  test.needs('claims-by-id')('claims by id count under maxActive and are refused above it', async (scene) => {
    await maxActive(scene, 2);
    await scene.add(...jobsOf('g', 4), ...jobsOf(undefined, 1));
    const session = await scene.session();
    const jobIds = ['g4', 'g3', 'g2', 'plain1'];
    const jobs = await scene.claim(session, 4, { jobIds });
    assert.deepEqual(ids(jobs), ['g4', 'g3', 'plain1']);
    assert.deepEqual(await scene.claim(session, 4), []);
    await scene.finish(completed(nth(jobs, 0)));
    assert.deepEqual(ids(await scene.claim(session, 4)), ['g1']);
    assert.deepEqual(await scene.claim(session, 4, { jobIds }), []);
  });

  test.needs('caps')('a cap of the queue counts the jobs of groups', async (scene) => {
    await scene.store.configure(scene.queue, { cap: { maxActive: 3 }, groups: { maxActive: 2 } });
    await scene.add(...jobsOf('a', 4), ...jobsOf('b', 4));
    const session = await scene.session();
    const jobs = await scene.claim(session, 10);
    assert.deepEqual(ids(jobs), ['a1', 'b1', 'a2']);
    await scene.finish(completed(nth(jobs, 0)));
    assert.deepEqual(ids(await scene.claim(session, 10)), ['b2']);
  });

  test.needs('changing')('a finished job that is retried waits in its group', async (scene) => {
    await maxActive(scene, 1);
    await scene.add(...jobsOf('g', 2));
    const session = await scene.session();
    await scene.finish(completed(await scene.claimOne(session)));
    await scene.claimOne(session);
    await scene.store.change(scene.queue, ['g1'], retryFrom('completed'));
    assert.equal(await scene.stateOf('g1'), 'waiting');
    assert.deepEqual(await scene.claim(session, 5), []);
    assert.equal((await scene.job('g1')).group, 'g');
  });

  test('keys of groups may be any text, and differ by case', async (scene) => {
    await maxActive(scene, 1);
    const keys = [...ODD_TEXTS.filter((text) => text !== ''), 'g', 'G'];
    await scene.add(
      ...keys.flatMap((group, n) => [
        { id: `x${n}`, group },
        { id: `y${n}`, group },
      ]),
    );
    assert.deepEqual(sorted(await scene.order()), sorted(keys.map((_, n) => `x${n}`)));
    for (const [n, group] of keys.entries()) assert.equal((await scene.job(`x${n}`)).group, group);
  });

  test('claims at once never take more jobs of a group than maxActive', async (scene) => {
    await maxActive(scene, 3);
    const keys = ['a', 'b', 'c'];
    await scene.add(...keys.flatMap((key) => jobsOf(key, 40)), ...jobsOf(undefined, 10));
    await raceOf(scene, [scene], keys, 3);
  });

  test.shared('claims at once through two connections never take more jobs of a group than maxActive', async (scene) => {
    await maxActive(scene, 2);
    const keys = ['a', 'b', 'c'];
    await scene.add(...keys.flatMap((key) => jobsOf(key, 40)), ...jobsOf(undefined, 10));
    await raceOf(scene, [scene, await scene.peer()], keys, 2);
  });

  test.durable('limits, pauses and places in groups survive a reopened store', async (scene) => {
    await maxActive(scene, 1);
    await setGroup(scene, { key: 'b', maxActive: 2 });
    await setGroup(scene, { key: 'c', paused: true });
    await scene.add(...jobsOf('a', 3), ...jobsOf('b', 3), ...jobsOf('c', 3));
    const session = await scene.session();
    const jobs = await scene.claim(session, 2);
    assert.deepEqual(ids(jobs), ['a1', 'b1']);
    const later = await scene.reopen();
    assert.deepEqual(ids(await later.claim(session, 10)), ['b2']);
    await later.finish(completed(nth(jobs, 0)));
    assert.deepEqual(ids(await later.claim(session, 10)), ['a2']);
  });
}

/** Sessions claim and settle at once until all jobs are done. Each time, the locks of all sessions are counted. */
async function raceOf(scene: Scene, sides: Scene[], keys: string[], most: number): Promise<void> {
  const held = new Map<string, number>();
  let seen = 0;
  const work = async (side: Scene): Promise<void> => {
    const session = await side.session();
    for (let idle = 0; idle < 200; ) {
      const jobs = await side.claim(session, 2);
      idle = jobs.length === 0 ? idle + 1 : 0;
      for (const { group } of jobs) if (group !== undefined) held.set(group, (held.get(group) ?? 0) + 1);
      for (const key of keys) assert((held.get(key) ?? 0) <= most, `${held.get(key)} jobs of ${key} are active`);
      seen += jobs.length;
      // Other sessions claim while these jobs are active.
      await side.store.status(side.queue);
      // Count down first: the store may give the place to another claim before the settle returns.
      for (const { group } of jobs) if (group !== undefined) held.set(group, (held.get(group) ?? 0) - 1);
      await side.finish(...jobs.map((job) => completed(job)));
      if ((await side.store.status(side.queue)).counts.waiting === 0) return;
    }
    assert.fail('no job can be claimed, but some wait');
  };
  await Promise.all([...sides, ...sides, ...sides].map(work));
  assert.equal(seen, keys.length * 40 + 10);
  assert.equal(only((await scene.store.status(scene.queue, { groups: { keys: ['a'] } })).groups?.groups ?? []).active, 0);
}
