// Facet: noticing that an owner died before its session expires. A hint may shorten a session, never end or lengthen it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { between, only } from './expect.js';
import { newSession } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function hints(test: Test): void {
  test('a probe never suspects, ends or lengthens the session of a living owner', async (scene) => {
    const session = await scene.session({ durationMs: scene.ms(50) });
    for (const grace of [1, 5_000]) {
      assert.equal(await scene.store.probe(scene.queue, scene.ms(grace)), 0);
      const info = only(await scene.store.sessions(scene.queue));
      between(info.expiresInMs, scene.ms(25), scene.ms(50), 'expiresInMs');
      assert.equal(info.suspected, false);
    }
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
  });

  test.hinted('a probe shortens the session of a dead owner to the grace, and does not end it', async (scene) => {
    await scene.add({ id: 'x' });
    const session = await scene.orphan(newSession(scene.queue, scene.ms(5_000), {}));
    await scene.claimOne(session);
    await suspect(scene, 15);
    const info = only(await scene.store.sessions(scene.queue));
    between(info.expiresInMs, 1, scene.ms(15), 'expiresInMs');
    assert.equal(info.suspected, true);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] }, 'the grace is not over');
    await scene.pass(16);
    assert.deepEqual((await scene.sweep()).stalled, ['x']);
    assert.equal(await scene.store.probe(scene.queue, scene.ms(15)), 0);
  });

  test.hinted('a probe never lengthens: not with a long grace, not when it is repeated', async (scene) => {
    await scene.orphan(newSession(scene.queue, scene.ms(60), {}));
    await suspect(scene, 5_000);
    between(await expiresIn(scene), 1, scene.ms(60), 'expiresInMs after a long grace');
    await scene.pass(20);
    assert.equal(await scene.store.probe(scene.queue, scene.ms(5_000)), 1, 'it is under suspicion still');
    between(await expiresIn(scene), 1, scene.ms(40), 'expiresInMs after a second probe');
  });

  test.hinted('a stricter probe shortens further: at most its own grace is left', async (scene) => {
    await scene.orphan(newSession(scene.queue, scene.ms(5_000), {}));
    await suspect(scene, 500);
    assert.equal(await scene.store.probe(scene.queue, scene.ms(30)), 1);
    between(await expiresIn(scene), 1, scene.ms(30), 'expiresInMs');
  });

  test.hinted('a renewal clears the suspicion', async (scene) => {
    const session = await scene.orphan(newSession(scene.queue, scene.ms(500), {}));
    await suspect(scene, 30);
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
    const info = only(await scene.store.sessions(scene.queue));
    assert.equal(info.suspected, false);
    between(info.expiresInMs, scene.ms(400), scene.ms(500), 'expiresInMs');
  });

  test.hinted('a probe of another queue suspects nothing here', async (scene) => {
    await scene.orphan(newSession(scene.queue, scene.ms(500), {}));
    assert.equal(await scene.store.probe(`${scene.queue}-other`, scene.ms(1)), 0);
    assert.equal(only(await scene.store.sessions(scene.queue)).suspected, false);
    await suspect(scene, 30);
  });
}

async function expiresIn(scene: Scene): Promise<number> {
  return only(await scene.store.sessions(scene.queue)).expiresInMs;
}

/** The death of a process shows after a moment of real time. */
async function suspect(scene: Scene, graceUnits: number): Promise<void> {
  for (let round = 0; round < 100; round += 1) {
    if ((await scene.store.probe(scene.queue, scene.ms(graceUnits))) > 0) return;
    await sleep(20);
  }
  assert.fail('the dead owner was not suspected within two seconds');
}
