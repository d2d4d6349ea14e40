// Facet: an owner that lost its lock can no longer change the job. The tests try every write of an owner with a token that went
// stale in every possible way, and compare everything visible of the job before and after.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { SettleStatus } from '../../job/outcome.js';
import type { ExtendStatus, Write } from '../../store/contract/index.js';
import { only } from './expect.js';
import { completed, delayed, failed, released, retried, returned } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

/** `session` is the session that got the token. */
type OwnersWrite = (scene: Scene, job: ClaimedJob, session: string) => Promise<ExtendStatus>;

interface Stale {
  job: ClaimedJob;
  session: string;
}

type Ways = Record<string, (scene: Scene) => Promise<Stale>>;

const write =
  (
    content:
      | { kind: 'data'; data: string }
      | { kind: 'progress'; progress: string }
      | { kind: 'log'; row: string }
      | { kind: 'clearLogs' },
  ): OwnersWrite =>
  async (scene, { id, token }) =>
    only(await scene.store.write(scene.queue, [{ jobId: id, token, ...content } as Write])).status;

const OUTCOMES: Record<string, OwnersWrite> = {
  completed: async (scene, job) => only(await scene.settle(completed(job))),
  'completed and removed': async (scene, job) => only(await scene.settle(completed(job, { count: 0 }))),
  failed: async (scene, job) => only(await scene.settle(failed(job))),
  retry: async (scene, job) => only(await scene.settle(retried(job))),
  'retry with delay': async (scene, job) => only(await scene.settle(retried(job, scene.ms(5)))),
  delay: async (scene, job) => only(await scene.settle(delayed(job, scene.ms(5)))),
  release: async (scene, job) => only(await scene.settle(released(job))),
  return: async (scene, job) => only(await scene.settle(returned(job))),
  'settle with a call': async (scene, job) => {
    const { results } = await scene.store.settle(scene.queue, [completed(job)], { caller: `late-${job.token}`, seq: 1 });
    return only(results);
  },
  // Workers send this call most often, so stores may have a fast path for it.
  'completed by the worker, which claims on': async (scene, job, session) => only(await settleAndClaim(scene, session, [job])),
};

const WRITES: Record<string, OwnersWrite> = {
  progress: write({ kind: 'progress', progress: '99' }),
  data: write({ kind: 'data', data: '"stolen"' }),
  log: write({ kind: 'log', row: 'late' }),
  clearLogs: write({ kind: 'clearLogs' }),
};

const EXTENSIONS: Record<string, OwnersWrite> = {
  extend: async (scene, { id, token }) =>
    only(await scene.store.extend(scene.queue, [{ jobId: id, token, durationMs: scene.ms(100_000) }])),
};

/** Returns the writes of an owner that the levels under test have. */
function ownersWrites(scene: Scene): [what: string, attempt: OwnersWrite][] {
  return Object.entries({
    ...OUTCOMES,
    ...(scene.has('control') && WRITES),
    ...(scene.has('timed-locks') && EXTENSIONS),
  });
}

async function settleAndClaim(scene: Scene, session: string, jobs: ClaimedJob[]): Promise<SettleStatus[]> {
  const call = scene.call(session);
  const request = { session, seq: call.seq, count: 1 };
  const outcomes = jobs.map((job) => completed(job));
  return (await scene.store.settle(scene.queue, outcomes, call, request)).results;
}

async function settleAlone(scene: Scene, session: string, jobs: ClaimedJob[]): Promise<SettleStatus[]> {
  const outcomes = jobs.map((job) => completed(job));
  return (await scene.store.settle(scene.queue, outcomes, scene.call(session))).results;
}

async function lockAndRecord(scene: Scene, id: string): Promise<unknown> {
  const lock = await scene.lockOf(id);
  return { record: await scene.find(id), lock: lock && { token: lock.token, session: lock.session } };
}

/** Ways in which a token goes stale while its session lives on. Each returns the job as its old owner knew it. */
const WITH_LIVING_SESSION: Ways = {
  'released and run again by the same worker': async (scene) => {
    const { session, job } = await scene.running();
    await scene.finish(released(job));
    await scene.claimOne(session);
    return { job, session };
  },
  'retried, run again by the same worker and completed': async (scene) => {
    const { session, job } = await scene.running();
    await scene.finish(retried(job));
    await scene.finish(completed(await scene.claimOne(session)));
    return { job, session };
  },
  'a token of another job of the same session': async (scene) => {
    await scene.addMany(2);
    const session = await scene.session();
    const [job, other] = await scene.claim(session, 2);
    assert(job && other);
    return { job: { ...job, token: other.token }, session };
  },
  'an empty token': async (scene) => {
    const { session, job } = await scene.running();
    return { job: { ...job, token: '' }, session };
  },
};

