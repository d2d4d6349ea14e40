// Facet: how many finished jobs are kept.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { Keep, Outcome } from '../../job/outcome.js';
import { nth } from './expect.js';
import { completed, failed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

/**
 * In units. A job that finished OLD units ago is older than AGE; a job that finishes now is younger, even on a machine that pauses.
 */
const OLD = 24;
const AGE = 20;

export function keeping(test: Test): void {
  test('finished jobs stay without a keep limit', async (scene) => {
    await runMany(scene, 5, completed, {});
    assert.equal((await scene.list('completed')).length, 5);
  });

  test.needs('control')('keep { count: 0 } removes the job with its logs', async (scene) => {
    const { job } = await scene.running({ id: 'x' });
    await scene.store.write(scene.queue, [{ jobId: 'x', kind: 'log', row: 'old' }]);
    await scene.finish(completed(job, { count: 0 }));
    assert.equal(await scene.find('x'), undefined);
    assert.deepEqual(await scene.list('completed'), []);
    await scene.add({ id: 'x' });
    assert.equal((await scene.store.logs(scene.queue, 'x', { start: 0, end: -1, asc: true })).count, 0);
  });

  test('keep { count: 0 } leaves the finished jobs that were kept before', async (scene) => {
    const done = await runMany(scene, 3, completed, {});
    await runMany(scene, 2, completed, { count: 0 });
    assert.deepEqual(await scene.list('completed'), done);
  });

  test('keep { count } keeps the newest jobs of the same state', async (scene) => {
    const fails = await runMany(scene, 2, failed, {});
    const done = await runMany(scene, 5, completed, { count: 2 });
    assert.deepEqual(await scene.list('completed'), done.slice(3));
    assert.deepEqual(await scene.list('failed'), fails);
    const more = await runMany(scene, 2, failed, { count: 3 });
    assert.deepEqual(await scene.list('failed'), [nth(fails, 1), ...more]);
  });

  test('keep { ageMs } removes jobs that finished longer ago', async (scene) => {
    const old = await runMany(scene, 2, completed, {});
    await scene.pass(6);
    const fresh = await runMany(scene, 1, completed, { ageMs: scene.ms(4) });
    assert.deepEqual(await scene.list('completed'), fresh);
    assert.deepEqual((await scene.store.jobs(scene.queue, old)).jobs, [undefined, undefined]);
  });

  for (const [state, outcome] of Object.entries({ completed, failed })) {
    const list = state as 'completed' | 'failed';

    test(`keep { ageMs } keeps every ${state} job that finished within that time`, async (scene) => {
      const young = await runMany(scene, 3, outcome, {});
      await scene.pass(2);
      const fresh = await runMany(scene, 2, outcome, { ageMs: scene.ms(10_000) });
      assert.deepEqual(await scene.list(list), [...young, ...fresh]);
    });

    test(`keep { ageMs } removes old ${state} jobs and keeps younger ones`, async (scene) => {
      const old = await runMany(scene, 2, outcome, {});
      await scene.pass(OLD);
      const young = await runMany(scene, 2, outcome, {});
      await scene.pass(2);
      const fresh = await runMany(scene, 1, outcome, { ageMs: scene.ms(AGE) });
      assert.deepEqual(await scene.list(list), [...young, ...fresh]);
      assert.equal((await scene.store.status(scene.queue)).counts[list], 3);
      assert.deepEqual((await scene.store.jobs(scene.queue, old)).jobs, [undefined, undefined]);
    });
  }

  test('keep { ageMs } counts from the finish of a job, not from its add or start', async (scene) => {
    const { job } = await scene.running();
    await scene.pass(OLD);
    await scene.finish(completed(job));
    const fresh = await runMany(scene, 1, completed, { ageMs: scene.ms(AGE) });
    assert.deepEqual(await scene.list('completed'), [job.id, ...fresh]);
  });

  test('keep { ageMs } of one finished state leaves jobs of the other state', async (scene) => {
    const fails = await runMany(scene, 1, failed, {});
    const done = await runMany(scene, 1, completed, {});
    await scene.pass(OLD);
    const fresh = await runMany(scene, 1, completed, { ageMs: scene.ms(AGE) });
    assert.deepEqual([await scene.list('failed'), await scene.list('completed')], [fails, fresh]);
    await scene.pass(OLD);
    const more = await runMany(scene, 1, failed, { ageMs: scene.ms(AGE) });
    assert.deepEqual([await scene.list('failed'), await scene.list('completed')], [more, fresh]);
    assert.deepEqual((await scene.store.jobs(scene.queue, done)).jobs, [undefined]);
  });

  test('keep { count, ageMs } applies both limits', async (scene) => {
    const old = await runMany(scene, 1, completed, {});
    await scene.pass(OLD);
    const young = await runMany(scene, 2, completed, { count: 100 });
    const fresh = await runMany(scene, 1, completed, { count: 100, ageMs: scene.ms(AGE) });
    assert.deepEqual(await scene.list('completed'), [...young, ...fresh]);
    const last = await runMany(scene, 1, completed, { count: 2, ageMs: scene.ms(10_000) });
    assert.deepEqual(await scene.list('completed'), [...fresh, ...last]);
    assert.deepEqual((await scene.store.jobs(scene.queue, old)).jobs, [undefined]);
  });

  test('the age of removeOnFail applies to jobs that stall too often', async (scene) => {
    const old = await runMany(scene, 1, failed, {});
    await scene.add({ opts: '{"removeOnFail":{"age":2}}' });
    const { id } = await scene.claimOne(await scene.briefSession({ maxStalls: 0 }));
    await scene.pass(2_500 / scene.unit);
    const young = await runMany(scene, 2, failed, {});
    assert.deepEqual((await scene.sweep()).failed, [id]);
    assert.deepEqual(await scene.list('failed'), [...young, id]);
    assert.deepEqual((await scene.store.jobs(scene.queue, old)).jobs, [undefined]);
  });

  test('a retried or released job stays whatever its keep options say', async (scene) => {
    const { session, job } = await scene.running({ opts: '{"removeOnFail":true,"removeOnComplete":true}' });
    await scene.finish({
      kind: 'retry',
      jobId: job.id,
      token: job.token,
      reason: 'r',
      stacktrace: '[]',
      delayMs: 0,
      lifo: false,
    });
    const again = await scene.claimOne(session);
    await scene.finish({ kind: 'release', jobId: again.id, token: again.token });
    assert.equal(await scene.stateOf(job.id), 'waiting');
  });
}

/** Runs jobs one after the other, so they have an order. Returns the ids. */
async function runMany(
  scene: Scene,
  count: number,
  outcome: (job: ClaimedJob, keep: Keep) => Outcome,
  keep: Keep,
): Promise<string[]> {
  const session = await scene.session();
  const done: string[] = [];
  for (let n = 0; n < count; n += 1) {
    await scene.add({});
    const job = await scene.claimOne(session);
    await scene.finish(outcome(job, keep));
    done.push(job.id);
  }
  return done;
}
