// S2-12, S2-13 and what is promised of named locks between processes: one holder, kept while its process lives, free soon after its death.
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { freeze } from '../support/processes/freeze.js';
import { HolderProcess } from '../support/processes/holder.js';
import { LOCK_ENGINES, newScene, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

describe.each(oneInThisRun(LOCK_ENGINES))('S2 named locks between processes on %s', (engine) => {
  test('S2-12 a second process gets a named lock when the first releases it, with a greater fence', async () => {
    const scene = await newScene(engine);
    const [first, second] = [await HolderProcess.start(scene), await HolderProcess.start(scene)];
    const { result: fence } = await first.ask('takeNamed', { lock: 'invoice:42' });
    expect(fence).toEqual(expect.any(Number));
    expect(await second.ask('takeNamed', { lock: 'invoice:42' })).toMatchObject({ result: false });
    const waiting = second.ask('takeNamed', { lock: 'invoice:42', waitMs: 60_000 });
    const took = stopwatch();
    expect(await first.ask('releaseNamed', { lock: 'invoice:42' })).toMatchObject({ result: true });
    const { result: later } = await waiting;
    expect(took()).toBeLessThan(paced(1500));
    expect(later).toBeGreaterThan(fence as number);
  });

  test('S2-12 a named lock is kept while its owner blocks the event loop; (N) not without the lock thread', async () => {
    const scene = await newScene(engine);
    for (const useDedicatedLockThread of [true, false]) {
      const holder = await HolderProcess.start(scene, { useDedicatedLockThread });
      const other = await HolderProcess.start(scene);
      const lock = `thread ${useDedicatedLockThread}`;
      if (useDedicatedLockThread) {
        // A thread that is up takes the next session over at once.
        await holder.ask('takeNamed', { lock: 'before', durationMs: 60_000 });
        await inTheThread(scene, holder);
      }
      await holder.ask('takeNamed', { lock, durationMs: paced(600) });
      const spinning = holder.ask('spin', { lock, ms: paced(3000) });
      await (useDedicatedLockThread ? renewedInTheSpin(scene, lock) : lapsed(scene, lock));
      const { result: taken } = await other.ask('takeNamed', { lock });
      expect(taken === false).toBe(useDedicatedLockThread);
      // Read inside the blocked loop: false before anyone else could have it.
      expect(await spinning).toMatchObject({ result: useDedicatedLockThread });
      holder.kill('SIGKILL');
    }
  });

  test('S2-12 a named lock is free within its duration when its owner is killed, and at once when it exits or closes', async () => {
    const scene = await newScene(engine);
    const waiter = await HolderProcess.start(scene);
    for (const [end, withinMs] of [
      ['kill', paced(3500)],
      ['exit', paced(1500)],
      ['close', paced(1500)],
    ] as const) {
      const durationMs = end === 'kill' ? paced(2000) : 60_000;
      const holder = await HolderProcess.start(scene);
      await holder.ask('takeNamed', { lock: end, durationMs });
      if (end !== 'kill') await inTheThread(scene, holder);
      const waiting = waiter.ask('takeNamed', { lock: end, waitMs: 60_000 });
      const took = stopwatch();
      if (end === 'kill') holder.kill('SIGKILL');
      else holder.send(JSON.stringify({ step: end }));
      expect(await waiting).toMatchObject({ result: expect.any(Number) });
      expect(took(), end).toBeLessThan(withinMs);
    }
  });

  test('S2-12 an owner that was frozen for longer than its named lock finds it lost at its first look', async () => {
    const scene = await newScene(engine);
    const [frozen, other] = [await HolderProcess.start(scene), await HolderProcess.start(scene)];
    const { result: fence } = await frozen.ask('takeNamed', { lock: 'x', durationMs: 500 });
    await freeze(frozen, scene);
    const { result: later } = await other.ask('takeNamed', { lock: 'x', waitMs: 10_000 });
    expect(later).toBeGreaterThan(fence as number);
    frozen.thaw();
    expect(await frozen.ask('heldNamed', { lock: 'x' })).toMatchObject({ result: false });
    expect(await frozen.ask('releaseNamed', { lock: 'x' })).toMatchObject({ result: false });
    expect(await other.ask('heldNamed', { lock: 'x' })).toMatchObject({ result: true });
  });
});

/** Renewals of a lock that lasts a minute are far apart, but for the one with which the thread takes over. */
async function inTheThread({ store }: Scene, { pid }: HolderProcess): Promise<void> {
  await until('the thread to renew', async () =>
    (await store.sessions('work')).some(({ owner, renewals }) => owner.pid === pid && renewals > 0),
  );
}

/** Four renewals are two durations. */
async function renewedInTheSpin({ store }: Scene, lock: string): Promise<void> {
  const [held] = await store.locks('work', { names: [lock] });
  await until('the lock to be renewed', async () =>
    (await store.sessions('work')).some(({ id, renewals }) => id === held?.session && renewals >= 4),
  );
}

async function lapsed({ store }: Scene, lock: string): Promise<void> {
  await until('the lock to lapse', async () => {
    const [held] = await store.locks('work', { names: [lock] });
    return held === undefined || held.endsInMs <= 0;
  });
}
