// S0-4 to S0-7, S0-18: handlers that block their event loop. The blocked worker is in a process of its own, the one that would take
// its job away in this one.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkerOptions } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { messageOf, type Moment, monotonicNow } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import {
  ENGINES,
  type Engine,
  newScene,
  renewalsOf,
  renewed,
  type Scene,
  SHARED_ENGINES,
  work,
} from '../support/scenes/scene.js';
import { watched } from '../support/faults/watched-store.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const isRefusal = (moment: Moment): boolean => messageOf(moment).includes('Could not settle');

/** The second worker: sweeps often, and would finish any job at once. */
const rival = (scene: Scene) =>
  work(scene, async () => ({ by: 'rival' }), { lockDuration: paced(1000), stalledInterval: 100, name: 'rival' });

describe.each(oneInThisRun(SHARED_ENGINES))('S0-4, S0-5 on %s: the handler spins for longer than its lock lasts', (engine) => {
  const spinner = (scene: Scene, useDedicatedLockThread: boolean, lockDuration: number) =>
    new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { name: 'spinner', lockDuration, useDedicatedLockThread },
    });

  test('S0-4 (N) without the thread: the job is recovered, and the first run cannot finish it', async () => {
    const scene = await newScene(engine);
    const { id } = await scene.queue.add('spin', { ms: paced(5000) });
    const first = spinner(scene, false, 1000);
    await first.moment('started');
    const second = rival(scene);
    const stalled = await second.log.moment('stalled');
    expect(stalled['args']).toEqual([id, 'active']);
    const taken = await second.log.moment('completed');
    const ended = await first.moment('ended');
    expect(taken.at, 'while the first was still at it').toBeLessThan(ended.at);
    expect(ended['held']).toBe(false);
    expect(messageOf(await first.moment('error', isRefusal))).toContain(`job ${id}`);
    expect(first.all('completed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'rival' }, attemptsStarted: 2, stalledCounter: 1 });
  });

  test('S0-5 with the thread: renewed during the spin, run once, completed once', async () => {
    const scene = await newScene(engine);
    // The job is there before the process: the thread has to come up while the loop is blocked already, and before the lock ends.
    const { id } = await scene.queue.add('spin', { ms: paced(4500) });
    const first = spinner(scene, true, paced(3000));
    await first.moment('started');
    const second = rival(scene);
    await renewed(scene.store, id, 2);
    expect(first.all('ended'), 'all that happened during the spin').toEqual([]);
    expect((await first.moment('ended'))['held']).toBe(true);
    await first.moment('completed');
    expect(first.all('started')).toHaveLength(1);
    expect(first.all('error').filter(({ args }) => !isCutInCluster(engine, args))).toEqual([]);
    expect(second.log.all('stalled')).toEqual([]);
    expect(second.log.all('active')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'spinner' }, attemptsStarted: 1, stalledCounter: 0 });
  });
});

/** ioredis cuts the connections of a cluster that owed a reply while the loop was blocked for 5 s, which it is on a slow machine. */
function isCutInCluster(engine: Engine, args: unknown): boolean {
  const [error] = args as [{ code?: string }];
  return engine === 'redis-cluster' && paced(4500) > 5000 && error.code === 'STORE_UNAVAILABLE';
}

describe.each(ENGINES)('S0-4 alone on %s', (engine) => {
  test('S0-4 without the thread and without a second worker: its own sweep does not take the job away, the late finish counts', async () => {
    const scene = await newScene(engine);
    const spin = async () => {
      const end = monotonicNow() + 1000;
      while (monotonicNow() < end);
      return 'late';
    };
    const options = { lockDuration: paced(400), lockRenewTime: paced(200), stalledInterval: 50, useDedicatedLockThread: false };
    const { log } = work(scene, spin, options);
    const { id } = await scene.queue.add('spin', {});
    await log.moment('completed');
    expect(log.all('stalled')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'late', attemptsStarted: 1, stalledCounter: 0 });
  });
});

