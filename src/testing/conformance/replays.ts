// Facet: a write whose reply was lost can be repeated. A repeated call returns the first reply and changes nothing.
import assert from 'node:assert/strict';
import type { ClaimReply } from '../../store/contract/index.js';
import { FaultyStore } from '../faulty-store.js';
import { ids, nth, only } from './expect.js';
import { completed, failed, newJob, released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function replays(test: Test): void {
  test('add, same call again: returns the same replies and adds no jobs or events', async (scene) => {
    await scene.add({ id: 'known' });
    const call = scene.call('p');
    const jobs = [newJob(), newJob({ id: 'mine' }), newJob({ id: 'known' })];
    const first = await scene.store.add(scene.queue, jobs, call);
    const recorded = await scene.events();
    assert.deepEqual(await scene.store.add(scene.queue, jobs, call), first);
    assert.deepEqual(
      first.map(({ status }) => status),
      ['added', 'added', 'duplicate'],
    );
    assert.deepEqual(await scene.events(), recorded);
    assert.equal((await scene.list('waiting')).length, 3);
  });

  test('add, same call again: returns the same replies after the jobs are removed', async (scene) => {
    const call = scene.call('p');
    const first = await scene.store.add(scene.queue, [newJob()], call);
    await scene.finish(completed(await scene.claimOne(await scene.session()), { count: 0 }));
    assert.deepEqual(await scene.store.add(scene.queue, [newJob()], call), first);
    assert.deepEqual(await scene.list('waiting'), []);
  });

  test('add, next seq or another caller: adds new jobs', async (scene) => {
    const add = async (caller: string, seq: number): Promise<string> =>
      only(await scene.store.add(scene.queue, [newJob()], { caller, seq })).id;
    const added = [await add('p', 1), await add('p', 2), await add('q', 1), await add('q', 2)];
    assert.equal(new Set(added).size, 4);
  });

  test.manual('add remembers a call for ten minutes', async (scene) => {
    const call = scene.call('p');
    const first = await scene.store.add(scene.queue, [newJob()], call);
    await scene.pass((9.9 * 60_000) / scene.unit);
    await scene.sweep();
    await scene.add({});
    assert.deepEqual(await scene.store.add(scene.queue, [newJob()], call), first);
  });

  test.needs('control')('forget of a caller resets the numbers of that caller only', async (scene) => {
    const add = (caller: string, seq: number) => scene.store.add(scene.queue, [newJob()], { caller, seq });
    const [, second] = [await add('p', 1), await add('p', 2)];
    const other = await add('q', 1);
    assert.equal(await scene.store.forget(scene.queue, { caller: 'p' }), 0);
    const anew = await add('p', 1);
    assert(!ids([...second, ...other]).includes(only(anew).id), 'a call of an unknown caller adds');
    assert.deepEqual(await add('p', 1), anew);
    assert.deepEqual(await add('q', 1), other);
    assert.equal((await scene.list('waiting')).length, 4);
  });

  test.needs('control')('forget of a caller changes nothing for an unknown caller in an unused queue', async (scene) => {
    const before = await scene.events();
    await scene.store.forget(scene.queue, { caller: 'p' });
    assert.deepEqual(await scene.events(), before);
    const status = await scene.store.status(scene.queue);
    assert(Object.values(status.counts).every((count) => count === 0));
  });

  test('S4-15 an add repeated after a lost reply adds its jobs once', async (scene) => {
    const lossy = new FaultyStore(scene.store);
    lossy.on('add', { times: 1, fault: 'drop-reply' });
    const call = scene.call('p');
    await assert.rejects(lossy.add(scene.queue, [newJob()], call), { code: 'STORE_UNAVAILABLE', retryable: true });
    const [reply] = await lossy.add(scene.queue, [newJob()], call);
    assert.deepEqual(reply, { id: only(await scene.list('waiting')), status: 'added' });
  });

  test('claim, same seq again: returns the same jobs with the same tokens and no more', async (scene) => {
    await scene.addMany(5);
    const session = await scene.session();
    const request = scene.request(session, 2);
    const first = await scene.store.claim(scene.queue, request);
    const recorded = await scene.events();
    const again = await scene.store.claim(scene.queue, request);
    assertSameJobs(again, first);
    assert.deepEqual(await scene.events(), recorded);
    assert.equal((await scene.list('waiting')).length, 3);
    assert.equal((await scene.job(nth(first.jobs, 0).id)).attemptsStarted, 1);
  });

  test('claim, next seq: returns new jobs with new tokens', async (scene) => {
    await scene.addMany(4);
    const session = await scene.session();
    const jobs = [...(await scene.claim(session, 2)), ...(await scene.claim(session, 2))];
    assert.equal(new Set(ids(jobs)).size, 4);
    assert.equal(new Set(jobs.map(({ token }) => token)).size, 4);
  });

  test('claim keeps the seqs of two sessions apart', async (scene) => {
    await scene.addMany(2);
    const [a, b] = [await scene.session(), await scene.session()];
    const jobs = [...(await scene.claim(a, 1, { seq: 1 })), ...(await scene.claim(b, 1, { seq: 1 }))];
    assert.equal(new Set(ids(jobs)).size, 2);
  });

  test.needs('changing')('claim, same seq again: returns only jobs still owned under that seq', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const request = scene.request(session, 3);
    const { jobs } = await scene.store.claim(scene.queue, request);
    await scene.store.change(scene.queue, [nth(jobs, 0).id], { kind: 'revoke', reason: 'test' });
    await scene.finish(completed(nth(jobs, 1)));
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual(
      again.jobs.map(({ id, token }) => [id, token]),
      [[nth(jobs, 2).id, nth(jobs, 2).token]],
    );
    assert.deepEqual(await scene.list('waiting'), [nth(jobs, 0).id]);
  });

  test.needs('changing')(
    'claim, same seq again: leaves out a lost job that the session claimed again under a later seq',
    async (scene) => {
      await scene.addMany(1);
      const session = await scene.session();
      const first = scene.request(session, 1);
      const old = only((await scene.store.claim(scene.queue, first)).jobs);
      await scene.store.change(scene.queue, [old.id], { kind: 'revoke', reason: 'test' });
      const current = await scene.claimOne(session);
      const again = await late(scene.store.claim(scene.queue, first));
      assert(!again?.jobs.some(({ token }) => token === current.token), 'the later run is not handed out a second time');
      assert.equal((await scene.lockOf(old.id))?.token, current.token);
    },
  );

  test('S4-15 an old call that arrives after a newer one changes nothing', async (scene) => {
    const adding = scene.call('p');
    await scene.store.add(scene.queue, [newJob()], adding);
    await scene.store.add(scene.queue, [newJob(), newJob(), newJob()], scene.call('p'));
    await late(scene.store.add(scene.queue, [newJob()], adding));
    assert.equal((await scene.list('waiting')).length, 4, 'nothing was added');
    const session = await scene.session();
    const claiming = scene.request(session, 1);
    const job = only((await scene.store.claim(scene.queue, claiming)).jobs);
    await scene.claim(session, 1);
    await late(scene.store.claim(scene.queue, { ...claiming, count: 3 }));
    assert.equal((await scene.list('waiting')).length, 2, 'nothing was claimed');
    const settling = scene.call(session);
    await scene.store.settle(scene.queue, [released(job)], settling);
    const { token } = await scene.claimOne(session);
    await late(scene.store.settle(scene.queue, [released(job)], settling));
    assert.equal((await scene.lockOf(job.id))?.token, token, 'nothing was released');
  });

  test('S4-15 a claim repeated after a lost reply returns the same jobs', async (scene) => {
    const added = await scene.addMany(2);
    const session = await scene.session();
    const lossy = new FaultyStore(scene.store);
    lossy.on('claim', { times: 1, fault: 'drop-reply' });
    const request = scene.request(session, 2);
    await assert.rejects(lossy.claim(scene.queue, request), { retryable: true });
    const { jobs } = await lossy.claim(scene.queue, request);
    assert.deepEqual(ids(jobs), added);
    await scene.finish(...jobs.map((job) => completed(job)));
  });

  test('settle, same call again: returns the same results, also for removed jobs', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const jobs = await scene.claim(session, 3);
    const outcomes = [
      completed(nth(jobs, 0), { count: 0 }),
      failed(nth(jobs, 1), { count: 0 }),
      completed({ ...nth(jobs, 2), token: 'stale' }),
      completed({ ...nth(jobs, 2), id: 'ghost' }),
    ];
    const call = scene.call(session);
    const first = await scene.store.settle(scene.queue, outcomes, call);
    assert.deepEqual(first.results, ['done', 'done', 'lost', 'missing']);
    const recorded = await scene.events();
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, first.results);
    assert.deepEqual(await scene.events(), recorded);
  });

  test('settle, same call again with fewer outcomes: returns the results of the first call', async (scene) => {
    await scene.addMany(4);
    const session = await scene.session();
    const jobs = await scene.claim(session, 4);
    const outcomes = jobs.map((job) => completed(job, { count: 0 }));
    const call = scene.call(session);
    // The first call is carried out; its repetition asks for less.
    const whole = await scene.store.settle(scene.queue, outcomes, call);
    assert.deepEqual(whole.results, ['done', 'done', 'done', 'done']);
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes.slice(0, 2), call)).results, whole.results);
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes.slice(0, 1), call)).results, whole.results);
  });

  test('settle, same call again with more outcomes: returns the results of the first call, and settles no more', async (scene) => {
    await scene.addMany(4);
    const session = await scene.session();
    const jobs = await scene.claim(session, 4);
    const outcomes = jobs.map((job) => completed(job, { count: 0 }));
    const call = scene.call(session);
    // The repetition with less arrives before the first try.
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes.slice(0, 2), call)).results, ['done', 'done']);
    assert.deepEqual((await scene.store.settle(scene.queue, outcomes, call)).results, ['done', 'done']);
    const rest = await scene.store.settle(scene.queue, outcomes.slice(2), scene.call(session));
    assert.deepEqual(rest.results, ['done', 'done']);
  });

  test('settle, same call again: does not carry out a release twice', async (scene) => {
    const { session, job } = await scene.running();
    const call = scene.call(session);
    await scene.store.settle(scene.queue, [released(job)], call);
    const other = await scene.claimOne(await scene.session());
    assert.deepEqual((await scene.store.settle(scene.queue, [released(job)], call)).results, ['done']);
    assert.equal((await scene.lockOf(job.id))?.token, other.token);
  });

  test('settle, next seq: judges the outcome again', async (scene) => {
    const { session, job } = await scene.running();
    assert.deepEqual((await scene.store.settle(scene.queue, [completed(job, { count: 0 })], scene.call(session))).results, [
      'done',
    ]);
    assert.deepEqual((await scene.store.settle(scene.queue, [completed(job, { count: 0 })], scene.call(session))).results, [
      'missing',
    ]);
  });

  test('S4-15 settle with a claim repeated after a lost reply finishes once and returns the same jobs', async (scene) => {
    const { session, job } = await scene.running();
    await scene.addMany(3);
    const lossy = new FaultyStore(scene.store);
    lossy.on('settle', { times: 1, fault: 'drop-reply' });
    const call = scene.call(session);
    const settle = () => lossy.settle(scene.queue, [completed(job)], call, scene.request(session, 2, { seq: call.seq }));
    const moment = lossy.answered('settle');
    await assert.rejects(settle(), { retryable: true });
    const lost = (await moment).reply;
    const { results, claimed } = await settle();
    assert.deepEqual(results, ['done']);
    assertSameJobs(claimed, lost?.claimed);
    assert.equal(claimed?.jobs.length, 2);
    assert.equal((await scene.job(job.id)).attemptsMade, 1);
    assert.equal((await scene.list('waiting')).length, 1);
  });

  test('a reaped session gets no jobs for an old seq', async (scene) => {
    await scene.add({});
    const session = await scene.briefSession();
    const request = scene.request(session, 1);
    await scene.store.claim(scene.queue, request);
    await scene.perish();
    await scene.sweep();
    const again = await scene.store.claim(scene.queue, request);
    assert.deepEqual([again.jobs, again.sessionAlive], [[], false]);
  });

  test.shared('a call may be repeated through another connection', async (scene) => repeatThrough(scene, await scene.peer()));

  test.durable('a call may be repeated after the store was opened again', async (scene) => {
    await repeatThrough(scene, undefined);
  });
}

