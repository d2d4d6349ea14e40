// Facet: settling jobs. The store carries out every outcome once, and only with the current token.
import assert from 'node:assert/strict';
import { ids, nth, only, sorted } from './expect.js';
import { completed, delayed, failed, released, retried, returned } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function settling(test: Test): void {
  test('settle completed stores the result, counts the attempt and ends the lock', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(completed(job)), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.returnvalue, record.attemptsMade], ['completed', '"done"', 1]);
    assert(record.finishedOn !== undefined && record.processedOn !== undefined && record.finishedOn >= record.processedOn);
    await assertUnlocked(scene, session, job.id);
  });

  test('settle failed stores reason and stacktrace, counts the attempt and ends the lock', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(failed(job)), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual(
      [record.state, record.failedReason, record.stacktrace, record.attemptsMade, record.returnvalue],
      ['failed', 'broken', '["at once"]', 1, undefined],
    );
    assert(record.finishedOn !== undefined);
    await assertUnlocked(scene, session, job.id);
  });

  test('settle retry without delay moves the job to waiting, counts the attempt and stores the reason', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(retried(job)), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual(
      [record.state, record.failedReason, record.stacktrace, record.attemptsMade, record.finishedOn],
      ['waiting', 'not yet', '["at first"]', 1, undefined],
    );
    await assertUnlocked(scene, session, job.id);
    assert.equal((await scene.claimOne(session)).attemptsStarted, 2);
  });

  test('settle retry with delay makes the job claimable when it is due', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(retried(job, scene.ms(5))), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.delay, record.attemptsMade], ['delayed', scene.ms(5), 1]);
    await assertUnlocked(scene, session, job.id);
    assert.deepEqual(await scene.claim(session), []);
    await scene.pass(6);
    assert.equal((await scene.claimOne(session)).id, job.id);
  });

  test('settle delay delays the job without counting an attempt', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(delayed(job, scene.ms(5))), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.delay, record.attemptsMade], ['delayed', scene.ms(5), 0]);
    await assertUnlocked(scene, session, job.id);
    await scene.pass(6);
    assert.equal((await scene.claimOne(session)).id, job.id);
  });

  test('settle release moves the job to waiting without counting an attempt or a stall', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual(await scene.settle(released(job)), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.attemptsMade, record.stalledCounter], ['waiting', 0, 0]);
    await assertUnlocked(scene, session, job.id);
  });

  test('settle return moves the job to waiting without counting a start', async (scene) => {
    const { session, job } = await scene.running();
    assert.equal(job.attemptsStarted, 1);
    assert.deepEqual(await scene.settle(returned(job)), ['done']);
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.attemptsMade, record.attemptsStarted, record.stalledCounter], ['waiting', 0, 0, 0]);
    await assertUnlocked(scene, session, job.id);
    assert.equal((await scene.claimOne(session)).attemptsStarted, 1);
  });

  test('settle returns missing for an unknown job', async (scene) => {
    const ghost = { ...(await scene.running()).job, id: 'ghost' };
    for (const outcome of [
      completed(ghost),
      failed(ghost),
      retried(ghost),
      delayed(ghost, 5),
      released(ghost),
      returned(ghost),
    ]) {
      assert.deepEqual(await scene.settle(outcome), ['missing'], outcome.kind);
    }
    assert.equal(await scene.stateOf('ghost'), 'missing');
  });

  test('settle returns lost for a lost lock and settles the others, with results in order', async (scene) => {
    const added = await scene.addMany(3);
    const jobs = await scene.claim(await scene.session(), 3);
    const [a, b, c] = [nth(jobs, 0), nth(jobs, 1), nth(jobs, 2)];
    const results = await scene.settle(
      completed({ ...b, token: 'stale' }),
      failed(c),
      completed({ ...a, id: 'ghost' }),
      completed(a),
    );
    assert.deepEqual(results, ['lost', 'done', 'missing', 'done']);
    assert.deepEqual(await Promise.all(added.map((id) => scene.stateOf(id))), ['completed', 'active', 'failed']);
  });

  test('settle accepts a late finish with the current token until the sweep', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    assert.deepEqual(await scene.settle(completed(job)), ['done']);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.stalledCounter], ['completed', 0]);
  });

  test('settle refuses a late finish after the sweep and changes nothing', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    const before = await scene.snapshot(job.id);
    for (const outcome of [completed(job), failed(job), retried(job), delayed(job, 5), released(job), returned(job)]) {
      assert.deepEqual(await scene.settle(outcome), ['lost'], outcome.kind);
    }
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('settle keeps one result when two finishes with one token come at once', async (scene) => {
    const { job } = await scene.running();
    await Promise.all([scene.settle(completed(job)), scene.settle(failed(job))]);
    const record = await scene.job(job.id);
    assert.equal(record.attemptsMade, 1);
    assert.equal(record.state === 'completed', record.returnvalue !== undefined);
    assert.equal(record.state === 'failed', record.failedReason !== undefined);
    const finishes = (await scene.events()).filter(({ name }) => name === 'completed' || name === 'failed');
    assert.deepEqual(only(finishes).name, record.state);
  });

  test('settle without a call returns done for a repeated finish and changes nothing', async (scene) => {
    for (const outcome of [completed, failed]) {
      const { job } = await scene.running();
      await scene.finish(outcome(job));
      const before = await scene.snapshot(job.id);
      assert.deepEqual(await scene.settle(outcome(job)), ['done']);
      assert.deepEqual(await scene.snapshot(job.id), before);
    }
  });

  test('settle returns lost for the opposite finish with the same token and changes nothing', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    const before = await scene.snapshot(job.id);
    assert.deepEqual(await scene.settle(failed(job)), ['lost']);
    assert.deepEqual(await scene.settle(released(job)), ['lost']);
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('settle with a claim: the claim sees the jobs that the outcomes freed', async (scene) => {
    const { session, job } = await scene.running();
    const call = scene.call(session);
    const { results, claimed } = await scene.store.settle(
      scene.queue,
      [released(job)],
      call,
      scene.request(session, 5, { seq: call.seq }),
    );
    assert.deepEqual(results, ['done']);
    const again = only(claimed?.jobs ?? []);
    assert.equal(again.id, job.id);
    assert(again.token !== job.token && again.fence > job.fence);
    assert.equal((await scene.lockOf(job.id))?.token, again.token);
  });

  test('settle with a claim finishes a job, returns the next and reports drained', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    let held = await scene.claim(session, 1);
    const done: string[] = [];
    const drained: (boolean | undefined)[] = [];
    while (held.length > 0) {
      const call = scene.call(session);
      const reply = await scene.store.settle(
        scene.queue,
        held.map((job) => completed(job)),
        call,
        scene.request(session, 1, { seq: call.seq }),
      );
      assert.deepEqual(reply.results, ['done']);
      assert.equal(reply.claimed?.sessionAlive, true);
      done.push(...ids(held));
      drained.push(reply.claimed?.drained);
      held = reply.claimed?.jobs ?? [];
    }
    assert.deepEqual(sorted(done), sorted(await scene.list('completed')));
    assert.deepEqual(drained, [false, true, true]);
  });

  test('settle with a claim of an expired session finishes the job and claims nothing', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.add({});
    await scene.perish();
    const call = scene.call(session);
    const { results, claimed } = await scene.store.settle(
      scene.queue,
      [completed(job)],
      call,
      scene.request(session, 1, { seq: call.seq }),
    );
    assert.deepEqual([results, claimed?.jobs, claimed?.sessionAlive], [['done'], [], false]);
  });

  test('settle without outcomes carries out its claim', async (scene) => {
    const id = await scene.addOne();
    const session = await scene.session();
    const call = scene.call(session);
    const { results, claimed } = await scene.store.settle(scene.queue, [], call, scene.request(session, 1, { seq: call.seq }));
    assert.deepEqual([results, ids(claimed?.jobs ?? [])], [[], [id]]);
  });

  test.shared('settle accepts a token through another connection', async (scene) => {
    const { job } = await scene.running();
    const peer = await scene.peer();
    assert.deepEqual(await peer.settle(completed(job)), ['done']);
    assert.deepEqual(await scene.settle(completed(job)), ['done']);
    assert.equal(await scene.stateOf(job.id), 'completed');
  });
}

async function assertUnlocked(scene: Scene, session: string, jobId: string): Promise<void> {
  assert.equal(await scene.lockOf(jobId), undefined);
  assert.deepEqual(await scene.store.locks(scene.queue, { session }), []);
}
