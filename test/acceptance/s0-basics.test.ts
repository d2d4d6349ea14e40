// S0-1, S0-2, S0-11, S0-12, S0-13: one worker with the lock thread, its options, its status, the two presets of its manual.
import { openStore, Worker, type WorkerOptions } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, newScene, orphan, renewed, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

describe('S0-1 one thread per process', () => {
  async function count(connection: Scene['connection'], options: WorkerOptions, threaded: boolean) {
    const program = new WorkerProcess({ queue: 'a', connection, options, threaded } as never, 'threads.mjs');
    const counted = await program.moment('counted');
    expect(await program.exited).toEqual({ code: 0, signal: null });
    expect(counted['errors']).toEqual([]);
    expect(counted['results']).toEqual(['warm!', 'a!', ...['b!', 'c!', 'd!', 'e!'].map(() => expect.any(String))]);
    return counted;
  }

  test.each(SHARED_ENGINES)(
    'S0-1 %s: one extra thread with one worker and with five, none after they were closed together',
    async (engine) => {
      const scene = await newScene(engine);
      const { one, five, afterClose } = await count(scene.connection, { useDedicatedLockThread: true }, true);
      expect({ one, five, afterClose }).toEqual({ one: { tasks: 1, made: 1 }, five: { tasks: 1, made: 1 }, afterClose: 0 });
    },
  );

  test.each(SHARED_ENGINES)('S0-1 (N) %s without the flag: no extra thread', async (engine) => {
    const scene = await newScene(engine);
    const { five } = await count(scene.connection, { useDedicatedLockThread: false }, false);
    expect(five).toEqual({ tasks: 0, made: 0 });
  });

  test('S0-1 memory: the flag is accepted, and no thread is made that could not reach the store', async () => {
    const { five } = await count('memory:', { useDedicatedLockThread: true }, false);
    expect(five).toEqual({ tasks: 0, made: 0 });
  });
});

