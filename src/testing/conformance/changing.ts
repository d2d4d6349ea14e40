// Facet: changes that need no owner: retry, promote, delay, priority, remove, clear, requeue, forget.
import assert from 'node:assert/strict';
import type { Change } from '../../store/contract/index.js';
import { ids, nth, only, sorted } from './expect.js';
import { completed, failed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const RETRY = { kind: 'retry', from: 'failed', resetAttemptsMade: false, resetAttemptsStarted: false } as const;

export function changing(test: Test): void {
  test('retry moves a finished job to waiting and clears its result', async (scene) => {
    for (const from of ['completed', 'failed'] as const) {
      const { job } = await scene.running();
      await scene.finish(from === 'completed' ? completed(job) : failed(job));
      assert.equal(await change(scene, { jobId: job.id, ...RETRY, from }), 'done');
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
    assert.equal(await change(scene, { jobId: job.id, ...RETRY, resetAttemptsMade: true, resetAttemptsStarted: true }), 'done');
    const record = await scene.job(job.id);
    assert.deepEqual([record.attemptsMade, record.attemptsStarted], [0, 0]);
  });

  test('retry returns state and changes nothing when the job is in another state', async (scene) => {
    const { job } = await scene.running();
    assert.equal(await change(scene, { jobId: job.id, ...RETRY }), 'state');
    await scene.finish(completed(job));
    const before = await scene.snapshot(job.id);
    assert.equal(await change(scene, { jobId: job.id, ...RETRY, from: 'failed' }), 'state');
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('a finishing token is stale after the job was retried from outside', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    await change(scene, { jobId: job.id, ...RETRY, from: 'completed' });
    const before = await scene.snapshot(job.id);
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('promote moves a delayed job to waiting and returns state for other jobs', async (scene) => {
    const [waiting, later] = await scene.add({}, { delayMs: scene.ms(5_000) });
    assert(waiting && later);
    assert.equal(await change(scene, { jobId: later, kind: 'promote' }), 'done');
    const record = await scene.job(later);
    assert.deepEqual([record.state, record.delay], ['waiting', 0]);
    assert.equal(await change(scene, { jobId: waiting, kind: 'promote' }), 'state');
    assert.deepEqual(sorted(await scene.order()), sorted([waiting, later]));
  });

  test('change delay moves the due time of a delayed job later or sooner', async (scene) => {
    const [sooner, later] = await scene.add({ id: 'sooner', delayMs: scene.ms(5_000) }, { id: 'later', delayMs: scene.ms(2) });
    assert(sooner && later);
    assert.equal(await change(scene, { jobId: sooner, kind: 'delay', delayMs: scene.ms(2) }), 'done');
    assert.equal(await change(scene, { jobId: later, kind: 'delay', delayMs: scene.ms(5_000) }), 'done');
    assert.equal((await scene.job(later)).delay, scene.ms(5_000));
    await scene.pass(3);
    assert.deepEqual(await scene.order(), [sooner]);
  });

  test('change delay returns state for a running or finished job', async (scene) => {
    const { job } = await scene.running();
    assert.equal(await change(scene, { jobId: job.id, kind: 'delay', delayMs: 5 }), 'state');
    await scene.finish(completed(job));
    assert.equal(await change(scene, { jobId: job.id, kind: 'delay', delayMs: 5 }), 'state');
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('change priority moves a waiting job to the back, or with lifo to the front, of its new priority', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c', priority: 3 }, { id: 'd', priority: 3 });
    assert.equal(await change(scene, { jobId: 'a', kind: 'priority', priority: 3, lifo: false }), 'done');
    assert.equal(await change(scene, { jobId: 'd', kind: 'priority', priority: 0, lifo: true }), 'done');
    assert.equal((await scene.job('a')).priority, 3);
    assert.deepEqual(await scene.order(), ['d', 'b', 'c', 'a']);
  });

  test('change priority of a delayed job takes effect when the job is due', async (scene) => {
    await scene.add({ id: 'late', delayMs: scene.ms(2), priority: 9 }, { id: 'five', priority: 5 });
    assert.equal(await change(scene, { jobId: 'late', kind: 'priority', priority: 1, lifo: false }), 'done');
    await scene.pass(3);
    assert.deepEqual(await scene.order(), ['late', 'five']);
  });

  test('change returns missing for unknown jobs, with replies in order', async (scene) => {
    const later = await scene.addOne({ delayMs: scene.ms(500) });
    const changes: Change[] = [
      { jobId: 'ghost', kind: 'promote' },
      { jobId: later, kind: 'promote' },
      { jobId: 'ghost', kind: 'delay', delayMs: 1 },
      { jobId: 'ghost', kind: 'priority', priority: 1, lifo: false },
      { jobId: 'ghost', ...RETRY },
      { jobId: later, ...RETRY },
    ];
    assert.deepEqual(await scene.store.change(scene.queue, changes), [
      'missing',
      'done',
      'missing',
      'missing',
      'missing',
      'state',
    ]);
  });

  test('remove deletes a job with its logs, and leaves a locked job', async (scene) => {
    const { job } = await scene.running({ id: 'locked' });
    await scene.add({ id: 'a' }, { id: 'b', delayMs: scene.ms(500) });
    await scene.store.write(scene.queue, [{ jobId: 'a', kind: 'log', row: 'x' }]);
    assert.deepEqual(await scene.store.remove(scene.queue, ['a', 'ghost', 'locked', 'b']), ['done', 'missing', 'locked', 'done']);
    assert.deepEqual(await scene.store.jobs(scene.queue, ['a', 'b']), [undefined, undefined]);
    await scene.add({ id: 'a' });
    assert.equal((await scene.store.logs(scene.queue, 'a', { start: 0, end: -1, asc: true })).count, 0);
    await scene.finish(completed(job));
    assert.deepEqual(await scene.store.remove(scene.queue, ['locked']), ['done']);
  });

  test('clear removes jobs of the named states, oldest first, up to the limit', async (scene) => {
    const done = await finishMany(scene, 5);
    await scene.add({ id: 'waits' }, { id: 'prior', priority: 2 }, { id: 'later', delayMs: scene.ms(500) });
    assert.deepEqual(sorted(await scene.store.clear(scene.queue, { states: ['completed'], limit: 2 })), sorted(done.slice(0, 2)));
    assert.deepEqual(await scene.list('completed'), done.slice(2));
    assert.deepEqual(sorted(await scene.store.clear(scene.queue, { states: ['waiting', 'delayed'], limit: 10 })), [
      'later',
      'prior',
      'waits',
    ]);
    assert.deepEqual(await scene.store.clear(scene.queue, { states: ['waiting', 'delayed'], limit: 10 }), []);
    assert.equal((await scene.list('completed')).length, 3);
  });

  test('clear never removes a locked job', async (scene) => {
    const { job } = await scene.running();
    await scene.add({ id: 'waits' });
    const cleared = await scene.store.clear(scene.queue, {
      states: ['active', 'waiting', 'delayed', 'completed', 'failed'],
      limit: 10,
    });
    assert.deepEqual(cleared, ['waits']);
    await scene.finish(completed(job));
  });

  test('clear by age counts from the finish of finished jobs', async (scene) => {
    const { job } = await scene.running({ timestamp: 1 });
    const [old] = await finishMany(scene, 1);
    await scene.pass(6);
    await scene.finish(completed(job));
    assert.deepEqual(await scene.store.clear(scene.queue, { states: ['completed'], olderThanMs: scene.ms(4), limit: 10 }), [old]);
  });

  test('clear by age counts from the add of unfinished jobs', async (scene) => {
    const old = await scene.addOne({ timestamp: 9_999_999_999_999 });
    await scene.pass(6);
    const fresh = await scene.addOne({ timestamp: 1 });
    assert.deepEqual(await scene.store.clear(scene.queue, { states: ['waiting'], olderThanMs: scene.ms(4), limit: 10 }), [old]);
    assert.equal(await scene.stateOf(fresh), 'waiting');
  });

  test('requeue moves failed, completed or delayed jobs to waiting, up to the limit', async (scene) => {
    const done = await finishMany(scene, 3);
    const bad = await finishMany(scene, 2, true);
    const late = await scene.add({ delayMs: scene.ms(5_000) });
    assert.equal(await scene.store.requeue(scene.queue, { states: ['completed'], limit: 2 }), 2);
    assert.equal(await scene.store.requeue(scene.queue, { states: ['completed'], limit: 2 }), 1);
    assert.equal(await scene.store.requeue(scene.queue, { states: ['completed'], limit: 2 }), 0);
    assert.equal(await scene.store.requeue(scene.queue, { states: ['failed'], limit: 10 }), 2);
    assert.equal(await scene.store.requeue(scene.queue, { states: ['delayed'], limit: 10 }), 1);
    assert.equal((await scene.job(nth(bad, 0))).finishedOn, undefined);
    assert.deepEqual(sorted(await scene.order()), sorted([...done, ...bad, ...late]));
  });

  test('requeue selects jobs by age', async (scene) => {
    const [old] = await finishMany(scene, 1, true);
    await scene.pass(6);
    const [fresh] = await finishMany(scene, 1, true);
    assert.equal(await scene.store.requeue(scene.queue, { states: ['failed'], olderThanMs: scene.ms(4), limit: 10 }), 1);
    assert.deepEqual([await scene.stateOf(old as string), await scene.stateOf(fresh as string)], ['waiting', 'failed']);
  });

  test('forget resets ids, pause, limits and events of an emptied queue', async (scene) => {
    assert.deepEqual(await scene.add({}, {}), ['1', '2']);
    await scene.store.clear(scene.queue, { states: ['waiting'], limit: 10 });
    await scene.store.pause(scene.queue, true);
    await scene.store.limit(scene.queue, scene.ms(5_000));
    await scene.store.forget(scene.queue);
    const { paused, limitedMs } = await scene.store.status(scene.queue);
    assert.deepEqual([paused, limitedMs], [false, undefined]);
    assert.deepEqual(await scene.events(), []);
    assert.deepEqual(await scene.add({}), ['1']);
    assert.equal((await scene.claim(await scene.session())).length, 1);
  });
}

async function change(scene: Scene, what: Change): Promise<string> {
  return only(await scene.store.change(scene.queue, [what]));
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
