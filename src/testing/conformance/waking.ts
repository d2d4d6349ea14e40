// Facet: waiting for something to happen without asking all the time.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from './expect.js';
import { released } from './samples.js';
import type { Scene } from './scene.js';
import type { Test } from './suite.js';

export function waking(test: Test): void {
  test('a watcher is called after an add', (scene) => wakes(scene, () => scene.add({})));

  test('a watcher is called when a job is given back', async (scene) => {
    const { job } = await scene.running();
    await wakes(scene, () => scene.finish(released(job)));
  });

  test('a watcher is called when the queue is resumed', async (scene) => {
    await scene.store.pause(scene.queue, true);
    await wakes(scene, () => scene.store.pause(scene.queue, false));
  });

  test('a watcher is called when a limit ends by hand', async (scene) => {
    await scene.store.limit(scene.queue, scene.ms(5_000));
    await wakes(scene, () => scene.store.limit(scene.queue, 0));
  });

  test('a watcher is called when a sweep brings jobs back', async (scene) => {
    await scene.running({}, { durationMs: scene.ms(3) });
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

  test.shared('a watcher is called after an add through another connection', async (scene) => {
    const peer = await scene.peer();
    await wakes(scene, () => peer.add({}));
  });

  test.shared('a watcher hears of events through another connection', async (scene) => {
    const { job } = await scene.running();
    const peer = await scene.peer();
    await wakes(scene, () => peer.store.write(scene.queue, [{ jobId: job.id, kind: 'progress', progress: '1' }]));
  });
}

async function wakes(scene: Scene, act: () => Promise<unknown>): Promise<void> {
  let calls = 0;
  const stop = scene.store.watch(scene.queue, () => void (calls += 1));
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
