// S0-14, S0-19, S0-20: what happens to a whole process: it is asked to end, its wall clock is stepped, it is frozen.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { freeze } from '../support/processes/freeze.js';
import { messageOf, type Moment, monotonicNow } from '../support/wait/moments.js';
import { fixture, WorkerProcess } from '../support/processes/worker-process.js';
import { newScene, renewalsOf, renewed, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const isRefusal = (moment: Moment): boolean => messageOf(moment).includes('Could not settle');
const rival = (scene: Scene) =>
  work(scene, async () => ({ by: 'rival' }), { lockDuration: paced(1000), stalledInterval: 100, name: 'rival' });

describe.each([true, false])('S0-14 SIGTERM with useDedicatedLockThread %s', (useDedicatedLockThread) => {
  test.each(oneInThisRun(SHARED_ENGINES))(
    'S0-14 %s: renewal goes on until the job ends, then the process ends by itself with code 0',
    async (engine) => {
      const scene = await newScene(engine);
      const options = { name: 'leaving', lockDuration: paced(800), lockRenewTime: paced(200), useDedicatedLockThread };
      const leaving = new WorkerProcess({ queue: 'work', connection: scene.connection, options });
      const { id } = await scene.queue.add('hold', {});
      const next = await scene.queue.add('hold', {});
      await leaving.moment('started');
      const second = work(scene, async () => undefined, { lockDuration: paced(1000), stalledInterval: 100, autorun: false });
      await second.worker.startStalledCheckTimer();
      leaving.kill('SIGTERM');
      await leaving.moment('SIGTERM');
      await renewed(scene.store, id, 6);
      leaving.send('finish');
      await leaving.moment('completed');
      const letGo = await leaving.moment('let go');
      expect(letGo).toMatchObject({ threads: 0 });
      expect(await leaving.exited).toEqual({ code: 0, signal: null });
      expect(leaving.all('error')).toEqual([]);
      expect(leaving.all('started'), 'no further job was taken').toHaveLength(1);
      expect(second.log.all('stalled')).toEqual([]);
      expect(await scene.queue.getJob(id)).toMatchObject({
        returnvalue: { by: 'leaving' },
        attemptsStarted: 1,
        stalledCounter: 0,
      });
      expect(await next.getState()).toBe('waiting');
      const sessions = await scene.store.sessions('work');
      expect(sessions.filter(({ owner }) => owner.name === 'leaving')).toEqual([]);
    },
  );
});

describe.each(oneInThisRun(SHARED_ENGINES))('S0-19 the wall clock steps, on %s', (engine) => {
  const MINUTES = 10 * 60_000;

  function stepping(scene: Scene, options: { name: string; stalledInterval?: number; crashGraceMs?: number }) {
    const clock = join(scene.folder, `clock-${options.name}`);
    const step = (ms: number) => writeFileSync(clock, String(ms));
    step(0);
    // The lock thread runs without the flags of its process, so it is handed the clock by way of its entry file.
    const entry = join(scene.folder, 'entry.mjs');
    const lockThread = fixture('../../../dist/background/thread-entry.js');
    writeFileSync(
      entry,
      `import ${JSON.stringify(fixture('stepped-clock.mjs'))};\nawait import(${JSON.stringify(lockThread)});\n`,
    );
    process.env['WALL_CLOCK_STEP'] = clock;
    const child = new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { lockDuration: paced(800), lockRenewTime: paced(200), lockThreadEntry: entry, ...options },
      imports: [fixture('stepped-clock.mjs')],
    });
    delete process.env['WALL_CLOCK_STEP'];
    return { child, step };
  }

  test.each([
    ['forth', MINUTES],
    ['back', -MINUTES],
  ])('S0-19 %s by ten minutes during a job: nothing changes', async (_direction, ms) => {
    const scene = await newScene(engine);
    const { child, step } = stepping(scene, { name: 'stepping' });
    const { id } = await scene.queue.add('hold', {});
    await child.moment('started');
    const second = rival(scene);
    for (const wall of [ms, 0, ms]) {
      step(wall);
      await renewed(scene.store, id, 3);
    }
    child.send('finish');
    await child.moment('completed');
    expect((await child.moment('ended'))['held']).toBe(true);
    expect(child.all('error')).toEqual([]);
    expect(second.log.all('stalled')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({
      returnvalue: { by: 'stepping' },
      attemptsStarted: 1,
      stalledCounter: 0,
    });
  });

  test.each([
    ['forth', MINUTES],
    ['back', -MINUTES],
  ])('S0-19 a sweeper whose clock is %s by ten minutes takes only what is dead, and takes it', async (_direction, ms) => {
    const scene = await newScene(engine);
    // With a grace as long as that, no hint of the crash helps: only the store's clock says that the lock is over.
    const { child: sweeper, step } = stepping(scene, { name: 'sweeper', stalledInterval: 100, crashGraceMs: 30_000 });
    step(ms);
    await sweeper.moment('ready');
    const victim = new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { name: 'victim', lockDuration: paced(800) },
    });
    // So that the sweeper does not take the job first.
    await scene.queue.pause();
    await victim.moment('ready');
    sweeper.send('pause');
    await sweeper.moment('paused');
    await scene.queue.resume();
    const { id } = await scene.queue.add('hold', { only: 'victim' });
    await victim.moment('started');
    await renewed(scene.store, id, 4);
    expect(sweeper.all('stalled')).toEqual([]);
    sweeper.send('resume');
    victim.kill('SIGKILL');
    expect((await sweeper.moment('stalled'))['args']).toEqual([id, 'active']);
    await sweeper.moment('completed');
    expect((await scene.queue.getJob(id))?.returnvalue).toEqual({ by: 'sweeper' });
  });
});

