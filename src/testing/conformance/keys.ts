// Facet: jobs with a lock key. One job of each key at a time is active. The others wait and do not block other jobs.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { SessionEnd } from '../../store/contract/index.js';
import { ids, nth, only } from './expect.js';
import type { Level } from './levels.js';
import { completed, delayed, failed, released, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';
import { ODD_TEXTS } from './values.js';

interface Leaving {
  how: string;
  /** Makes job `a` leave active, or ends its lock. */
  leave(scene: Scene, job: ClaimedJob, session: string): Promise<unknown>;
  /** The id of the job that can be claimed then. */
  next: string;
  /** Options of the session that holds the job. */
  brief?: boolean;
  timedUnits?: number;
  maxStalls?: number;
  /** The level that it needs beside `keys`. */
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
  { how: 'its job is completed', next: 'b', leave: (scene, job) => scene.finish(completed(job)) },
  { how: 'its job is completed and removed', next: 'b', leave: (scene, job) => scene.finish(completed(job, { count: 0 })) },
  { how: 'its job has failed', next: 'b', leave: (scene, job) => scene.finish(failed(job)) },
  { how: 'its job has failed and is removed', next: 'b', leave: (scene, job) => scene.finish(failed(job, { count: 0 })) },
  { how: 'its job is retried', next: 'b', leave: (scene, job) => scene.finish(retried(job)) },
  { how: 'its job is retried at the front', next: 'a', leave: (scene, job) => scene.finish(retried(job, 0, true)) },
  { how: 'its job is retried with a delay', next: 'b', leave: (scene, job) => scene.finish(retried(job, scene.ms(900))) },
  { how: 'its job is delayed', next: 'b', leave: (scene, job) => scene.finish(delayed(job, scene.ms(900))) },
  { how: 'its job is released', next: 'a', leave: (scene, job) => scene.finish(released(job)) },
  { how: 'the lock of its job is revoked', next: 'a', leave: revoke, level: 'changing' },
  { how: 'the session of its job is closed', next: 'a', leave: closeSession('closed') },
  { how: 'the session of its job is closed as a crash', next: 'a', leave: closeSession('crashed') },
  {
    how: 'the session of its job is closed as a crash over the stall limit',
    next: 'b',
    leave: closeSession('crashed'),
    maxStalls: 0,
  },
  { how: 'its job has stalled', next: 'a', leave: dieAndSweep, brief: true },
  { how: 'its job has stalled over the stall limit', next: 'b', leave: dieAndSweep, brief: true, maxStalls: 0 },
  { how: 'the timed lock of its job has ended', next: 'a', leave: dieAndSweep, timedUnits: 3, level: 'timed-locks' },
  { how: 'the lock of its job has left its session and ended', next: 'a', leave: extendAloneAndSweep, level: 'timed-locks' },
];

export function keys(test: Test): void {
  test('one job of a key is active, and jobs without the key are not held up', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' }, { id: 'free' }, { id: 'c', lockKey: 'other' });
    const [one, two] = [await scene.session(), await scene.session()];
    assert.deepEqual(ids(await scene.claim(one, 1)), ['a']);
    assert.deepEqual(ids(await scene.claim(two, 10)), ['free', 'c']);
    const { jobs, drained } = await scene.tryClaim(one, 10);
    assert.deepEqual([jobs, drained], [[], false]);
    assert.equal(await scene.stateOf('b'), 'waiting');
  });

  test('one claim takes at most one job of each key', async (scene) => {
    await scene.add(...['k', 'k', 'l', 'k', 'l', 'm'].map((lockKey, n) => ({ id: `j${n}`, lockKey })));
    assert.deepEqual(ids(await scene.claim(await scene.session(), 10)), ['j0', 'j2', 'j5']);
  });

  for (const { how, leave, next, brief, timedUnits, maxStalls = 5, level = 'keys' } of LEAVINGS) {
    test.needs(level)(`a key is free again when ${how}`, async (scene) => {
      await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' }, { id: 'c', lockKey: 'k' });
      const session = await scene.session({ maxStalls, ...(brief && { durationMs: scene.ms(5) }) });
      const timed = timedUnits === undefined ? {} : { timedMs: scene.ms(timedUnits) };
      await leave(scene, await scene.claimOne(session, timed), session);
      const other = await scene.session();
      assert.deepEqual(ids(await scene.claim(other, 10)), [next]);
      assert.deepEqual(await scene.claim(other, 10), []);
    });
  }

  test('settling and claiming in one call claims the next job of the key', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const claim = scene.request(session, 5, { seq: call.seq });
    const reply = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(ids(reply.claimed?.jobs ?? []), ['b']);
    const again = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual(again.claimed?.jobs, reply.claimed?.jobs);
  });

  test('a refused finish does not free the key', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    assert.deepEqual(await scene.settle(completed({ ...job, token: 'stale' })), ['lost']);
    assert.deepEqual(await scene.claim(session, 5), []);
  });

  test('jobs that wait for a key keep their places among all waiting jobs', async (scene) => {
    await scene.add(
      { id: 'a', lockKey: 'k' },
      { id: 'b', lockKey: 'k' },
      { id: 'free1' },
      { id: 'c', lockKey: 'k' },
      { id: 'free2' },
    );
    const session = await scene.session();
    await scene.finish(completed(await scene.claimOne(session)));
    const jobs = await scene.claim(session, 2);
    assert.deepEqual(ids(jobs), ['b', 'free1']);
    await scene.finish(completed(nth(jobs, 0)));
    assert.deepEqual(ids(await scene.claim(session, 2)), ['c', 'free2']);
  });

  test('a keyed job at the front is claimed before jobs without a key', async (scene) => {
    await scene.add({ id: 'free' }, { id: 'a', lockKey: 'k' });
    await scene.add({ id: 'ahead', lockKey: 'l', lifo: true });
    const session = await scene.session();
    const jobs = await scene.claim(session, 3);
    assert.deepEqual(ids(jobs), ['ahead', 'free', 'a']);
    await scene.finish(released(nth(jobs, 1)), released(nth(jobs, 2)));
    assert.deepEqual(ids(await scene.claim(session, 3)), ['a', 'free']);
  });

  test('jobs of one key run by priority, then front to back', async (scene) => {
    await scene.add(
      { id: 'late', lockKey: 'k', priority: 9 },
      { id: 'soon', lockKey: 'k', priority: 1 },
      { id: 'first', lockKey: 'k' },
      { id: 'second', lockKey: 'k' },
      { id: 'ahead', lockKey: 'k', lifo: true },
    );
    assert.deepEqual(await orderOfKey(scene), ['ahead', 'first', 'second', 'soon', 'late']);
  });

  test('a job added ahead of the first claimable job of its key is claimed first', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k', priority: 5 });
    await scene.add({ id: 'b', lockKey: 'k', priority: 2 });
    await scene.add({ id: 'c', lockKey: 'k', priority: 2, lifo: true });
    assert.deepEqual(await orderOfKey(scene), ['c', 'b', 'a']);
  });

  test.needs('changing')('a changed priority changes the first job of a key', async (scene) => {
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, lockKey: 'k', priority: 5 })));
    const change = (jobId: string, priority: number) =>
      scene.store.change(scene.queue, [jobId], { kind: 'priority', priority, lifo: false });
    await change('c', 1);
    await change('a', 9);
    assert.deepEqual(await orderOfKey(scene), ['c', 'b', 'a']);
  });

  test.needs('changing')('a priority changed while the key is taken takes effect when the key is free', async (scene) => {
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, lockKey: 'k' })));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await scene.store.change(scene.queue, ['b'], { kind: 'priority', priority: 3, lifo: false });
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.finish(completed(job));
    assert.deepEqual(await orderOfKey(scene), ['c', 'b']);
  });

  test.needs('changing')('the next job of a key is claimable after the first was removed or cleared', async (scene) => {
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, lockKey: 'k' })));
    await scene.store.change(scene.queue, ['a'], { kind: 'remove' });
    assert.deepEqual((await scene.store.change(scene.queue, { lists: ['waiting'], limit: 1 }, { kind: 'remove' })).changed, [
      'b',
    ]);
    assert.deepEqual(await orderOfKey(scene), ['c']);
  });

  test.needs('changing')('removing a job that waits for its key keeps the order of the others', async (scene) => {
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, lockKey: 'k' })));
    const session = await scene.session();
    const job = await scene.claimOne(session);
    assert.deepEqual(await scene.store.change(scene.queue, ['a', 'b'], { kind: 'remove' }), {
      changed: ['b'],
      others: [{ jobId: 'a', status: 'locked' }],
      more: false,
    });
    assert.equal((await scene.store.status(scene.queue)).counts.waiting, 1);
    await scene.finish(completed(job));
    assert.deepEqual(await orderOfKey(scene), ['c']);
  });

  test('a delayed job is claimed once it is due and its key is free', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k', delayMs: scene.ms(2) }, { id: 'b', lockKey: 'k', delayMs: scene.ms(2) });
    await scene.pass(3);
    assert.deepEqual(ids(await scene.claim(await scene.session(), 5)), ['a']);
  });

  test.needs('changing')('due, promoted and requeued jobs wait while their key is taken', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await scene.add({ id: 'due', lockKey: 'k', delayMs: scene.ms(3) }, { id: 'promoted', lockKey: 'k', delayMs: scene.ms(900) });
    await scene.add({ id: 'requeued', lockKey: 'k', delayMs: scene.ms(901) });
    await scene.perish();
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.store.change(scene.queue, ['promoted'], { kind: 'promote' });
    await scene.store.change(scene.queue, { lists: ['delayed'], limit: 10 }, { kind: 'promote' });
    assert.deepEqual(await scene.claim(session, 5), []);
    await scene.finish(completed(job));
    assert.deepEqual(await orderOfKey(scene), ['due', 'promoted', 'requeued']);
  });

  test.needs('changing')('retried and requeued finished jobs keep their key', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    const session = await scene.session();
    await scene.finish(failed(await scene.claimOne(session)));
    await scene.finish(completed(await scene.claimOne(session)));
    await scene.store.change(scene.queue, ['a'], retryFrom('failed'));
    await scene.store.change(scene.queue, { lists: ['completed'], limit: 5 }, retryFrom('completed'));
    assert.deepEqual(await orderOfKey(scene), ['a', 'b']);
  });

  test('counts, lists and records include jobs that wait for their key, listed last', async (scene) => {
    await scene.add(
      { id: 'a', lockKey: 'k' },
      { id: 'b', lockKey: 'k' },
      { id: 'p', lockKey: 'k', priority: 1 },
      { id: 'free' },
      { id: 'q', priority: 7 },
      { id: 'c', lockKey: 'l' },
    );
    const { counts } = await scene.store.status(scene.queue);
    assert.deepEqual([counts.waiting, counts.prioritized], [4, 2]);
    assert.deepEqual(await scene.list('waiting'), ['a', 'free', 'c', 'b']);
    assert.deepEqual(await scene.list('waiting', false), ['b', 'c', 'free', 'a']);
    assert.deepEqual(await scene.list('prioritized'), ['q', 'p']);
    await scene.claimOne(await scene.session());
    assert.deepEqual(await scene.list('waiting'), ['free', 'c', 'b']);
    const { jobs: middle } = await scene.store.jobs(scene.queue, {
      lists: ['waiting', 'prioritized'],
      start: 1,
      end: 2,
      asc: true,
    });
    assert.deepEqual(ids(middle), ['c', 'b', 'p']);
    const { jobs: last } = await scene.store.jobs(scene.queue, { lists: ['waiting'], start: -1, end: -1, asc: false });
    assert.deepEqual(ids(last), ['free']);
    for (const id of ['b', 'p', 'free']) assert.equal(await scene.stateOf(id), 'waiting');
  });

  test.needs('changing')('remove by selection removes jobs that wait for their key too, oldest first', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' }, { id: 'free' }, { id: 'c', lockKey: 'k' });
    await scene.claimOne(await scene.session());
    const clear = async (limit: number) =>
      (await scene.store.change(scene.queue, { lists: ['waiting'], limit }, { kind: 'remove' })).changed;
    assert.deepEqual([await clear(2), await clear(2)], [['b', 'free'], ['c']]);
    assert.equal((await scene.store.status(scene.queue)).counts.waiting, 0);
  });

  test.needs('changing', 'control')('a key is free when all its jobs are gone', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    await scene.claimOne(await scene.session());
    await scene.store.change(scene.queue, ['a'], { kind: 'revoke', reason: 'r' });
    await scene.store.change(scene.queue, { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
    await scene.store.forget(scene.queue, { all: true });
    await scene.add({ id: 'c', lockKey: 'k' });
    assert.deepEqual(await scene.order(), ['c']);
  });

  test('a duplicate with another key does not change the job', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'l' });
    await scene.add({ id: 'b', lockKey: 'k' });
    assert.deepEqual(ids(await scene.claim(await scene.session(), 5)), ['a', 'b']);
  });

  test('drained is recorded when the last job of a key has finished, not before', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    const session = await scene.session();
    await scene.finish(completed(await scene.claimOne(session)));
    const drains = async () => (await scene.events()).filter(({ name }) => name === 'drained').length;
    assert.equal(await drains(), 0);
    await scene.finish(completed(await scene.claimOne(session)));
    assert.equal(await drains(), 1);
  });

  test('one key in two queues locks each queue separately', async (scene) => {
    const other = scene.at(`${scene.queue}-2`);
    await scene.add({ lockKey: 'k' });
    await other.add({ id: 'there', lockKey: 'k' });
    await scene.claimOne(await scene.session());
    assert.deepEqual(await other.order(), ['there']);
  });

  test('odd keys survive, and similar keys stay different', async (scene) => {
    const odd = [...ODD_TEXTS, 'a', 'A', 'a ', ' a', 'x'.repeat(500)];
    await scene.add(...odd.flatMap((lockKey, n) => [`one-${n}`, `two-${n}`].map((id) => ({ id, lockKey }))));
    const session = await scene.session();
    const jobs = await scene.claim(session, 1_000);
    assert.deepEqual(
      ids(jobs),
      odd.map((_, n) => `one-${n}`),
    );
    await scene.finish(...jobs.map((job) => completed(job)));
    assert.equal((await scene.claim(session, 1_000)).length, odd.length);
  });

  test.durable('keys survive when the store is opened again', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' });
    const job = await scene.claimOne(await scene.session());
    const again = await scene.reopen();
    assert.deepEqual(await again.order(), []);
    await again.finish(completed(job));
    assert.deepEqual(await again.order(), ['b']);
  });
}

/** Claims and completes jobs one after the other with one session. Returns the order in which the jobs of one key run. */
async function orderOfKey(scene: Scene): Promise<string[]> {
  const session = await scene.session();
  const order: string[] = [];
  for (;;) {
    const jobs = await scene.claim(session, 10);
    if (jobs.length === 0) return order;
    const job = only(jobs);
    order.push(job.id);
    await scene.finish(completed(job));
  }
}
