// Facet: opening, renewing and closing sessions.
import assert from 'node:assert/strict';
import type { RenewReply } from '../../store/contract/index.js';
import { STALLED_REASON } from '../../store/contract/index.js';
import { between, changedAll, ids, only } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function sessions(test: Test): void {
  test('an open session is listed with owner, duration, time left, slots and locks', async (scene) => {
    const owner = { host: 'box', pid: 4_711, name: 'mailer', instance: 'eu:7' };
    const session = await scene.session({ owner, durationMs: scene.ms(100), slots: 12 });
    await scene.addMany(3);
    await scene.claim(session, 2);
    const info = only(await scene.store.sessions(scene.queue));
    assert.deepEqual(
      {
        id: info.id,
        queue: info.queue,
        owner: info.owner,
        durationMs: info.durationMs,
        slots: info.slots,
        locks: info.locks,
        suspected: info.suspected,
      },
      { id: session, queue: scene.queue, owner, durationMs: scene.ms(100), slots: 12, locks: 2, suspected: false },
    );
    between(info.expiresInMs, scene.ms(50), scene.ms(100), 'expiresInMs');
    assert.equal(info.renewals, 0);
    assert(info.since > 0);
  });

  test('renew changes slots when given and keeps them otherwise', async (scene) => {
    const session = await scene.session({ slots: 12 });
    const renew = async (slots?: number): Promise<number> => {
      await scene.store.renew([{ queue: scene.queue, id: session, acked: 0, ...(slots !== undefined && { slots }) }]);
      return only(await scene.store.sessions(scene.queue)).slots;
    };
    assert.deepEqual([await renew(), await renew(3), await renew(), await renew(0), await renew()], [12, 3, 3, 0, 0]);
  });

  test('openSession rejects an id that is already open', async (scene) => {
    const session = await scene.session();
    await assert.rejects(scene.session({ id: session }), { name: 'HoldfastError' });
    assert.equal((await scene.store.sessions(scene.queue)).length, 1);
  });

  test('renew gives a full duration from now and counts the renewal', async (scene) => {
    const session = await scene.session({ durationMs: scene.ms(40) });
    await scene.pass(10);
    between(only(await scene.store.sessions(scene.queue)).expiresInMs, 1, scene.ms(30), 'expiresInMs before');
    assert.deepEqual(await renew(scene, session), { alive: true, notices: [] });
    const { expiresInMs, renewals } = only(await scene.store.sessions(scene.queue));
    between(expiresInMs, scene.ms(33), scene.ms(40), 'expiresInMs after');
    assert.equal(renewals, 1);
  });

  test('S4-1 renewal keeps a job for many durations, and a job without renewal is recovered', async (scene) => {
    await scene.add({ id: 'kept' }, { id: 'twin' });
    const [renewed, silent] = [
      await scene.session({ durationMs: scene.ms(6) }),
      await scene.session({ durationMs: scene.ms(6) }),
    ];
    const kept = await scene.claimOne(renewed);
    await scene.claimOne(silent);
    const recovered: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      await scene.pass(2);
      assert.equal((await renew(scene, renewed)).alive, true);
      recovered.push(...(await scene.sweep()).stalled);
    }
    assert.deepEqual(recovered, ['twin'], 'the twin, once');
    assert.equal(await scene.stateOf('kept'), 'active');
    await scene.finish(completed(kept));
  });

  test('renew revives an expired session that was not swept, with its jobs', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    assert.equal((await renew(scene, session)).alive, true);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    assert.equal((await scene.lockOf(job.id))?.token, job.token);
  });

  test('S4-2 a late renewal never revives a swept session', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    const before = await scene.snapshot(job.id);
    for (let beat = 0; beat < 3; beat += 1) assert.equal((await renew(scene, session)).alive, false);
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
    assert.deepEqual(await scene.store.locks(scene.queue, { session }), []);
    assert.deepEqual(await scene.snapshot(job.id), before);
  });

  test('S4-2 a late renewal never revives a partly swept session', async (scene) => {
    await scene.addMany(3);
    const session = await scene.briefSession();
    await scene.claim(session, 3);
    await scene.perish();
    const { more } = await scene.store.sweep(scene.queue, 1);
    assert.equal(more, true);
    assert.equal((await renew(scene, session)).alive, false);
    assert.equal((await scene.tryClaim(session)).sessionAlive, false);
    await scene.sweep();
    assert.equal((await scene.list('waiting')).length, 3);
  });

  test('S4-2 a late renewal never revives a swept session without jobs', async (scene) => {
    const session = await scene.briefSession();
    await scene.perish();
    await scene.sweep();
    assert.equal((await renew(scene, session)).alive, false);
  });

  test('S4-3 a renewal under another queue renews nothing', async (scene) => {
    const other = scene.at(`${scene.queue}-other`);
    const { session, job } = await scene.running({}, { durationMs: scene.ms(12) });
    const theirs = await other.running({}, { durationMs: scene.ms(12) });
    await scene.pass(8);
    assert.equal((await renew(other, session)).alive, false, 'unknown there');
    assert.equal((await renew(other, theirs.session)).alive, true);
    await scene.pass(8);
    assert.deepEqual(await other.sweep(), { stalled: [], failed: [] });
    assert.equal(await scene.stateOf(job.id), 'active', 'a sweep there does nothing here');
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
    assert.equal(await other.stateOf(theirs.job.id), 'active');
  });

  test('S4-5 a renewal keeps the jobs of its own session only', async (scene) => {
    await scene.add({ id: 'mine' }, { id: 'theirs' });
    const [mine, theirs] = [await scene.session({ durationMs: scene.ms(12) }), await scene.session({ durationMs: scene.ms(12) })];
    await scene.claimOne(mine);
    await scene.claimOne(theirs);
    for (let round = 0; round < 4; round += 1) {
      await scene.pass(4);
      assert.deepEqual(await renew(scene, 'a-stranger'), { alive: false, notices: [] });
      await renew(scene, mine);
    }
    assert.deepEqual((await scene.sweep()).stalled, ['theirs']);
  });

  test('renew handles many sessions of many queues in one call, with replies in order', async (scene) => {
    const other = scene.at(`${scene.queue}-other`);
    const [a, b] = [await scene.session(), await other.session()];
    const replies = await scene.store.renew([
      { queue: other.queue, id: b, acked: 0 },
      { queue: scene.queue, id: 'no-session', acked: 0 },
      { queue: scene.queue, id: a, acked: 0 },
    ]);
    assert.deepEqual(
      replies.map(({ alive }) => alive),
      [true, false, true],
    );
  });

  test('S4-4 verbs return empty lists for empty lists and change nothing', async (scene) => {
    const { session } = await scene.running();
    const before = await scene.events();
    const { store, queue } = scene;
    assert.deepEqual(await store.renew([]), []);
    await store.closeSessions([], 'crashed');
    assert.deepEqual(await store.add(queue, [], scene.call('p')), []);
    assert.deepEqual(await store.settle(queue, []), { results: [] });
    if (scene.has('timed-locks')) assert.deepEqual(await store.extend(queue, []), []);
    if (scene.has('control')) assert.deepEqual(await store.write(queue, []), []);
    const changes = [{ kind: 'promote' }, { kind: 'remove' }, { kind: 'revoke', reason: 'none' }] as const;
    for (const change of scene.has('changing') ? changes : [])
      assert.deepEqual(await store.change(queue, [], change), changedAll());
    assert.deepEqual((await store.jobs(queue, [])).jobs, []);
    assert.deepEqual(await scene.events(), before);
    assert.equal(only(await store.sessions(queue)).id, session);
  });

  test('closing a session hands back its jobs at once without a stall', async (scene) => {
    const added = await scene.addMany(2);
    const session = await scene.session({ maxStalls: 0 });
    const [job] = await scene.claim(session, 2);
    assert(job);
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    for (const id of added) {
      const { state, stalledCounter, attemptsMade } = await scene.job(id);
      assert.deepEqual([state, stalledCounter, attemptsMade], ['waiting', 0, 0]);
    }
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
    assert.equal((await renew(scene, session)).alive, false);
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
  });

  test('closing a session as a crash counts a stall, and fails the job over the limit', async (scene) => {
    const id = await scene.addOne();
    for (const [state, stalls] of [
      ['waiting', 1],
      ['waiting', 2],
      ['failed', undefined],
    ] as const) {
      const session = await scene.session({ maxStalls: 2 });
      await scene.claimOne(session);
      await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed');
      const record = await scene.job(id);
      assert.equal(record.state, state);
      if (stalls !== undefined) assert.equal(record.stalledCounter, stalls);
      else assert.equal(record.failedReason, STALLED_REASON);
    }
  });

  test('closing an unknown or closed session changes nothing', async (scene) => {
    const { session, job } = await scene.running();
    const gone = await scene.session();
    const refs = [gone, gone, 'no-session'].map((id) => ({ queue: scene.queue, id }));
    await scene.store.closeSessions(refs, 'crashed');
    await scene.store.closeSessions(refs, 'closed');
    assert.equal((await renew(scene, session)).alive, true);
    assert.equal(await scene.stateOf(job.id), 'active');
  });

  test.manual('S0-19 S4-14 steps of the wall clock neither end nor lengthen a session', async (scene) => {
    const { session, job } = await scene.running({}, { durationMs: scene.ms(6) });
    for (const step of [5 * 60_000, -10 * 60_000]) {
      scene.stepWall(step);
      assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
      assert.equal((await scene.lockOf(job.id))?.token, job.token);
      await scene.pass(2);
      assert.equal((await renew(scene, session)).alive, true);
    }
    await scene.pass(7);
    assert.deepEqual((await scene.sweep()).stalled, [job.id]);
  });

  test.shared('a session can be renewed, listed and closed through another connection', async (scene) => {
    const { session, job } = await scene.running();
    const peer = await scene.peer();
    assert.deepEqual(ids(await peer.store.sessions(scene.queue)), [session]);
    assert.equal((await renew(peer, session)).alive, true);
    await peer.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.equal((await renew(scene, session)).alive, false);
    assert.equal(await scene.stateOf(job.id), 'waiting');
  });
}

async function renew(scene: Scene, id: string, acked = 0): Promise<RenewReply> {
  return only(await scene.store.renew([{ queue: scene.queue, id, acked }]));
}
