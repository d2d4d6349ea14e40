// Facet: sweeps find dead locks and put their jobs back.
import assert from 'node:assert/strict';
import { STALLED_REASON } from '../../store/contract/index.js';
import { ids, sorted } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function sweeping(test: Test): void {
  test('sweep leaves a living session alone', async (scene) => {
    const { job } = await scene.running();
    assert.deepEqual(await scene.store.sweep(scene.queue, 10), { stalled: [], failed: [], more: false });
    assert.equal(await scene.stateOf(job.id), 'active');
  });

  test('sweep moves the jobs of an expired session to waiting with one more stall', async (scene) => {
    const added = await die(scene, 3);
    const reply = await scene.store.sweep(scene.queue, 10);
    assert.deepEqual([sorted(reply.stalled), reply.failed, reply.more], [sorted(added), [], false]);
    for (const id of added) {
      const { state, stalledCounter, attemptsMade } = await scene.job(id);
      assert.deepEqual([state, stalledCounter, attemptsMade], ['waiting', 1, 0]);
      assert.equal(await scene.lockOf(id), undefined);
    }
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
  });

  test('a second sweep finds nothing and counts no stall', async (scene) => {
    const added = await die(scene, 2);
    await scene.sweep();
    const recorded = await scene.events();
    assert.deepEqual(await scene.store.sweep(scene.queue, 10), { stalled: [], failed: [], more: false });
    assert.deepEqual(await scene.events(), recorded);
    for (const id of added) assert.equal((await scene.job(id)).stalledCounter, 1);
  });

  test('sweep takes at most `limit` locks per call and returns more until all are found', async (scene) => {
    const added = await die(scene, 7);
    const found: string[] = [];
    for (let round = 0; ; round += 1) {
      assert(round < 20, 'it comes to an end');
      const { stalled, failed, more } = await scene.store.sweep(scene.queue, 3);
      assert(stalled.length + failed.length <= 3, `${stalled.length} at once`);
      found.push(...stalled, ...failed);
      if (!more) break;
    }
    assert.deepEqual(sorted(found), sorted(added));
  });

  test('sweep reaps many dead sessions with and without jobs', async (scene) => {
    await scene.addMany(6);
    for (let n = 0; n < 12; n += 1) {
      const session = await scene.briefSession({ durationMs: scene.ms(20) });
      if (n % 2 === 0) await scene.claimOne(session);
    }
    await scene.pass(21);
    assert.equal((await scene.sweep(2)).stalled.length, 6);
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
  });

  test('many sweeps at once count each stall once', async (scene) => sweepTogether(scene, [scene, scene, scene]));

  test.shared('sweeps on two connections count each stall once', async (scene) =>
    sweepTogether(scene, [scene, await scene.peer()]),
  );

  test('S2-11 S4-12 sweep fails a job over the stall limit with the reason, and it never runs again', async (scene) => {
    const id = await scene.addOne({ opts: '{"attempts":5}' });
    for (let round = 0; round < 2; round += 1) {
      await scene.claimOne(await scene.briefSession({ maxStalls: 1 }));
      await scene.perish();
      assert.deepEqual(await scene.sweep(), round === 0 ? { stalled: [id], failed: [] } : { stalled: [], failed: [id] });
    }
    const record = await scene.job(id);
    assert.deepEqual([record.state, record.failedReason], ['failed', STALLED_REASON]);
    assert(record.finishedOn !== undefined);
    assert.deepEqual(await scene.list('failed'), [id]);
    assert.deepEqual(await scene.order(), []);
    const recorded = (await scene.events()).filter(({ name }) => name === 'failed');
    assert.deepEqual([recorded.length, recorded[0]?.jobId, recorded[0]?.['failedReason']], [1, id, STALLED_REASON]);
  });

  test('S3-7 the first stall fails the job when maxStalls is 0', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5), maxStalls: 0 });
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [job.id] });
  });

  test.needs('keeping')('S4-12 removeOnFail true removes a job that stalled too often', async (scene) => {
    const { job } = await scene.running({ opts: '{"removeOnFail":true}' }, { durationMs: scene.ms(5), maxStalls: 0 });
    await scene.perish();
    assert.deepEqual((await scene.sweep()).failed, [job.id]);
    assert.equal(await scene.find(job.id), undefined);
    assert(
      (await scene.events()).some(({ name, jobId }) => name === 'failed' && jobId === job.id),
      'the store records it nevertheless',
    );
  });

  for (const [what, opts] of [
    ['a number', '{"removeOnFail":2}'],
    ['a count', '{"removeOnFail":{"count":2}}'],
  ]) {
    test.needs('keeping')(`S4-12 removeOnFail ${what} keeps the newest jobs that stalled too often`, async (scene) => {
      const added: string[] = [];
      for (let round = 0; round < 4; round += 1) {
        const { job } = await scene.running({ opts: opts as string }, { durationMs: scene.ms(5), maxStalls: 0 });
        added.push(job.id);
        await scene.perish();
        await scene.sweep();
      }
      assert.deepEqual(await scene.list('failed'), added.slice(2));
    });
  }

  test('removeOnFail false keeps a job that stalled too often', async (scene) => {
    const { job } = await scene.running({ opts: '{"removeOnFail":false}' }, { durationMs: scene.ms(5), maxStalls: 0 });
    await scene.perish();
    await scene.sweep();
    assert.equal(await scene.stateOf(job.id), 'failed');
  });

  test('sweep leaves a job that finished before its session died', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.finish(completed(job));
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('a recovered job runs and finishes in another session', async (scene) => {
    const [id] = await die(scene, 1);
    await scene.sweep();
    const job = await scene.claimOne(await scene.session());
    assert.deepEqual([job.id, job.stalledCounter, job.attemptsStarted], [id, 1, 2]);
    await scene.finish(completed(job));
  });
}

/** Opens a session that holds `count` jobs and lets it expire. Returns the ids of the jobs. */
async function die(scene: Scene, count: number): Promise<string[]> {
  await scene.addMany(count);
  const jobs = await scene.claim(await scene.briefSession(), count);
  assert.equal(jobs.length, count);
  await scene.perish();
  return ids(jobs);
}

async function sweepTogether(scene: Scene, sides: Scene[]): Promise<void> {
  const added = await die(scene, 40);
  const found = await Promise.all([...sides, ...sides].map((side) => side.sweep(3)));
  assert.deepEqual(sorted(found.flatMap(({ stalled }) => stalled)), sorted(added));
  for (const id of added) assert.equal((await scene.job(id)).stalledCounter, 1);
  const recorded = (await scene.events()).filter(({ name }) => name === 'stalled');
  assert.deepEqual(sorted(recorded.map(({ jobId }) => String(jobId))), sorted(added));
}
