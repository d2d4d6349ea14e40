// Facet: locks with their own end, and extending them.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import { STALLED_REASON } from '../../store/contract/index.js';
import { between, only } from './expect.js';
import { completed, released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function locks(test: Test): void {
  test('a lock without its own end ends with its session', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(40) });
    between(await endsIn(scene, job.id), scene.ms(30), scene.ms(40), 'endsInMs');
    await scene.pass(20);
    between(await endsIn(scene, job.id), 1, scene.ms(20), 'endsInMs later');
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    between(await endsIn(scene, job.id), scene.ms(30), scene.ms(40), 'endsInMs renewed');
  });

  test('lockOf shows a dead lock with a negative endsInMs before the sweep', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    assert((await endsIn(scene, job.id)) < 0);
  });

  test('a timed lock ends at its own end although its session is alive', async (scene) => {
    await scene.add({});
    const session = await scene.session();
    const job = await scene.claimOne(session, { timedMs: scene.ms(3) });
    between(await endsIn(scene, job.id), 1, scene.ms(3), 'endsInMs');
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    await scene.perish();
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    assert.equal((await scene.job(job.id)).stalledCounter, 1);
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    assert.equal(only(await scene.store.sessions(scene.queue)).id, session, 'the session lives on');
  });

  test('a timed lock lives until its own end although its session has died', async (scene) => {
    await scene.add({});
    const session = await scene.briefSession();
    const job = await scene.claimOne(session, { timedMs: scene.ms(15) });
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    const lock = await scene.lockOf(job.id);
    assert.deepEqual([lock?.token, lock?.session, lock?.owner.name], [job.token, session, 'worker'], 'and is seen from outside');
    await scene.pass(15);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test('a timed lock can finish its job after its session has died', async (scene) => {
    await scene.add({});
    const job = await scene.claimOne(await scene.briefSession(), { timedMs: scene.ms(400) });
    await scene.perish();
    await scene.sweep();
    await scene.finish(completed(job));
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('closing a session hands back its timed locks too', async (scene) => {
    await scene.add({});
    const session = await scene.session();
    const job = await scene.claimOne(session, { timedMs: scene.ms(400) });
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.equal(await scene.stateOf(job.id), 'waiting');
  });

  test('a timed lock that ends over the stall limit fails its job', async (scene) => {
    await scene.add({});
    const job = await scene.claimOne(await scene.session({ maxStalls: 0 }), { timedMs: scene.ms(3) });
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [job.id] });
  });

  test('S2-7 extend moves the end of a timed lock exactly, later or sooner', async (scene) => {
    await scene.add({});
    const job = await scene.claimOne(await scene.session(), { timedMs: scene.ms(30) });
    assert.equal(await extend(scene, job, 80), 'done');
    between(await endsIn(scene, job.id), scene.ms(70), scene.ms(80), 'endsInMs, later');
    assert.equal(await extend(scene, job, 20), 'done');
    between(await endsIn(scene, job.id), scene.ms(10), scene.ms(20), 'endsInMs, sooner');
    await scene.pass(21);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test("extending a session's lock: it survives the session until there, then dies", async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    assert.equal(await extend(scene, job, 15), 'done');
    between(await endsIn(scene, job.id), scene.ms(10), scene.ms(15), 'endsInMs');
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    assert.equal((await scene.lockOf(job.id))?.token, job.token);
    await scene.pass(15);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test("extending a session's lock never shortens it: renewal goes on keeping it", async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(6) });
    assert.equal(await extend(scene, job, 1), 'done');
    for (let round = 0; round < 4; round += 1) {
      await scene.pass(2);
      await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
      assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    }
    await scene.finish(completed(job));
  });

  test("closing a session hands back extended locks as well: 'everything that they hold'", async (scene) => {
    const { session, job } = await scene.running();
    await extend(scene, job, 400);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.equal(await scene.stateOf(job.id), 'waiting');
  });

  test("a session's lock that was extended alone expires although the session is renewed", async (scene) => {
    const { session, job } = await scene.running();
    assert.equal(await extend(scene, job, 3, true), 'done');
    between(await endsIn(scene, job.id), 1, scene.ms(3), 'endsInMs');
    const { session: owner, token } = (await scene.lockOf(job.id)) ?? {};
    assert.deepEqual([owner, token], [session, job.token], 'its session stays named');
    assert.deepEqual(await scene.store.locks(scene.queue, { session }), [
      { jobId: job.id, token: job.token, fence: job.fence, seq: 1 },
    ]);
    assert.equal(only(await scene.store.sessions(scene.queue)).locks, 1);
    await scene.perish();
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    assert((await endsIn(scene, job.id)) < 0);
    assert.deepEqual(await scene.sweep(), { stalled: [job.id], failed: [] });
    const { stalledCounter, lostBy = '{}' } = await scene.job(job.id);
    assert.deepEqual([stalledCounter, (JSON.parse(lostBy) as { found?: string }).found], [1, 'lock-expired']);
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    const { id, locks: left } = only(await scene.store.sessions(scene.queue));
    assert.deepEqual([id, left], [session, 0], 'the session lives on');
    assert.equal((await scene.claimOne(await scene.session())).id, job.id);
  });

  test('a lock that was extended alone for no time can finish its job before the sweep', async (scene) => {
    const { job } = await scene.running();
    assert.equal(await extend(scene, job, 0, true), 'done');
    await scene.pass(2);
    await scene.finish(completed(job));
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    assert.equal(await extend(scene, job, 0, true), 'finished');
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('a lock that was extended alone lives until its end although its session has died', async (scene) => {
    const { job } = await scene.running({}, { durationMs: scene.ms(5) });
    assert.equal(await extend(scene, job, 15, true), 'done');
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    await scene.pass(15);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test('later extensions of a lock that was extended alone move its end, and it stays timed', async (scene) => {
    const { session, job } = await scene.running();
    assert.equal(await extend(scene, job, 3, true), 'done');
    assert.equal(await extend(scene, job, 3, true), 'done');
    assert.equal(await extend(scene, job, 80), 'done');
    between(await endsIn(scene, job.id), scene.ms(70), scene.ms(80), 'endsInMs, later');
    assert.equal(await extend(scene, job, 3), 'done');
    between(await endsIn(scene, job.id), 1, scene.ms(3), 'endsInMs, sooner');
    await scene.perish();
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test('one call extends some locks alone and leaves the others to their session', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const [alone, both, bound] = await scene.claim(session, 3);
    assert(alone && both && bound);
    const [short, long] = [scene.ms(3), scene.ms(400)];
    const one = ({ id, token }: Held, durationMs: number) => ({ jobId: id, token, durationMs });
    const extensions = [
      { ...one(alone, short), alone: true as const },
      one(bound, short),
      { ...one(both, long), alone: true as const },
      { ...one({ ...bound, token: 'stale' }, short), alone: true as const },
      { ...one({ id: 'ghost', token: bound.token }, short), alone: true as const },
      one(both, short),
    ];
    assert.deepEqual(await scene.store.extend(scene.queue, extensions), ['done', 'done', 'done', 'lost', 'missing', 'done']);
    await scene.perish();
    assert.deepEqual((await scene.sweep()).stalled.sort(), [alone.id, both.id].sort());
    await scene.finish(completed(bound));
  });

  test("a stale token cannot take a lock out of its owner's session", async (scene) => {
    const { session, job } = await scene.running();
    await scene.finish(released(job));
    const again = await scene.claimOne(session);
    assert.equal(await extend(scene, job, 0, true), 'lost');
    await scene.pass(2);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    await scene.finish(completed(again));
  });

  test('a lock that was extended alone and expires over the stall limit fails its job', async (scene) => {
    const { job } = await scene.running({}, { maxStalls: 0 });
    assert.equal(await extend(scene, job, 0, true), 'done');
    await scene.pass(2);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [job.id] });
    assert.equal((await scene.job(job.id)).failedReason, STALLED_REASON);
  });

  test('closing a session hands back a lock that was extended alone, and counts no stall', async (scene) => {
    const { session, job } = await scene.running();
    assert.equal(await extend(scene, job, 0, true), 'done');
    await scene.pass(2);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    const { state, stalledCounter } = await scene.job(job.id);
    assert.deepEqual([state, stalledCounter], ['waiting', 0]);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
  });

  test('extend revives a dead lock with the current token before the sweep', async (scene) => {
    await scene.add({});
    const job = await scene.claimOne(await scene.session(), { timedMs: scene.ms(3) });
    await scene.perish();
    assert.equal(await extend(scene, job, 100), 'done');
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
  });

  test.needs('changing')(
    'S2-8 extend returns lost for a lost lock, missing for a removed job, and leaves the new lock untouched',
    async (scene) => {
      const { session, job } = await scene.running();
      await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'stolen' });
      assert.equal(await extend(scene, job, 100), 'lost');
      const thief = await scene.claimOne(session, { timedMs: scene.ms(50) });
      assert.equal(await extend(scene, job, 100_000), 'lost');
      between(await endsIn(scene, job.id), scene.ms(30), scene.ms(50), "the thief's endsInMs");
      assert.equal((await scene.lockOf(job.id))?.token, thief.token);
      assert.equal(await extend(scene, { id: 'ghost', token: job.token }, 1), 'missing');
    },
  );

  test('S1-8 extend returns finished, not lost, when its own token has finished the job', async (scene) => {
    const { job } = await scene.running();
    await scene.finish(completed(job));
    assert.equal(await extend(scene, job, 10), 'finished');
    assert.equal(await extend(scene, { ...job, token: 'other' }, 10), 'lost');
    assert.equal(await scene.stateOf(job.id), 'completed');
  });

  test('extend handles many locks in one call, with replies in order', async (scene) => {
    await scene.addMany(2);
    const [a, b] = await scene.claim(await scene.session(), 2);
    assert(a && b);
    const extensions = [b, { id: 'ghost', token: 't' }, { ...a, token: 'stale' }, a].map(({ id, token }) => ({
      jobId: id,
      token,
      durationMs: scene.ms(5),
    }));
    assert.deepEqual(await scene.store.extend(scene.queue, extensions), ['done', 'missing', 'lost', 'done']);
  });

  test('owned returns token, fence and claim seq of every lock of a session', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const [first] = await scene.claim(session, 1, { seq: 7 });
    const [second, third] = await scene.claim(session, 2, { seq: 9, timedMs: scene.ms(500) });
    assert(first && second && third);
    await scene.finish(completed(second));
    const owned = await scene.store.locks(scene.queue, { session });
    assert.deepEqual(
      owned.sort((a, b) => a.seq - b.seq),
      [
        { jobId: first.id, token: first.token, fence: first.fence, seq: 7 },
        { jobId: third.id, token: third.token, fence: third.fence, seq: 9 },
      ],
    );
    assert.deepEqual(await scene.store.locks(scene.queue, { session: 'no-session' }), []);
  });
}

async function endsIn(scene: Scene, jobId: string): Promise<number> {
  const lock = await scene.lockOf(jobId);
  assert(lock, 'there is a lock');
  return lock.endsInMs;
}

type Held = Pick<ClaimedJob, 'id' | 'token'>;

async function extend(scene: Scene, { id, token }: Held, units: number, alone = false): Promise<string> {
  const extension = { jobId: id, token, durationMs: scene.ms(units), ...(alone && { alone }) };
  return only(await scene.store.extend(scene.queue, [extension]));
}
