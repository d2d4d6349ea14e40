// Facet: crash hints, which show that an owner died before its session expires. A hint may shorten a session, never end or lengthen
// it.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimedJob } from '../../job/record.js';
import type { NewSession, ProbeReply, SessionRef } from '../../store/contract/index.js';
import { between, only } from './expect.js';
import { completed, newSession } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function hints(test: Test): void {
  test('probe never suspects, ends or lengthens the session of a living owner', async (scene) => {
    const session = await scene.session({ durationMs: scene.ms(50), graceMs: scene.ms(1) });
    for (let round = 0; round < 2; round += 1) {
      assert.deepEqual(await scene.store.probe(scene.queue), { sessions: 1 });
      const info = only(await scene.store.sessions(scene.queue));
      between(info.expiresInMs, scene.ms(25), scene.ms(50), 'expiresInMs');
      assert.equal(info.suspected, false);
    }
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
  });

  test('probe returns the number of sessions of the queue', async (scene) => {
    assert.deepEqual(await scene.store.probe(scene.queue), { sessions: 0 });
    const first = await scene.session({ durationMs: scene.ms(50_000) });
    await scene.session({ durationMs: scene.ms(50_000) });
    assert.equal((await scene.store.probe(scene.queue)).sessions, 2);
    assert.equal((await scene.store.probe(`${scene.queue}-other`)).sessions, 0);
    await scene.store.closeSessions([{ queue: scene.queue, id: first }], 'closed');
    assert.equal((await scene.store.probe(scene.queue)).sessions, 1);
  });

  test.hinted('probe shortens the session of a dead owner to its grace and does not end it', async (scene) => {
    await scene.add({ id: 'x' });
    const session = await orphan(scene, 5_000, { graceMs: scene.ms(15) });
    await scene.claimOne(session);
    const { dueInMs } = await suspect(scene);
    const info = only(await scene.store.sessions(scene.queue));
    between(info.expiresInMs, 1, scene.ms(15), 'expiresInMs');
    between(dueInMs, info.expiresInMs, scene.ms(15) + 1, 'dueInMs');
    assert.equal(info.suspected, true);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] }, 'the grace is not over');
    await scene.pass(16);
    assert.equal((await scene.store.probe(scene.queue)).dueInMs, 0, 'the grace is over, before a sweep');
    assert.deepEqual((await scene.sweep()).stalled, ['x']);
    assert.deepEqual(await scene.store.probe(scene.queue), { sessions: 0 });
  });

  test.hinted('probe never lengthens a session, with a long grace or when repeated', async (scene) => {
    await orphan(scene, 60, { graceMs: scene.ms(5_000) });
    await suspect(scene);
    between(await expiresIn(scene), 1, scene.ms(60), 'expiresInMs after a long grace');
    await scene.pass(20);
    between((await scene.store.probe(scene.queue)).dueInMs ?? -1, 0, scene.ms(40), 'dueInMs: it is under suspicion still');
    between(await expiresIn(scene), 1, scene.ms(40), 'expiresInMs after a second probe');
  });

  test.hinted('probe applies the grace of each session and returns when the first one ends', async (scene) => {
    const lasting = await orphan(scene, 5_000, { graceMs: scene.ms(500) });
    const hasty = await orphan(scene, 5_000, { graceMs: scene.ms(30) });
    await orphan(scene, 5_000, {});
    await suspect(scene, 3);
    between((await scene.store.probe(scene.queue)).dueInMs ?? -1, 0, scene.ms(30) + 1, 'dueInMs');
    const left = new Map((await scene.store.sessions(scene.queue)).map(({ id, expiresInMs }) => [id, expiresInMs]));
    between(left.get(hasty) ?? 0, 1, scene.ms(30), 'what is left of a short grace');
    between(left.get(lasting) ?? 0, scene.ms(300), scene.ms(500), 'what is left of a long grace');
  });

  test.hinted('renew clears the suspicion of a session', async (scene) => {
    const session = await orphan(scene, 500, { graceMs: scene.ms(30) });
    await suspect(scene);
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }])).alive, true);
    const info = only(await scene.store.sessions(scene.queue));
    assert.equal(info.suspected, false);
    between(info.expiresInMs, scene.ms(400), scene.ms(500), 'expiresInMs');
  });

  test('checkSessions returns unsuspected while a session is open and alive, and changes nothing', async (scene) => {
    const [good, brief, closed] = [await scene.session(), await scene.briefSession(), await scene.session()];
    await scene.store.closeSessions([{ queue: scene.queue, id: closed }], 'closed');
    await scene.perish();
    const elsewhere = { queue: `${scene.queue}-other`, id: good };
    const refs = [brief, good, closed, 'never'].map((id) => ({ queue: scene.queue, id }));
    assert.deepEqual(await unsuspected(scene, [...refs, elsewhere]), [false, true, false, false, false]);
    assert.deepEqual(await scene.store.checkSessions([]), []);
    // The session is not reaped yet, so it can still be renewed.
    assert.equal(only(await scene.store.renew([{ queue: scene.queue, id: brief, acked: 0 }])).alive, true);
    assert.deepEqual(await unsuspected(scene, refs.slice(0, 1)), [true]);
  });

  test.hinted('checkSessions returns unsuspected: false for a suspected session until it is renewed', async (scene) => {
    const session = await orphan(scene, 500, { graceMs: scene.ms(100) });
    const refs = [{ queue: scene.queue, id: session }];
    assert.deepEqual(await unsuspected(scene, refs), [true]);
    await suspect(scene);
    assert.deepEqual(await unsuspected(scene, refs), [false]);
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    assert.deepEqual(await unsuspected(scene, refs), [true]);
  });

  test.needs('named-locks').fallible('a claim or a granted lock clears the suspicion of its session', async (scene) => {
    const { store, queue } = scene;
    await scene.add({ id: 'x' }, { id: 'y' });
    const session = await orphan(scene, 5_000, { graceMs: scene.ms(200) });
    const wish = { name: 'n', token: 't', session, keepPlaceMs: 0 };
    const call = { caller: session, seq: 2 };
    let first: ClaimedJob[] = [];
    const grants = [
      async () => {
        first = (await store.claim(queue, { session, seq: 1, count: 1 })).jobs;
        assert.equal(first.length, 1);
      },
      async () => {
        const { claimed } = await store.settle(
          queue,
          first.map((job) => completed(job)),
          call,
          { session, seq: 2, count: 1 },
        );
        assert.equal(claimed?.jobs.length, 1);
      },
      async () => assert.equal(only(await store.acquire(queue, [wish])).status, 'held'),
      // The same request again, as after a lost reply.
      async () => assert.equal(only(await store.acquire(queue, [wish])).status, 'held'),
    ];
    for (const grant of grants) {
      await suspect(scene);
      await grant();
      assert.deepEqual(await unsuspected(scene, [{ queue, id: session }]), [true]);
      between(await expiresIn(scene), scene.ms(2_500), scene.ms(5_000), 'expiresInMs: it has the time back that it had');
    }
    await suspect(scene);
    between(await expiresIn(scene), 1, scene.ms(200), 'expiresInMs: the next look suspects it again');
  });

  test.hinted('probe of another queue suspects no session of this queue', async (scene) => {
    await orphan(scene, 500, { graceMs: scene.ms(30) });
    assert.deepEqual(await scene.store.probe(`${scene.queue}-other`), { sessions: 0 });
    assert.equal(only(await scene.store.sessions(scene.queue)).suspected, false);
    await suspect(scene);
  });
}

function orphan(scene: Scene, durationUnits: number, difference: Partial<NewSession>): Promise<string> {
  return scene.orphan(newSession(scene.queue, scene.ms(durationUnits), difference));
}

async function expiresIn(scene: Scene): Promise<number> {
  return only(await scene.store.sessions(scene.queue)).expiresInMs;
}

/** Probes until the sessions of dead owners are suspected, because the death of a process shows only after some real time. */
async function suspect(scene: Scene, count = 1): Promise<Required<Pick<ProbeReply, 'sessions' | 'dueInMs'>>> {
  for (let round = 0; round < 100; round += 1) {
    const { sessions, dueInMs } = await scene.store.probe(scene.queue);
    const suspected = (await scene.store.sessions(scene.queue)).filter((session) => session.suspected);
    if (dueInMs !== undefined && suspected.length === count) return { sessions, dueInMs };
    await sleep(20);
  }
  assert.fail('the dead owner was not suspected within two seconds');
}

async function unsuspected({ store }: Scene, sessions: SessionRef[]): Promise<boolean[]> {
  return (await store.checkSessions(sessions)).map((check) => check.unsuspected);
}