describe('S0-2 options', () => {
  async function optionsOf(options: WorkerOptions): Promise<Worker['opts']> {
    const worker = new Worker('work', async () => undefined, { connection: 'memory:', autorun: false, ...options });
    await worker.close();
    return worker.opts;
  }

  test('S0-2 the defaults of a worker can be read', async () => {
    expect(await optionsOf({})).toMatchObject({
      lockDuration: 30_000,
      lockRenewTime: 15_000,
      skipLockRenewal: false,
      stalledInterval: 30_000,
      maxStalledCount: 1,
      skipStalledCheck: false,
      useDedicatedLockThread: true,
    });
  });

  test('S0-2 the renew time follows the duration unless it is given', async () => {
    expect(await optionsOf({ lockDuration: 8000 })).toMatchObject({ lockDuration: 8000, lockRenewTime: 4000 });
    expect(await optionsOf({ lockDuration: 8000, lockRenewTime: 1000 })).toMatchObject({ lockRenewTime: 1000 });
  });

  test('S0-2 an option of zero is a value, not unset', async () => {
    expect(await optionsOf({ maxStalledCount: 0 })).toMatchObject({ maxStalledCount: 0 });
  });

  test.each<[option: string, WorkerOptions]>([
    ['lockRenewTime', { lockDuration: 1000, lockRenewTime: 1000 }],
    ['lockRenewTime', { lockDuration: 1000, lockRenewTime: 1001 }],
    ['lockRenewTime', { lockRenewTime: 30_000 }],
    ['lockRenewTime', { lockRenewTime: 0 }],
    ['lockRenewTime', { lockRenewTime: -1 }],
    ['lockRenewTime', { lockRenewTime: Number.NaN }],
    ['lockDuration', { lockDuration: 0 }],
    ['lockDuration', { lockDuration: -1 }],
    ['lockDuration', { lockDuration: Number.NaN }],
    ['lockDuration', { lockDuration: Number.POSITIVE_INFINITY }],
    ['stalledInterval', { stalledInterval: 0 }],
    ['stalledInterval', { stalledInterval: -1 }],
    ['stalledInterval', { stalledInterval: Number.NaN }],
    ['maxStalledCount', { maxStalledCount: -1 }],
    ['maxStalledCount', { maxStalledCount: Number.NaN }],
    ['maxBlockedMs', { maxBlockedMs: -1 }],
    ['crashGraceMs', { crashGraceMs: Number.NaN }],
    ['skipLockRenewal', { skipLockRenewal: 'no' as never }],
    ['skipStalledCheck', { skipStalledCheck: 0 as never }],
    ['useDedicatedLockThread', { useDedicatedLockThread: 1 as never }],
    ['lockThreadEntry', { lockThreadEntry: 5 as never }],
  ])('S0-2 a bad %s is refused at construction, by name: %o', (option, options) => {
    const make = () => new Worker('work', async () => undefined, { connection: 'memory:', autorun: false, ...options });
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option, message: expect.stringContaining(option) }));
  });

  describe.each(ENGINES)('lock options on %s', (engine) => {
    const options = { lockDuration: paced(600), lockRenewTime: paced(150), stalledInterval: 100 };

    test('S0-2 skipLockRenewal: nothing is renewed, so a job that outlasts its lock is recovered', async () => {
      const scene = await newScene(engine);
      const gate = newGate();
      const { log } = work(scene, () => gate.opened, {
        ...options,
        name: 'first',
        skipLockRenewal: true,
        skipStalledCheck: true,
      });
      const { id } = await scene.queue.add('long', {});
      await log.moment('active');
      const other = work(scene, async () => 'second', options);
      await other.log.moment('stalled', ({ args }) => (args as string[])[0] === id);
      const sessions = await scene.store.sessions('work');
      expect(sessions.filter(({ owner, renewals }) => owner.name === 'first' && renewals > 0)).toEqual([]);
      await other.log.moment('completed');
      expect(log.all('locksRenewed')).toEqual([]);
      expect((await scene.queue.getJob(id))?.returnvalue).toBe('second');
    });

    test('S0-2 (N) without skipLockRenewal the same job is renewed and stays', async () => {
      const scene = await newScene(engine);
      const gate = newGate();
      const { log } = work(scene, () => gate.opened.then(() => 'first'), { ...options, skipStalledCheck: true });
      const { id } = await scene.queue.add('long', {});
      await log.moment('active');
      const other = work(scene, async () => 'second', options);
      await other.log.moment('ready');
      await renewed(scene.store, id, 6);
      gate.open();
      await log.moment('completed');
      expect(other.log.all('stalled')).toEqual([]);
      expect((await scene.queue.getJob(id))?.returnvalue).toBe('first');
    });

    test('S0-2 skipStalledCheck: a dead job is left alone; (N) a worker without it picks it up', async () => {
      const scene = await newScene(engine);
      const dead = await orphan(scene, 50);
      const gate = newGate();
      const { log } = work(scene, () => gate.opened, { ...options, skipStalledCheck: true });
      const { id } = await scene.queue.add('long', {});
      await log.moment('active');
      await renewed(scene.store, id, 4);
      expect((await scene.store.locks('work', { jobIds: [dead] }))[0]?.endsInMs).toBeLessThan(0);
      expect(log.all('stalled')).toEqual([]);
      const other = work(scene, async () => undefined, options);
      await other.log.moment('stalled', ({ args }) => (args as string[])[0] === dead);
      await other.log.moment('completed', ({ args }) => (args as { id: string }[])[0]?.id === dead);
      gate.open();
    });
  });
});

