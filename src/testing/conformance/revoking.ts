// Facet: revoking locks of living owners. Renewals return a revocation until the owner acknowledges it.
import assert from 'node:assert/strict';
import type { Notice } from '../../store/contract/index.js';
import { FaultyStore } from '../faulty-store.js';
import { changedAll, nth, only } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function revoking(test: Test): void {
  test('revoke moves a job to waiting without a stall and makes its token stale', async (scene) => {
    const { job } = await scene.running({}, { maxStalls: 0 });
    assert.deepEqual(
      await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'cancelled' }),
      changedAll(job.id),
    );
    const record = await scene.job(job.id);
    assert.deepEqual([record.state, record.stalledCounter, record.attemptsMade], ['waiting', 0, 0]);
    assert.equal(await scene.lockOf(job.id), undefined);
    assert.deepEqual(await scene.settle(completed(job)), ['lost']);
  });

  test('revoke returns state for jobs that are not active, and missing for unknown ones', async (scene) => {
    const { job } = await scene.running();
    const waiting = await scene.addOne();
    assert.deepEqual(await scene.store.change(scene.queue, ['ghost', job.id, waiting, job.id], { kind: 'revoke', reason: 'r' }), {
      changed: [job.id],
      others: [
        { jobId: 'ghost', status: 'missing' },
        { jobId: waiting, status: 'state' },
        { jobId: job.id, status: 'state' },
      ],
      more: false,
    });
  });

  test('renew returns the revoked job, token, fence and reason to its session', async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'cancelled by an operator' });
    const { number, ...rest } = only(await revoked(scene, session));
    const reason = 'cancelled by an operator';
    assert.deepEqual(rest, { kind: 'revoked', jobId: job.id, token: job.token, fence: job.fence, reason });
    assert(number > 0);
  });

  test('renew does not return revocations of other sessions', async (scene) => {
    const { job } = await scene.running();
    const other = await scene.session();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' });
    assert.deepEqual(await revoked(scene, other), []);
  });

  test('renew returns revocations in order until they are acknowledged', async (scene) => {
    await scene.addMany(3);
    const session = await scene.session();
    const jobs = await scene.claim(session, 3);
    await scene.store.change(scene.queue, [nth(jobs, 0).id, nth(jobs, 1).id], { kind: 'revoke', reason: 'r' });
    const first = await revoked(scene, session);
    assert.equal(first.length, 2);
    assert(nth(first, 0).number < nth(first, 1).number);
    assert.deepEqual(await revoked(scene, session), first);
    const after = await revoked(scene, session, nth(first, 0).number);
    assert.deepEqual(after, [nth(first, 1)]);
    await scene.store.change(scene.queue, [nth(jobs, 2).id], { kind: 'revoke', reason: 'r' });
    const third = only(await revoked(scene, session, nth(first, 1).number));
    assert.equal(third.token, nth(jobs, 2).token);
    assert(third.number > nth(first, 1).number);
    assert.deepEqual(await revoked(scene, session, third.number), []);
  });

  test('S4-15 a renewal with a lost reply loses no revocation', async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' });
    const lossy = new FaultyStore(scene.store);
    lossy.on('renew', { times: 1, fault: 'drop-reply' });
    const renewal = { queue: scene.queue, id: session, acked: 0 };
    await assert.rejects(lossy.renew([renewal]), { retryable: true });
    assert.equal(only(only(await lossy.renew([renewal])).notices).token, job.token);
  });

  test('renew returns each token when a session loses the same job twice', async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'once' });
    const again = await scene.claimOne(session);
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'twice' });
    assert.deepEqual(
      (await revoked(scene, session)).map(({ token, reason }) => [token, reason]),
      [
        [job.token, 'once'],
        [again.token, 'twice'],
      ],
    );
  });

  test('revoke leaves the other locks of the session', async (scene) => {
    await scene.addMany(2);
    const session = await scene.session();
    const [lost, kept] = await scene.claim(session, 2);
    assert(lost && kept);
    await scene.store.change(scene.queue, [lost.id], { kind: 'revoke', reason: 'r' });
    assert.equal(only(await scene.store.locks(scene.queue, { session })).token, kept.token);
    await scene.finish(completed(kept));
  });

  test.shared('renew returns a revocation made through another connection', async (scene) => {
    const { session, job } = await scene.running();
    const peer = await scene.peer();
    assert.deepEqual(await peer.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' }), changedAll(job.id));
    assert.equal(only(await revoked(scene, session)).token, job.token);
  });

  test.durable('revocations survive when the store is opened again', async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' });
    assert.equal(only(await revoked(await scene.reopen(), session)).token, job.token);
  });
}

async function revoked(scene: Scene, id: string, acked = 0): Promise<Notice[]> {
  const { alive, notices } = only(await scene.store.renew([{ queue: scene.queue, id, acked }]));
  assert.equal(alive, true);
  return notices;
}
