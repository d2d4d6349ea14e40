// Facet: cancelling jobs. A job that does not run fails at once; a run gets a notice, and the job never waits again.
import assert from 'node:assert/strict';
import type { Outcome } from '../../job/outcome.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ChangeReply, Notice } from '../../store/contract/index.js';
import { changedAll, only } from './expect.js';
import { FamilyScene, IGNORE } from './family-scene.js';
import { completed, delayed, failed, released, retried, retryFrom, returned } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const REASON = 'cancelled: not needed';

export function cancelling(test: Test): void {
  test('cancel fails waiting, prioritized and delayed jobs with the reason, and no attempt counts', async (scene) => {
    await scene.add({ id: 'waits' }, { id: 'ahead', priority: 3 }, { id: 'later', delayMs: scene.ms(10_000) });
    const after = await scene.lastEvent();
    assert.deepEqual(await cancel(scene, 'waits', 'ahead', 'later'), changedAll('waits', 'ahead', 'later'));
    for (const id of ['waits', 'ahead', 'later']) {
      const { state, failedReason, attemptsMade, finishedOn, cancelled, delay } = await scene.job(id);
      assert.deepEqual([state, failedReason, attemptsMade, cancelled, delay], ['failed', REASON, 0, undefined, 0], id);
      assert(finishedOn !== undefined && finishedOn > 0);
    }
    const events = (await scene.events(after)).filter(({ name }) => name === 'failed');
    assert.deepEqual(
      events.map(({ jobId, failedReason, prev }) => [jobId, failedReason, prev]),
      [
        ['waits', REASON, 'waiting'],
        ['ahead', REASON, 'waiting'],
        ['later', REASON, 'delayed'],
      ],
    );
    assert.deepEqual(await scene.claim(await scene.session(), 10), []);
    assert.deepEqual((await scene.store.status(scene.queue)).counts.failed, 3);
  });

  test('cancel leaves finished jobs as they are, and reports unknown ones', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    assert.deepEqual(await cancel(scene, job.id, 'ghost'), {
      changed: [],
      others: [
        { jobId: job.id, status: 'state' },
        { jobId: 'ghost', status: 'missing' },
      ],
      more: false,
    });
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('cancel applies removeOnFail of the job', async (scene) => {
    await scene.add({ id: 'a', opts: '{"removeOnFail":true}' });
    assert.deepEqual(await cancel(scene, 'a'), changedAll('a'));
    assert.equal(await scene.stateOf('a'), 'missing');
  });

  test('an active job stays active and locked, and its session gets one notice', async (scene) => {
    const { session, job } = await scene.running();
    assert.equal(await isNoticed(scene, session), false);
    assert.deepEqual(await cancel(scene, job.id), changedAll(job.id));
    assert.deepEqual(await cancel(scene, job.id), changedAll(job.id));
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.cancelled, record.failedReason], ['active', REASON, undefined]);
    assert.equal((await scene.lockOf(job.id))?.token, job.token);
    assert.equal(await isNoticed(scene, session), true);
    const { number, ...notice } = only(await notices(scene, session));
    assert.deepEqual(notice, { kind: 'cancelled', jobId: job.id, token: job.token, fence: job.fence, reason: REASON });
    assert.deepEqual(await notices(scene, session, number), []);
    assert.equal(await isNoticed(scene, session), false);
  });

  test('a completion of a cancelled job counts, and a failure too', async (scene) => {
    await scene.addMany(2);
    const [a, b] = (await scene.claim(await scene.session(), 2)) as [ClaimedJob, ClaimedJob];
    await cancel(scene, a.id, b.id);
    assert.deepEqual(await scene.settle(completed(a), failed(b)), ['done', 'done']);
    const [first, second] = [await scene.job(a.id), await scene.job(b.id)];
    assert.deepEqual([first.state, first.attemptsMade, first.cancelled], ['completed', 1, undefined]);
    assert.deepEqual([second.state, second.failedReason, second.cancelled], ['failed', 'broken', undefined]);
  });

  const outcomes: [string, (job: ClaimedJob) => Outcome][] = [
    ['a retry', (job) => retried(job)],
    ['a retry with a delay', (job) => retried(job, 10_000)],
    ['a delay', (job) => delayed(job, 10_000)],
    ['a release', (job) => released(job)],
    ['a return', (job) => returned(job)],
  ];
  for (const [name, outcome] of outcomes) {
    test(`S8-4 ${name} fails a cancelled job instead`, async (scene) => {
      const { job } = await scene.running();
      await cancel(scene, job.id);
      assert.deepEqual(await scene.settle(outcome(job)), ['done']);
      await isFailed(scene, job.id);
    });
  }

  test('S8-4 a stall fails a cancelled job instead, and says which owner lost it', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' });
    const session = await scene.briefSession({ maxStalls: 5 });
    await scene.claim(session, 2);
    await cancel(scene, 'a');
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: ['b'], failed: ['a'] });
    await isFailed(scene, 'a');
    assert.notEqual((await scene.job('a')).lostBy, undefined);
  });

  for (const how of ['closed', 'crashed'] as const) {
    test(`S8-4 the end of a session that is ${how} fails its cancelled jobs, and hands back the others`, async (scene) => {
      await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
      const session = await scene.session({ maxStalls: 5 });
      await scene.claim(session, 3);
      await cancel(scene, 'b');
      await scene.store.closeSessions([{ queue: scene.queue, id: session }], how);
      await isFailed(scene, 'b');
      assert.deepEqual(await scene.order(), ['a', 'c']);
    });
  }

  test('S8-4 revoke fails a cancelled job instead', async (scene) => {
    const { session, job } = await scene.running();
    await cancel(scene, job.id);
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' });
    await isFailed(scene, job.id);
    assert.deepEqual(
      (await notices(scene, session)).map(({ kind }) => kind),
      ['cancelled', 'revoked'],
    );
  });

  test('a retry of a cancelled job runs again like any other', async (scene) => {
    const { session, job } = await scene.running();
    await cancel(scene, job.id);
    await scene.finish(released(job));
    await scene.store.change(scene.queue, [job.id], retryFrom('failed'));
    const again = await scene.claimOne(session);
    assert.equal(again.cancelled, undefined);
    await scene.finish(released(again));
    assert.equal(await scene.stateOf(job.id), 'waiting');
  });

  test('a selection cancels jobs of several lists up to its limit, and never the same job twice', async (scene) => {
    await scene.add({ id: 'runs' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c', delayMs: scene.ms(10_000) });
    const lists = ['active', 'waiting', 'delayed', 'completed'] as const;
    const some = (limit: number): Promise<ChangeReply> =>
      scene.store.change(scene.queue, { lists: [...lists], limit }, { kind: 'cancel', reason: REASON });
    const first = await some(2);
    assert.deepEqual([first.changed, first.more], [['runs', 'a'], true]);
    const rest = await some(10);
    assert.deepEqual([rest.changed, rest.more], [['b', 'c'], false]);
    assert.deepEqual((await some(10)).changed, []);
    assert.equal((await notices(scene, session)).length, 1);
    await scene.finish(completed(job));
    assert.deepEqual((await some(10)).changed, []);
  });

  test('a selection by age leaves younger jobs alone', async (scene) => {
    await scene.add({ id: 'old' });
    await scene.pass(20);
    await scene.add({ id: 'young' });
    const selection = { lists: ['waiting' as const], olderThanMs: scene.ms(10), limit: 10 };
    const reply = await scene.store.change(scene.queue, selection, { kind: 'cancel', reason: REASON });
    assert.deepEqual(reply.changed, ['old']);
    assert.equal(await scene.stateOf('young'), 'waiting');
  });

  cancelsWithOthers(test);
}

/** What a cancel means for the other features. */
function cancelsWithOthers(test: Test): void {
  test.needs('keys')('a cancelled job frees its lock key when its run ends', async (scene) => {
    await scene.add({ id: 'a', lockKey: 'k' }, { id: 'b', lockKey: 'k' }, { id: 'c', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await cancel(scene, 'a', 'b');
    assert.deepEqual(await scene.claim(session), []);
    await scene.finish(released(job));
    assert.equal((await scene.claimOne(session)).id, 'c');
  });

  test.needs('groups')('a cancelled job frees its place in its group', async (scene) => {
    await scene.store.configure(scene.queue, { groups: { maxActive: 1 } });
    await scene.add({ id: 'a', group: 'g' }, { id: 'b', group: 'g' }, { id: 'c', group: 'g' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await cancel(scene, 'a', 'b');
    await scene.finish(released(job));
    assert.equal((await scene.claimOne(session)).id, 'c');
  });

  test.needs('deduplication')('a cancelled job frees its deduplication id', async (scene) => {
    await scene.add({ id: 'a', deduplication: { id: 'd' } });
    await cancel(scene, 'a');
    assert.equal((await scene.store.status(scene.queue, { deduplication: ['d'] })).deduplication?.[0], undefined);
  });

  test.needs('schedules')('the schedule of a cancelled next job owes its next one', async (scene) => {
    const job = { id: 'first', name: 'work', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 1 };
    const next = { at: 1, dueInMs: scene.ms(10_000), count: 1, job: { ...job, scheduleId: 's' } };
    await scene.store.schedule(scene.queue, [{ id: 's', version: 0, kind: 'put', spec: '{}', serial: false, next }]);
    await cancel(scene, 'first');
    await isFailed(scene, 'first');
    const { schedules } = await scene.store.status(scene.queue, { schedules: { ids: ['s'] } });
    assert.equal(schedules?.records[0]?.state, 'owing');
  });

  test.needs('families').families('a cancelled parent fails, and its children go on', async (scene) => {
    const family = new FamilyScene(scene);
    await family.add({ a: undefined }, { id: 'p' });
    await cancel(scene, 'p');
    await family.relay();
    await isFailed(scene, 'p');
    assert.equal(await family.kids.stateOf('a'), 'waiting');
    await family.kids.finish(completed(await family.claim(family.kids, 'a')));
    await family.relay();
    await isFailed(scene, 'p');
  });

  test.needs('families').families('a cancelled child ends as a failed one for its parent', async (scene) => {
    const family = new FamilyScene(scene);
    await family.add({ a: IGNORE }, { id: 'p' });
    await cancel(family.kids, 'a');
    await family.relay();
    assert.equal(await scene.stateOf('p'), 'waiting');
  });

  test.needs('families').families('a cancelled run that would wait for its children fails', async (scene) => {
    const family = new FamilyScene(scene);
    const { job } = await scene.running({ id: 'p' });
    await family.tryAdd(family.child('a', family.parent('p')));
    await cancel(scene, 'p');
    assert.deepEqual(await scene.settle({ kind: 'children', jobId: 'p', token: job.token }), ['done']);
    await isFailed(scene, 'p');
  });

  test.needs('families').families('a cancelled job sends no letter', async (scene) => {
    const family = new FamilyScene(scene);
    await scene.add({ id: 'waits', deadLetter: family.kids.queue }, { id: 'runs', deadLetter: family.kids.queue });
    const job = await family.claim(scene, 'runs');
    await cancel(scene, 'waits', 'runs');
    await scene.finish(failed(job));
    await family.relay();
    assert.deepEqual(await family.kids.list('waiting'), []);
  });
}

function cancel(scene: Scene, ...jobIds: string[]): Promise<ChangeReply> {
  return scene.store.change(scene.queue, jobIds, { kind: 'cancel', reason: REASON });
}

async function isFailed(scene: Scene, jobId: string): Promise<void> {
  const { state, failedReason, cancelled } = await scene.job(jobId);
  assert.deepEqual([state, failedReason, cancelled], ['failed', REASON, undefined]);
  assert.equal(await scene.lockOf(jobId), undefined);
}

async function notices(scene: Scene, session: string, acked = 0): Promise<Notice[]> {
  return only(await scene.store.renew([{ queue: scene.queue, id: session, acked }])).notices;
}

async function isNoticed(scene: Scene, session: string): Promise<boolean> {
  return only(await scene.store.checkSessions([{ queue: scene.queue, id: session }])).noticed;
}