describe.each(ENGINES)('S0-11 status on %s', (engine) => {
  test('S0-11 isRunning() is true while the worker is open, and getMonitoredJobs() returns the ids that run now', async () => {
    const scene = await newScene(engine);
    const gates = new Map([
      ['one', newGate()],
      ['two', newGate()],
    ]);
    const { worker, log } = work(scene, async (job) => gates.get(job.name)?.opened, {
      useDedicatedLockThread: true,
      concurrency: 5,
    });
    await log.moment('ready');
    // Nothing but this process can reach a store in memory, so there is no thread to run.
    const threaded = engine !== 'memory';
    expect(worker.lockManagerThread?.isRunning()).toBe(threaded);
    expect(worker.lockManagerThread?.getMonitoredJobs()).toEqual([]);
    const one = await scene.queue.add('one', {});
    const two = await scene.queue.add('two', {});
    await log.moment('active', ({ args }) => (args as { id: string }[])[0]?.id === two.id);
    expect(worker.lockManagerThread?.getMonitoredJobs()).toEqual([one.id, two.id]);
    gates.get('one')?.open();
    await log.moment('completed');
    expect(worker.lockManagerThread?.getMonitoredJobs()).toEqual([two.id]);
    const closing = worker.close();
    expect(worker.lockManagerThread?.isRunning(), 'while the last job runs, its lock is kept').toBe(threaded);
    gates.get('two')?.open();
    await closing;
    expect(worker.lockManagerThread?.isRunning()).toBe(false);
    expect(worker.lockManagerThread?.getMonitoredJobs()).toEqual([]);
  });

  test('S0-11 a worker that is closed right after it was made closes at once without an error', async () => {
    const scene = await newScene(engine);
    // So long is the store, and the thread that has to start first, waited for.
    const { worker, log } = work(scene, async () => undefined, { lockDuration: paced(2000) });
    await worker.close();
    await until('nothing is left of it in the store', async () => (await scene.store.sessions('work')).length === 0);
    expect(worker.lockManagerThread?.isRunning()).toBe(false);
    expect(log.all('error')).toEqual([]);
  });

  test('S0-11 lockManagerThread is undefined without the flag', async () => {
    const scene = await newScene(engine);
    const { worker } = work(scene, async () => undefined, { useDedicatedLockThread: false });
    expect(worker.lockManagerThread).toBeUndefined();
  });
});

describe.each(ENGINES)('presets on %s', (engine) => {
  test.each([
    ['S0-12 CPU', { lockDuration: 60_000, lockRenewTime: 20_000, stalledInterval: 30_000, concurrency: 1 }],
    ['S0-13 I/O', { lockDuration: 30_000, lockRenewTime: 10_000, stalledInterval: 15_000, concurrency: 5 }],
  ])('%s preset runs, with its concurrency', async (_name, preset) => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { worker, log } = work(scene, () => gate.opened.then(() => 'done'), { ...preset, useDedicatedLockThread: true });
    expect(worker.opts).toMatchObject(preset);
    await scene.queue.addBulk(Array.from({ length: 6 }, (_, number) => ({ name: 'work', data: { number } })));
    await until('all slots are busy', async () => log.all('active').length === preset.concurrency);
    const [session] = await scene.store.sessions('work');
    expect(session).toMatchObject({ durationMs: preset.lockDuration, locks: preset.concurrency });
    expect(await scene.queue.getActiveCount()).toBe(preset.concurrency);
    gate.open();
    await until('all six are done', async () => log.all('completed').length === 6);
    expect(log.all('error')).toEqual([]);
  });

  test('S0-13 two workers with different stalledInterval on one queue: each sweeps on its own schedule', async () => {
    const scene = await newScene(engine);
    const eager = new FaultyStore(engine === 'memory' ? scene.store : await openStore(scene.connection));
    const lazy = new FaultyStore(engine === 'memory' ? scene.store : await openStore(scene.connection));
    if (engine !== 'memory') onTestFinished(async () => void (await Promise.all([eager.close(), lazy.close()])));
    // The grace is as long as the locks, so that only sweeps on schedule find what died.
    const options = { lockDuration: 30_000, crashGraceMs: 30_000 };
    const first = work({ connection: lazy }, async () => 'lazy', { ...options, stalledInterval: 60_000 });
    await lazy.answered('sweep', 1);
    const second = work({ connection: eager }, async () => 'eager', { ...options, stalledInterval: 100 });
    await eager.answered('sweep', 5);
    // Paused workers sweep, and leave the job for its owner to die with.
    await Promise.all([first.worker.pause(), second.worker.pause()]);
    const dead = await orphan(scene, 50);
    await second.log.moment('stalled', ({ args }) => (args as string[])[0] === dead);
    expect(lazy.calls('sweep'), 'the lazy one has not been drawn along').toBe(1);
    expect(first.log.all('stalled')).toEqual([]);
  });
});