describe.each(oneInThisRun(SHARED_ENGINES))('S0-20 frozen process on %s', (engine) => {
  const freezing = (scene: Scene) =>
    new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      options: { name: 'frozen', lockDuration: paced(800), lockRenewTime: paced(200) },
    });

  test('S0-20 a synchronous loop sees job.lock.held turn false, and its finish is refused', async () => {
    const scene = await newScene(engine);
    const frozen = freezing(scene);
    await frozen.moment('threaded');
    const { id } = await scene.queue.add('spinWhileHeld', {});
    await frozen.moment('started');
    await renewed(scene.store, id, 1);
    await freeze(frozen, scene);
    const second = rival(scene);
    expect((await second.log.moment('stalled'))['args']).toEqual([id, 'active']);
    await second.log.moment('completed');
    expect(frozen.all('lockGone')).toEqual([]);
    frozen.thaw();
    await frozen.moment('lockGone');
    expect((await frozen.moment('lockStillGone'))['held']).toBe(false);
    await frozen.moment('error', isRefusal);
    expect(frozen.all('completed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'rival' }, attemptsStarted: 2 });
  });

  test('S0-20 a lock that was seen as lost does not come back, although no other worker took the job', async () => {
    const scene = await newScene(engine);
    // The handler sees that the lock is gone before it hears of the renewal, however the two threads are scheduled.
    const options = { url: scene.url, log: join(scene.folder, 'renewals'), slowMs: 150 };
    const frozen = new WorkerProcess({
      queue: 'work',
      connection: { module: fixture('watched-store.mjs'), export: 'open', options },
      options: { name: 'frozen', lockDuration: paced(800), lockRenewTime: paced(300), stalledInterval: 100 },
    });
    await frozen.moment('threaded');
    const { id } = await scene.queue.add('spinWhileHeld', {});
    await frozen.moment('started');
    await freeze(frozen, scene);
    await until('the lock has run out', async () => ((await scene.store.locks('work', { jobIds: [id] }))[0]?.endsInMs ?? 1) < 0);
    frozen.thaw();
    await frozen.moment('lockGone');
    // It was not reaped, so the thread renews it: before it sweeps, or it would take its own job away.
    await until('it is renewed', async () => ((await scene.store.locks('work', { jobIds: [id] }))[0]?.endsInMs ?? -1) > 0);
    expect((await frozen.moment('lockStillGone'))['held']).toBe(false);
    await frozen.moment('completed');
    expect(frozen.all('stalled')).toEqual([]);
    expect((await scene.queue.getJob(id))?.attemptsStarted, 'its token was still the current one').toBe(1);
  });

  test('S0-20 the signal of an asynchronous handler is aborted with the reason', async () => {
    const scene = await newScene(engine);
    const { id } = await scene.queue.add('holdUntilAborted', {});
    const frozen = freezing(scene);
    await frozen.moment('started');
    await freeze(frozen, scene);
    const second = rival(scene);
    await second.log.moment('completed');
    frozen.thaw();
    const aborted = await frozen.moment('aborted');
    expect(aborted['reason']).toContain('lock lost');
    expect(aborted['held']).toBe(false);
    await frozen.moment('error', isRefusal);
    expect(frozen.all('completed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'rival' }, attemptsStarted: 2 });
  });

  /** One run of a job is frozen while it writes to a resource, and another run writes meanwhile. Returns whose write stands in the end. */
  async function frozenWriter(scene: Scene, blind: boolean): Promise<string> {
    const [resource, stop] = [join(scene.folder, 'resource'), join(scene.folder, 'stop')];
    const lastWriter = (): string => {
      const newest = readdirSync(scene.folder)
        .filter((name) => name.startsWith('resource.'))
        .sort()
        .at(-1);
      const file = blind || newest === undefined ? resource : join(scene.folder, newest);
      return (JSON.parse(readFileSync(file, 'utf8')) as { by: string }).by;
    };
    const frozen = freezing(scene);
    await frozen.moment('threaded');
    const { id } = await scene.queue.add('writeWhileHeld', { resource, stop, slow: 'frozen', blind });
    await frozen.moment('started');
    await renewed(scene.store, id, 1);
    await freeze(frozen, scene);
    expect(lastWriter()).toBe('frozen');
    const options = { name: 'rival', lockDuration: paced(1000), stalledInterval: 100 };
    const second = new WorkerProcess({ queue: 'work', connection: scene.connection, options });
    await second.moment('completed');
    expect(lastWriter()).toBe('rival');
    const thawedAt = monotonicNow();
    frozen.thaw();
    // Only a run that does not ask for its lock has to be stopped.
    if (blind) {
      await until('it writes again', async () => lastWriter() === 'frozen');
      writeFileSync(stop, '');
    }
    const ended = await frozen.moment('ended');
    expect(ended.at).toBeGreaterThan(thawedAt);
    await frozen.moment('error', isRefusal);
    return lastWriter();
  }

  test('S0-20 a handler that checks its lock and passes its fence does not overwrite the other run', async () => {
    expect(await frozenWriter(await newScene(engine), false)).toBe('rival');
  });

  test('S0-20 (N) the same program without the lock writes over the result of the other run', async () => {
    expect(await frozenWriter(await newScene(engine), true)).toBe('frozen');
  });

  test('S0-20 a process that is frozen for less than the lock loses nothing', async () => {
    const scene = await newScene(engine);
    const lockDuration = paced(6000);
    const { id } = await scene.queue.add('hold', {});
    const frozen = new WorkerProcess({
      queue: 'work',
      connection: scene.connection,
      // Nobody takes it for dead: it is frozen, and does not answer.
      options: { name: 'frozen', lockDuration, crashGraceMs: 2 * lockDuration },
    });
    await frozen.moment('started');
    const second = rival(scene);
    await second.log.moment('ready');
    await freeze(frozen, scene);
    const renewals = await renewalsOf(scene.store, id);
    // For so long that renewals were missed.
    await until('half of the lock to pass', async () => {
      const endsInMs = (await scene.store.locks('work', { jobIds: [id] }))[0]?.endsInMs ?? 0;
      return endsInMs < 0.45 * lockDuration;
    });
    expect(await renewalsOf(scene.store, id)).toBe(renewals);
    frozen.thaw();
    await renewed(scene.store, id, 1);
    frozen.send('finish');
    expect((await frozen.moment('ended'))['held']).toBe(true);
    await frozen.moment('completed');
    expect(frozen.all('error', (moment) => isRefusal(moment) || messageOf(moment).includes('could not renew lock'))).toEqual([]);
    expect(second.log.all('stalled')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({
      returnvalue: { by: 'frozen' },
      attemptsStarted: 1,
      stalledCounter: 0,
    });
  });
});
