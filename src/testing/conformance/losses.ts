// Facet: a job whose owner died records which process lost it, and how the loss was found.
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LossFound, LostBy } from '../../job/lost-by.js';
import type { JobRecord } from '../../job/record.js';
import type { NewSession } from '../../store/contract/index.js';
import { changedAll, ids, only } from './expect.js';
import { completed, newSession } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function losses(test: Test): void {
  test('a job that was never lost has no lostBy, active or finished', async (scene) => {
    const { job } = await scene.running();
    assert.equal('lostBy' in job, false);
    assert.equal('lostBy' in (await scene.job(job.id)), false);
    await scene.finish(completed(job));
    assert.equal('lostBy' in (await scene.job(job.id)), false);
    assert.equal('lostBy' in (await scene.store.sweep(scene.queue, 10)), false);
  });

  test('sweep records the owner of an expired session in the job, the reply and the event', async (scene) => {
    const added = await scene.addMany(3);
    await scene.claim(await scene.briefSession({ owner: owner(41) }), 3);
    await scene.perish();
    const { stalled, lostBy } = await scene.store.sweep(scene.queue, 10);
    assert.deepEqual(
      lostBy?.map(read),
      stalled.map(() => lost(41, 'session-expired')),
    );
    for (const id of added) {
      assert.deepEqual(lossOf(await scene.job(id)), lost(41, 'session-expired'));
      assert.deepEqual(await lossesIn(scene, id), { stalled: lost(41, 'session-expired') });
    }
    const { jobs } = await scene.store.jobs(scene.queue, { lists: ['waiting'], start: 0, end: -1, asc: true });
    assert.deepEqual(
      jobs.map(lossOf),
      added.map(() => lost(41, 'session-expired')),
    );
  });

  test('a job that fails by stalling records its last owner, also when it is removed', async (scene) => {
    const opts = '{"removeOnFail":true}';
    const [kept = '', removed = ''] = await scene.add({}, { opts });
    await scene.claim(await scene.briefSession({ owner: owner(41), maxStalls: 0 }), 2);
    await scene.perish();
    const { failed, lostBy } = await scene.store.sweep(scene.queue, 10);
    assert.deepEqual([failed.length, lostBy?.map(read)], [2, [lost(41, 'session-expired'), lost(41, 'session-expired')]]);
    assert.deepEqual(lossOf(await scene.job(kept)), lost(41, 'session-expired'));
    if (scene.has('keeping')) assert.equal(await scene.find(removed), undefined);
    for (const id of [kept, removed]) {
      assert.deepEqual(await lossesIn(scene, id), {
        stalled: lost(41, 'session-expired'),
        failed: lost(41, 'session-expired'),
      });
    }
  });

  test('sweep records for each job its own owner when several owners died', async (scene) => {
    const added = await scene.addMany(6);
    const owners = new Map<string, number>();
    for (let pid = 1; pid <= 3; pid += 1) {
      const session = await scene.briefSession({ owner: owner(pid), maxStalls: pid === 2 ? 0 : 1 });
      for (const id of ids(await scene.claim(session, 2))) owners.set(id, pid);
    }
    await scene.perish();
    const found = new Map<string, LostBy | undefined>();
    for (let more = true; more; ) {
      const reply = await scene.store.sweep(scene.queue, 10);
      [...reply.stalled, ...reply.failed].forEach((id, index) => found.set(id, read(reply.lostBy?.[index])));
      more = reply.more;
    }
    for (const id of added) {
      const expected = lost(owners.get(id) ?? 0, 'session-expired');
      assert.deepEqual(lossOf(await scene.job(id)), expected);
      assert.deepEqual(found.get(id), expected);
      assert.deepEqual((await lossesIn(scene, id))['stalled'], expected);
    }
  });

  test.needs('changing')('lostBy goes to the next owner and stays when the job completes and is retried', async (scene) => {
    await scene.addOne();
    await scene.claimOne(await scene.briefSession({ owner: owner(41) }));
    await scene.perish();
    await scene.sweep();
    const session = await scene.session();
    const request = scene.request(session, 1);
    const job = only((await scene.store.claim(scene.queue, request)).jobs);
    assert.deepEqual(lossOf(job), lost(41, 'session-expired'));
    assert.deepEqual(only((await scene.store.claim(scene.queue, request)).jobs), job, 'also when the claim is repeated');
    await scene.finish(completed(job));
    assert.deepEqual(lossOf(await scene.job(job.id)), lost(41, 'session-expired'));
    const change = { kind: 'retry', from: 'completed', resetAttemptsMade: true, resetAttemptsStarted: true } as const;
    assert.deepEqual(await scene.store.change(scene.queue, [job.id], change), changedAll(job.id));
    assert.deepEqual(lossOf(await scene.job(job.id)), lost(41, 'session-expired'));
  });

  test('a claim within settle returns lostBy too', async (scene) => {
    await scene.addMany(2);
    await scene.claimOne(await scene.briefSession({ owner: owner(41) }));
    const session = await scene.session();
    const other = await scene.claimOne(session);
    await scene.perish();
    await scene.sweep();
    const call = scene.call(session);
    const claim = { session, seq: call.seq, count: 1 };
    const { claimed } = await scene.store.settle(scene.queue, [completed(other)], call, claim);
    assert.deepEqual(lossOf(only(claimed?.jobs ?? [])), lost(41, 'session-expired'));
  });

  test('a later loss replaces an earlier lostBy', async (scene) => {
    const id = await scene.addOne();
    for (const pid of [41, 42]) {
      await scene.claimOne(await scene.briefSession({ owner: owner(pid), maxStalls: 5 }));
      await scene.perish();
      await scene.sweep();
      assert.deepEqual(lossOf(await scene.job(id)), lost(pid, 'session-expired'));
    }
  });

  test.needs('timed-locks')('lostBy says lock-expired when a timed lock ends although its owner lives', async (scene) => {
    const id = await scene.addOne();
    await scene.claimOne(await scene.session({ owner: owner(41) }), { timedMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    assert.deepEqual(lossOf(await scene.job(id)), lost(41, 'lock-expired'));
  });

  test.needs('timed-locks')('lostBy says session-expired when an extended lock outlived its session', async (scene) => {
    await scene.addOne();
    const { id: jobId, token } = await scene.claimOne(await scene.briefSession({ owner: owner(41) }));
    assert.deepEqual(await scene.store.extend(scene.queue, [{ jobId, token, durationMs: scene.ms(12) }]), ['done']);
    await scene.perish();
    assert.deepEqual(await scene.sweep(), { stalled: [], failed: [] });
    await scene.pass(7);
    assert.deepEqual((await scene.sweep()).stalled, [jobId]);
    assert.deepEqual(lossOf(await scene.job(jobId)), lost(41, 'session-expired'));
  });

  test('lostBy says exit when a session is closed as a crash', async (scene) => {
    const { job, session } = await scene.running({}, { owner: owner(41) });
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'crashed');
    assert.deepEqual(lossOf(await scene.job(job.id)), lost(41, 'exit'));
    assert.deepEqual(await lossesIn(scene, job.id), { stalled: lost(41, 'exit') });
  });

  test('a shutdown sets no lostBy', async (scene) => {
    const { job, session } = await scene.running({}, { owner: owner(41) });
    await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
    assert.equal(lossOf(await scene.job(job.id)), undefined);
    assert.deepEqual(await lossesIn(scene, job.id), {});
  });

  test.needs('changing')('a revocation sets no lostBy', async (scene) => {
    const { job } = await scene.running({}, { owner: owner(42) });
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'operator' });
    assert.equal(lossOf(await scene.job(job.id)), undefined);
    assert.deepEqual(await lossesIn(scene, job.id), {});
  });

  test.needs('changing')('a new job with the id of a lost job has no lostBy', async (scene) => {
    const id = await scene.addOne({ id: 'again' });
    await scene.claimOne(await scene.briefSession({ owner: owner(41) }));
    await scene.perish();
    await scene.sweep();
    assert.deepEqual(await scene.store.change(scene.queue, [id], { kind: 'remove' }), changedAll(id));
    await scene.addOne({ id });
    assert.equal(lossOf(await scene.job(id)), undefined);
    const job = await scene.claimOne(await scene.session());
    await scene.finish(completed(job, { count: 0 }));
    await scene.addOne({ id });
    assert.equal(lossOf(await scene.job(id)), undefined);
  });

  test.needs('hints').hinted('lostBy says process-gone when a suspected session ends', async (scene) => {
    const id = await scene.addOne();
    const session = await orphan(scene, { owner: owner(41), graceMs: scene.ms(5) });
    await scene.claimOne(session);
    for (let round = 0; !(await isSuspected(scene)); round += 1) {
      assert(round < 100, 'the dead owner is suspected within two seconds');
      await sleep(20);
    }
    await scene.perish();
    const { stalled, lostBy } = await scene.store.sweep(scene.queue, 10);
    assert.deepEqual([stalled, lostBy?.map(read)], [[id], [lost(41, 'process-gone')]]);
    assert.deepEqual(lossOf(await scene.job(id)), lost(41, 'process-gone'));
  });
}

