// Facet: concurrent calls on things that exclude each other: keys, caps and named locks.
import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../job/record.js';
import type { LockGrant } from '../../store/contract/index.js';
import { ids, only, sorted } from './expect.js';
import { hold, letGo, lookAt, wish } from './named-locks.js';
import { defineRaces, type Race } from './races.js';
import { completed } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

/** How many units a place in line is kept. */
const LONG = 500;

const KEY_RACES: Record<string, Race> = {
  'claims of one key at once: one job at a time is active, and all jobs run': async (scene, other) => {
    const added = await scene.add(...Array.from({ length: 12 }, () => ({ lockKey: 'k' })));
    const sessions = await Promise.all(Array.from({ length: 4 }, () => scene.session()));
    const order: string[] = [];
    while (order.length < added.length) {
      const claims = await Promise.all(sessions.map((session, n) => (n % 2 === 0 ? scene : other).claim(session, 3)));
      const job = only(claims.flat());
      order.push(job.id);
      await other.finish(completed(job));
    }
    assert.deepEqual(order, added);
  },

  'settling and claiming jobs of one key at once: all jobs run': async (scene, other) => {
    const added = await scene.add(...Array.from({ length: 12 }, () => ({ lockKey: 'k' })));
    const [one, two] = [await scene.session(), await scene.session()];
    const seen: string[] = [];
    for (let active = await scene.claim(one, 5); seen.length < added.length; ) {
      const { id } = only(active);
      seen.push(id);
      const [, early] = await Promise.all([scene.finish(completed(only(active))), other.claim(two, 5)]);
      const late = await scene.claim(one, 5);
      active = [...early, ...late];
    }
    assert.deepEqual(seen, added);
  },

  'a dead owner, its sweep and claims of its key at once: one job of the key at a time is active': async (scene, other) => {
    await scene.add(...Array.from({ length: 6 }, (_, n) => ({ id: `j${n}`, lockKey: 'k' })));
    await scene.claim(await scene.briefSession(), 5);
    await scene.perish();
    const [one, two] = [await scene.session(), await scene.session()];
    const claims = await Promise.all([scene.claim(one, 5), other.sweep(1), other.claim(two, 5)]);
    const jobs: ClaimedJob[] = [...claims[0], ...claims[2], ...(await scene.claim(one, 5))];
    assert.equal(only(jobs).id, 'j0');
  },
};

const REMOVING_RACES: Record<string, Race> = {
  'adding, removing and claiming jobs of one key at once: all remaining jobs run': async (scene, other) => {
    const session = await scene.session();
    const seen: string[] = [];
    const runOne = async (side: Scene): Promise<boolean> => {
      const jobs = await side.claim(session, 5);
      seen.push(...ids(jobs));
      await side.finish(...jobs.map((job) => completed(job)));
      return jobs.length > 0;
    };
    for (let n = 0; n < 12; n += 1) {
      await Promise.all([
        scene.add({ id: `stays-${n}`, lockKey: 'k' }, { id: `goes-${n}`, lockKey: 'k', lifo: true }),
        other.store.change(scene.queue, [`goes-${n}`], { kind: 'remove' }),
        runOne(other),
      ]);
    }
    for (let more = true; more; ) more = await runOne(scene);
    assert.equal((await scene.store.status(scene.queue)).counts.waiting, 0);
    assert.deepEqual(
      sorted(seen.filter((id) => id.startsWith('stays'))),
      sorted(Array.from({ length: 12 }, (_, n) => `stays-${n}`)),
    );
  },
};

const CAP_RACES: Record<string, Race> = {
  'claims at once under a cap: exactly as many jobs as the cap allows': async (scene, other) => {
    await scene.addMany(40);
    await scene.store.configure(scene.queue, { cap: { maxActive: 5 } });
    const sessions = await Promise.all(Array.from({ length: 5 }, () => scene.session()));
    for (let round = 0; round < 4; round += 1) {
      const claims = await Promise.all(sessions.map((session, n) => (n % 2 === 0 ? scene : other).claim(session, 4)));
      assert.deepEqual(
        claims.map(({ length }) => length),
        [1, 1, 1, 1, 1],
      );
      await Promise.all(claims.map((jobs, n) => (n % 2 === 0 ? other : scene).finish(completed(only(jobs)))));
    }
  },

  // Shares add up to the cap, so they would hide a race. Sessions without a share all compete for the same room.
  'claims at once by sessions without a share: exactly as many jobs as the cap allows': async (scene, other) => {
    await scene.addMany(60);
    await scene.store.configure(scene.queue, { cap: { maxActive: 5 } });
    const sessions = await Promise.all(Array.from({ length: 8 }, () => scene.session({ slots: 0 })));
    for (let round = 0; round < 8; round += 1) {
      const claims = await Promise.all(sessions.map((session, n) => (n % 2 === 0 ? scene : other).claim(session, 4)));
      assert.equal(claims.flat().length, 5);
      assert.equal((await scene.store.status(scene.queue)).counts.active, 5);
      await scene.finish(...claims.flat().map((job) => completed(job)));
    }
  },
};