/** The same, by a revocation. */
const REVOKED: Ways = {
  'revoked and run again by the same worker': async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'test' });
    await scene.claimOne(session);
    return { job, session };
  },
  'revoked and run by another worker': async (scene) => {
    const { session, job } = await scene.running();
    await scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'test' });
    await scene.claimOne(await scene.session());
    return { job, session };
  },
};

/** Ways in which a token goes stale together with its session. */
const WITH_DEAD_SESSION: Ways = {
  'swept and waiting': async (scene) => {
    const stale = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    return stale;
  },
  'swept and run by another worker': async (scene) => {
    const stale = await scene.running({}, { durationMs: scene.ms(5) });
    await scene.perish();
    await scene.sweep();
    await scene.claimOne(await scene.session());
    return stale;
  },
};

export function fencing(test: Test): void {
  refuseStale(test, { ...WITH_DEAD_SESSION, ...WITH_LIVING_SESSION });
  refuseStale(test.needs('changing'), REVOKED);
  settleTheOthers(test, WITH_LIVING_SESSION);
  settleTheOthers(test.needs('changing'), REVOKED);

  test('S4-10 the same writes with the current token are accepted', async (scene) => {
    const session = await scene.session();
    for (const [what, attempt] of ownersWrites(scene)) {
      await scene.add({});
      const job = await scene.claimOne(session);
      const answer = await attempt(scene, job, session);
      assert.equal(answer, 'done', what);
      await scene.store.settle(scene.queue, [completed(job)]);
    }
  });

  test('a token is refused for writes after it has finished its job', async (scene) => {
    const { session, job } = await scene.running();
    await scene.finish(completed(job));
    const before = await scene.snapshot(job.id);
    const writes = ['progress', 'data', 'log', 'clearLogs', 'extend', 'release', 'return', 'retry', 'delay'];
    for (const [what, attempt] of ownersWrites(scene).filter(([name]) => writes.includes(name))) {
      const answer = await attempt(scene, job, session);
      assert.equal(answer, what === 'extend' ? 'finished' : 'lost', what);
      assert.deepEqual(await scene.snapshot(job.id), before, `${what} changed something`);
    }
  });

  test.needs('control', 'changing')('write carries out only the items with the token of the owner', async (scene) => {
    await scene.addMany(2);
    const [mine, lost] = await scene.claim(await scene.session(), 2);
    assert(mine && lost);
    await scene.store.change(scene.queue, [lost.id], { kind: 'revoke', reason: 'test' });
    const replies = await scene.store.write(scene.queue, [
      { jobId: lost.id, token: lost.token, kind: 'data', data: '1' },
      { jobId: mine.id, token: mine.token, kind: 'data', data: '2' },
      { jobId: 'ghost', token: mine.token, kind: 'data', data: '3' },
    ]);
    assert.deepEqual(
      replies.map(({ status }) => status),
      ['lost', 'done', 'missing'],
    );
    assert.deepEqual([(await scene.job(lost.id)).data, (await scene.job(mine.id)).data], ['{}', '2']);
  });
}

/** Every write of an owner is refused. The job has a log row that must stay, if the store has logs. */
function refuseStale(test: Test, ways: Ways): void {
  for (const [way, makeStale] of Object.entries(ways)) {
    test(`S4-10 a stale token (${way}) is refused for every write of an owner, and nothing changes`, async (scene) => {
      const { job: stale, session } = await makeStale(scene);
      if (scene.has('control')) await scene.store.write(scene.queue, [{ jobId: stale.id, kind: 'log', row: 'stays' }]);
      const before = await scene.snapshot(stale.id);
      const ends = (await scene.lockOf(stale.id))?.endsInMs ?? 0;
      for (const [what, attempt] of ownersWrites(scene)) {
        const answer = await attempt(scene, stale, session);
        assert.equal(answer, 'lost', what);
        assert.deepEqual(await scene.snapshot(stale.id), before, `${what} changed something`);
      }
      assert(((await scene.lockOf(stale.id))?.endsInMs ?? 0) <= ends, 'the lock of the owner was not prolonged');
    });
  }
}

function settleTheOthers(test: Test, ways: Ways): void {
  for (const [way, makeStale] of Object.entries(ways)) {
    test(`settle refuses a stale token (${way}) and settles the other jobs of the call`, async (scene) => {
      const { job: stale, session } = await makeStale(scene);
      const before = await lockAndRecord(scene, stale.id);
      for (const settle of [settleAndClaim, settleAlone]) {
        await scene.addMany(2);
        const [one, two] = await scene.claim(session, 2);
        assert(one && two);
        assert.deepEqual(await settle(scene, session, [one, stale, two]), ['done', 'lost', 'done'], settle.name);
        assert.deepEqual(await lockAndRecord(scene, stale.id), before, `${settle.name} changed something`);
      }
    });
  }
}