/** Returns an owner with letters that a store might have to quote. */
function owner(pid: number): NewSession['owner'] {
  return { host: `${hostname()}/"\\é`, pid, name: `worker/'${pid}'`, instance: 'program-1' };
}

function lost(pid: number, found: LossFound): LostBy {
  const { host, name } = owner(pid);
  return { host, pid, worker: name, found };
}

function read(text: string | null | undefined): LostBy | undefined {
  return typeof text === 'string' ? (JSON.parse(text) as LostBy) : undefined;
}

function lossOf({ lostBy }: JobRecord): LostBy | undefined {
  return read(lostBy);
}

/** Returns the `lostBy` of the job's events, by event name. */
async function lossesIn(scene: Scene, id: string): Promise<Record<string, LostBy>> {
  const events = (await scene.events()).filter(({ jobId, ...fields }) => jobId === id && 'lostBy' in fields);
  return Object.fromEntries(events.map(({ name, ...fields }) => [name, JSON.parse(String(fields['lostBy'])) as LostBy]));
}

function orphan(scene: Scene, difference: Partial<NewSession>): Promise<string> {
  return scene.orphan(newSession(scene.queue, scene.ms(5_000), difference));
}

async function isSuspected(scene: Scene): Promise<boolean> {
  await scene.store.probe(scene.queue);
  return only(await scene.store.sessions(scene.queue)).suspected;
}
