// Facet: changes that need no owner: retry, promote, delay, priority, remove, by id and by selection; forget.
import assert from 'node:assert/strict';
import type { BulkChange, Change, ListName, Selection } from '../../store/contract/index.js';
import { changedAll, ids, nth, only, sorted } from './expect.js';
import { completed, delayed, failed, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const RETRY = { kind: 'retry', from: 'failed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;

export function changing(test: Test): void {
  test('retry moves a finished job to waiting and clears its result', async (scene) => {
    for (const from of ['completed', 'failed'] as const) {
      const { job } = await scene.running();
      await scene.finish(from === 'completed' ? completed(job) : failed(job));
      assert.equal(await change(scene, job.id, { ...RETRY, from }), 'done');
      const record = await scene.job(job.id);
      assert.deepEqual(
        [record.state, record.attemptsMade, record.attemptsStarted, record.finishedOn, record.returnvalue],
        ['waiting', 1, 1, undefined, undefined],
      );
      assert.deepEqual(await scene.order(), [job.id]);
    }
  });

  test('retry resets the attempt counters when asked to', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(failed(job));
    assert.equal(await change(scene, job.id, { ...RETRY, resetAttemptsMade: true, resetAttemptsStarted: true }), 'done');
    const record = await scene.job(job.id);
    assert.deepEqual([record.attemptsMade, record.attemptsStarted], [0, 0]);
  });

  test('retry returns state and changes nothing when the job is in another state', async (scene) => {
    const { job } = await scene.running();
    assert.equal(await change(scene, job.id, RETRY), 'state');
    await scene.finish(completed(job));
    const before = await scene.snapshot(job.id);
    assert.equal(await change(scene, job.id, { ...RETRY, from: 'failed' }), 'state');
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('a finishing token is stale after the job was retried from outside', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    await change(scene, job.id, { ...RETRY, from: 'completed' });
    const before = await scene.snapshot(job.id);
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('promote moves a delayed job to waiting and returns state for other jobs', async (scene) => {
    const [waiting, later] = await scene.add({}, { delayMs: scene.ms(5_000) });
    assert(waiting && later);
    assert.equal(await change(scene, later, { kind: 'promote' }), 'done');
    const record = await scene.job(later);
    assert.deepEqual([record.state, record.delay], ['waiting', 0]);
    assert.equal(await change(scene, waiting, { kind: 'promote' }), 'state');
    assert.deepEqual(sorted(await scene.order()), sorted([waiting, later]));
  });

  test('change delay moves the due time of a delayed job later or sooner', async (scene) => {
    const [sooner, later] = await scene.add({ id: 'sooner', delayMs: scene.ms(5_000) }, { id: 'later', delayMs: scene.ms(2) });
    assert(sooner && later);
    assert.equal(await change(scene, sooner, { kind: 'delay', delayMs: scene.ms(2) }), 'done');
    assert.equal(await change(scene, later, { kind: 'delay', delayMs: scene.ms(5_000) }), 'done');
    assert.equal((await scene.job(later)).delay, scene.ms(5_000));
    await scene.pass(3);
    assert.deepEqual(await scene.order(), [sooner]);
  });

  test('change delay returns state for a running or finished job', async (scene) => {
    const { job } = await scene.running();
    assert.equal(await change(scene, job.id, { kind: 'delay', delayMs: 5 }), 'state');
    await scene.finish(completed(job));
    assert.equal(await change(scene, job.id, { kind: 'delay', delayMs: 5 }), 'state');
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('change priority moves a waiting job to the back, or with lifo to the front, of its new priority', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c', priority: 3 }, { id: 'd', priority: 3 });
    assert.equal(await change(scene, 'a', { kind: 'priority', priority: 3, lifo: false }), 'done');
    assert.equal(await change(scene, 'd', { kind: 'priority', priority: 0, lifo: true }), 'done');
    assert.equal((await scene.job('a')).priority, 3);
    assert.deepEqual(await scene.order(), ['d', 'b', 'c', 'a']);
  });

  test('change priority of a delayed job takes effect when the job is due', async (scene) => {
    await scene.add({ id: 'late', delayMs: scene.ms(2), priority: 9 }, { id: 'five', priority: 5 });
    assert.equal(await change(scene, 'late', { kind: 'priority', priority: 1, lifo: false }), 'done');
    await scene.pass(3);
    assert.deepEqual(await scene.order(), ['late', 'five']);
  });

  test('change returns missing or state for the jobs that it leaves, in order', async (scene) => {
    const later = await scene.addOne({ delayMs: scene.ms(500) });
    const [waiting, other] = await scene.add({}, { delayMs: scene.ms(500) });
    assert(waiting && other);
    assert.deepEqual(await scene.store.change(scene.queue, ['ghost', other, waiting, later, 'spook'], { kind: 'promote' }), {
      changed: [other, later],
      others: [
        { jobId: 'ghost', status: 'missing' },
        { jobId: waiting, status: 'state' },
        { jobId: 'spook', status: 'missing' },
      ],
      more: false,
    });
    for (const what of [{ kind: 'delay', delayMs: 1 }, { kind: 'priority', priority: 1, lifo: false }, RETRY] as const)
      assert.equal(await change(scene, 'ghost', what), 'missing');
    assert.equal(await change(scene, later, RETRY), 'state');
  });

  test.needs('control')('remove deletes a job with its logs, and leaves a locked job', async (scene) => {
    const { job } = await scene.running({ id: 'locked' });
    await scene.add({ id: 'a' }, { id: 'b', delayMs: scene.ms(500) });
    await scene.store.write(scene.queue, [{ jobId: 'a', kind: 'log', row: 'x' }]);
    assert.deepEqual(await scene.store.change(scene.queue, ['a', 'ghost', 'locked', 'b', 'a'], { kind: 'remove' }), {
      changed: ['a', 'b'],
      others: [
        { jobId: 'ghost', status: 'missing' },
        { jobId: 'locked', status: 'locked' },
        { jobId: 'a', status: 'missing' },
      ],
      more: false,
    });
    assert.deepEqual((await scene.store.jobs(scene.queue, ['a', 'b'])).jobs, [undefined, undefined]);
    await scene.add({ id: 'a' });
    assert.equal((await scene.store.logs(scene.queue, 'a', { start: 0, end: -1, asc: true })).count, 0);
    await scene.finish(completed(job));
    assert.deepEqual(await scene.store.change(scene.queue, ['locked'], { kind: 'remove' }), changedAll('locked'));
  });

  test('remove by selection removes jobs of the named lists, oldest first, up to the limit', async (scene) => {
    const done = await finishMany(scene, 5);
    await scene.add({ id: 'waits' }, { id: 'prior', priority: 2 }, { id: 'later', delayMs: scene.ms(500) });
    const two = await scene.store.change(scene.queue, { lists: ['completed'], limit: 2 }, { kind: 'remove' });
    assert.deepEqual(two, { changed: done.slice(0, 2), others: [], more: true });
    assert.deepEqual(await scene.list('completed'), done.slice(2));
    const open = { lists: ['prioritized', 'waiting', 'delayed'] as ListName[], limit: 10 };
    assert.deepEqual(await scene.store.change(scene.queue, open, { kind: 'remove' }), changedAll('prior', 'waits', 'later'));
    assert.deepEqual(await remove(scene, open), []);
    assert.equal((await scene.list('completed')).length, 3);
  });

  test.needs('keys')('remove by selection distinguishes waiting jobs with and without a priority', async (scene) => {
    await scene.add({ id: 'p1', priority: 3 }, { id: 'w1' }, { id: 'p2', priority: 1 }, { id: 'w2' });
    await scene.add({ id: 'k1', lockKey: 'k' }, { id: 'k2', lockKey: 'k' }, { id: 'k3', lockKey: 'k', priority: 1 });
    assert.deepEqual(await remove(scene, { lists: ['prioritized'], limit: 2 }), ['p1', 'p2']);
    assert.deepEqual(await remove(scene, { lists: ['waiting'], limit: 10 }), ['w1', 'w2', 'k1', 'k2']);
    const { counts } = await scene.store.status(scene.queue);
    assert.deepEqual([counts.waiting, counts.prioritized], [0, 1]);
    assert.deepEqual(await scene.order(), ['k3']);
  });

  test('remove by selection never removes a locked job', async (scene) => {
    const { job } = await scene.running();
    await scene.add({ id: 'waits' });
    assert.deepEqual(await remove(scene, { lists: ['active', 'waiting', 'delayed', 'completed', 'failed'], limit: 10 }), [
      'waits',
    ]);
    await scene.finish(completed(job));
  });

  test('a selection by age counts from the finish of finished jobs', async (scene) => {
    const { job } = await scene.running({ timestamp: 1 });
    const [old] = await finishMany(scene, 1);
    await scene.pass(6);
    await scene.finish(completed(job));
    assert.deepEqual(await remove(scene, { lists: ['completed'], olderThanMs: scene.ms(4), limit: 10 }), [old]);
  });

  test('a selection by age counts from the add of jobs that have not run', async (scene) => {
    for (const [list, difference] of [
      ['waiting', {}],
      ['prioritized', { priority: 1 }],
      ['delayed', { delayMs: scene.ms(5_000) }],
    ] as const) {
      const old = await scene.addOne({ timestamp: 9_999_999_999_999, ...difference });
      await scene.pass(6);
      const fresh = await scene.addOne({ timestamp: 1, lifo: true, ...difference });
      assert.deepEqual(await remove(scene, { lists: [list], olderThanMs: scene.ms(4), limit: 10 }), [old], list);
      assert.deepEqual(await scene.list(list), [fresh]);
    }
  });

  test('a selection by age counts from the last start of jobs that ran and wait again', async (scene) => {
    const [, , never] = await scene.add({ id: 'again' }, { id: 'later' }, { id: 'never' });
    await scene.pass(6);
    const [again, later] = await scene.claim(await scene.session(), 2);
    assert(again && later);
    await scene.settle(retried(again), delayed(later, scene.ms(5_000)));
    const lists: ListName[] = ['waiting', 'delayed'];
    // With the limit 1, a store must look past the first job, which is too young.
    assert.deepEqual(await remove(scene, { lists, olderThanMs: scene.ms(4), limit: 1 }), [never]);
    assert.deepEqual(await remove(scene, { lists, olderThanMs: scene.ms(4), limit: 10 }), []);
    await scene.pass(6);
    assert.deepEqual(await remove(scene, { lists, olderThanMs: scene.ms(4), limit: 10 }), ['again', 'later']);
  });

  test('retry and promote by selection move jobs to waiting, up to the limit', async (scene) => {
    const done = await finishMany(scene, 3);
    const bad = await finishMany(scene, 2, true);
    const late = await scene.add({ delayMs: scene.ms(5_000) });
    const move = (list: ListName, limit: number, what: BulkChange) =>
      scene.store.change(scene.queue, { lists: [list], limit }, what);
    assert.deepEqual(await move('completed', 2, retryFrom('completed')), { changed: done.slice(0, 2), others: [], more: true });
    assert.deepEqual(await move('completed', 2, retryFrom('completed')), changedAll(nth(done, 2)));
    assert.deepEqual(await move('completed', 2, retryFrom('completed')), changedAll());
    assert.deepEqual(await move('failed', 10, retryFrom('failed')), changedAll(...bad));
    assert.deepEqual(await move('delayed', 10, { kind: 'promote' }), changedAll(...late));
    const { finishedOn, attemptsMade } = await scene.job(nth(bad, 0));
    assert.deepEqual([finishedOn, attemptsMade], [undefined, 1]);
    assert.deepEqual(sorted(await scene.order()), sorted([...done, ...bad, ...late]));
  });

  test('retry by selection resets the attempt counters when asked to', async (scene) => {
    const [made, started] = await finishMany(scene, 2, true);
    assert(made !== undefined && started !== undefined);
    const one = { lists: ['failed' as const], limit: 1 };
    assert.deepEqual(await scene.store.change(scene.queue, one, { ...RETRY, resetAttemptsMade: true }), {
      changed: [made],
      others: [],
      more: true,
    });
    await scene.store.change(scene.queue, one, { ...RETRY, resetAttemptsStarted: true });
    const counters = await Promise.all([made, started].map((id) => scene.job(id)));
    assert.deepEqual(
      counters.map(({ attemptsMade, attemptsStarted }) => [attemptsMade, attemptsStarted]),
      [
        [0, 1],
        [1, 0],
      ],
    );
  });

  test('retry and promote by selection leave the jobs of lists that they do not start from', async (scene) => {
    const [done] = await finishMany(scene, 1);
    const [later, waits] = await scene.add({ delayMs: scene.ms(5_000) }, {});
    const lists: ListName[] = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'];
    assert.deepEqual(await scene.store.change(scene.queue, { lists, limit: 10 }, retryFrom('failed')), changedAll());
    assert.deepEqual(await scene.store.change(scene.queue, { lists: ['failed'], limit: 10 }, { kind: 'promote' }), changedAll());
    assert.deepEqual(
      [await scene.list('completed'), await scene.list('delayed'), await scene.list('waiting')],
      [[done], [later], [waits]],
    );
  });

  test('retry by selection selects jobs by age', async (scene) => {
    const [old] = await finishMany(scene, 1, true);
    await scene.pass(6);
    const [fresh] = await finishMany(scene, 1, true);
    const selection = { lists: ['failed' as const], olderThanMs: scene.ms(4), limit: 10 };
    assert.deepEqual(await scene.store.change(scene.queue, selection, RETRY), changedAll(old as string));
    assert.deepEqual([await scene.stateOf(old as string), await scene.stateOf(fresh as string)], ['waiting', 'failed']);
  });

  test.needs('control')('forget resets ids, pause, limits and events of an emptied queue', async (scene) => {
    assert.deepEqual(await scene.add({}, {}), ['1', '2']);
    await scene.store.change(scene.queue, { lists: ['waiting'], limit: 10 }, { kind: 'remove' });
    await scene.store.configure(scene.queue, { paused: true });
    await scene.store.configure(scene.queue, { blockedMs: scene.ms(5_000) });
    await scene.store.forget(scene.queue, { all: true });
    const { paused, blockedMs } = await scene.store.status(scene.queue);
    assert.deepEqual([paused, blockedMs], [false, undefined]);
    assert.deepEqual(await scene.events(), []);
    assert.deepEqual(await scene.add({}), ['1']);
    assert.equal((await scene.claim(await scene.session())).length, 1);
  });
}

async function change(scene: Scene, jobId: string, what: Change): Promise<string> {
  const { changed, others } = await scene.store.change(scene.queue, [jobId], what);
  return only([...changed.map(() => 'done'), ...others.map(({ status }) => status)]);
}

async function remove(scene: Scene, selection: Selection): Promise<string[]> {
  return (await scene.store.change(scene.queue, selection, { kind: 'remove' })).changed;
}

/** Adds and finishes jobs one after the other. Returns the ids in the order of finishing. */
async function finishMany(scene: Scene, count: number, broken = false): Promise<string[]> {
  const session = await scene.session();
  const jobs = [];
  for (let n = 0; n < count; n += 1) {
    await scene.add({});
    const job = await scene.claimOne(session);
    await scene.finish(broken ? failed(job) : completed(job));
    jobs.push(job);
  }
  return ids(jobs);
}
