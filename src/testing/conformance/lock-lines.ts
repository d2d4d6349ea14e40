// Facet: who gets a named lock next, and what becomes of the locks and places of sessions that die.
import assert from 'node:assert/strict';
import { nth, only } from './expect.js';
import { hold, letGo, lookAt, wish } from './named-locks.js';
import type { Test } from './suite.js';

/** Units that a place is kept: for ever, and just long enough to lapse with `perish`. */
const LONG = 500;
const BRIEF = 5;

export function lockLines(test: Test): void {
  test('those who wait stand in the order of their first wishes', async (scene) => {
    const session = await hold(scene, 'mine');
    const ahead = async (token: string) => (await wish(scene, session, token, LONG)).ahead;
    assert.deepEqual([await ahead('a'), await ahead('b'), await ahead('c')], [0, 1, 2]);
    assert.deepEqual([await ahead('c'), await ahead('a'), await ahead('b')], [2, 0, 1]);
    assert.equal((await lookAt(scene))?.waiting, 3);
  });

  test('a lock that comes free goes to the first in line, whoever asks first', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    await letGo(scene, 'mine');
    assert.deepEqual(await wish(scene, session, 'b', LONG), { status: 'taken', ahead: 1 });
    assert.deepEqual(await wish(scene, session, 'late', LONG), { status: 'taken', ahead: 2 });
    assert.equal(await lookAt(scene), undefined);
    assert.equal((await wish(scene, session, 'a', LONG)).status, 'held');
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 0);
    await letGo(scene, 'a');
    assert.equal((await wish(scene, session, 'b', LONG)).status, 'held');
    assert.equal((await wish(scene, session, 'late', LONG)).ahead, 0);
  });

  test('a wish that does not wait takes no place, and passes nobody', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'waits', LONG);
    assert.equal((await wish(scene, session, 'hasty')).ahead, 1);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.deepEqual(await wish(scene, session, 'hasty'), { status: 'taken', ahead: 1 });
    await letGo(scene, 'waits');
    assert.equal((await wish(scene, session, 'hasty')).status, 'held');
  });

  test('a wish that no longer waits leaves the line', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    assert.equal((await wish(scene, session, 'a')).ahead, 0);
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 0);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b')).status, 'held');
  });

  test('the first in line that asks without waiting gets the lock when it is free', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'a')).status, 'held');
  });

  test('a place that is given up lets the next one come first', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    assert.equal(await letGo(scene, 'a'), true);
    assert.equal(await letGo(scene, 'a'), false);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b')).status, 'held');
  });

  test('a place that nobody asks for again lapses', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', BRIEF);
    await wish(scene, session, 'b', LONG);
    await scene.perish();
    assert.equal((await lookAt(scene))?.waiting, 1);
    assert.equal(await letGo(scene, 'a'), false);
    assert.equal((await wish(scene, session, 'a', LONG)).ahead, 1);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b')).status, 'held');
  });

  test('whoever asks again too late stands at the back', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', BRIEF);
    await wish(scene, session, 'b', LONG);
    await scene.perish();
    assert.equal((await wish(scene, session, 'a', LONG)).ahead, 1);
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 0);
    assert.equal((await lookAt(scene))?.waiting, 2);
  });

  test('the lapsed place of the first in line does not keep a free lock from the next', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', BRIEF);
    await wish(scene, session, 'b', LONG);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 1);
    await scene.perish();
    assert.equal((await wish(scene, session, 'b', LONG)).status, 'held');
  });

  test('asking again keeps the place', async (scene) => {
    // Half of what it is kept for, several times: a machine that is slow for a moment must not let it lapse.
    const kept = 8;
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', kept);
    await wish(scene, session, 'b', LONG);
    for (let n = 0; n < 3; n += 1) {
      await scene.pass(kept / 2);
      assert.equal((await wish(scene, session, 'a', kept)).ahead, 0);
    }
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 1);
  });

  test('a session that is dead gets neither lock nor place', async (scene) => {
    const [closed, expired] = [await scene.session(), await scene.briefSession()];
    await scene.store.closeSessions([{ queue: scene.queue, id: closed }], false);
    await scene.perish();
    for (const session of ['nobody', closed, expired]) {
      assert.deepEqual(await wish(scene, session, 't', LONG), { status: 'gone' });
    }
    assert.equal(await lookAt(scene), undefined);
    await scene.sweep();
    assert.deepEqual(await wish(scene, expired, 't', LONG), { status: 'gone' });
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'held');
  });

  test('the lock of a session that has expired is free before anybody sweeps', async (scene) => {
    await hold(scene, 'mine', { durationMs: scene.ms(5) });
    const { fence = 0 } = (await lookAt(scene)) ?? {};
    await scene.perish();
    const info = (await lookAt(scene)) ?? assert.fail('it was swept');
    assert(info.endsInMs < 0, 'it shows that its holder is dead');
    const grant = await wish(scene, await scene.session(), 'other');
    assert.equal(grant.status, 'held');
    assert((grant.fence ?? 0) > fence, 'the fence grew');
  });

  test('whoever takes the lock of an expired session ends that session', async (scene) => {
    const expired = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    await scene.add({ id: 'job' });
    await scene.perish();
    await wish(scene, await scene.session(), 'other');
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: expired, acked: 0 }])).alive, false);
    assert.equal((await scene.tryClaim(expired)).sessionAlive, false);
    assert.deepEqual(await wish(scene, expired, 'mine'), { status: 'gone' });
    assert.equal(await letGo(scene, 'mine'), false);
  });

  test('the jobs of a session whose lock was taken are swept as ever', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(5) });
    await wish(scene, session, 'mine');
    await scene.perish();
    await wish(scene, await scene.session(), 'other');
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    assert.equal((await lookAt(scene))?.token, 'other');
  });

  test('a late renewal keeps a lock that nobody took', async (scene) => {
    const session = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    const { fence } = (await lookAt(scene)) ?? {};
    await scene.perish();
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
    assert.deepEqual(await wish(scene, session, 'mine'), { status: 'held', fence });
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'taken');
  });

  test('renewing the session keeps the lock', async (scene) => {
    const session = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    for (let n = 0; n < 4; n += 1) {
      await scene.pass(2);
      await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    }
    await scene.sweep();
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'taken');
  });

  test('the place of a session that has expired holds up nobody', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, await scene.briefSession(), 'dead', LONG);
    await wish(scene, session, 'lives', LONG);
    await scene.perish();
    assert.equal((await wish(scene, session, 'lives', LONG)).ahead, 0);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'lives', LONG)).status, 'held');
  });

  for (const charged of [false, true]) {
    test(`closing a session ${charged ? 'as a crash' : 'in peace'} gives back its locks and places at once`, async (scene) => {
      const leaving = await hold(scene, 'mine');
      await wish(scene, leaving, 'y', 0, 'y');
      const other = await scene.session();
      await wish(scene, other, 'z', 0, 'z');
      await wish(scene, leaving, 'waits', LONG, 'z');
      await scene.store.closeSessions([{ queue: scene.queue, id: leaving }], charged);
      assert.deepEqual([await lookAt(scene), await lookAt(scene, 'y')], [undefined, undefined]);
      assert.equal((await lookAt(scene, 'z'))?.waiting, 0);
      assert.deepEqual([await letGo(scene, 'mine'), await letGo(scene, 'waits', 'z')], [false, false]);
      assert.equal((await wish(scene, other, 'next')).status, 'held');
    });
  }

  test('a sweep frees the locks of dead sessions and clears their places', async (scene) => {
    const session = await scene.session();
    await wish(scene, session, 'z', 0, 'z');
    const dead = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    await wish(scene, dead, 'waits', LONG, 'z');
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    assert.deepEqual([await lookAt(scene), (await lookAt(scene, 'z'))?.waiting], [undefined, 0]);
    assert.deepEqual([await letGo(scene, 'mine'), await letGo(scene, 'waits', 'z')], [false, false]);
    assert.deepEqual(
      (await scene.store.sessions(scene.queue)).map(({ id }) => id),
      [session],
    );
  });

  test('a sweep frees no more than its limit in one call, jobs, named locks and places together', async (scene) => {
    const living = await scene.session();
    await wish(scene, living, 'z', 0, 'z');
    await scene.addMany(3);
    const dead = await scene.briefSession();
    await scene.claim(dead, 3);
    for (const name of ['a', 'b', 'c']) await wish(scene, dead, name, 0, name);
    for (const token of ['p', 'q']) await wish(scene, dead, token, LONG, 'z');
    await scene.perish();
    const left = async (): Promise<number> => {
      const held = await scene.store.namedLocks(scene.queue, ['a', 'b', 'c']);
      return (await scene.store.status(scene.queue)).counts.active + held.filter((info) => info !== undefined).length;
    };
    const seen: number[] = [];
    for (let more = true; more && seen.length < 10; ) {
      ({ more } = await scene.store.sweep(scene.queue, 2));
      seen.push(await left());
    }
    assert(seen.length >= 4, `8 things took ${seen.length} sweeps of 2`);
    seen.forEach((now, n) => assert((n === 0 ? 6 : nth(seen, n - 1)) - now <= 2, `sweep ${n + 1} freed more than 2: ${seen}`));
    assert.equal(seen.at(-1), 0);
    assert.equal((await scene.store.sessions(scene.queue)).length, 1);
  });

  test('a session that was swept in part holds its locks no more', async (scene) => {
    const dead = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    for (const name of ['a', 'b', 'c']) await wish(scene, dead, name, 0, name);
    await scene.perish();
    assert.equal((await scene.store.sweep(scene.queue, 1)).more, true);
    const other = await scene.session();
    for (const name of ['x', 'a', 'b', 'c']) assert.equal((await wish(scene, other, 'other', 0, name)).status, 'held');
    await scene.sweep();
    for (const name of ['x', 'a', 'b', 'c']) assert.equal((await lookAt(scene, name))?.session, other);
  });
}
