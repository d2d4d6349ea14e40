// Facet: the finished jobs of each minute, and the waiting jobs of each priority.
import assert from 'node:assert/strict';
import type { FinishedState } from '../../job/state.js';
import type { QueueMetrics } from '../../store/contract/index.js';
import { only } from './expect.js';
import { completed, failed, retried } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

const MINUTE_MS = 60_000;

export function metrics(test: Test): void {
  test('the status has no metrics of a queue that does not count', async (scene) => {
    await scene.finish(completed((await scene.running()).job));
    assert.equal(await read(scene), undefined);
  });

  test('counts completed jobs and jobs that failed for good, from the moment at which it was asked to', async (scene) => {
    await scene.finish(completed((await scene.running()).job));
    await count(scene, 10);
    assert.deepEqual(await read(scene), { count: 0, points: [], total: 0 });
    await scene.finish(completed((await scene.running()).job));
    await scene.finish(completed((await scene.running()).job, { count: 0 }));
    await scene.finish(failed((await scene.running()).job));
    await scene.finish(retried((await scene.running()).job));
    assert.equal(sumOf(await read(scene)), 2);
    assert.equal(sumOf(await read(scene, 'failed')), 1);
    assert.deepEqual([(await read(scene))?.count, (await read(scene, 'failed'))?.count], [2, 1]);
  });

  test('counts a job that stalled too often as failed', async (scene) => {
    await count(scene, 10);
    await scene.running({}, { durationMs: scene.ms(5), maxStalls: 0 });
    await scene.perish();
    assert.equal((await scene.sweep()).failed.length, 1);
    assert.equal((await read(scene, 'failed'))?.count, 1);
  });

  test('a repeated settle counts once', async (scene) => {
    await count(scene, 10);
    const { session, job } = await scene.running();
    const call = scene.call(session);
    await scene.store.settle(scene.queue, [completed(job)], call);
    await scene.store.settle(scene.queue, [completed(job)], call);
    await scene.store.settle(scene.queue, [completed(job)]);
    assert.equal((await read(scene))?.count, 1);
  });

  test.moved('each whole minute with finished jobs is a point, and minutes without are zeros', async (scene) => {
    const session = await middleOfMinute(scene);
    await count(scene, 10);
    await finishMany(scene, session, 3);
    const first = await read(scene);
    assert.deepEqual([first?.points, first?.total, first?.current?.count], [[], 0, 3]);
    await passMinutes(scene, 1);
    assert.deepEqual((await read(scene))?.points, [], 'no job has finished since, so the last minute is still the current one');
    await finishMany(scene, session, 2);
    await passMinutes(scene, 3);
    await finishMany(scene, session, 1);
    const later = await read(scene);
    assert.deepEqual([later?.points, later?.total, later?.current?.count, later?.count], [[0, 0, 2, 3], 4, 1, 6]);
    assert.equal((later?.current?.minute ?? 0) - (first?.current?.minute ?? 0), 4);
    assert.deepEqual((await read(scene, 'failed'))?.points, []);
  });

  test.moved('keeps as many points as it was asked to, the newest', async (scene) => {
    const session = await middleOfMinute(scene);
    await count(scene, 3);
    for (const jobs of [1, 2, 3, 4, 5]) {
      await finishMany(scene, session, jobs);
      await passMinutes(scene, 1);
    }
    await finishMany(scene, session, 1);
    assert.deepEqual([(await read(scene))?.points, (await read(scene))?.count], [[5, 4, 3], 16]);
    await count(scene, 2);
    assert.deepEqual([(await read(scene))?.points, (await read(scene))?.total], [[5, 4], 2]);
    await passMinutes(scene, 500);
    await finishMany(scene, session, 1);
    assert.deepEqual([(await read(scene))?.points, (await read(scene))?.count], [[0, 0], 17]);
  });

  test.manual('a step of the wall clock moves no minute', async (scene) => {
    const session = await middleOfMinute(scene);
    await count(scene, 10);
    await finishMany(scene, session, 1);
    await passMinutes(scene, 2);
    await finishMany(scene, session, 1);
    const before = await read(scene);
    scene.stepWall(-5 * MINUTE_MS);
    await finishMany(scene, session, 2);
    const { current, points, count: all } = (await read(scene)) ?? {};
    assert.deepEqual([points, current?.count, all], [[0, 1], 3, 4]);
    assert.equal(current?.minute, before?.current?.minute);
  });

  test.moved('returns the points at the positions that the query names', async (scene) => {
    const session = await middleOfMinute(scene);
    await count(scene, 10);
    for (const jobs of [1, 2, 3, 4]) {
      await finishMany(scene, session, jobs);
      await passMinutes(scene, 1);
    }
    await finishMany(scene, session, 1);
    const points = async (start: number, end: number) => {
      const found = await scene.store.status(scene.queue, { metrics: { kind: 'completed', start, end } });
      return [found.metrics?.points, found.metrics?.total];
    };
    assert.deepEqual(await points(0, -1), [[4, 3, 2, 1], 4]);
    assert.deepEqual(await points(1, 2), [[3, 2], 4]);
    assert.deepEqual(await points(-2, -1), [[2, 1], 4]);
    assert.deepEqual(await points(2, 100), [[2, 1], 4]);
    assert.deepEqual(await points(4, 9), [[], 4]);
  });

  test('stops counting and forgets the counts on request, and when the emptied queue is forgotten', async (scene) => {
    for (const stop of [
      () => scene.store.configure(scene.queue, { metrics: null }),
      () => scene.store.forget(scene.queue, { all: true }),
    ]) {
      await count(scene, 10);
      await scene.finish(completed((await scene.running()).job, { count: 0 }));
      await stop();
      assert.equal(await read(scene), undefined);
      await count(scene, 10);
      assert.deepEqual(await read(scene), { count: 0, points: [], total: 0 });
    }
  });

  test.shared('counts exactly while many connections finish jobs', async (scene) => {
    await count(scene, 10);
    const peers = await Promise.all(Array.from({ length: 4 }, () => scene.peer()));
    await scene.addMany(120);
    await Promise.all(
      peers.map(async (peer) => {
        const session = await peer.session();
        for (let jobs = await peer.claim(session, 5); jobs.length > 0; jobs = await peer.claim(session, 5))
          await peer.finish(...jobs.map((job, index) => (index === 0 ? failed(job) : completed(job))));
      }),
    );
    const { counts } = await scene.store.status(scene.queue);
    assert.deepEqual([(await read(scene))?.count, (await read(scene, 'failed'))?.count], [counts.completed, counts.failed]);
    assert.deepEqual([sumOf(await read(scene)), sumOf(await read(scene, 'failed'))], [counts.completed, counts.failed]);
    assert.equal(counts.completed + counts.failed, 120);
  });

  test.durable('metrics outlive the store object', async (scene) => {
    await count(scene, 10);
    await scene.finish(completed((await scene.running()).job));
    const later = await scene.reopen();
    assert.equal((await read(later))?.count, 1);
  });

  test.needs('control')('counts the waiting jobs of each priority, also in a paused queue', async (scene) => {
    const priorities = async (...asked: number[]) => (await scene.store.status(scene.queue, { priorities: asked })).priorities;
    assert.deepEqual(await priorities(0, 1), [0, 0]);
    await scene.add({}, {}, { priority: 1 }, { priority: 7 }, { priority: 7 }, { priority: 7, delayMs: scene.ms(900) });
    assert.deepEqual(await priorities(7, 0, 1, 3, 7), [2, 2, 1, 0, 2]);
    await scene.store.configure(scene.queue, { paused: true });
    assert.deepEqual(await priorities(0, 7), [2, 2]);
    assert.deepEqual(await priorities(), []);
    assert.equal((await scene.store.status(scene.queue)).priorities, undefined);
  });

  test.needs('keys')('counts waiting jobs behind a key under their priority', async (scene) => {
    const keyed = { lockKey: 'one' };
    await scene.add({ ...keyed, priority: 2 }, { ...keyed, priority: 2 }, { ...keyed, priority: 3 }, keyed, keyed);
    await scene.claimOne(await scene.session());
    const { priorities } = await scene.store.status(scene.queue, { priorities: [0, 2, 3] });
    assert.deepEqual(priorities, [1, 2, 1]);
  });
}

