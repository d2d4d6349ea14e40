// Facet: named locks. Each has one holder at a time and a line of lock waiters.
import assert from 'node:assert/strict';
import type { LockGrant, NamedLockInfo } from '../../store/contract/index.js';
import { FaultyStore } from '../faulty-store.js';
import { between, only } from './expect.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';
import { ODD_TEXTS } from './values.js';

/** How many units a place is kept, in tests that do not let it lapse. */
const LONG = 500;

export function namedLocks(test: Test): void {
  test('acquire grants a free lock and namedLocks shows its holder', async (scene) => {
    const owner = { host: 'box', pid: 4_711, name: 'biller', instance: 'program-7' };
    const session = await scene.session({ owner, durationMs: scene.ms(100) });
    assert.equal(await lookAt(scene), undefined);
    const { status, fence } = await wish(scene, session, 't');
    assert.equal(status, 'held');
    assert(fence !== undefined && fence > 0);
    const { since, endsInMs, ...info } = (await lookAt(scene)) ?? assert.fail('the lock has no holder');
    assert.deepEqual(info, { name: 'x', token: 't', fence, session, owner, waiting: 0 });
    between(endsInMs, scene.ms(50), scene.ms(100), 'endsInMs');
    assert(since > 0);
  });

  test('acquire of a held lock returns taken, the line length and when the holder expires', async (scene) => {
    await hold(scene, 'mine', { durationMs: scene.ms(100) });
    const { endsInMs, ...grant } = await wish(scene, await scene.session(), 'other');
    assert.deepEqual(grant, { status: 'taken', ahead: 0 });
    between(endsInMs, scene.ms(50), scene.ms(100), 'endsInMs');
    assert.equal((await lookAt(scene))?.token, 'mine');
  });

  test('a second token of the same session does not get the held lock', async (scene) => {
    const session = await hold(scene, 'one');
    assert.equal((await wish(scene, session, 'two')).status, 'taken');
  });

  test('acquire with the same token returns the same fence', async (scene) => {
    const session = await scene.session();
    const first = await wish(scene, session, 't');
    assert.deepEqual([await wish(scene, session, 't'), await wish(scene, session, 't', LONG)], [first, first]);
  });

  test('a request repeated after a lost reply gets the same lock', async (scene) => {
    const session = await scene.session();
    const lossy = scene.through(lossyStore(scene));
    await assert.rejects(wish(lossy, session, 't'), { retryable: true });
    const held = await lookAt(scene);
    assert.deepEqual(await wish(lossy, session, 't'), { status: 'held', fence: held?.fence });
    assert.equal((await letGo(scene, 't')) && (await lookAt(scene)), undefined);
  });

  test('a request repeated after a lost reply keeps its place in line', async (scene) => {
    await hold(scene, 'mine');
    const session = await scene.session();
    const lossy = scene.through(lossyStore(scene));
    await assert.rejects(wish(lossy, session, 'first', LONG), { retryable: true });
    assert.equal((await wish(scene, session, 'second', LONG)).ahead, 1);
    assert.equal((await wish(lossy, session, 'first', LONG)).ahead, 0);
  });

  test('a released lock goes to the next request with a greater fence', async (scene) => {
    const session = await scene.session();
    const { fence: before = 0 } = await wish(scene, session, 'a');
    assert.equal(await letGo(scene, 'a'), true);
    assert.equal(await lookAt(scene), undefined);
    const { fence = 0 } = await wish(scene, session, 'b');
    assert(fence > before, 'the fence grew');
    assert.equal(await letGo(scene, 'a'), false);
    assert.equal((await lookAt(scene))?.token, 'b');
  });

  test('letGo releases a lock only with the token of its holder', async (scene) => {
    const session = await hold(scene, 'mine');
    for (const token of ['other', '', session]) assert.equal(await letGo(scene, token), false);
    assert.equal(await letGo(scene, 'mine', 'another name'), false);
    assert.equal((await lookAt(scene))?.token, 'mine');
  });

  test('fences grow across all names and jobs of a queue', async (scene) => {
    const session = await scene.session();
    await scene.addMany(2);
    const fences = [
      (await wish(scene, session, 'a', 0, 'x')).fence,
      (await scene.claimOne(session)).fence,
      (await wish(scene, session, 'b', 0, 'y')).fence,
      (await scene.claimOne(session)).fence,
    ];
    assert.deepEqual(
      fences,
      [...fences].sort((a = 0, b = 0) => a - b),
    );
    assert.equal(new Set(fences).size, 4);
  });

  test('acquire handles several requests of one call in order', async (scene) => {
    const session = await scene.session();
    const asked = ['x', 'y', 'x'].map((name, n) => ({ name, token: `t${n}`, session, keepPlaceMs: 0 }));
    const grants = await scene.store.acquire(scene.queue, asked);
    assert.deepEqual(
      grants.map(({ status }) => status),
      ['held', 'held', 'taken'],
    );
    const known = await scene.store.locks(scene.queue, { names: ['y', 'no-lock', 'x'] });
    assert.deepEqual(
      known.map((info) => info?.token),
      ['t1', undefined, 't0'],
    );
    assert.deepEqual(await scene.store.letGo(scene.queue, asked), ['done', 'done', 'missing']);
  });

  test('named-lock verbs return empty lists for empty lists', async ({ store, queue }) => {
    assert.deepEqual(
      [await store.acquire(queue, []), await store.letGo(queue, []), await store.locks(queue, { names: [] })],
      [[], [], []],
    );
  });

  test('named locks do not appear among the job locks of a session', async (scene) => {
    const { session, job } = await scene.running();
    await wish(scene, session, 'named', 0, job.id);
    assert.deepEqual(
      (await scene.store.locks(scene.queue, { session })).map(({ token }) => token),
      [job.token],
    );
    assert.equal(only(await scene.store.sessions(scene.queue)).locks, 1);
    assert.equal(await letGo(scene, job.token, job.id), false);
    assert.equal((await scene.lockOf(job.id))?.token, job.token);
  });

  test('one name in two queues is two locks', async (scene) => {
    const other = scene.at(`${scene.queue}-2`);
    await hold(scene, 'here');
    await hold(other, 'there');
    assert.equal(await letGo(other, 'here'), false);
    assert.deepEqual([(await lookAt(scene))?.token, (await lookAt(other))?.token], ['here', 'there']);
    assert.equal((await wish(other, (await lookAt(scene))?.session ?? '', 'stranger')).status, 'gone');
  });

  test('odd names and tokens survive, and similar names stay different', async (scene) => {
    const session = await scene.session();
    const names = [...ODD_TEXTS, 'a', 'A', 'a ', ' a', 'x'.repeat(500)];
    const asked = names.map((name) => ({ name, token: `${name}!`, session, keepPlaceMs: 0 }));
    assert((await scene.store.acquire(scene.queue, asked)).every(({ status }) => status === 'held'));
    const known = await scene.store.locks(scene.queue, { names });
    assert.deepEqual(
      known.map((info) => [info?.name, info?.token]),
      names.map((name) => [name, `${name}!`]),
    );
    assert((await scene.store.letGo(scene.queue, asked)).every((status) => status === 'done'));
  });

  test('acquire handles thousands of names in one call', async (scene) => {
    const session = await scene.session();
    const asked = Array.from({ length: 2_000 }, (_, n) => ({ name: `n${n}`, token: `t${n}`, session, keepPlaceMs: 0 }));
    assert((await scene.store.acquire(scene.queue, asked)).every(({ status }) => status === 'held'));
    const fences = (await scene.store.locks(scene.queue, { names: names(asked) })).map((info) => info?.fence);
    assert.equal(new Set(fences).size, asked.length);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert((await scene.store.locks(scene.queue, { names: names(asked) })).every((info) => info === undefined));
  });

  test.needs('control')('forget keeps the named locks of the queue', async (scene) => {
    await hold(scene, 'mine');
    await scene.store.forget(scene.queue, { all: true });
    assert.equal((await lookAt(scene))?.token, 'mine');
  });

  test.durable('holders and lock waiters survive when the store is opened again', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'next', LONG);
    const again = await scene.reopen();
    const { token, waiting } = (await lookAt(again)) ?? assert.fail('the lock has no holder');
    assert.deepEqual([token, waiting], ['mine', 1]);
    await letGo(again, 'mine');
    assert.equal((await wish(again, session, 'late')).status, 'taken');
    assert.equal((await wish(again, session, 'next')).status, 'held');
  });
}

