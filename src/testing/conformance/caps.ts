// Facet: a cap on the active jobs of a queue, and how sessions share it.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import { ids, nth } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function caps(test: Test): void {
  test('a cap limits the active jobs of all sessions together', async (scene) => {
    await scene.addMany(10);
    await cap(scene, 3);
    const session = await scene.session();
    assert.equal((await scene.claim(session, 10)).length, 3);
    assert.equal((await scene.claim(await scene.session(), 10)).length, 0);
    const { jobs, drained, paused, limitedMs } = await scene.tryClaim(session, 10);
    assert.deepEqual([jobs, drained, paused, limitedMs], [[], false, false, undefined]);
  });

  test.needs('timed-locks')('jobs under timed or extended locks count in the share of their session', async (scene) => {
    await scene.addMany(10);
    await cap(scene, 4);
    const [timed, extended, other] = [await scene.session(), await scene.session(), await scene.session({ slots: 0 })];
    const long = scene.ms(1_000);
    assert.equal((await scene.claim(timed, 2, { timedMs: long })).length, 2);
    assert.equal((await scene.claim(timed, 10, { timedMs: long })).length, 0, 'the rest is left for the other');
    const jobs = await scene.claim(extended, 1);
    await scene.store.extend(
      scene.queue,
      jobs.map(({ id, token }) => ({ jobId: id, token, durationMs: long })),
    );
    assert.equal((await scene.claim(timed, 10, { timedMs: long })).length, 0);
    assert.equal((await scene.claim(extended, 10)).length, 1);
    assert.equal((await scene.claim(other, 10)).length, 0);
  });

  test.needs('timed-locks')('the place of a lock that was extended alone is free once the lock was swept', async (scene) => {
    await scene.addMany(3);
    await cap(scene, 1);
    const session = await scene.session();
    const { id, token } = await scene.claimOne(session);
    await scene.store.extend(scene.queue, [{ jobId: id, token, durationMs: scene.ms(3), alone: true }]);
    assert.equal((await scene.claim(session, 10)).length, 0);
    await scene.perish();
    await scene.sweep();
    assert.deepEqual(ids(await scene.claim(session, 10)), [id]);
  });

  test('the status shows the cap until the cap is removed', async (scene) => {
    const shown = async () => (await scene.store.status(scene.queue)).cap;
    assert.equal(await shown(), undefined);
    await cap(scene, 3);
    assert.deepEqual(await shown(), { maxActive: 3 });
    await cap(scene, 5);
    assert.deepEqual(await shown(), { maxActive: 5 });
    await cap(scene, undefined);
    assert.equal(await shown(), undefined);
    await scene.addMany(10);
    assert.equal((await scene.claim(await scene.session(), 10)).length, 10);
  });

  test('a cap below the number of active jobs leaves them alone and blocks claims until there is room', async (scene) => {
    await scene.addMany(10);
    const session = await scene.session();
    const jobs = await scene.claim(session, 5);
    await cap(scene, 4);
    assert.equal((await scene.store.status(scene.queue)).counts.active, 5);
    await scene.finish(completed(nth(jobs, 0)));
    assert.equal((await scene.claim(session, 10)).length, 0);
    await scene.finish(completed(nth(jobs, 1)));
    assert.equal((await scene.claim(session, 10)).length, 1);
    await cap(scene, 6);
    assert.equal((await scene.claim(session, 10)).length, 2);
  });

  test.needs('changing')('a place under the cap comes free whenever a job leaves active', async (scene) => {
    await scene.addMany(10);
    await cap(scene, 1);
    const session = await scene.session();
    await scene.finish(completed(nth(await scene.claim(session, 5), 0)));
    await scene.store.change(scene.queue, ids(await scene.claim(session, 5)), { kind: 'revoke', reason: 'r' });
    const brief = await scene.briefSession();
    assert.equal((await scene.claim(brief, 5)).length, 1);
    await scene.perish();
    assert.equal((await scene.claim(session, 5)).length, 0, 'a dead owner counts until it is swept');
    await scene.sweep();
    assert.equal((await scene.claim(session, 5)).length, 1);
  });

  test('settling and claiming in one call stays under the cap', async (scene) => {
    await scene.addMany(10);
    await cap(scene, 2);
    const session = await scene.session();
    assert.equal((await turnOver(scene, session, await scene.claim(session, 5), 5)).length, 2);
    assert.equal((await scene.store.status(scene.queue)).counts.active, 2);
  });

  test('a repeated claim returns its jobs under a full cap', async (scene) => {
    await scene.addMany(5);
    await cap(scene, 2);
    const request = scene.request(await scene.session(), 5);
    const first = await scene.store.claim(scene.queue, request);
    assert.deepEqual((await scene.store.claim(scene.queue, request)).jobs, first.jobs);
  });

  test('a session leaves the other sessions their shares of the cap', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    const [one, two] = [await scene.session(), await scene.session()];
    assert.equal((await scene.claim(one, 10)).length, 2);
    assert.equal((await scene.claim(one, 10)).length, 0);
    assert.equal((await scene.claim(two, 10)).length, 2);
  });

  test('a session uses the whole cap when it is the only one', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    assert.equal((await scene.claim(await scene.session(), 10)).length, 4);
  });

  test('the share of a session is never larger than its slots', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 6);
    const large = await scene.session({ slots: 10 });
    const small = await scene.session({ slots: 1 });
    assert.equal((await scene.claim(large, 10)).length, 5);
    assert.equal((await scene.claim(small, 10)).length, 1);
  });

  test('a session without slots claims only what the other sessions leave', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    const holder = await scene.session({ slots: 0 });
    const worker = await scene.session({ slots: 10 });
    assert.equal((await scene.claim(holder, 10)).length, 0);
    assert.equal((await scene.claim(worker, 3)).length, 3);
    assert.equal((await scene.claim(holder, 10)).length, 0);
    await scene.store.closeSessions([{ queue: scene.queue, id: worker }], 'closed');
    assert.equal((await scene.claim(holder, 10)).length, 4);
  });

  test('a closed or expired session has no share of the cap', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    const closed = await scene.session();
    await scene.briefSession();
    const session = await scene.session();
    await scene.store.closeSessions([{ queue: scene.queue, id: closed }], 'closed');
    assert.equal((await scene.claim(session, 10)).length, 2);
    await scene.perish();
    assert.equal((await scene.claim(session, 10)).length, 2);
  });

  test('shares of the cap change when a renewal changes slots', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    const [one, two] = [await scene.session({ slots: 10 }), await scene.session({ slots: 10 })];
    const renew = (slots?: number) =>
      scene.store.renew([{ queue: scene.queue, id: two, acked: 0, ...(slots !== undefined && { slots }) }]);
    await renew(1);
    assert.equal((await scene.claim(one, 10)).length, 3);
    await renew();
    assert.equal((await scene.claim(one, 10)).length, 0);
    await renew(0);
    assert.equal((await scene.claim(one, 10)).length, 1);
  });

  test('a session that settles and claims in one call makes room for a later session', async (scene) => {
    await scene.addMany(40);
    await cap(scene, 4);
    const old = await scene.session();
    let held = await scene.claim(old, 10);
    assert.equal(held.length, 4);
    const young = await scene.session();
    assert.equal((await scene.claim(young, 10)).length, 0);
    for (let n = 0; n < 2; n += 1) {
      const [done, ...rest] = held;
      held = [...rest, ...(await turnOver(scene, old, [done ?? assert.fail()], 1))];
      assert.equal((await scene.claim(young, 1)).length, 1, 'the place that came free');
    }
    assert.equal(held.length, 2);
    const [done] = held;
    assert.equal((await turnOver(scene, old, [done ?? assert.fail()], 5)).length, 1, 'its own share stays its own');
  });

  test('each of three sessions gets a share of a cap of four', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 4);
    const sessions = [await scene.session(), await scene.session(), await scene.session()];
    const taken: number[] = [];
    for (const session of sessions) taken.push((await scene.claim(session, 10)).length);
    assert.deepEqual(taken, [2, 1, 1]);
  });

  test('the first sessions to claim get the places when there are more sessions than places', async (scene) => {
    await scene.addMany(20);
    await cap(scene, 2);
    const sessions = await Promise.all(Array.from({ length: 5 }, () => scene.session()));
    const taken: number[] = [];
    for (const session of sessions) taken.push((await scene.claim(session, 10)).length);
    assert.deepEqual(taken, [1, 1, 0, 0, 0]);
  });

  test('a claim under a full cap returns no nextInMs for a job that is already due', async (scene) => {
    await scene.addMany(1);
    await cap(scene, 1);
    const session = await scene.session();
    await scene.claim(session, 1);
    await scene.add({ delayMs: scene.ms(2) });
    await scene.pass(3);
    await scene.tryClaim(session, 1);
    assert.equal((await scene.tryClaim(session, 1)).nextInMs, undefined);
  });

  test('forget removes the cap of its own queue only', async (scene) => {
    const other = scene.at(`${scene.queue}-2`);
    await cap(scene, 1);
    assert.equal((await other.store.status(other.queue)).cap, undefined);
    await cap(other, 2);
    await scene.store.forget(scene.queue, { all: true });
    assert.equal((await scene.store.status(scene.queue)).cap, undefined);
    assert.deepEqual((await other.store.status(other.queue)).cap, { maxActive: 2 });
  });

  test.durable('a cap survives when the store is opened again', async (scene) => {
    await cap(scene, 2);
    const again = await scene.reopen();
    assert.deepEqual((await again.store.status(again.queue)).cap, { maxActive: 2 });
  });
}

async function cap({ store, queue }: Scene, maxActive: number | undefined): Promise<void> {
  await store.configure(queue, { cap: maxActive === undefined ? null : { maxActive } });
}

/** Completes jobs and claims others in one call. */
async function turnOver(scene: Scene, session: string, done: ClaimedJob[], count: number): Promise<ClaimedJob[]> {
  const call = scene.call(session);
  const outcomes = done.map((job) => completed(job));
  const claim = scene.request(session, count, { seq: call.seq });
  return (await scene.store.settle(scene.queue, outcomes, call, claim)).claimed?.jobs ?? assert.fail('no claim');
}
