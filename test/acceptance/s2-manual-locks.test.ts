// S2: the lock of a job in a user's hand.
import { hostname } from 'node:os';
import { type Job, Queue, Worker } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { HolderProcess } from '../support/processes/holder.js';
import { monotonicNow } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

/** Clocks of one machine, read in two processes, one after the other. */
const CLOCKS_MS = paced(1000);

async function jobOf({ queue }: Scene, name = 'by hand', opts = {}): Promise<Job> {
  const { id } = await queue.add(name, {}, opts);
  return (await queue.getJob(id)) as Job;
}

async function stateOf({ queue }: Scene, id: string): Promise<string> {
  return queue.getJobState(id);
}

/** What the work under a lock looks like in a program. */
async function processByHand(job: Job, process: (job: Job) => Promise<unknown>): Promise<boolean> {
  if ((await job.takeLock()) === false) return false;
  try {
    await job.moveToCompleted(await process(job), undefined, false);
  } catch (error) {
    await job.moveToFailed(error as Error);
    throw error;
  } finally {
    await job.releaseLock();
  }
  return true;
}

const ENGINES: Engine[] = ['memory', ...LOCK_ENGINES];

describe.each(ENGINES)('S2 manual locks on %s', (engine) => {
  test('S2-1 lockKey() names the lock', async () => {
    const job = await jobOf(await newScene(engine));
    expect(job.lockKey()).toBe(`work:${job.id}:lock`);
  });

  test('S2-2 the lock can be looked up from outside while it is held (owner, since, until), and is gone after', async () => {
    const scene = await newScene(engine);
    // Not the queue that takes it.
    const outside = new Queue('work', { connection: scene.connection });
    onTestFinished(() => outside.close());
    const job = await jobOf(scene);
    expect(await outside.getLock(job.id)).toBeUndefined();
    const before = Date.now();
    await job.takeLock();
    const after = Date.now();
    const lock = await outside.getLock(job.id);
    const owner = { host: hostname(), pid: process.pid, name: 'queue' };
    expect(lock).toMatchObject({ jobId: job.id, fence: job.lock.fence, owner });
    const { since = 0, until = 0 } = lock ?? {};
    expect(since).toBeGreaterThanOrEqual(before - CLOCKS_MS);
    expect(since).toBeLessThanOrEqual(after + CLOCKS_MS);
    expect(Math.abs(until - since - 30_000)).toBeLessThanOrEqual(CLOCKS_MS);
    // It stays what it is, and moves with an extension alone.
    expect(await outside.getLock(job.id)).toMatchObject({ since, owner });
    expect(Math.abs(((await outside.getLock(job.id))?.until ?? 0) - until)).toBeLessThanOrEqual(CLOCKS_MS);
    await job.extendLock(90_000);
    const extended = await outside.getLock(job.id);
    expect(extended).toMatchObject({ since, fence: job.lock.fence });
    expect((extended?.until ?? 0) - until).toBeGreaterThan(55_000);
    await job.releaseLock();
    expect(await outside.getLock(job.id)).toBeUndefined();
    // Also when it goes with the end of the job.
    await job.takeLock();
    expect((await outside.getLock(job.id))?.fence).toBeGreaterThan(lock?.fence ?? Number.NaN);
    await job.moveToCompleted('done', undefined, false);
    expect(await outside.getLock(job.id)).toBeUndefined();
  });

  test.skipIf(engine === 'memory')(
    'S2-2 the lock of another process names that process, and is gone after its release',
    async () => {
      const scene = await newScene(engine);
      const { id: jobId } = await jobOf(scene);
      const holder = await HolderProcess.start(scene, { lockDuration: 60_000 });
      await holder.ask('take', { jobId });
      expect(await scene.queue.getLock(jobId)).toMatchObject({ jobId, owner: { host: hostname(), pid: holder.pid } });
      await holder.ask('release', { jobId });
      expect(await scene.queue.getLock(jobId)).toBeUndefined();
    },
  );

  test('S2-4 no running worker runs a job that is processed by hand', async () => {
    const scene = await newScene(engine);
    const ran: string[] = [];
    await scene.queue.pause();
    work(scene, ({ id }) => void ran.push(id), { concurrency: 5 });
    const [job, next] = [await jobOf(scene), await jobOf(scene, 'next')];
    const [started, end] = [newGate(), newGate()];
    const processing = processByHand(job, async () => {
      started.open();
      await end.opened;
      return { by: 'hand' };
    });
    await started.opened;
    expect(await stateOf(scene, next.id)).toBe('waiting');
    await scene.queue.resume();
    await until('the next job to be run', async () => (await stateOf(scene, next.id)) === 'completed');
    expect(await stateOf(scene, job.id)).toBe('active');
    end.open();
    expect(await processing).toBe(true);
    expect(await scene.queue.getJob(job.id)).toMatchObject({ returnvalue: { by: 'hand' }, attemptsMade: 1, stalledCounter: 0 });
    expect(ran).toEqual([next.id]);
    // (N) Without taking it, the workers do.
    const free = await jobOf(scene, 'free');
    await until('it to be run', async () => (await stateOf(scene, free.id)) === 'completed');
    expect(ran).toContain(free.id);
  });

  test('S2-4, S2-5 an error in the work fails the job, is rethrown, and the lock is gone', async () => {
    const scene = await newScene(engine);
    const job = await jobOf(scene);
    const broken = new Error('the printer is on fire');
    await expect(processByHand(job, () => Promise.reject(broken))).rejects.toBe(broken);
    expect(await scene.queue.getJob(job.id)).toMatchObject({ failedReason: 'the printer is on fire' });
    expect(await stateOf(scene, job.id)).toBe('failed');
    expect(await scene.queue.getLock(job.id)).toBeUndefined();
    expect(job.lock.held).toBe(false);
  });

  test('S2-6, S2-8 after a theft releaseLock rejects, extendLock returns 0, and the lock of the thief stays', async () => {
    const scene = await newScene(engine);
    const job = await jobOf(scene);
    await job.takeLock();
    await scene.store.change('work', [job.id], { kind: 'revoke', reason: 'an operator' });
    const thief = (await scene.queue.getJob(job.id)) as Job;
    await thief.takeLock();
    await thief.extendLock(60_000);
    const before = (await scene.store.locks('work', { jobIds: [job.id] }))[0];
    await expect(job.releaseLock()).rejects.toMatchObject({
      message: expect.stringContaining(`Could not release lock for job ${job.id}`),
      code: 'LOCK_LOST',
    });
    expect(await job.extendLock(90_000)).toBe(0);
    const after = (await scene.store.locks('work', { jobIds: [job.id] }))[0];
    expect(after).toMatchObject({ token: thief.lock.token, fence: thief.lock.fence });
    expect(after?.endsInMs).toBeLessThanOrEqual(before?.endsInMs ?? 0);
    await thief.releaseLock();
  });

  test('S2-7 extendLock(ms) returns 1, and the lock ends that many ms from now', async () => {
    const scene = await newScene(engine);
    const job = await jobOf(scene);
    await job.takeLock();
    for (const ms of [90_000, 5000]) {
      expect(await job.extendLock(ms)).toBe(1);
      const { endsInMs = 0 } = (await scene.queue.getLock(job.id)) ?? {};
      expect(endsInMs).toBeLessThanOrEqual(ms + 1);
      expect(endsInMs).toBeGreaterThan(ms - 2000);
    }
  });

  test('S2-10 the lock is there while a worker runs the job, and absent after', async () => {
    const scene = await newScene(engine);
    const end = newGate();
    const { log } = work(scene, () => end.opened, { name: 'ada' });
    const { id } = await scene.queue.add('run', {});
    await log.moment('active');
    expect(await scene.queue.getLock(id)).toMatchObject({ owner: { name: 'ada', pid: process.pid } });
    end.open();
    await log.moment('completed');
    expect(await scene.queue.getLock(id)).toBeUndefined();
  });

  test('S2-12, S2-13 a handler takes a named lock of its own, and it is released when the handler throws', async () => {
    const scene = await newScene(engine);
    let inside = 0;
    const { log } = work(
      scene,
      (job) =>
        scene.queue.lock('printer', async (lock) => {
          inside += 1;
          expect(inside).toBe(1);
          await new Promise((resolve) => setTimeout(resolve, 10));
          inside -= 1;
          if (job.name === 'throws') throw new Error('out of paper');
          return lock.fence;
        }),
      { concurrency: 4 },
    );
    await scene.queue.addBulk(['a', 'throws', 'b', 'c'].map((name) => ({ name })));
    await until('all to end', async () => log.all('completed').length === 3 && log.all('failed').length === 1);
    expect(await scene.queue.getNamedLock('printer')).toBeUndefined();
    const fences = log.all('completed').map((moment) => (moment['args'] as unknown[])[1] as number);
    expect(new Set(fences).size).toBe(3);
  });

  test('S2-14 a locked job can be neither removed nor retried; (N) a free one can', async () => {
    const scene = await newScene(engine);
    const job = await jobOf(scene);
    await job.takeLock();
    const outside = (await scene.queue.getJob(job.id)) as Job;
    await expect(outside.remove()).rejects.toMatchObject({ code: 'JOB_LOCKED' });
    await expect(outside.retry()).rejects.toMatchObject({ code: 'JOB_LOCKED' });
    expect(await scene.queue.clean(0, 0, 'active')).toEqual([]);
    expect(await scene.queue.remove(job.id)).toBe(0);
    await job.releaseLock();
    await outside.remove();
    expect(await stateOf(scene, job.id)).toBe('unknown');
  });

  test('S2-14 a handler that released its lock cannot move the job anywhere', async () => {
    const scene = await newScene(engine);
    const refusals: unknown[] = [];
    const worker = new Worker(
      'work',
      async (job) => {
        await worker.pause(true);
        await job.releaseLock();
        for (const move of [
          () => job.moveToCompleted('x', undefined, false),
          () => job.moveToFailed(new Error('x')),
          () => job.moveToDelayed(Date.now() + 1000),
          () => job.moveToWait(),
        ]) {
          await move().catch((error: { code?: string }) => refusals.push(error.code));
        }
      },
      { connection: scene.connection },
    );
    onTestFinished(() => worker.close());
    const { id } = await scene.queue.add('given up', {});
    await until('all moves to be refused', async () => refusals.length === 4);
    expect(refusals).toEqual(Array.from({ length: 4 }, () => 'LOCK_LOST'));
    expect(await stateOf(scene, id)).toBe('waiting');
    expect(await scene.queue.getJob(id)).toMatchObject({ attemptsMade: 0, failedReason: undefined, returnvalue: null });
  });
});

