// Facet: concurrent verbs. In any order, the outcome equals that of the verbs one after the other, and every caller gets a true
// reply.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import { ids, nth, only, sorted } from './expect.js';
import { completed, newJob } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export type Race = (scene: Scene, other: Scene) => Promise<void>;

const RACES: Record<string, Race> = {
  'finish and sweep at once: each job is either finished or recovered': async (scene, other) => {
    const jobs = await dying(scene, 20);
    const [results, swept] = await Promise.all([
      Promise.all(jobs.map(async (job, n) => only(await (n % 2 === 0 ? scene : other).settle(completed(job))))),
      other.sweep(3),
    ]);
    const finished = jobs.filter((_, n) => results[n] === 'done');
    assert.deepEqual(sorted([...ids(finished), ...swept.stalled]), sorted(ids(jobs)));
    assert.deepEqual(sorted(await scene.list('completed')), sorted(ids(finished)));
    assert.deepEqual(sorted(await scene.list('waiting')), sorted(swept.stalled));
  },

  'renew and sweep at once: a session that is reported alive keeps its jobs': async (scene, other) => {
    const sessions: string[] = [];
    for (let n = 0; n < 10; n += 1) {
      await scene.add({});
      sessions.push(await scene.briefSession({ durationMs: scene.ms(20) }));
      await scene.claimOne(nth(sessions, n));
    }
    await scene.pass(21);
    const [alive] = await Promise.all([
      Promise.all(sessions.map(async (id) => only(await scene.store.renew([{ queue: scene.queue, id, acked: 0 }])).alive)),
      other.sweep(1),
    ]);
    for (const [n, id] of sessions.entries()) {
      assert.equal((await scene.store.locks(scene.queue, { session: id })).length, alive[n] ? 1 : 0);
    }
  },

  'claim and close at once: a closed session keeps no job': async (scene, other) => {
    const added = await scene.addMany(10);
    const sessions = await Promise.all(Array.from({ length: 5 }, () => scene.session()));
    const refs = sessions.map((id) => ({ queue: scene.queue, id }));
    await Promise.all([
      ...sessions.map((session) => scene.tryClaim(session, 2)),
      other.store.closeSessions(refs, 'closed'),
      ...sessions.map((session) => other.tryClaim(session, 2)),
    ]);
    assert.deepEqual(sorted(await scene.list('waiting')), sorted(added));
    assert.deepEqual(await scene.list('active'), []);
  },

  'a call and its repetition at once: both return the same reply': async (scene, other) => {
    const adding = scene.call('p');
    const add = (side: Scene) => side.store.add(scene.queue, [newJob(), newJob()], adding);
    const [once, twice] = await Promise.all([add(scene), add(other)]);
    assert.deepEqual(twice, once);
    const request = scene.request(await scene.session(), 1);
    const claims = await Promise.all([scene, other, scene].map((side) => side.store.claim(scene.queue, request)));
    const tokens = new Set(claims.map(({ jobs }) => only(jobs).token));
    assert.equal(tokens.size, 1);
    const job = only(nth(claims, 0).jobs);
    const call = scene.call(request.session);
    const settle = (side: Scene) => side.store.settle(scene.queue, [completed(job, { count: 0 })], call);
    const settled = await Promise.all([scene, other, scene].map(settle));
    assert.deepEqual(
      settled.map(({ results }) => results),
      [['done'], ['done'], ['done']],
    );
    assert.equal((await scene.list('waiting')).length, 1);
    assert.equal((await scene.events()).filter(({ name }) => name === 'completed').length, 1);
  },
};

const CHANGING_RACES: Record<string, Race> = {
  'claim and remove at once: each job is either claimed or removed': async (scene, other) => {
    const added = await scene.addMany(20);
    const session = await scene.session();
    const [jobs, removed] = await Promise.all([
      scene.claim(session, 10),
      Promise.all(added.map((id) => other.store.change(scene.queue, [id], { kind: 'remove' }))),
    ]);
    const gone = added.filter((_, n) => nth(removed, n).changed.length === 1);
    assert(
      jobs.every(({ id }) => !gone.includes(id)),
      'no job was claimed and removed',
    );
    const records = (await scene.store.jobs(scene.queue, added)).jobs;
    assert.deepEqual(
      records.filter((record) => record !== undefined).map(({ id }) => id),
      added.filter((id) => !gone.includes(id)),
    );
  },

  'revoke and finish at once: either the result stands or the job waits again': async (scene, other) => {
    await scene.addMany(10);
    const jobs = await scene.claim(await scene.session(), 10);
    const [results, revoked] = await Promise.all([
      Promise.all(jobs.map((job) => scene.settle(completed(job)))),
      Promise.all(jobs.map(({ id }) => other.store.change(scene.queue, [id], { kind: 'revoke', reason: 'race' }))),
    ]);
    for (const [n, { id }] of jobs.entries()) {
      const state = await scene.stateOf(id);
      assert.deepEqual(
        [only(nth(results, n)), nth(revoked, n).changed],
        state === 'completed' ? ['done', []] : ['lost', [id]],
        id,
      );
    }
  },
};

export function races(test: Test): void {
  defineRaces(test, RACES);
  defineRaces(test.needs('changing'), CHANGING_RACES);
}

/** Defines each race twice: within one connection, and on two connections. */
export function defineRaces(test: Test, all: Record<string, Race>): void {
  for (const [title, race] of Object.entries(all)) {
    test(title, (scene) => race(scene, scene));
    test.shared(`on two connections: ${title}`, async (scene) => race(scene, await scene.peer()));
  }
}

/** Returns jobs of one session that has expired and was not swept yet. */
async function dying(scene: Scene, count: number): Promise<ClaimedJob[]> {
  await scene.addMany(count);
  const jobs = await scene.claim(await scene.briefSession(), count);
  await scene.perish();
  return jobs;
}