export function wish(scene: Scene, session: string, token: string, keepUnits = 0, name = 'x'): Promise<LockGrant> {
  return scene.store.acquire(scene.queue, [{ name, token, session, keepPlaceMs: scene.ms(keepUnits) }]).then(only);
}

export async function letGo(scene: Scene, token: string, name = 'x'): Promise<boolean> {
  const status = only(await scene.store.letGo(scene.queue, [{ name, token }]));
  assert(status === 'done' || status === 'missing', `letGo returned ${status}`);
  return status === 'done';
}

export async function lookAt(scene: Scene, name = 'x'): Promise<NamedLockInfo | undefined> {
  return only(await scene.store.locks(scene.queue, { names: [name] }));
}

/** Opens a session that holds the lock `x`. Returns the session. */
export async function hold(scene: Scene, token: string, options: Parameters<Scene['session']>[0] = {}): Promise<string> {
  const session = await scene.session(options);
  assert.equal((await wish(scene, session, token)).status, 'held');
  return session;
}

function names(asked: { name: string }[]): string[] {
  return asked.map(({ name }) => name);
}

function lossyStore(scene: Scene): FaultyStore {
  const lossy = new FaultyStore(scene.store);
  lossy.on('acquire', { times: 1, fault: 'drop-reply' });
  return lossy;
}