function count(scene: Scene, points: number): Promise<void> {
  return scene.store.configure(scene.queue, { metrics: { points } });
}

async function read(scene: Scene, kind: FinishedState = 'completed'): Promise<QueueMetrics | undefined> {
  return (await scene.store.status(scene.queue, { metrics: { kind, start: 0, end: -1 } })).metrics;
}

/** A test may run across the end of a minute: the jobs of both minutes together are certain. */
function sumOf(found: QueueMetrics | undefined): number {
  return (found?.points ?? []).reduce((sum, points) => sum + points, found?.current?.count ?? 0);
}

/** Moves the clock to the middle of a minute. So no test crosses the end of a minute by chance. Returns a session that outlives the test. */
async function middleOfMinute(scene: Scene): Promise<string> {
  const { session, job } = await scene.running({}, { durationMs: 1_000 * MINUTE_MS });
  await scene.finish(completed(job, { count: 0 }));
  await scene.pass((1.5 * MINUTE_MS - ((job.processedOn ?? 0) % MINUTE_MS)) / scene.unit);
  return session;
}

async function passMinutes(scene: Scene, minutes: number): Promise<void> {
  await scene.pass((minutes * MINUTE_MS) / scene.unit);
}

async function finishMany(scene: Scene, session: string, jobs: number): Promise<void> {
  for (let left = jobs; left > 0; left -= 1) {
    await scene.add({});
    await scene.finish(completed(only(await scene.claim(session))));
  }
}
