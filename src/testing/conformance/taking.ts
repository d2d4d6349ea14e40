// Facet: claiming jobs by their ids.
import assert from 'node:assert/strict';
import { FaultyStore } from '../faulty-store.js';
import { between, ids, only } from './expect.js';
import { completed } from './samples.js';
import type { Test } from './suite.js';

export function taking(test: Test): void {
  test('a claim by id takes exactly the named jobs, in that order', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c', priority: 9 }, { id: 'd' });
    const session = await scene.session();
    const jobs = await scene.claim(session, 5, { jobIds: ['d', 'c', 'a'], by: 'hand' });
    assert.deepEqual(ids(jobs), ['d', 'c', 'a']);
    assert.deepEqual(await scene.list('waiting'), ['b']);
    for (const job of jobs) {
      assert.deepEqual([job.state, job.attemptsStarted, job.processedBy], ['active', 1, 'hand']);
      const lock = await scene.lockOf(job.id);
      assert.deepEqual([lock?.token, lock?.fence, lock?.session], [job.token, job.fence, session]);
    }
    await scene.finish(...jobs.map((job) => completed(job)));
  });

  test('a claim by id takes at most `count` jobs, and none for no ids', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' });
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1, { jobIds: ['b', 'a'] })), ['b']);
    assert.deepEqual(await scene.claim(session, 5, { jobIds: [] }), []);
    assert.equal(await scene.stateOf('a'), 'waiting');
  });

  test('a claim by id takes only waiting jobs, each once', async (scene) => {
    await scene.add({ id: 'active' }, { id: 'completed' });
    const session = await scene.session();
    const [, second] = await scene.claim(session, 2);
    await scene.finish(completed(second ?? assert.fail()));
    await scene.add({ id: 'delayed', delayMs: scene.ms(900) }, { id: 'waits' });
    const jobIds = ['active', 'completed', 'missing', 'delayed', 'waits', 'waits'];
    assert.deepEqual(ids(await scene.claim(session, 10, { jobIds })), ['waits']);
    assert.equal(await scene.stateOf('delayed'), 'delayed');
  });

  test('a claim by id takes a delayed job that is due', async (scene) => {
    await scene.add({ id: 'a', delayMs: scene.ms(2) });
    await scene.pass(3);
    const session = await scene.session();
    assert.deepEqual(ids(await scene.claim(session, 1, { jobIds: ['a'] })), ['a']);
    const recorded = (await scene.events()).map(({ name }) => name);
    assert.deepEqual(recorded, ['added', 'delayed', 'waiting', 'active']);
  });

  test.needs('caps')('a claim by id ignores pause, limits and a full cap', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' });
    const session = await scene.session();
    await scene.store.configure(scene.queue, { cap: { maxActive: 1 } });
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a']);
    assert.deepEqual(ids(await scene.claim(session, 5, { jobIds: ['b'] })), ['b']);
    await scene.store.configure(scene.queue, { paused: true });
    assert.deepEqual(ids(await scene.claim(session, 5, { jobIds: ['c'] })), ['c']);
    await scene.store.configure(scene.queue, { blockedMs: scene.ms(900) });
    const limit = { max: 1, durationMs: scene.ms(900) };
    assert.deepEqual(ids(await scene.claim(session, 5, { jobIds: ['d'], limit })), ['d']);
  });

  test.needs('caps')('jobs claimed by id count under the cap and the limit', async (scene) => {
    await scene.addMany(9);
    await scene.add({ id: 'x' }, { id: 'y' });
    const session = await scene.session();
    await scene.store.configure(scene.queue, { cap: { maxActive: 2 } });
    await scene.claim(session, 5, { jobIds: ['x'] });
    const job = only(await scene.claim(session, 5));
    await scene.store.configure(scene.queue, { cap: null });
    const limit = { max: 2, durationMs: scene.ms(900) };
    assert.equal((await scene.claim(session, 1, { limit })).length, 1);
    assert.equal((await scene.claim(session, 1, { jobIds: ['y'], limit })).length, 1);
    const { jobs, limitedMs } = await scene.tryClaim(session, 1, { limit });
    assert.deepEqual(jobs, []);
    between(limitedMs, 1, scene.ms(900), 'limitedMs');
    await scene.finish(completed(job));
  });

  test.needs('keys')('a claim by id takes one job per key, and none while the key is taken', async (scene) => {
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, lockKey: 'k' })));
    const session = await scene.session();
    const job = only(await scene.claim(session, 5, { jobIds: ['b', 'c'] }));
    assert.equal(job.id, 'b');
    assert.deepEqual(await scene.claim(session, 5, { jobIds: ['a', 'c'] }), []);
    assert.deepEqual(await scene.claim(session, 5), [], 'the key is taken for all');
    await scene.finish(completed(job));
    assert.deepEqual(ids(await scene.claim(session, 5)), ['a']);
  });

  test.needs('keys')('a claim by id moves a due job to waiting when its key is taken', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k', delayMs: scene.ms(2) });
    const session = await scene.session();
    await scene.claimOne(session);
    await scene.pass(3);
    assert.deepEqual(await scene.claim(session, 5, { jobIds: ['b'] }), []);
    assert.deepEqual(await scene.claim(session, 5), []);
    assert.equal(await scene.stateOf('b'), 'waiting');
  });

  test.needs('timed-locks')('a claim by id can grant timed locks', async (scene) => {
    await scene.add({ id: 'a' });
    await scene.claim(await scene.session(), 1, { jobIds: ['a'], timedMs: scene.ms(3) });
    await scene.perish();
    assert.deepEqual((await scene.sweep()).stalled, ['a']);
  });

  test('a dead session claims nothing by id', async (scene) => {
    await scene.add({ id: 'a' });
    const reply = await scene.tryClaim('no-session', 1, { jobIds: ['a'] });
    assert.deepEqual([reply.jobs, reply.sessionAlive], [[], false]);
    assert.equal(await scene.stateOf('a'), 'waiting');
  });

  test('a claim by id repeated with the same seq returns the same jobs and tokens', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const session = await scene.session();
    const request = scene.request(session, 5, { jobIds: ['c', 'a'] });
    const lossy = new FaultyStore(scene.store);
    lossy.on('claim', { times: 1, fault: 'drop-reply' });
    await assert.rejects(lossy.claim(scene.queue, request), { retryable: true });
    const { jobs } = await lossy.claim(scene.queue, request);
    assert.deepEqual(ids(jobs), ['c', 'a']);
    assert.deepEqual((await lossy.claim(scene.queue, request)).jobs, jobs);
    assert.deepEqual(await scene.claim(session, 5, { jobIds: ['c', 'a'] }), []);
    assert.equal((await scene.events()).filter(({ name }) => name === 'active').length, 2);
  });

  test('settle can finish a job and claim another by id in one call', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    const call = scene.call(session);
    const claim = scene.request(session, 5, { seq: call.seq, jobIds: ['c'] });
    const reply = await scene.store.settle(scene.queue, [completed(job)], call, claim);
    assert.deepEqual([reply.results, ids(reply.claimed?.jobs ?? [])], [['done'], ['c']]);
  });
}