describe.each(ENGINES)('S0-6 long job on %s', (engine) => {
  test('S0-6 four lock durations: at least four renewals, one run', async () => {
    const scene = await newScene(engine);
    const lockDuration = paced(500);
    const { log } = work(scene, () => new Promise((resolve) => setTimeout(resolve, 4 * lockDuration, 'done')), { lockDuration });
    const { id } = await scene.queue.add('long', {});
    await log.moment('active');
    const second = rival(scene);
    await renewed(scene.store, id, 4);
    await log.moment('completed');
    expect(second.log.all('stalled')).toEqual([]);
    expect(log.all('error')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1 });
  });
});

describe('S0-7 concurrency 10', () => {
  /** A renewal that takes longer than this is reported. */
  const RENEW_MS = paced(400);
  const jobs = Array.from({ length: 10 }, (_, number) =>
    number % 3 === 0 ? { name: 'spin', data: { ms: paced(500) } } : { name: 'sleep', data: { ms: paced(1000) } },
  );

  test.each(oneInThisRun(SHARED_ENGINES))(
    'S0-7 %s with the thread: some spin, all complete once; one round trip per renewal, whatever runs',
    async (engine) => {
      const scene = await newScene(engine);
      const { connection, renewals: noted } = watched(scene);
      const options: WorkerOptions = { name: 'ten', concurrency: 10, lockDuration: paced(1500), lockRenewTime: RENEW_MS };
      const ten = new WorkerProcess({ queue: 'work', connection, options });
      await ten.moment('threaded');
      await scene.queue.addBulk(jobs);
      await ten.moment('started');
      const second = rival(scene);
      await until('all are done', async () => ten.all('completed').length === 10);
      const before = noted().length;
      const renewals = (await scene.store.sessions('work')).find(({ owner }) => owner.name === 'ten')?.renewals ?? 0;
      const calls = noted();
      expect(renewals).toBeGreaterThanOrEqual(4);
      // At the start both the loop and the thread renew.
      expect(renewals).toBeGreaterThanOrEqual(before - 2);
      expect(renewals).toBeLessThanOrEqual(calls.length + 2);
      const ticks = (monotonicNow() - (await ten.moment('ready')).at) / RENEW_MS;
      expect(calls.length).toBeLessThanOrEqual(ticks + 4);
      expect(new Set(ten.all('started').map(({ jobId }) => jobId)).size).toBe(10);
      expect(ten.all('started')).toHaveLength(10);
      expect(ten.all('error')).toEqual([]);
      expect(second.log.all('active')).toEqual([]);
      expect(await scene.queue.getCompletedCount()).toBe(10);
    },
  );

  test('S0-7 memory: ten jobs held, one call of the store per tick', async () => {
    const scene = await newScene('memory');
    const store = new FaultyStore(scene.store);
    const gate = newGate();
    const { log } = work({ connection: store }, () => gate.opened, {
      concurrency: 10,
      lockDuration: paced(400),
      lockRenewTime: paced(100),
    });
    await scene.queue.addBulk(jobs);
    await until('all run', async () => log.all('active').length === 10);
    const callsBefore = store.calls('renew');
    const toldBefore = log.all('locksRenewed').length;
    await until('five ticks', async () => log.all('locksRenewed').length >= toldBefore + 5);
    expect(store.calls('renew') - callsBefore).toBe(log.all('locksRenewed').length - toldBefore);
    for (const { args } of log.all('locksRenewed').slice(toldBefore)) expect(args).toMatchObject([{ count: 10 }]);
    gate.open();
    await until('all are done', async () => log.all('completed').length === 10);
    expect(log.all('active')).toHaveLength(10);
  });

  const TICK_MS = paced(400);

  test.each(oneInThisRun(SHARED_ENGINES))(
    'S0-7 %s with the thread: three workers of one process share each call',
    async (engine) => {
      const scene = await newScene(engine);
      const { connection, renewals } = watched(scene);
      const gate = newGate();
      const workers = [1, 2, 3].map(() =>
        work({ connection }, () => gate.opened, { lockDuration: 10 * TICK_MS, lockRenewTime: TICK_MS }),
      );
      await scene.queue.addBulk(jobs.slice(0, 3));
      await until('each runs one', async () => workers.every(({ log }) => log.all('active').length === 1));
      await until('the thread renews all', async () => workers.every(({ worker }) => worker.health().lockThread === 'thread'));
      const sessions = (await scene.store.sessions('work')).map(({ id }) => id);
      const before = { calls: renewals().length, at: monotonicNow() };
      await until('three ticks', async () => renewals().length >= before.calls + 3);
      const calls = renewals().slice(before.calls);
      expect(calls.length).toBeLessThanOrEqual((monotonicNow() - before.at) / TICK_MS + 1);
      for (const call of calls) {
        expect(call).toMatchObject({ thread: true, failed: false });
        expect(call.sessions.toSorted()).toEqual(sessions.toSorted());
      }
      gate.open();
    },
  );

  test('S0-7 memory: three workers of one process and store share the call', async () => {
    const scene = await newScene('memory');
    const store = new FaultyStore(scene.store);
    const gate = newGate();
    const workers = [1, 2, 3].map(() =>
      work({ connection: store }, () => gate.opened, { lockDuration: paced(400), lockRenewTime: paced(100) }),
    );
    await scene.queue.addBulk(jobs.slice(0, 3));
    await until('each runs one', async () => workers.every(({ log }) => log.all('active').length === 1));
    await store.called('renew');
    await store.called('renew');
    for (let tick = 0; tick < 3; tick++) {
      const { args } = await store.called('renew');
      expect(args[0]).toHaveLength(3);
    }
    gate.open();
  });
});

