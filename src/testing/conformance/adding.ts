// Facet: adding jobs.
import assert from 'node:assert/strict';
import { changedAll, ids, nth, only } from './expect.js';
import { completed, newJob } from './samples.js';
import type { Test } from './suite.js';

export function adding(test: Test): void {
  test('counts ids up from "1" per queue, in the order of the list and across calls', async (scene) => {
    assert.deepEqual(await scene.add({}, {}, {}), ['1', '2', '3']);
    assert.deepEqual(await scene.add({}), ['4']);
    assert.deepEqual(await scene.at(`${scene.queue}-other`).add({}), ['1']);
  });

  test('keeps the job id that the caller gives', async (scene) => {
    assert.deepEqual(await scene.add({ id: 'order-7' }, {}), ['order-7', (await scene.list('waiting'))[1]]);
    assert.equal((await scene.job('order-7')).id, 'order-7');
  });

  test('stores every field of a new job as given and starts all counters at zero', async (scene) => {
    const job = newJob({ name: 'mail', data: '{"to":"a"}', opts: '{"attempts":3}', priority: 4, timestamp: 12_345 });
    const record = await scene.job(await scene.addOne(job));
    assert.deepEqual(
      { name: record.name, data: record.data, opts: record.opts, priority: record.priority, timestamp: record.timestamp },
      { name: 'mail', data: '{"to":"a"}', opts: '{"attempts":3}', priority: 4, timestamp: 12_345 },
    );
    assert.deepEqual(
      [record.state, record.delay, record.attemptsMade, record.attemptsStarted, record.stalledCounter],
      ['waiting', 0, 0, 0, 0],
    );
    for (const field of ['processedOn', 'finishedOn', 'processedBy', 'returnvalue', 'failedReason', 'progress'] as const) {
      assert.equal(record[field], undefined, field);
    }
  });

  test('stores a job with a delay as delayed, with its delay', async (scene) => {
    const record = await scene.job(await scene.addOne({ delayMs: scene.ms(500) }));
    assert.deepEqual([record.state, record.delay], ['delayed', scene.ms(500)]);
  });

  test('add reports a duplicate and changes nothing when the id exists', async (scene) => {
    await scene.add({ id: 'one', data: '"first"' });
    const before = await scene.job('one');
    const call = scene.call('another-producer');
    const replies = await scene.store.add(scene.queue, [newJob({ id: 'one', data: '"second"', delayMs: scene.ms(500) })], call);
    assert.deepEqual(replies, [{ id: 'one', status: 'duplicate' }]);
    assert.deepEqual(await scene.job('one'), before);
    assert.deepEqual(await scene.list('waiting'), ['one']);
  });

  test('add keeps the first of two jobs with one id in the same call', async (scene) => {
    const jobs = [newJob({ id: 'x', data: '1' }), newJob({ id: 'y' }), newJob({ id: 'x', data: '2' })];
    const replies = await scene.store.add(scene.queue, jobs, scene.call('p'));
    assert.deepEqual(replies, [
      { id: 'x', status: 'added' },
      { id: 'y', status: 'added' },
      { id: 'x', status: 'duplicate' },
    ]);
    assert.equal((await scene.job('x')).data, '1');
    assert.deepEqual(await scene.list('waiting'), ['x', 'y']);
  });

  test('S3-9 add leaves a running job untouched when its id is added again', async (scene) => {
    const { job } = await scene.running({ id: 'single' });
    const before = await scene.job('single');
    const [reply] = await scene.store.add(scene.queue, [newJob({ id: 'single' })], scene.call('p'));
    assert.equal(reply?.status, 'duplicate');
    assert.deepEqual(await scene.job('single'), before);
    await scene.finish(completed(job));
    assert.deepEqual(await scene.list('waiting'), []);
  });

  test.needs('changing')('add reports a duplicate while the finished job is kept, and not after its removal', async (scene) => {
    const { job } = await scene.running({ id: 'again' });
    await scene.finish(completed(job));
    const add = async () => only(await scene.store.add(scene.queue, [newJob({ id: 'again' })], scene.call('p'))).status;
    assert.equal(await add(), 'duplicate');
    assert.equal(await scene.stateOf('again'), 'completed');
    assert.deepEqual(await scene.store.change(scene.queue, ['again'], { kind: 'remove' }), changedAll('again'));
    assert.equal(await add(), 'added');
    assert.equal(await scene.stateOf('again'), 'waiting');
  });

  test('add keeps the order of a thousand jobs in one call', async (scene) => {
    const added = await scene.add(...Array.from({ length: 1_000 }, (_, index) => ({ data: String(index) })));
    assert.equal(new Set(added).size, 1_000);
    const jobs = await scene.claim(await scene.session(), 1_000);
    assert.deepEqual(
      jobs.map(({ data }) => data),
      Array.from({ length: 1_000 }, (_, index) => String(index)),
    );
    assert.deepEqual(ids(jobs), added);
  });

  test('add writes nothing when the transaction is invalid or unsupported', async (scene) => {
    const code = scene.store.capabilities.transactions ? 'INVALID_OPTION' : 'OPTION_UNSUPPORTED';
    await assert.rejects(scene.store.add(scene.queue, [newJob()], scene.call('p'), {}), { code });
    assert.deepEqual(await scene.list('waiting'), []);
  });

  test('add loses no job and gives no id twice when many producers add at once', async (scene) => {
    const calls = Array.from({ length: 40 }, (_, producer) =>
      scene.store.add(scene.queue, [newJob({ data: String(producer) }), newJob({ data: String(producer) })], {
        caller: `p${producer}`,
        seq: 1,
      }),
    );
    const added = (await Promise.all(calls)).flat();
    assert.equal(new Set(ids(added)).size, 80);
    assert.equal((await scene.list('waiting')).length, 80);
  });

  test.shared('add loses no job and gives no id twice when two connections add at once', async (scene) => {
    const peer = await scene.peer();
    const calls = Array.from({ length: 30 }, (_, producer) => {
      const { store } = producer % 2 === 0 ? scene : peer;
      return store.add(scene.queue, [newJob(), newJob()], { caller: `p${producer}`, seq: 1 });
    });
    const added = (await Promise.all(calls)).flat();
    assert.equal(new Set(ids(added)).size, 60);
    assert.deepEqual((await peer.list('waiting')).sort(), ids(added).sort());
  });

  test.shared('a connection sees at once the jobs that another connection added', async (scene) => {
    const peer = await scene.peer();
    const id = await scene.addOne({ data: '"seen"' });
    assert.equal((await peer.job(id)).data, '"seen"');
    assert.equal(nth(await peer.claim(await peer.session(), 1), 0).id, id);
  });
}