const BY_ID_RACES: Record<string, Race> = {
  'claims by id and in order at once: each job goes to one session': async (scene, other) => {
    const added = await scene.addMany(10);
    const [hand, worker] = [await scene.session(), await scene.session()];
    const [taken, claimed] = await Promise.all([
      Promise.all(added.map((id) => scene.claim(hand, 1, { jobIds: [id] }))),
      Promise.all(added.map(() => other.claim(worker, 1))),
    ]);
    assert.deepEqual(sorted([...ids(taken.flat()), ...ids(claimed.flat())]), sorted(added));
    for (const [n, jobs] of taken.entries())
      assert(
        jobs.every(({ id }) => id === added[n]),
        'a claim by id gets the job that it names',
      );
  },
};

const NAME_RACES: Record<string, Race> = {
  'requests for one name at once: one holds the lock, the others stand in line': async (scene, other) => {
    const session = await scene.session();
    const tokens = Array.from({ length: 12 }, (_, n) => `t${n}`);
    const ask = (): Promise<LockGrant[]> =>
      Promise.all(tokens.map((token, n) => wish(n % 2 === 0 ? scene : other, session, token, LONG)));
    const first = await ask();
    assert.equal(first.filter(({ status }) => status === 'held').length, 1);
    const places = first.flatMap(({ ahead }) => (ahead === undefined ? [] : [ahead])).sort((a, b) => a - b);
    assert.deepEqual(
      places,
      places.map((_, n) => n),
    );
    const fences: number[] = [];
    for (let left = tokens.length; left > 0; left -= 1) {
      const held = (await lookAt(scene)) ?? assert.fail('the lock has no holder');
      fences.push(held.fence);
      tokens.splice(tokens.indexOf(held.token), 1);
      // The next in line gets the lock with this request or with the following one.
      await Promise.all([letGo(other, held.token), ask()]);
      await ask();
    }
    assert.deepEqual(
      fences,
      [...new Set(fences)].sort((a, b) => a - b),
    );
  },

  'letGo and a repeated request at once: a released lock stays released': async (scene, other) => {
    for (let n = 0; n < 6; n += 1) {
      const session = await hold(scene, `t${n}`);
      const [gone, grant] = await Promise.all([letGo(scene, `t${n}`), wish(other, session, `t${n}`)]);
      assert.equal(gone, true);
      assert.equal(grant.status, 'held');
      await letGo(scene, `t${n}`);
      assert.equal(await lookAt(other), undefined);
    }
  },

  'a late renewal and a request for the lock at once: the session lives with the lock or is dead without it': async (
    scene,
    other,
  ) => {
    const names = Array.from({ length: 8 }, (_, n) => `n${n}`);
    const sessions: string[] = [];
    // One call for each lock: on a slow machine, the first session would otherwise expire before the last has its lock.
    for (const name of names) {
      const session = await scene.briefSession({ durationMs: scene.ms(10) });
      assert.equal((await wish(scene, session, 'old', 0, name)).status, 'held');
      sessions.push(session);
    }
    const taker = await scene.session();
    await scene.pass(11);
    const [alive, grants] = await Promise.all([
      Promise.all(sessions.map(async (id) => only(await scene.store.renew([{ queue: scene.queue, id, acked: 0 }])).alive)),
      Promise.all(names.map((name) => wish(other, taker, 'new', 0, name))),
    ]);
    assert.deepEqual(
      alive,
      grants.map(({ status }) => status === 'taken'),
    );
    for (const [n, name] of names.entries()) assert.equal((await lookAt(scene, name))?.token, alive[n] ? 'old' : 'new');
  },

  'sweep and requests for locks of dead sessions at once: each lock goes to one session and stays there': async (
    scene,
    other,
  ) => {
    const names = Array.from({ length: 10 }, (_, n) => `n${n}`);
    const dead = await scene.briefSession({ durationMs: scene.ms(10) });
    for (const name of names) await wish(scene, dead, 'old', 0, name);
    const session = await scene.session();
    await scene.pass(11);
    const [grants] = await Promise.all([
      Promise.all(names.map((name) => wish(scene, session, `new ${name}`, LONG, name))),
      other.sweep(2),
      other.sweep(3),
    ]);
    assert(grants.every(({ status }) => status === 'held'));
    await other.sweep();
    for (const name of names) assert.equal((await lookAt(scene, name))?.token, `new ${name}`);
  },

  'closing sessions and their requests at once: a closed session keeps no lock or place': async (scene, other) => {
    const sessions = await Promise.all(Array.from({ length: 6 }, () => scene.session()));
    const refs = sessions.map((id) => ({ queue: scene.queue, id }));
    await Promise.all([
      ...sessions.map((session, n) => wish(scene, session, `a${n}`, LONG)),
      other.store.closeSessions(refs, 'closed'),
      ...sessions.map((session, n) => wish(other, session, `b${n}`, LONG)),
    ]);
    assert.equal(await lookAt(scene), undefined);
    assert.equal((await wish(scene, await scene.session(), 'next')).status, 'held');
  },
};

export function exclusionRaces(test: Test): void {
  defineRaces(test.needs('keys'), KEY_RACES);
  defineRaces(test.needs('keys', 'changing'), REMOVING_RACES);
  defineRaces(test.needs('caps'), CAP_RACES);
  defineRaces(test.needs('claims-by-id'), BY_ID_RACES);
  defineRaces(test.needs('named-locks'), NAME_RACES);
}
