// Facet: the order in which lock waiters get a named lock, and the locks and places of sessions that die.
import assert from 'node:assert/strict';
import { nth, only } from './expect.js';
import { hold, letGo, lookAt, wish } from './named-locks.js';
import type { Test } from './suite.js';

/** How many units a place is kept: LONG never lapses in a test, BRIEF lapses with `perish`. */
const LONG = 500;
const BRIEF = 5;

export function lockLines(test: Test): void {
  test('lock waiters stand in the order of their first requests', async (scene) => {
    const session = await hold(scene, 'mine');
    const ahead = async (token: string) => (await wish(scene, session, token, LONG)).ahead;
    assert.deepEqual([await ahead('a'), await ahead('b'), await ahead('c')], [0, 1, 2]);
    assert.deepEqual([await ahead('c'), await ahead('a'), await ahead('b')], [2, 0, 1]);
    assert.equal((await lookAt(scene))?.waiting, 3);
  });

  test('a free lock goes to the first in line, whichever lock waiter asks first', async (scene) => {
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

  test('a request that does not wait takes no place and passes no lock waiter', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'waits', LONG);
    assert.equal((await wish(scene, session, 'hasty')).ahead, 1);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.deepEqual(await wish(scene, session, 'hasty'), { status: 'taken', ahead: 1 });
    await letGo(scene, 'waits');
    assert.equal((await wish(scene, session, 'hasty')).status, 'held');
  });

  test('a request that no longer waits leaves the line', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    assert.equal((await wish(scene, session, 'a')).ahead, 0);
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 0);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b')).status, 'held');
  });

  test('the first in line gets the free lock even when it asks without waiting', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'a')).status, 'held');
  });

  test('the next lock waiter comes first when a place is given up', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['a', 'b']) await wish(scene, session, token, LONG);
    assert.equal(await letGo(scene, 'a'), true);
    assert.equal(await letGo(scene, 'a'), false);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b')).status, 'held');
  });

  test('many requests in one call are replied to as one call for each would be', async (scene) => {
    const session = await hold(scene, 'mine');
    const far = await scene.session();
    const ask = async (...asked: [token: string, keepPlace?: 'no' | 'other'][]): Promise<(number | string | undefined)[]> => {
      const wishes = asked.map(([token, how]) => ({
        name: how === 'other' ? 'other' : 'x',
        token,
        session: token === 'far' ? far : session,
        keepPlaceMs: how === 'no' ? 0 : scene.ms(LONG),
      }));
      return (await scene.store.acquire(scene.queue, wishes)).map(({ status, ahead }) => (status === 'taken' ? ahead : status));
    };
    assert.deepEqual(await ask(['a'], ['b'], ['x', 'other'], ['far'], ['c'], ['y', 'other']), [0, 1, 'held', 2, 3, 0]);
    // Backwards, with a request that takes no place, and one that gives its own up.
    assert.deepEqual(await ask(['c'], ['hasty', 'no'], ['far'], ['b'], ['a'], ['d']), [3, 4, 2, 1, 0, 4]);
    assert.deepEqual(await ask(['d'], ['b', 'no'], ['far'], ['c'], ['d'], ['e']), [4, 1, 1, 2, 3, 4]);
    // The places of a closed session do not count.
    await scene.store.closeSessions([{ queue: scene.queue, id: far }], 'closed');
    await letGo(scene, 'mine');
    assert.deepEqual(await ask(['e'], ['far'], ['a'], ['c'], ['d'], ['e']), [3, 'gone', 'held', 0, 1, 2]);
    const refs = ['e', 'c', 'ghost', 'c', 'a', 'd'].map((token) => ({ name: 'x', token }));
    assert.deepEqual(await scene.store.letGo(scene.queue, refs), ['done', 'done', 'missing', 'missing', 'done', 'done']);
  });

  test('a place lapses when its request is not repeated', async (scene) => {
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

  test('a lock waiter that asks again too late goes to the back of the line', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', BRIEF);
    await wish(scene, session, 'b', LONG);
    await scene.perish();
    assert.equal((await wish(scene, session, 'a', LONG)).ahead, 1);
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 0);
    assert.equal((await lookAt(scene))?.waiting, 2);
  });

  test('a request that keeps its place for a shorter time than before loses it after that time', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', LONG);
    await wish(scene, session, 'a', BRIEF);
    await scene.perish();
    assert.equal((await lookAt(scene))?.waiting, 0);
  });

  test('a free lock goes to the next in line when the first place has lapsed', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'a', BRIEF);
    await wish(scene, session, 'b', LONG);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'b', LONG)).ahead, 1);
    await scene.perish();
    assert.equal((await wish(scene, session, 'b', LONG)).status, 'held');
  });

  test('a repeated request keeps its place in line', async (scene) => {
    // Ask again after half of the time that the place is kept. A machine that is slow for a moment must not let the place lapse.
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

  test('a dead session gets neither a lock nor a place', async (scene) => {
    const [closed, expired] = [await scene.session(), await scene.briefSession()];
    await scene.store.closeSessions([{ queue: scene.queue, id: closed }], 'closed');
    await scene.perish();
    for (const session of ['no-session', closed, expired]) {
      assert.deepEqual(await wish(scene, session, 't', LONG), { status: 'gone' });
    }
    assert.equal(await lookAt(scene), undefined);
    await scene.sweep();
    assert.deepEqual(await wish(scene, expired, 't', LONG), { status: 'gone' });
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'held');
  });

  test('the lock of an expired session is free before a sweep', async (scene) => {
    await hold(scene, 'mine', { durationMs: scene.ms(5) });
    const { fence = 0 } = (await lookAt(scene)) ?? {};
    await scene.perish();
    const info = (await lookAt(scene)) ?? assert.fail('it was swept');
    assert(info.endsInMs < 0, 'it shows that its holder is dead');
    const grant = await wish(scene, await scene.session(), 'other');
    assert.equal(grant.status, 'held');
    assert((grant.fence ?? 0) > fence, 'the fence grew');
  });

  test('taking the lock of an expired session ends that session', async (scene) => {
    const expired = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    await scene.add({ id: 'job' });
    await scene.perish();
    await wish(scene, await scene.session(), 'other');
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: expired, acked: 0 }])).alive, false);
    assert.equal((await scene.tryClaim(expired)).sessionAlive, false);
    assert.deepEqual(await wish(scene, expired, 'mine'), { status: 'gone' });
    assert.equal(await letGo(scene, 'mine'), false);
  });

  test('sweep recovers the jobs of a session whose named lock was taken', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(5) });
    await wish(scene, session, 'mine');
    await scene.perish();
    await wish(scene, await scene.session(), 'other');
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    assert.equal((await lookAt(scene))?.token, 'other');
  });

  test('a late renewal keeps a lock that no other session took', async (scene) => {
    const session = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    const { fence } = (await lookAt(scene)) ?? {};
    await scene.perish();
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
    assert.deepEqual(await wish(scene, session, 'mine'), { status: 'held', fence });
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'taken');
  });

  test('renewing a session keeps its named lock', async (scene) => {
    const session = await hold(scene, 'mine', { durationMs: scene.ms(5) });
    for (let n = 0; n < 4; n += 1) {
      await scene.pass(2);
      await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    }
    await scene.sweep();
    assert.equal((await wish(scene, await scene.session(), 'other')).status, 'taken');
  });

  test('the place of an expired session does not block the line', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, await scene.briefSession(), 'dead', LONG);
    await wish(scene, session, 'lives', LONG);
    await scene.perish();
    assert.equal((await wish(scene, session, 'lives', LONG)).ahead, 0);
    assert.equal((await lookAt(scene))?.waiting, 1);
    await letGo(scene, 'mine');
    assert.equal((await wish(scene, session, 'lives', LONG)).status, 'held');
  });

  for (const how of ['closed', 'crashed'] as const) {
    test(`closing a session as ${how} releases its named locks and places at once`, async (scene) => {
      const leaving = await hold(scene, 'mine');
      await wish(scene, leaving, 'y', 0, 'y');
      const other = await scene.session();
      await wish(scene, other, 'z', 0, 'z');
      await wish(scene, leaving, 'waits', LONG, 'z');
      await scene.store.closeSessions([{ queue: scene.queue, id: leaving }], how);
      assert.deepEqual([await lookAt(scene), await lookAt(scene, 'y')], [undefined, undefined]);
      assert.equal((await lookAt(scene, 'z'))?.waiting, 0);
      assert.deepEqual([await letGo(scene, 'mine'), await letGo(scene, 'waits', 'z')], [false, false]);
      assert.equal((await wish(scene, other, 'next')).status, 'held');
    });
  }

  test('sweep releases the named locks and places of dead sessions', async (scene) => {
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

  test('sweep releases at most `limit` jobs, named locks and places together in one call', async (scene) => {
    const living = await scene.session();
    await wish(scene, living, 'z', 0, 'z');
    await scene.addMany(3);
    const dead = await scene.briefSession();
    await scene.claim(dead, 3);
    for (const name of ['a', 'b', 'c']) await wish(scene, dead, name, 0, name);
    for (const token of ['p', 'q']) await wish(scene, dead, token, LONG, 'z');
    await scene.perish();
    const left = async (): Promise<number> => {
      const held = await scene.store.locks(scene.queue, { names: ['a', 'b', 'c'] });
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

  test('a partly swept session holds none of its named locks', async (scene) => {
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
