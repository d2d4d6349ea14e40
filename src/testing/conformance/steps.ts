// Facet: steps that a run records with its job, signals from outside, and retries from a step.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import { MAX_STEP_BYTES, MAX_STEPS, type Step, type Write, type WriteReply } from '../../store/contract/index.js';
import { changedAll, only } from './expect.js';
import { completed, delayed, failed, released, retried, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function steps(test: Test): void {
  test('write records a step under the token of the run, and returns its value', async (scene) => {
    const { job } = await scene.running();
    assert.deepEqual(await record(scene, job, 'fetch', '{"a":1}'), { status: 'done', value: '{"a":1}' });
    assert.deepEqual(await stepsOf(scene, job.id), [{ name: 'fetch', value: '{"a":1}' }]);
    assert.equal((await scene.job(job.id)).hasSteps, true);
  });

  test('a job without steps has none, and no mark of any', async (scene) => {
    const { job } = await scene.running();
    assert.deepEqual(await stepsOf(scene, job.id), []);
    assert.deepEqual(await stepsOf(scene, 'ghost'), []);
    assert.equal(job.hasSteps, undefined);
  });

  test('a second write of a name changes nothing and returns the recorded value', async (scene) => {
    const { job } = await scene.running();
    await record(scene, job, 'pay', '1');
    assert.deepEqual(await record(scene, job, 'pay', '2'), { status: 'done', value: '1' });
    assert.deepEqual(await stepsOf(scene, job.id), [{ name: 'pay', value: '1' }]);
  });

  test('one call records many steps in order, also of several jobs', async (scene) => {
    await scene.addMany(2);
    const [a, b] = (await scene.claim(await scene.session(), 2)) as [ClaimedJob, ClaimedJob];
    const writes = [stepOf(a, 'z', '1'), stepOf(b, 'x', '2'), stepOf(a, 'm', '3'), stepOf(a, 'a', '4'), stepOf(a, 'm', '5')];
    const replies = await scene.store.write(scene.queue, writes);
    assert.deepEqual(
      replies.map(({ value }) => value),
      ['1', '2', '3', '4', '3'],
    );
    assert.deepEqual(
      (await stepsOf(scene, a.id)).map(({ name }) => name),
      ['z', 'm', 'a'],
    );
    assert.deepEqual(await stepsOf(scene, b.id), [{ name: 'x', value: '2' }]);
  });

  test('S8-7 a stale token records nothing', async (scene) => {
    const { job } = await scene.running();
    await scene.settle(released(job));
    assert.deepEqual(await record(scene, job, 'late', '1'), { status: 'lost' });
    const again = await scene.claimOne(await scene.session());
    assert.deepEqual(await record(scene, job, 'late', '1'), { status: 'lost' });
    assert.deepEqual(await stepsOf(scene, job.id), []);
    await scene.finish(completed(again));
    assert.deepEqual(await record(scene, again, 'later', '1'), { status: 'lost' });
    assert.deepEqual(await record(scene, { ...again, id: 'ghost' }, 'later', '1'), { status: 'missing' });
  });

  test('steps stay over attempts, hand-backs and stalls, and a claim says that the job has some', async (scene) => {
    const { job } = await scene.running();
    await record(scene, job, 'one', '1');
    await scene.finish(retried(job));
    const second = await scene.claimOne(await scene.session());
    assert.equal(second.hasSteps, true);
    await record(scene, second, 'two', '2');
    await scene.finish(released(second));
    const third = await scene.claimOne(await scene.briefSession());
    await record(scene, third, 'three', '3');
    await scene.perish();
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    const fourth = await scene.claimOne(await scene.session());
    assert.equal(fourth.hasSteps, true);
    assert.deepEqual(
      (await stepsOf(scene, job.id)).map(({ name }) => name),
      ['one', 'two', 'three'],
    );
    await scene.finish(completed(fourth));
    assert.equal((await stepsOf(scene, job.id)).length, 3);
  });

  test('a step that the owner records sets the count of stalls to 0', async (scene) => {
    await scene.add({ id: 'a' });
    for (let round = 0; round < 3; round += 1) {
      const job = await scene.claimOne(await scene.briefSession({ maxStalls: 1 }));
      assert.deepEqual((await record(scene, job, `step ${round}`, '1')).status, 'done');
      assert.equal((await scene.job('a')).stalledCounter, 0);
      await scene.perish();
      assert.deepEqual((await scene.sweep()).stalled, ['a']);
      assert.equal((await scene.job('a')).stalledCounter, 1);
    }
  });

  test('a step that a delay records sets the count of stalls to 0, and a delay without a step does not', async (scene) => {
    for (const [id, step] of Object.entries({ plain: undefined, slept: { name: 'sleep', value: '1' } })) {
      await scene.add({ id });
      await scene.claimOne(await scene.briefSession({ maxStalls: 1 }));
      await scene.perish();
      assert.deepEqual((await scene.sweep()).stalled, [id]);
      const job = await scene.claimOne(await scene.session());
      assert.equal(job.stalledCounter, 1);
      await scene.finish({ ...delayed(job, scene.ms(10_000)), ...(step !== undefined && { step }) } as Outcome);
      assert.equal((await scene.job(id)).stalledCounter, step === undefined ? 1 : 0);
    }
  });

  test('a claim returns the owner that lost the job, also after a step has set the count of stalls to 0', async (scene) => {
    await scene.running({ id: 'a' }, { durationMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    const session = await scene.session();
    const second = await scene.claimOne(session);
    await record(scene, second, 'one', '1');
    await scene.finish(released(second));
    const third = await scene.claimOne(session);
    assert.deepEqual([third.stalledCounter, third.lostBy], [0, second.lostBy]);
    assert.notEqual(third.lostBy, undefined);
  });

  test('a removed job takes its steps with it, and a new job of its id has none', async (scene) => {
    const { job } = await scene.running({ id: 'a' });
    await record(scene, job, 'one', '1');
    await scene.finish(completed(job, { count: 0 }));
    assert.equal(await scene.stateOf('a'), 'missing');
    const again = (await scene.running({ id: 'a' })).job;
    assert.equal(again.hasSteps, undefined);
    assert.deepEqual(await stepsOf(scene, 'a'), []);
    await record(scene, again, 'two', '2');
    await scene.finish(completed(again));
    await scene.store.change(scene.queue, ['a'], { kind: 'remove' });
    await scene.running({ id: 'a' });
    assert.deepEqual(await stepsOf(scene, 'a'), []);
  });

  test(`a job takes ${MAX_STEPS} steps and no further one`, async (scene) => {
    const { job } = await scene.running();
    const names = Array.from({ length: MAX_STEPS }, (_, index) => `step ${index}`);
    const half = names.length / 2;
    for (const part of [names.slice(0, half), names.slice(half)]) {
      const replies = await scene.store.write(
        scene.queue,
        part.map((name) => stepOf(job, name, '1')),
      );
      assert(replies.every(({ status }) => status === 'done'));
    }
    assert.deepEqual(await record(scene, job, 'one more', '1'), { status: 'full' });
    assert.deepEqual(await record(scene, job, 'step 7', '2'), { status: 'done', value: '1' });
    assert.deepEqual(await scene.settle(sleeping(job, 'one more')), ['full']);
    assert.equal((await stepsOf(scene, job.id)).length, MAX_STEPS);
    assert.equal(await scene.stateOf(job.id), 'active');
  });

  test('a job takes a mebibyte of names and values in UTF-8, and no more', async (scene) => {
    const { job } = await scene.running();
    const name = 'ä';
    const value = JSON.stringify('é'.repeat((MAX_STEP_BYTES - 2 - 2) / 2));
    assert.deepEqual((await record(scene, job, name, `${value} `)).status, 'full');
    assert.deepEqual((await record(scene, job, name, value)).status, 'done');
    assert.deepEqual(await record(scene, job, 'b', '1'), { status: 'full' });
    assert.equal(only(await stepsOf(scene, job.id)).value, value);
  });

  test('a delay records its step in the same call', async (scene) => {
    const { job } = await scene.running();
    assert.deepEqual(await scene.settle(sleeping(job, 'nap')), ['done']);
    assert.equal(await scene.stateOf(job.id), 'delayed');
    assert.deepEqual(await stepsOf(scene, job.id), [{ name: 'nap', value: 'true' }]);
    await scene.pass(40);
    const again = await scene.claimOne(await scene.session());
    assert.deepEqual([again.hasSteps, again.attemptsMade, again.stalledCounter], [true, 0, 0]);
  });

  test('a delay with a stale token records no step', async (scene) => {
    const { job } = await scene.running();
    await scene.settle(released(job));
    assert.deepEqual(await scene.settle(sleeping(job, 'nap')), ['lost']);
    assert.deepEqual(await stepsOf(scene, job.id), []);
  });

  signals(test);
  retries(test);
}

function signals(test: Test): void {
  test('a signal is recorded without a token in every state but the finished ones', async (scene) => {
    await scene.add({ id: 'later', delayMs: scene.ms(10_000) });
    const { job } = await scene.running({ id: 'a' });
    await scene.add({ id: 'waits' });
    for (const id of ['later', 'waits', 'a']) {
      assert.deepEqual(await signal(scene, id, 'go', '{"by":1}'), { status: 'done', value: '{"by":1}' }, id);
      assert.deepEqual(await signal(scene, id, 'go', '{"by":2}'), { status: 'done', value: '{"by":1}' }, id);
    }
    assert.deepEqual([await scene.stateOf('later'), await scene.stateOf('waits')], ['delayed', 'waiting']);
    await scene.finish(completed(job));
    assert.deepEqual(await signal(scene, 'a', 'stop', '1'), { status: 'ended' });
    assert.deepEqual(await signal(scene, 'ghost', 'go', '1'), { status: 'missing' });
  });

  test('a signal does not touch the count of stalls', async (scene) => {
    await scene.running({ id: 'a' }, { durationMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    await signal(scene, 'a', 'go', '1');
    assert.equal((await scene.job('a')).stalledCounter, 1);
  });

  test('the awaited signal moves a delayed job to waiting', async (scene) => {
    const { job } = await scene.running();
    assert.deepEqual(await scene.settle(awaiting(scene, job, 'go')), ['done']);
    assert.equal((await scene.job(job.id)).awaits, 'go');
    const after = await scene.lastEvent();
    await signal(scene, job.id, 'other', '1');
    assert.equal(await scene.stateOf(job.id), 'delayed');
    await signal(scene, job.id, 'go', '2');
    assert.equal(await scene.stateOf(job.id), 'waiting');
    const [event] = await scene.events(after);
    assert.deepEqual([event?.name, event?.jobId, event?.prev], ['waiting', job.id, 'delayed']);
    await scene.claimOne(await scene.session());
  });

  test('a delay for a signal that has come is refused as ready', async (scene) => {
    const { job } = await scene.running();
    await signal(scene, job.id, 'go', '7');
    assert.deepEqual(await scene.settle(awaiting(scene, job, 'go')), ['ready']);
    assert.equal(await scene.stateOf(job.id), 'active');
    assert.deepEqual(await stepsOf(scene, job.id), [{ name: 'go', value: '7' }]);
    await scene.finish(completed(job));
  });

  test('a delay that awaits nothing forgets the signal that an earlier one awaited', async (scene) => {
    for (const next of [retried, delayed]) {
      const { session, job } = await scene.running();
      await scene.finish(awaiting(scene, job, 'go'));
      await scene.store.change(scene.queue, [job.id], { kind: 'promote' });
      const again = await scene.claimOne(session);
      await scene.finish(next(again, scene.ms(10_000)));
      await signal(scene, job.id, 'go', '1');
      assert.equal(await scene.stateOf(job.id), 'delayed');
    }
  });
}

function retries(test: Test): void {
  test('a retry keeps all steps; from a step, it drops that one and the later ones', async (scene) => {
    const { session, job } = await scene.running();
    for (const name of ['c', 'b', 'a']) await record(scene, job, name, '1');
    await scene.finish(failed(job));
    await scene.store.change(scene.queue, [job.id], retryFrom('failed'));
    assert.equal((await stepsOf(scene, job.id)).length, 3);
    await scene.finish(failed(await scene.claimOne(session)));
    const from = { ...retryFrom('failed'), fromStep: 'b' };
    assert.deepEqual(await scene.store.change(scene.queue, [job.id], from), changedAll(job.id));
    assert.deepEqual(await stepsOf(scene, job.id), [{ name: 'c', value: '1' }]);
    const again = await scene.claimOne(session);
    assert.deepEqual(await record(scene, again, 'a', '2'), { status: 'done', value: '2' });
    assert.deepEqual(
      (await stepsOf(scene, job.id)).map(({ name }) => name),
      ['c', 'a'],
    );
  });

  test('a retry from the first step leaves room for as many steps as before', async (scene) => {
    const { session, job } = await scene.running();
    const large = JSON.stringify('x'.repeat(MAX_STEP_BYTES - 10));
    assert.equal((await record(scene, job, 'large', large)).status, 'done');
    await scene.finish(failed(job));
    await scene.store.change(scene.queue, [job.id], { ...retryFrom('failed'), fromStep: 'large' });
    const again = await scene.claimOne(session);
    assert.deepEqual(await stepsOf(scene, job.id), []);
    assert.equal((await record(scene, again, 'large', large)).status, 'done');
  });

  test('a retry from a step that the job does not have changes nothing', async (scene) => {
    const { job } = await scene.running();
    await record(scene, job, 'a', '1');
    await scene.finish(failed(job));
    const reply = await scene.store.change(scene.queue, [job.id], { ...retryFrom('failed'), fromStep: 'b' });
    assert.deepEqual(reply, { changed: [], others: [{ jobId: job.id, status: 'noStep' }], more: false });
    assert.equal(await scene.stateOf(job.id), 'failed');
    assert.equal((await stepsOf(scene, job.id)).length, 1);
  });
}

function stepOf({ id, token }: ClaimedJob, name: string, value: string): Write {
  return { kind: 'step', jobId: id, token, name, value };
}

async function record(scene: Scene, job: ClaimedJob, name: string, value: string): Promise<WriteReply> {
  return only(await scene.store.write(scene.queue, [stepOf(job, name, value)]));
}

async function signal(scene: Scene, jobId: string, name: string, value: string): Promise<WriteReply> {
  return only(await scene.store.write(scene.queue, [{ kind: 'step', jobId, name, value }]));
}

async function stepsOf(scene: Scene, jobId: string): Promise<Step[]> {
  return (await scene.store.jobs(scene.queue, { stepsOf: jobId })).steps;
}

/** A delay of 30 units that records a step. */
function sleeping({ id, token }: ClaimedJob, name: string): Outcome {
  return { kind: 'delay', jobId: id, token, delayMs: 30, step: { name, value: 'true' } };
}

function awaiting(scene: Scene, { id, token }: ClaimedJob, awaits: string): Outcome {
  return { kind: 'delay', jobId: id, token, delayMs: scene.ms(10_000), step: { name: `wait ${awaits}`, value: '1' }, awaits };
}
