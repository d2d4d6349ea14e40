// Facet: claiming jobs. Each claim grants the lock of its job in the same step.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import { between, ids, nth, sorted } from './expect.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function claiming(test: Test): void {
  test('claim makes a job active, counts the start and records the worker', async (scene) => {
    const id = await scene.addOne();
    const job = await scene.claimOne(await scene.session(), { by: 'worker-7' });
    const record = await scene.job(id);
    assert.deepEqual(
      [record.state, record.attemptsStarted, record.attemptsMade, record.processedBy],
      ['active', 1, 0, 'worker-7'],
    );
    assert(record.processedOn !== undefined && record.processedOn > 0);
    const { token, fence, ...rest } = job;
    assert.deepEqual(rest, record, 'the reply carries the record as it is now');
    assert(token.length > 0 && Number.isSafeInteger(fence) && fence > 0);
  });

  test('claim grants the lock in the same step, with the same token, fence and session', async (scene) => {
    const added = await scene.addMany(20);
    const session = await scene.session({ owner: { host: 'h', pid: 7, name: 'n', instance: 'i' } });
    const jobs = await scene.claim(session, 20);
    assert.deepEqual(ids(jobs), added);
    for (const { id, token, fence } of jobs) {
      const lock = await scene.lockOf(id);
      assert.deepEqual([lock?.jobId, lock?.token, lock?.fence, lock?.session], [id, token, fence, session]);
      assert.deepEqual(lock?.owner, { host: 'h', pid: 7, name: 'n', instance: 'i' });
    }
  });

  test('claim takes at most `count` jobs and leaves the rest waiting', async (scene) => {
    await scene.addMany(5);
    const session = await scene.session();
    assert.equal((await scene.claim(session, 0)).length, 0);
    assert.equal((await scene.claim(session, 2)).length, 2);
    assert.equal((await scene.list('waiting')).length, 3);
    assert.equal((await scene.claim(session, 99)).length, 3);
    assert.equal((await scene.claim(session, 99)).length, 0);
  });

  test('claim reports drained when no job is left waiting', async (scene) => {
    const session = await scene.session();
    assert.equal((await scene.tryClaim(session)).drained, true);
    await scene.add({}, {}, { delayMs: scene.ms(500) });
    assert.equal((await scene.tryClaim(session)).drained, false);
    assert.equal((await scene.tryClaim(session)).drained, true);
  });

  test('an unknown session claims nothing', async (scene) => {
    const id = await scene.addOne();
    const reply = await scene.tryClaim('no-session');
    assert.deepEqual([reply.jobs, reply.sessionAlive], [[], false]);
    assert.equal(await scene.stateOf(id), 'waiting');
  });

  test('an expired session claims nothing, swept or not, until it is renewed', async (scene) => {
    const id = await scene.addOne();
    const session = await scene.briefSession();
    await scene.perish();
    const expired = await scene.tryClaim(session);
    assert.deepEqual([expired.jobs, expired.sessionAlive], [[], false]);
    await scene.store.renew([{ queue: scene.queue, id: session, acked: 0 }]);
    assert.deepEqual(ids(await scene.claim(session)), [id]);
  });

  test('a session that was swept or closed never claims again', async (scene) => {
    await scene.add({});
    const [swept, closed] = [await scene.briefSession(), await scene.session()];
    await scene.perish();
    await scene.sweep();
    await scene.store.closeSessions([{ queue: scene.queue, id: closed }], 'closed');
    for (const session of [swept, closed]) {
      const reply = await scene.tryClaim(session);
      assert.deepEqual([reply.jobs, reply.sessionAlive], [[], false]);
    }
  });

  test('a session of another queue claims nothing in this queue', async (scene) => {
    await scene.add({});
    const foreign = await scene.at(`${scene.queue}-other`).session();
    assert.deepEqual((await scene.tryClaim(foreign)).sessionAlive, false);
    assert.equal((await scene.list('waiting')).length, 1);
  });

  test('claim leaves a delayed job until it is due and returns when that is', async (scene) => {
    await scene.add({ delayMs: scene.ms(10) });
    const session = await scene.session();
    const early = await scene.tryClaim(session);
    assert.deepEqual(early.jobs, []);
    between(early.nextInMs, 1, scene.ms(10), 'nextInMs');
    await scene.pass(11);
    const job = await scene.claimOne(session);
    assert.deepEqual([job.state, job.delay], ['active', 0]);
  });

  test('claim returns nextInMs of the first due job, or none without delayed jobs', async (scene) => {
    const session = await scene.session();
    assert.equal((await scene.tryClaim(session)).nextInMs, undefined);
    await scene.add({ delayMs: scene.ms(900) }, { delayMs: scene.ms(200) });
    between((await scene.tryClaim(session)).nextInMs, scene.ms(150), scene.ms(200), 'nextInMs');
  });

  test('two sessions that claim at once never get the same job', (scene) => contend(scene, [scene, scene]));

  test.shared('two sessions on two connections that claim at once never get the same job', async (scene) =>
    contend(scene, [scene, await scene.peer()]),
  );

  test('fences grow and tokens never repeat across claims, sessions, releases and sweeps', async (scene) => {
    const seen: ClaimedJob[] = [];
    for (let round = 0; round < 4; round += 1) {
      await scene.addMany(2);
      const session = await scene.briefSession({ maxStalls: 100 });
      seen.push(...(await scene.claim(session, 3)));
      if (round % 2 === 0) await scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed');
      else await scene.perish();
      await scene.sweep();
    }
    assertFresh(seen);
  });

  test.needs('control')('fences keep growing after the queue was forgotten', async (scene) => {
    const seen: ClaimedJob[] = [];
    for (let round = 0; round < 3; round += 1) {
      await scene.add({}, {});
      const jobs = await scene.claim(await scene.session(), 2);
      seen.push(...jobs);
      await scene.finish(...jobs.map((job) => completed(job, { count: 0 })));
      await scene.store.forget(scene.queue, { all: true });
    }
    assertFresh(seen);
  });

  test.manual('fences keep growing when the wall clock steps back', async (scene) => {
    await scene.addMany(4);
    const session = await scene.session();
    const seen = await scene.claim(session, 2);
    scene.stepWall(-3_600_000);
    seen.push(...(await scene.claim(session, 2)));
    assertFresh(seen);
  });

  test.durable('fences keep growing after the store was opened again', async (scene) => {
    await scene.addMany(2);
    const session = await scene.session();
    const seen = await scene.claim(session, 1);
    const later = await scene.reopen();
    seen.push(...(await later.claim(session, 1)));
    assertFresh(seen);
  });
}