describe.each(oneInThisRun(LOCK_ENGINES))('S2 manual locks between processes on %s', (engine) => {
  test('S2-3 a second takeLock by any process returns false until the first one is released', async () => {
    const scene = await newScene(engine);
    const [first, second] = [await HolderProcess.start(scene), await HolderProcess.start(scene)];
    const { id: jobId } = await jobOf(scene);
    expect(await first.ask('take', { jobId })).toMatchObject({ result: expect.any(String) });
    expect(await second.ask('take', { jobId })).toMatchObject({ result: false });
    expect(await first.ask('take', { jobId })).toMatchObject({ result: false });
    expect(await first.ask('held', { jobId })).toMatchObject({ result: true });
    expect(await first.ask('release', { jobId })).not.toHaveProperty('failed');
    expect(await second.ask('take', { jobId })).toMatchObject({ result: expect.any(String) });
    expect(await first.ask('complete', { jobId, value: 'by the first' })).toMatchObject({ failed: { code: 'LOCK_LOST' } });
    expect(await second.ask('complete', { jobId, value: 'by the second' })).not.toHaveProperty('failed');
    expect(await second.ask('release', { jobId })).not.toHaveProperty('failed');
    expect(await scene.queue.getJob(jobId)).toMatchObject({ returnvalue: 'by the second', stalledCounter: 0, attemptsMade: 1 });
  });

  test('S2-4 no worker of another process runs a job that was taken', async () => {
    const scene = await newScene(engine);
    const holder = await HolderProcess.start(scene, { lockDuration: 60_000 });
    const { id: jobId } = await jobOf(scene, 'echo');
    await holder.ask('take', { jobId });
    const worker = new WorkerProcess({ queue: 'work', connection: scene.url, options: { concurrency: 4 } });
    await worker.moment('ready');
    const others = await scene.queue.addBulk(Array.from({ length: 20 }, () => ({ name: 'echo', data: {} })));
    await until('the others to be run', async () => (await scene.queue.getCompletedCount()) === others.length);
    expect(worker.all('started', (moment) => moment['jobId'] === jobId)).toEqual([]);
    await holder.ask('complete', { jobId, value: 'by hand' });
    expect(await scene.queue.getJob(jobId)).toMatchObject({ returnvalue: 'by hand', attemptsStarted: 1 });
  });

  describe('S2-9 settings of the queue are respected', () => {
    const LOCK_MS = paced(1500);

    /** A job that was taken and is not given back, and one that looks for such jobs; `askedAt` is before the lock was asked for, `takenAt` after. */
    async function forgotten(
      scene: Scene,
      { maxStalledCount, stalledInterval }: { maxStalledCount: number; stalledInterval: number },
    ): Promise<{ jobId: string; taker: HolderProcess; askedAt: number; takenAt: number }> {
      const { id: jobId } = await jobOf(scene);
      // Whoever takes locks looks for dead ones too; this one has long ones of its own.
      const looking = await HolderProcess.start(scene, { stalledInterval });
      await looking.ask('takeNamed', { lock: 'something else' });
      const taker = await HolderProcess.start(scene, { lockDuration: LOCK_MS, maxStalledCount, stalledInterval: 60_000 });
      const askedAt = monotonicNow();
      await taker.ask('take', { jobId });
      return { jobId, taker, askedAt, takenAt: monotonicNow() };
    }

    test('S2-9 the lock of a dead taker lasts for its lockDuration, and is found within the stalledInterval after', async () => {
      const scene = await newScene(engine);
      const { jobId, taker, askedAt, takenAt } = await forgotten(scene, { maxStalledCount: 0, stalledInterval: 100 });
      taker.kill('SIGKILL');
      await taker.exited;
      await until('the job to fail', async () => (await stateOf(scene, jobId)) === 'failed');
      const failedAt = monotonicNow();
      expect(failedAt - askedAt).toBeGreaterThanOrEqual(LOCK_MS);
      expect(failedAt - takenAt).toBeLessThan(LOCK_MS + 100 + paced(2000));
      expect(await scene.queue.getJob(jobId)).toMatchObject({
        failedReason: 'job stalled more than allowable limit',
        stalledCounter: 1,
      });
    });

    test('S2-9 (N) with a maxStalledCount of 1 a job whose lock was not renewed waits again', async () => {
      const scene = await newScene(engine);
      const { jobId } = await forgotten(scene, { maxStalledCount: 1, stalledInterval: 100 });
      await until('the job to wait', async () => (await stateOf(scene, jobId)) === 'waiting');
      expect(await scene.queue.getJob(jobId)).toMatchObject({ stalledCounter: 1 });
    });

    test('S2-9 (N) with a long stalledInterval a job whose lock was not renewed is not found soon', async () => {
      const scene = await newScene(engine);
      // Its taker lives: that of a dead one would be looked for, because its death is noticed.
      const { jobId } = await forgotten(scene, { maxStalledCount: 0, stalledInterval: 60_000 });
      await until(
        'the lock to end',
        async () => ((await scene.store.locks('work', { jobIds: [jobId] }))[0]?.endsInMs ?? 1) < -500,
      );
      expect(await stateOf(scene, jobId)).toBe('active');
    });
  });

  test('S2-11 a job whose worker is killed stalls once and runs again, and the second kill fails it', async () => {
    const scene = await newScene(engine);
    const options = { lockDuration: paced(1000), stalledInterval: 100, crashGraceMs: 100 };
    const { id } = await scene.queue.add('hold', {});
    for (const run of [1, 2]) {
      const victim = new WorkerProcess({ queue: 'work', connection: scene.url, options });
      await victim.moment('started', (moment) => moment['jobId'] === id);
      // Its lock thread, which swept, may tell it after the start.
      if (run === 2) await victim.moment('stalled');
      victim.kill('SIGKILL');
      await victim.exited;
      if (run === 1) expect(victim.all('stalled')).toHaveLength(0);
      else expect(victim.all('stalled')).toHaveLength(1);
    }
    const { log } = work(scene, () => 'never', options);
    await log.moment('stalled');
    await until('it to fail', async () => (await stateOf(scene, id)) === 'failed');
    expect(await scene.queue.getJob(id)).toMatchObject({
      failedReason: 'job stalled more than allowable limit',
      stalledCounter: 2,
      attemptsStarted: 2,
    });
    expect(log.all('stalled')).toHaveLength(1);
  });
});
