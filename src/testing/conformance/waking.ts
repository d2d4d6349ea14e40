// Facet: waiting for something to happen without asking all the time.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from './expect.js';
import type { WatchedChange } from '../../store/contract/index.js';
import { hold, letGo, wish } from './named-locks.js';
import { completed, released, retried } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function waking(test: Test): void {
  for (const what of ['events', 'jobs'] as const) {
    const watcher = `a watcher of ${what} is called`;

    test(`${watcher} after an add`, (scene) => wakes(scene, () => scene.add({}), what));

    test(`${watcher} after an add with a delay, for when it falls due`, (scene) =>
      wakes(scene, () => scene.add({ delayMs: scene.ms(5_000) }), what));

    test(`${watcher} after an add with a priority`, (scene) => wakes(scene, () => scene.add({ priority: 3 }), what));

    test(`${watcher} when a job is given back`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.finish(released(job)), what);
    });

    test(`${watcher} when a job is to be tried again`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.finish(retried(job)), what);
    });

    test(`${watcher} when a lock is taken away`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.store.revoke(scene.queue, [job.id], 'r'), what);
    });

    test(`${watcher} when a session is closed that held jobs`, async (scene) => {
      const { session } = await scene.running();
      await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id: session }], false), what);
    });

    test(`${watcher} when a delayed job is promoted, by name or with others`, async (scene) => {
      const { store, queue } = scene;
      await scene.add({ id: 'x', delayMs: scene.ms(5_000) });
      await scene.add({ id: 'y', delayMs: scene.ms(5_000) });
      await wakes(scene, () => store.change(queue, [{ kind: 'promote', jobId: 'x' }]), what);
      await wakes(scene, () => store.requeue(queue, { states: ['delayed'], limit: 1 }), what);
    });

    test(`${watcher} when the queue is resumed`, async (scene) => {
      await scene.store.pause(scene.queue, true);
      await wakes(scene, () => scene.store.pause(scene.queue, false), what);
    });

    test(`${watcher} when a limit ends by hand`, async (scene) => {
      await scene.store.limit(scene.queue, scene.ms(5_000));
      await wakes(scene, () => scene.store.limit(scene.queue, 0), what);
    });

    test(`${watcher} when a sweep brings jobs back`, async (scene) => {
      await scene.running({}, { durationMs: scene.ms(5) });
      await scene.perish();
      await wakes(scene, () => scene.sweep(), what);
    });
  }

  test('a watcher is called when a key comes free', async (scene) => {
    await scene.add({ lockKey: 'k' }, { id: 'next', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await wakes(scene, () => scene.finish(completed(job)));
    assert.equal((await scene.claimOne(session)).id, 'next');
  });

  test('a watcher is called when a cap is set, raised or taken away', async (scene) => {
    for (const cap of [{ maxActive: 1 }, { maxActive: 2 }, undefined])
      await wakes(scene, () => scene.store.cap(scene.queue, cap));
  });

  test('a watcher is called when a share under the cap comes free: slots become fewer, a session is closed or swept', async (scene) => {
    await scene.store.cap(scene.queue, { maxActive: 4 });
    const [one, two] = [await scene.session(), await scene.session()];
    await scene.briefSession();
    await wakes(scene, () => scene.store.renew([{ queue: scene.queue, id: one, acked: 0, slots: 1 }]));
    await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id: two }], false));
    await scene.perish();
    await wakes(scene, () => scene.sweep());
  });

  test('a watcher is called when a named lock, or a place in line for it, is given up', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'first', 500);
    await wish(scene, session, 'second', 500);
    await wakes(scene, () => letGo(scene, 'mine'));
    await wakes(scene, () => letGo(scene, 'first'));
    assert.equal((await wish(scene, session, 'second')).status, 'held');
  });

  test('a watcher is called when a session that holds a named lock is closed', async (scene) => {
    const id = await hold(scene, 'mine');
    await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id }], false));
  });

  test('a watcher is called when a sweep frees a named lock', async (scene) => {
    await hold(scene, 'mine', { durationMs: scene.ms(5) });
    await scene.perish();
    await wakes(scene, () => scene.sweep());
  });

  test('what a watcher was called for can be claimed', async (scene) => {
    const session = await scene.session();
    await wakes(scene, () => scene.add({ id: 'x' }));
    assert.equal((await scene.claimOne(session)).id, 'x');
  });

  test('several watchers are all called; one that stopped is not called again', async (scene) => {
    const calls = [0, 0, 0];
    const stops = calls.map((_, index) => scene.store.watch(scene.queue, () => void (calls[index] = (calls[index] ?? 0) + 1)));
    await scene.add({});
    await eventually(() => calls.every((count) => count > 0), 'all watchers');
    stops[1]?.();
    stops[1]?.();
    const before = calls[1];
    await wakes(scene, () => scene.add({}));
    assert.equal(calls[1], before);
    for (const stop of stops) stop();
  });

  test.shared('watchers of jobs and of events are called after an add through another connection', async (scene) => {
    const peer = await scene.peer();
    await wakes(scene, () => peer.add({}), 'jobs');
    await wakes(scene, () => peer.add({}), 'events');
  });

  test.shared('a watcher is called when a named lock is given up through another connection', async (scene) => {
    await hold(scene, 'mine');
    const peer = await scene.peer();
    await wakes(scene, () => letGo(peer, 'mine'));
  });

  test.shared('a watcher is called when a cap is raised through another connection', async (scene) => {
    const peer = await scene.peer();
    await wakes(scene, () => peer.store.cap(scene.queue, { maxActive: 2 }));
  });

  test.shared('a watcher hears of events through another connection', async (scene) => {
    const { job } = await scene.running();
    const peer = await scene.peer();
    await wakes(scene, () => peer.store.write(scene.queue, [{ jobId: job.id, kind: 'progress', progress: '1' }]));
  });
}

async function wakes(scene: Scene, act: () => Promise<unknown>, what?: WatchedChange): Promise<void> {
  let calls = 0;
  const stop = scene.store.watch(scene.queue, () => void (calls += 1), what);
  try {
    // Engines may call once when a watch begins: let that pass, so that the act is what wakes.
    await sleep(20);
    const before = calls;
    await act();
    await eventually(() => calls > before, 'the wake-up');
  } finally {
    stop();
  }
}