async function contend(scene: Scene, sides: [Scene, Scene]): Promise<void> {
  const added = await scene.addMany(120);
  const claimers = await Promise.all(
    Array.from({ length: 6 }, async (_, n) => ({ side: nth(sides, n % 2), session: await scene.session() })),
  );
  const claimed: ClaimedJob[] = [];
  const drain = async ({ side, session }: { side: Scene; session: string }): Promise<void> => {
    for (;;) {
      const jobs = await side.claim(session, 3);
      if (jobs.length === 0) return;
      claimed.push(...jobs);
    }
  };
  await Promise.all(claimers.map(drain));
  assert.deepEqual(sorted(ids(claimed)), sorted(added), 'each job exactly once');
  assert.equal(new Set(claimed.map(({ token }) => token)).size, 120);
  assert.equal(new Set(claimed.map(({ fence }) => fence)).size, 120);
  for (const job of claimed) assert.equal((await scene.lockOf(job.id))?.token, job.token);
}

/** Asserts growing fences and unique tokens. Pass the jobs in the order of their claims. */
function assertFresh(jobs: ClaimedJob[]): void {
  assert(jobs.length > 1, 'nothing was claimed');
  assert.equal(new Set(jobs.map(({ token }) => token)).size, jobs.length, 'every acquisition has a token of its own');
  jobs.slice(1).forEach((job, index) => {
    assert(job.fence > nth(jobs, index).fence, `fence ${job.fence} came after ${nth(jobs, index).fence}`);
  });
}