describe.each(oneInThisRun(SHARED_ENGINES))('S0-18 hung for ever on %s', (engine) => {
  const CEILING_MS = 600;
  const LOCK_MS = 800;
  const RENEW_MS = 200;
  const SWEEP_MS = 100;

  const hung = (scene: Scene, maxBlockedMs: number) =>
    new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { name: 'hung', lockDuration: LOCK_MS, lockRenewTime: RENEW_MS, maxBlockedMs, skipStalledCheck: true },
    });

  test('S0-18 past the ceiling renewal stops, the job is recovered elsewhere, the late result is refused', async () => {
    const scene = await newScene(engine);
    const mercy = join(scene.folder, 'mercy');
    const first = hung(scene, CEILING_MS);
    // Ready before, so that its start is no part of the time that recovery takes.
    const second = rival(scene);
    await second.worker.pause();
    await first.moment('threaded');
    const { id } = await scene.queue.add('spinUntil', { file: mercy });
    const started = await first.moment('started');
    second.worker.resume();
    const stalled = await second.log.moment('stalled');
    expect(stalled['args']).toEqual([id, 'active']);
    // Not before the ceiling; and soon after the last lock that may have been renewed below it has ended.
    expect(stalled.at - started.at).toBeGreaterThan(CEILING_MS);
    expect(stalled.at - started.at).toBeLessThan(CEILING_MS + RENEW_MS + LOCK_MS + SWEEP_MS + paced(2500));
    await second.log.moment('completed');
    expect(first.all('ended')).toEqual([]);
    writeFileSync(mercy, '');
    expect((await first.moment('ended'))['held']).toBe(false);
    await first.moment('error', isRefusal);
    await first.moment('error', (moment) => messageOf(moment).includes('maxBlockedMs'));
    expect(first.all('completed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'rival' }, attemptsStarted: 2 });
    // It is well again: the next job is its own.
    const next = await scene.queue.add('echo', { well: true });
    await until('the next job is done', async () => (await next.getState()) === 'completed');
  });

  test('S0-18 (N) without a ceiling: the thread keeps the lock of the same handler', async () => {
    const scene = await newScene(engine);
    const mercy = join(scene.folder, 'mercy');
    const first = hung(scene, 0);
    await first.moment('threaded');
    const { id } = await scene.queue.add('spinUntil', { file: mercy });
    await first.moment('started');
    const second = rival(scene);
    // Longer than the ceiling and the lock together were above.
    await renewed(scene.store, id, 9);
    expect(await renewalsOf(scene.store, id)).toBeGreaterThanOrEqual(9);
    writeFileSync(mercy, '');
    expect((await first.moment('ended'))['held']).toBe(true);
    await first.moment('completed');
    expect(second.log.all('stalled')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'hung' }, attemptsStarted: 1 });
  });
});
