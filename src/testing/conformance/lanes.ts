// Facet: calls of one session in several lanes. Each lane has its own last call: a late call of one lane does not affect the other.
import assert from 'node:assert/strict';
import type { Call, SettleReply } from '../../store/contract/index.js';
import { ids, nth, only } from './expect.js';
import { completed, released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function lanes(test: Test): void {
  test.lanes('a call is carried out when it arrives after a later call of another lane', async (scene) => {
    const { session, jobs, exchange } = await busy(scene, 4);
    const later = await exchange({ caller: session, seq: 9, lane: 1 }, nth(jobs, 0), 1);
    const earlier = await exchange({ caller: session, seq: 8 }, nth(jobs, 1), 1);
    assert.deepEqual([later.results, earlier.results], [['done'], ['done']]);
    const claimed = [...(later.claimed?.jobs ?? []), ...(earlier.claimed?.jobs ?? [])];
    assert.equal(new Set(ids(claimed)).size, 2);
    const alone = await scene.claim(session, 1, { seq: 7, lane: 1 });
    assert.deepEqual(alone, [], 'in its own lane it is an old call');
    assert.equal((await scene.claim(session, 1, { seq: 11, lane: 1 })).length, 1);
    assert.equal((await scene.claim(session, 1, { seq: 10 })).length, 1);
  });

  test.lanes('a repeated call returns its first reply although the other lane has continued', async (scene) => {
    const { session, jobs, exchange } = await busy(scene, 6);
    const call = { caller: session, seq: 5, lane: 1 };
    const first = await exchange(call, nth(jobs, 0), 2);
    await exchange({ caller: session, seq: 6 }, nth(jobs, 1), 2);
    await exchange({ caller: session, seq: 7 }, nth(jobs, 2), 1);
    const recorded = await scene.events();
    const again = await exchange(call, nth(jobs, 0), 2);
    assert.deepEqual(again.results, ['done']);
    assert.deepEqual(
      again.claimed?.jobs.map(({ id, token }) => [id, token]),
      first.claimed?.jobs.map(({ id, token }) => [id, token]),
    );
    assert.equal(again.claimed?.jobs.length, 2);
    assert.deepEqual(await scene.events(), recorded);
    const claim = { seq: 8, lane: 1 };
    const claimed = only(await scene.claim(session, 1, claim));
    await exchange({ caller: session, seq: 9 }, nth(jobs, 3), 1);
    assert.equal(only(await scene.claim(session, 1, claim)).token, claimed.token);
  });

  test.lanes('a release repeated in the second lane is not carried out twice', async (scene) => {
    const { session, jobs } = await busy(scene, 2);
    const job = nth(jobs, 0);
    const call = { caller: session, seq: 5, lane: 1 };
    await scene.store.settle(scene.queue, [released(job)], call);
    const other = await scene.claim(await scene.session(), 1);
    assert.deepEqual(ids(other), [job.id]);
    assert.deepEqual((await scene.store.settle(scene.queue, [released(job)], call)).results, ['done']);
    assert.equal((await scene.lockOf(job.id))?.token, only(other).token);
  });

  test.lanes('an old call of a lane changes nothing although the other lane is behind it', async (scene) => {
    const { session, jobs, exchange } = await busy(scene, 4);
    await exchange({ caller: session, seq: 3 }, nth(jobs, 0), 1);
    await exchange({ caller: session, seq: 9, lane: 1 }, nth(jobs, 1), 1);
    const waiting = await scene.list('waiting');
    await exchange({ caller: session, seq: 5, lane: 1 }, nth(jobs, 2), 1).catch(() => undefined);
    assert.deepEqual(await scene.list('waiting'), waiting);
    assert.equal((await scene.lockOf(nth(jobs, 2).id))?.token, nth(jobs, 2).token);
  });

  test.lanes('two lanes that claim at once get each job once', async (scene) => {
    const { session, jobs, exchange } = await busy(scene, 20);
    const replies: SettleReply[] = [];
    for (let at = 0; at < jobs.length; at += 2) {
      const pair = [0, 1].map((lane) => exchange({ caller: session, seq: 10 + at + lane, lane }, nth(jobs, at + lane), 1));
      replies.push(...(await Promise.all(pair)));
    }
    assert.deepEqual(new Set(replies.flatMap(({ results }) => results)), new Set(['done']));
    const claimed = replies.flatMap((reply) => reply.claimed?.jobs ?? []);
    assert.equal(new Set(ids(claimed)).size, 20);
    assert.equal(new Set(claimed.map(({ fence }) => fence)).size, 20);
    assert.deepEqual(await scene.list('waiting'), []);
  });
}

interface Busy {
  session: string;
  jobs: Awaited<ReturnType<Scene['claim']>>;
  exchange(call: Call, job: Awaited<ReturnType<Scene['claim']>>[number], count: number): Promise<SettleReply>;
}

/** Opens a session that runs `count` jobs while as many wait. `exchange` completes one job and claims others, as a worker does. */
async function busy(scene: Scene, count: number): Promise<Busy> {
  await scene.addMany(2 * count);
  const session = await scene.session();
  const jobs = await scene.claim(session, count);
  return {
    session,
    jobs,
    exchange: (call, job, wanted) => {
      const { caller, ...numbered } = call;
      return scene.store.settle(scene.queue, [completed(job)], call, { session: caller, count: wanted, ...numbered });
    },
  };
}
