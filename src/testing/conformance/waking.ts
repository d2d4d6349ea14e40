// Facet: watchers are called when a queue changes, so callers need not poll.
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

    test(`${watcher} after an add with a delay`, (scene) => wakes(scene, () => scene.add({ delayMs: scene.ms(5_000) }), what));

    test(`${watcher} after an add with a priority`, (scene) => wakes(scene, () => scene.add({ priority: 3 }), what));

    test(`${watcher} when a job is released`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.finish(released(job)), what);
    });

    test(`${watcher} when a job is retried`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.finish(retried(job)), what);
    });

    test.needs('changing')(`${watcher} when a lock is revoked`, async (scene) => {
      const { job } = await scene.running();
      await wakes(scene, () => scene.store.change(scene.queue, [job.id], { kind: 'revoke', reason: 'r' }), what);
    });

    test(`${watcher} when a session with jobs is closed`, async (scene) => {
      const { session } = await scene.running();
      await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id: session }], 'closed'), what);
    });

    test.needs('changing')(`${watcher} when a delayed job is promoted or requeued`, async (scene) => {
      const { store, queue } = scene;
      await scene.add({ id: 'x', delayMs: scene.ms(5_000) });
      await scene.add({ id: 'y', delayMs: scene.ms(5_000) });
      await wakes(scene, () => store.change(queue, ['x'], { kind: 'promote' }), what);
      await wakes(scene, () => store.change(queue, { lists: ['delayed'], limit: 1 }, { kind: 'promote' }), what);
    });

    test.needs('control')(`${watcher} when the queue is resumed`, async (scene) => {
      await scene.store.configure(scene.queue, { paused: true });
      await wakes(scene, () => scene.store.configure(scene.queue, { paused: false }), what);
    });

    test.needs('control')(`${watcher} when a caller ends a limit`, async (scene) => {
      await scene.store.configure(scene.queue, { blockedMs: scene.ms(5_000) });
      await wakes(scene, () => scene.store.configure(scene.queue, { blockedMs: 0 }), what);
    });

    test(`${watcher} when a sweep recovers jobs`, async (scene) => {
      await scene.running({}, { durationMs: scene.ms(5) });
      await scene.perish();
      await wakes(scene, () => scene.sweep(), what);
    });
  }

  test.needs('keys')('a watcher is called when a key comes free', async (scene) => {
    await scene.add({ lockKey: 'k' }, { id: 'next', lockKey: 'k' });
    const session = await scene.session();
    const job = await scene.claimOne(session);
    await wakes(scene, () => scene.finish(completed(job)));
    assert.equal((await scene.claimOne(session)).id, 'next');
  });

  test.needs('caps')('a watcher is called when a cap is set, raised or removed', async (scene) => {
    for (const cap of [{ maxActive: 1 }, { maxActive: 2 }, null])
      await wakes(scene, () => scene.store.configure(scene.queue, { cap }));
  });

  test.needs('caps')('a watcher is called when a share of the cap comes free', async (scene) => {
    await scene.store.configure(scene.queue, { cap: { maxActive: 4 } });
    const [one, two] = [await scene.session(), await scene.session()];
    await scene.briefSession();
    await wakes(scene, () => scene.store.renew([{ queue: scene.queue, id: one, acked: 0, slots: 1 }]));
    await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id: two }], 'closed'));
    await scene.perish();
    await wakes(scene, () => scene.sweep());
  });

  test.needs('named-locks')('a watcher is called when a named lock or a place in line is released', async (scene) => {
    const session = await hold(scene, 'mine');
    await wish(scene, session, 'first', 500);
    await wish(scene, session, 'second', 500);
    await wakes(scene, () => letGo(scene, 'mine'));
    await wakes(scene, () => letGo(scene, 'first'));
    assert.equal((await wish(scene, session, 'second')).status, 'held');
  });

  test.needs('named-locks')('a watcher is called when a session that holds a named lock is closed', async (scene) => {
    const id = await hold(scene, 'mine');
    await wakes(scene, () => scene.store.closeSessions([{ queue: scene.queue, id }], 'closed'));
  });

  test.needs('named-locks')('a watcher is called when a sweep releases a named lock', async (scene) => {
    await hold(scene, 'mine', { durationMs: scene.ms(5) });
    await scene.perish();
    await wakes(scene, () => scene.sweep());
  });

  test('a job can be claimed when its watcher is called', async (scene) => {
    const session = await scene.session();
    await wakes(scene, () => scene.add({ id: 'x' }));
    assert.equal((await scene.claimOne(session)).id, 'x');
  });

  test('all watchers are called, and a stopped watcher is not called again', async (scene) => {
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

  test
    .needs('named-locks')
    .shared('a watcher is called when a named lock is released through another connection', async (scene) => {
      await hold(scene, 'mine');
      const peer = await scene.peer();
      await wakes(scene, () => letGo(peer, 'mine'));
    });

  test.needs('caps').shared('a watcher is called when a cap is raised through another connection', async (scene) => {
    const peer = await scene.peer();
    await wakes(scene, () => peer.store.configure(scene.queue, { cap: { maxActive: 2 } }));
  });

  test.needs('control').shared('a watcher is called after an event through another connection', async (scene) => {
    const { job } = await scene.running();
    const peer = await scene.peer();
    await wakes(scene, () => peer.store.write(scene.queue, [{ jobId: job.id, kind: 'progress', progress: '1' }]));
  });
}

export async function wakes(scene: Scene, act: () => Promise<unknown>, what?: WatchedChange): Promise<void> {
  let calls = 0;
  const stop = scene.store.watch(scene.queue, () => void (calls += 1), what);
  try {
    // An engine may call the listener once when a watch begins. Let that pass, so that `act` causes the next call.
    await sleep(20);
    const before = calls;
    await act();
    await eventually(() => calls > before, 'the wake-up');
  } finally {
    stop();
  }
}