/** A call that its caller no longer waits for. The store may resolve or reject it. */
function late<T>(call: Promise<T>): Promise<T | undefined> {
  return call.catch(() => undefined);
}

/**
 * Sends an add, a claim and a settle through `here`, and repeats them through `given`. Without `given`, it first opens the data
 * again.
 */
async function repeatThrough(here: Scene, given: Scene | undefined): Promise<void> {
  const session = await here.session();
  const adding = here.call('p');
  const added = await here.store.add(here.queue, [newJob(), newJob(), newJob()], adding);
  const job = await here.claimOne(session);
  const call = here.call(session);
  const request = here.request(session, 1, { seq: call.seq });
  const settled = await here.store.settle(here.queue, [completed(job, { count: 0 })], call, request);
  const there = given ?? (await here.reopen());
  assert.deepEqual(await there.store.add(here.queue, [newJob(), newJob(), newJob()], adding), added);
  const again = await there.store.settle(here.queue, [completed(job, { count: 0 })], call, request);
  assert.deepEqual(again.results, settled.results);
  assertSameJobs(again.claimed, settled.claimed);
  assert.deepEqual((await there.list('waiting')).length, 1);
}

function assertSameJobs(again: ClaimReply | undefined, first: ClaimReply | undefined): void {
  assert(again && first, 'both calls claimed');
  const names = (reply: ClaimReply) => reply.jobs.map(({ id, token, fence }) => [id, token, fence]);
  assert.deepEqual(names(again), names(first));
  assert.equal(again.sessionAlive, first.sessionAlive);
}
