// Facet: long lists, and many jobs that must not slow other calls. Engines have limits (parameters of a statement, arguments of a
// call) that no caller should meet.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import { changedAll, ids, only, sideBySide } from './expect.js';
import { completed, newJob, newSession, retryFrom } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const MANY = 9_000;
const ONE_KEY = 100_000;
const CLAIMS = 40;
const GROUPS = 20_000;
const WARM_UP = 250;

export function crowds(test: Test): void {
  test(`list verbs handle ${MANY} jobs in one call`, async (scene) => {
    const { store, queue } = scene;
    const added = await scene.addMany(MANY);
    const session = await scene.session();
    const jobs = await scene.claim(session, MANY);
    assert.deepEqual(ids(jobs), added);
    assert.equal((await store.locks(queue, { session })).length, MANY);
    const extensions = jobs.map(({ id, token }) => ({ jobId: id, token, durationMs: scene.ms(500) }));
    assert((await store.extend(queue, extensions)).every((status) => status === 'done'));
    const writes = jobs.map(({ id, token }) => ({ jobId: id, token, kind: 'progress' as const, progress: '1' }));
    assert((await store.write(queue, writes)).every(({ status }) => status === 'done'));
    await scene.finish(...jobs.map((job) => completed(job)));
    assert.equal((await store.jobs(queue, added)).jobs.filter((record) => record?.progress === '1').length, MANY);
    assert.equal((await scene.list('completed')).length, MANY);
    assert.equal((await store.change(queue, { lists: ['completed'], limit: MANY }, retryFrom('completed'))).changed.length, MANY);
    assert.equal((await scene.claim(session, MANY)).length, MANY);
    assert.deepEqual(await store.change(queue, added, { kind: 'revoke', reason: 'r' }), changedAll(...added));
    assert.equal(only(await store.renew([{ queue, id: session, acked: 0 }])).notices.length, MANY);
    assert.deepEqual(await store.change(queue, added, { kind: 'remove' }), changedAll(...added));
    assert.equal((await store.status(queue)).counts.waiting, 0);
  });

  test(`sweep recovers ${MANY} locks of an expired session in chunks`, async (scene) => {
    await scene.addMany(MANY);
    const session = await scene.session({ durationMs: scene.ms(40) });
    await scene.claim(session, MANY);
    await scene.pass(41);
    assert.equal((await scene.sweep(1_000)).stalled.length, MANY);
    assert.equal(
      (await scene.store.change(scene.queue, { lists: ['waiting'], limit: MANY }, { kind: 'remove' })).changed.length,
      MANY,
    );
  });

  test(`${ONE_KEY} jobs that wait for one key do not slow other claims`, async (scene) => {
    const empty = scene.at(`${scene.queue}-empty`);
    await addOfKey(scene, ONE_KEY);
    await addOfKey(empty, 2 + CLAIMS);
    const [session, other] = [await scene.session(), await empty.session()];
    const heads = { crowded: await scene.claimOne(session), empty: await empty.claimOne(other) };
    await scene.addMany(CLAIMS);
    await empty.addMany(CLAIMS);
    expectAlike(
      'a claim',
      await sideBySide(
        CLAIMS,
        () => empty.claimOne(other),
        () => scene.claimOne(session),
      ),
    );
    const turn = async (side: Scene, owner: string, head: ClaimedJob): Promise<ClaimedJob> => {
      await side.finish(completed(head));
      return side.claimOne(owner);
    };
    expectAlike(
      'the next job of the key',
      await sideBySide(
        CLAIMS,
        async () => (heads.empty = await turn(empty, other, heads.empty)),
        async () => (heads.crowded = await turn(scene, session, heads.crowded)),
      ),
    );
    assert.equal((await scene.store.status(scene.queue)).counts.waiting, ONE_KEY - 1 - CLAIMS);
  });

  test(`${GROUPS} groups do not slow claims, with and without room`, async (scene) => {
    const { store, queue } = scene;
    const few = scene.at(`${queue}-few`);
    await few.add(...Array.from({ length: 2 * CLAIMS }, (_, n) => ({ group: `g${n}` })));
    const jobs = Array.from({ length: GROUPS }, (_, n) => newJob({ group: `group-${n}` }));
    for (let added = 0; added < GROUPS; added += 5_000)
      await store.add(queue, jobs.slice(added, added + 5_000), { caller: 'crowd', seq: 1 + added });
    const [session, other] = [await scene.session(), await few.session()];
    // The first claims may put the groups in line, some of them in each call.
    for (let n = 0; n < WARM_UP; n += 1) await scene.claimOne(session);
    const claims = (): Promise<number[]> =>
      sideBySide(
        CLAIMS,
        () => few.claimOne(other),
        () => scene.claimOne(session),
      );
    expectAlike(`a claim of ${GROUPS} groups`, await claims());
    await store.configure(queue, { groups: { maxActive: 0 } });
    await scene.addMany(CLAIMS + 1);
    // The first claims may put the groups aside.
    for (let more = true, jobs = 0; jobs === 0; ) {
      assert(more, 'a claim without a job may be repeated at once');
      const reply = await scene.tryClaim(session, 1);
      [more, jobs] = [reply.more === true, reply.jobs.length];
    }
    expectAlike(`a claim beside ${GROUPS} groups without room`, await claims());
    assert.equal((await store.status(queue)).counts.waiting, GROUPS - WARM_UP - CLAIMS);
  });

  test('one call renews a thousand sessions and another closes them', async (scene) => {
    const sessions = Array.from({ length: 1_000 }, () => newSession(scene.queue, scene.ms(1_000), {}));
    await Promise.all(sessions.map((session) => scene.store.openSession(session)));
    const refs = sessions.map(({ id }) => ({ queue: scene.queue, id }));
    const replies = await scene.store.renew(refs.map((ref) => ({ ...ref, acked: 0 })));
    assert(replies.every(({ alive }) => alive));
    await scene.store.closeSessions(refs, 'closed');
    assert.deepEqual(await scene.store.sessions(scene.queue), []);
  });
}

/** Asserts that a call in a crowded queue takes about as long as in another. A store that reads each waiting job needs tens of milliseconds. */
function expectAlike(what: string, [other = 0, crowded = 0]: number[]): void {
  assert(crowded < 5 * other + 5, `${what} took ${crowded} ms beside ${other} ms in a queue without a crowd`);
}

async function addOfKey({ store, queue }: Scene, count: number): Promise<void> {
  const jobs = Array.from({ length: Math.min(count, 5_000) }, () => newJob({ lockKey: 'k' }));
  for (let added = 0; added < count; added += jobs.length) {
    await store.add(queue, jobs, { caller: `crowd-of-${queue}`, seq: 1 + added });
  }
}
