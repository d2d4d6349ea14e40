// Facet: which job is claimed next.
import assert from 'node:assert/strict';
import { released, retried, returned } from './samples.js';
import type { Test } from './suite.js';

export function ordering(test: Test): void {
  test('claim takes jobs first in, first out', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' });
    await scene.add({ id: 'c' });
    assert.deepEqual(await scene.order(), ['a', 'b', 'c']);
  });

  test('claim takes lifo jobs before waiting jobs, last in, first out', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b', lifo: true }, { id: 'c', lifo: true }, { id: 'd' });
    assert.deepEqual(await scene.order(), ['c', 'b', 'a', 'd']);
  });

  test('claim takes priority 0 first, then smaller numbers, then front to back', async (scene) => {
    await scene.add(
      { id: 'p9', priority: 9 },
      { id: 'p1', priority: 1 },
      { id: 'p0' },
      { id: 'p1-too', priority: 1 },
      { id: 'top', priority: 2_097_152 },
    );
    assert.deepEqual(await scene.order(), ['p0', 'p1', 'p1-too', 'p9', 'top']);
  });

  test('a lifo job goes ahead of jobs of its own priority only', async (scene) => {
    await scene.add(
      { id: 'a', priority: 1 },
      { id: 'b', priority: 2 },
      { id: 'c', priority: 2, lifo: true },
      { id: 'd', priority: 3, lifo: true },
    );
    assert.deepEqual(await scene.order(), ['a', 'c', 'b', 'd']);
  });

  test('claiming one by one or all at once gives the same order', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b', priority: 2 }, { id: 'c', lifo: true }, { id: 'd', priority: 1 });
    const session = await scene.session();
    const order: string[] = [];
    for (let n = 0; n < 4; n += 1) order.push((await scene.claimOne(session)).id);
    assert.deepEqual(order, ['c', 'a', 'd', 'b']);
  });

  test('a released or returned job goes to the front of waiting', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const session = await scene.session();
    for (const handBack of [released, returned]) await scene.finish(handBack(await scene.claimOne(session)));
    assert.deepEqual(await scene.order(), ['a', 'b', 'c']);
  });

  test('a released job goes to the front of its own priority only', async (scene) => {
    await scene.add({ id: 'low', priority: 5 }, { id: 'low-too', priority: 5 });
    const low = await scene.claimOne(await scene.session());
    await scene.add({ id: 'high' });
    await scene.finish(released(low));
    assert.deepEqual(await scene.order(), ['high', 'low', 'low-too']);
  });

  test('stalled jobs go to the front of waiting', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await scene.claim(await scene.briefSession(), 2);
    await scene.perish();
    await scene.sweep();
    assert.deepEqual(await scene.order(), ['a', 'b', 'c']);
  });

  test('stalled jobs keep the order of their claims, also when swept in several calls', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' }, { id: 'e' }, { id: 'z' });
    await scene.claim(await scene.briefSession(), 5);
    await scene.perish();
    await scene.sweep(2);
    assert.deepEqual(await scene.order(), ['a', 'b', 'c', 'd', 'e', 'z']);
  });

  test('jobs of a closed session go to the front in the order of their claims', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const session = await scene.session();
    await scene.claim(session, 2);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.deepEqual(await scene.order(), ['a', 'b', 'c']);
  });

  test.needs('changing')('revoked jobs go to the front in the order of the revoke call', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    await scene.claim(await scene.session(), 2);
    await scene.store.change(scene.queue, ['a', 'b'], { kind: 'revoke', reason: 'test' });
    assert.deepEqual(await scene.order(), ['a', 'b', 'c']);
  });

  test('a retried job goes to the back, or with lifo to the front', async (scene) => {
    await scene.add({ id: 'a' }, { id: 'b' }, { id: 'c' });
    const [a, b] = await scene.claim(await scene.session(), 2);
    assert(a && b);
    await scene.finish(retried(a), retried(b, 0, true));
    assert.deepEqual(await scene.order(), ['b', 'c', 'a']);
  });

  test('due jobs are claimed in the order of their due times', async (scene) => {
    await scene.add({ id: 'later', delayMs: scene.ms(3) }, { id: 'sooner', delayMs: scene.ms(1) });
    await scene.pass(4);
    assert.deepEqual(await scene.order(), ['sooner', 'later']);
  });

  test('a due job enters waiting with the next claim, behind jobs that were added or retried before it', async (scene) => {
    await scene.add({ id: 'fails' }, { id: 'due', delayMs: scene.ms(1) });
    const failing = await scene.claimOne(await scene.session());
    await scene.pass(2);
    await scene.finish(retried(failing));
    await scene.add({ id: 'new' });
    assert.deepEqual(await scene.order(), ['fails', 'new', 'due']);
  });

  test('a delayed job keeps its priority when it falls due', async (scene) => {
    await scene.add({ id: 'urgent', priority: 1, delayMs: scene.ms(1) }, { id: 'idle', priority: 9 });
    await scene.pass(2);
    assert.deepEqual(await scene.order(), ['urgent', 'idle']);
  });
}
