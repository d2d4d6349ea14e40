// Facet: queues do not disturb each other.
import assert from 'node:assert/strict';
import { only } from './expect.js';
import { completed, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function isolation(test: Test): void {
  test('one id in two queues names two jobs', async (scene) => {
    const other = neighbour(scene);
    await scene.add({ id: 'x', data: '1' });
    await other.add({ id: 'x', data: '2' });
    assert.deepEqual([(await scene.job('x')).data, (await other.job('x')).data], ['1', '2']);
    await scene.finish(completed(await scene.claimOne(await scene.session()), { count: 0 }));
    assert.deepEqual([await scene.stateOf('x'), await other.stateOf('x')], ['missing', 'waiting']);
    await scene.add({ id: 'x' });
    if (scene.has('changing')) await scene.store.change(scene.queue, ['x'], { kind: 'remove' });
    assert.equal(await other.stateOf('x'), 'waiting');
  });

  test('a token is refused in another queue', async (scene) => {
    const other = neighbour(scene);
    const { job } = await scene.running({ id: 'x' });
    await other.running({ id: 'x' });
    const before = await other.snapshot('x');
    assert.deepEqual(await other.settle(completed(job)), ['lost']);
    if (scene.has('timed-locks')) {
      assert.deepEqual(await other.store.extend(other.queue, [{ jobId: 'x', token: job.token, durationMs: 1 }]), ['lost']);
    }
    assert.deepEqual(await other.snapshot('x'), before);
  });

  test.needs(
    'control',
    'changing',
    'caps',
  )('claim, configure, change and forget leave another queue unchanged', async (scene) => {
    const other = neighbour(scene);
    const { job } = await other.running();
    await other.add({ id: 'waits' }, { id: 'late', delayMs: scene.ms(5_000) });
    const before = await other.snapshot(job.id);
    const { store, queue } = scene;
    await scene.add({}, {});
    await scene.claim(await scene.session(), 10);
    await store.closeSessions(
      (await store.sessions(queue)).map(({ id }) => ({ queue, id })),
      'crashed',
    );
    await store.configure(queue, { paused: true, blockedMs: scene.ms(5_000), cap: { maxActive: 1 } });
    await store.change(queue, [job.id], { kind: 'revoke', reason: 'r' });
    await store.change(queue, { lists: ['delayed'], limit: 100 }, { kind: 'promote' });
    await store.change(queue, { lists: ['completed'], limit: 100 }, retryFrom('completed'));
    await store.change(queue, { lists: ['failed'], limit: 100 }, retryFrom('failed'));
    await store.change(
      queue,
      { lists: ['waiting', 'prioritized', 'delayed', 'completed', 'failed'], limit: 100 },
      { kind: 'remove' },
    );
    await store.forget(queue, { events: 0 });
    await store.forget(queue, { all: true });
    assert.deepEqual(await other.snapshot(job.id), before);
    assert.equal((await other.tryClaim(await other.session())).limitedMs, undefined);
  });

  test.needs('control')('a window counts the claims of its own queue only', async (scene) => {
    const other = neighbour(scene);
    const limit = { max: 1, durationMs: scene.ms(500) };
    await scene.add({});
    await other.add({});
    assert.equal((await scene.claim(await scene.session(), 5, { limit })).length, 1);
    assert.equal((await other.claim(await other.session(), 5, { limit })).length, 1);
  });

  test('sweep leaves the dead locks of another queue', async (scene) => {
    const other = neighbour(scene);
    const { job } = await other.running({}, { durationMs: scene.ms(5) });
    await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    assert.equal((await scene.sweep()).stalled.length, 1);
    assert.equal(await other.stateOf(job.id), 'active');
    assert.deepEqual((await other.sweep()).stalled, [job.id]);
  });

  test('one call number in two queues counts as two calls', async (scene) => {
    const other = neighbour(scene);
    const [here, there] = [scene.running(), other.running()];
    const [a, b] = [await here, await there];
    const call = { caller: 'manual', seq: 1 };
    assert.deepEqual((await scene.store.settle(scene.queue, [completed(a.job)], call)).results, ['done']);
    assert.deepEqual((await other.store.settle(other.queue, [completed(b.job)], call)).results, ['done']);
    assert.deepEqual([await scene.stateOf(a.job.id), await other.stateOf(b.job.id)], ['completed', 'completed']);
  });

  test('a producer may number its calls per queue or across queues without repeating a call', async (scene) => {
    const other = neighbour(scene);
    const job = { name: 'work', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };
    await scene.store.add(scene.queue, [job], { caller: 'p', seq: 1 });
    await other.store.add(other.queue, [job], { caller: 'p', seq: 1 });
    await other.store.add(other.queue, [job], { caller: 'p', seq: 2 });
    await scene.store.add(scene.queue, [job], { caller: 'p', seq: 3 });
    assert.deepEqual([(await scene.list('waiting')).length, (await other.list('waiting')).length], [2, 2]);
  });

  test('fifty queues run their own jobs at once', async (scene) => {
    const queues = Array.from({ length: 50 }, (_, n) => scene.at(`${scene.queue}-${n}`));
    await Promise.all(
      queues.map(async (there, n) => {
        await there.add({ data: String(n) }, { data: String(n) });
        const jobs = await there.claim(await there.session(), 5);
        assert.deepEqual(
          jobs.map(({ data }) => data),
          [String(n), String(n)],
        );
        await there.finish(...jobs.map((job) => completed(job)));
      }),
    );
    for (const there of queues) assert.equal((await there.store.status(there.queue)).counts.completed, 2);
  });

  test('events of one queue do not appear in another', async (scene) => {
    const other = neighbour(scene);
    await scene.add({ id: 'here' });
    await other.add({ id: 'there' });
    assert(!(await scene.events()).some(({ jobId }) => jobId === 'there'));
    assert.equal(only((await other.events()).filter(({ name }) => name === 'waiting')).jobId, 'there');
  });
}

function neighbour(scene: Scene): Scene {
  return scene.at(`${scene.queue}-neighbour`);
}
