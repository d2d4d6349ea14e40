// S4: who owns a job may change it, and nobody else; and what becomes of jobs whose owners die too often.
import { type Job, QueueEvents, UnrecoverableError, Worker } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { messageOf } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { type Engine, ENGINES, newScene, orphan, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

async function stateOf({ queue }: Scene, id: string): Promise<string | undefined> {
  return (await queue.getJob(id))?.getState();
}

describe.each(ENGINES)('S4 ownership on %s', (engine) => {
  const WRITES: [what: string, write: (job: Job) => Promise<unknown>][] = [
    ['complete', (job) => job.moveToCompleted('stale', job.token, false)],
    ['fail', (job) => job.moveToFailed(new UnrecoverableError('stale'), job.token)],
    ['retry', (job) => job.moveToFailed(new Error('stale'), job.token)],
    ['clear logs', (job) => job.clearLogs()],
    ['delay', (job) => job.moveToDelayed(Date.now() + 1000, job.token)],
    ['release', (job) => job.moveToWait(job.token)],
    ['progress', (job) => job.updateProgress(99)],
    ['data', (job) => job.updateData({ stale: true })],
    ['log', (job) => job.log('stale')],
  ];

  test.each([
    ['another worker', false],
    ['the same worker', true],
  ])('S4-10 every write with a stale token is refused and changes nothing, when %s has the job now', async (_, same) => {
    const scene = await newScene(engine);
    await scene.queue.add('owned', { fresh: true }, { attempts: 3 });
    const make = (): Worker => {
      const worker = new Worker('work', null, { connection: scene.connection, lockDuration: paced(500), skipStalledCheck: true });
      onTestFinished(() => worker.close());
      return worker;
    };
    const first = make();
    const stale = (await first.getNextJob('mine')) as Job;
    await until('the lock to lapse', async () => (await scene.store.sweep('work', 10)).stalled.length > 0);
    const second = same ? first : make();
    const current = (await second.getNextJob('mine')) as Job;
    expect(current.id).toBe(stale.id);
    expect(current.lock.fence).toBeGreaterThan(stale.lock.fence);
    const look = async (): Promise<unknown> => [
      (await scene.store.jobs('work', [current.id])).jobs,
      await scene.store.logs('work', current.id, { start: 0, end: -1, asc: true }),
      (await scene.store.locks('work', { jobIds: [current.id] }))[0]?.token,
      (await scene.store.status('work')).counts,
      (await scene.store.events('work', 0, 1000)).events,
    ];
    await current.extendLock('mine', 60_000);
    await current.log('stays');
    const before = await look();
    const ends = (await scene.store.locks('work', { jobIds: [current.id] }))[0]?.endsInMs ?? 0;
    for (const [what, write] of WRITES) {
      await expect(write(stale), what).rejects.toMatchObject({ code: 'LOCK_LOST', jobId: stale.id });
      expect(await look(), what).toEqual(before);
    }
    expect(await stale.extendLock(stale.token ?? '', 600_000)).toBe(0);
    expect(await look()).toEqual(before);
    expect((await scene.store.locks('work', { jobIds: [current.id] }))[0]?.endsInMs).toBeLessThanOrEqual(ends);
    expect(stale.lock.held).toBe(false);
    expect(current.lock.held).toBe(true);
    // (N) The same writes by the owner are accepted.
    await current.updateProgress(50);
    await current.updateData({ mine: true });
    await current.log('mine');
    await current.moveToCompleted('by its owner', 'mine', false);
    expect(await scene.queue.getJob(current.id)).toMatchObject({
      returnvalue: 'by its owner',
      data: { mine: true },
      progress: 50,
    });
  });

  test('S4-10 a handler that lost its job can no longer change it, however its run ends', async () => {
    const scene = await newScene(engine);
    const gates = [newGate(), newGate()];
    const refusals: unknown[] = [];
    const { worker, log } = work(
      scene,
      async (job) => {
        const run = job.attemptsStarted - 1;
        await gates[run]?.opened;
        if (run === 0)
          for (const write of [() => job.updateProgress(1), () => job.log('x'), () => job.updateData({ x: 1 })])
            await write().catch((error: unknown) => refusals.push(error));
        return `run ${run}`;
      },
      { concurrency: 2, lockRenewTime: paced(50), lockDuration: paced(1000) },
    );
    const { id } = await scene.queue.add('stolen', { fresh: true });
    await log.moment('active');
    // Taken away from this worker, and claimed again by it.
    await scene.store.change('work', [id], { kind: 'revoke', reason: 'an operator' });
    await until('the second run', async () => log.all('active').length === 2);
    gates[0]?.open();
    await until('the refusal', async () =>
      log.all('error').some((moment) => messageOf(moment).includes(`Could not settle job ${id} as completed`)),
    );
    expect(refusals).toHaveLength(3);
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: 'LOCK_LOST' });
    expect(await stateOf(scene, id)).toBe('active');
    gates[1]?.open();
    await log.moment('completed');
    expect(await scene.queue.getJob(id)).toMatchObject({
      returnvalue: 'run 1',
      data: { fresh: true },
      attemptsMade: 1,
      stalledCounter: 0,
    });
    await worker.close();
  });

  test('S4-12 a job over the stall limit fails with the reason, on the worker and in the events', async () => {
    const scene = await newScene(engine);
    const events = new QueueEvents('work', { connection: scene.connection });
    onTestFinished(() => events.close());
    await events.waitUntilReady();
    const failed = new Promise((resolve) => events.once('failed', resolve));
    const id = await orphan(scene, 50, 0);
    const { log } = work(scene, () => 'run again', { stalledInterval: 50, maxStalledCount: 0 });
    const told = await log.moment('failed');
    expect(told['args']).toEqual([
      { id },
      expect.objectContaining({ message: 'job stalled more than allowable limit' }),
      'active',
    ]);
    expect((await log.moment('stalled'))['args']).toEqual([id, 'active']);
    expect(await failed).toMatchObject({ jobId: id, failedReason: 'job stalled more than allowable limit', prev: 'active' });
    expect(await stateOf(scene, id)).toBe('failed');
    expect(await scene.queue.getJob(id)).toMatchObject({
      failedReason: 'job stalled more than allowable limit',
      stalledCounter: 1,
    });
    expect(log.all('active')).toEqual([]);
  });

  test('S4-12 (N) a job within the stall limit runs again', async () => {
    const scene = await newScene(engine);
    const id = await orphan(scene, 50, 1);
    const { log } = work(scene, () => 'run again', { stalledInterval: 50 });
    await log.moment('completed');
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'run again', stalledCounter: 1 });
  });

  test('S4-12 retention is respected: a job that is to be removed on failing goes, and so do older ones over a count', async () => {
    const scene = await newScene(engine);
    const dead = async (removeOnFail: boolean | number): Promise<string> => {
      const id = await orphan(scene, 50, 0, { removeOnFail });
      await until('it to be swept', async () => (await scene.store.sweep('work', 10)).failed.length > 0);
      return id;
    };
    const removed = await dead(true);
    const kept = [await dead(false), await dead(false)];
    expect(await stateOf(scene, removed)).toBeUndefined();
    expect(await scene.queue.getFailedCount()).toBe(2);
    const newest = await dead(1);
    expect((await scene.queue.getFailed()).map(({ id }) => id)).toEqual([newest]);
    for (const id of kept) expect(await stateOf(scene, id)).toBeUndefined();
  });

  test('S4-12 nothing is lost or reported twice when the worker that fails the job dies before the reply', async () => {
    const scene = await newScene(engine);
    const connection = new FaultyStore(scene.store);
    const id = await orphan(scene, 50, 0);
    const lost = connection.on('sweep', { fault: 'drop-reply' });
    const dying = work({ connection }, () => undefined, { stalledInterval: 30 });
    await until('the job to be failed', async () => (await stateOf(scene, id)) === 'failed');
    await dying.worker.close();
    lost.remove();
    expect(dying.log.all('failed')).toEqual([]);
    const another = await orphan(scene, 50, 0);
    const next = work(scene, () => undefined, { stalledInterval: 30 });
    await next.log.moment('stalled');
    expect(next.log.all('stalled').map(({ args }) => args)).toEqual([[another, 'active']]);
    expect(await scene.queue.getJob(id)).toMatchObject({
      failedReason: 'job stalled more than allowable limit',
      stalledCounter: 1,
    });
    const { events } = await scene.store.events('work', 0, 1000);
    expect(events.filter(({ jobId, name }) => jobId === id && name === 'failed')).toHaveLength(1);
  });

  test.skipIf(engine === 'memory')(
    'S4-12 no job is lost, reported twice or run when the process that fails jobs is killed',
    async () => {
      const scene = await newScene(engine);
      const ids: string[] = [];
      for (let round = 0; round < 3; round += 1) {
        for (let n = 0; n < 8; n += 1) ids.push(await orphan(scene, 50, 0));
        const options = { stalledInterval: 30, maxStalledCount: 0, name: 'dying' };
        const dying = new WorkerProcess({ queue: 'work', connection: scene.connection, options });
        // In the middle of them, or just after.
        await until('the first to be failed', async () => (await scene.queue.getFailedCount()) > round * 8);
        dying.kill('SIGKILL');
        await dying.exited;
        expect(dying.all('started')).toEqual([]);
      }
      const { log } = work(scene, () => 'run again', { stalledInterval: 30, maxStalledCount: 0 });
      await until('all to be failed', async () => (await scene.queue.getFailedCount()) === ids.length);
      expect(log.all('active')).toEqual([]);
      const { events } = await scene.store.events('work', 0, 10_000);
      for (const id of ids) {
        const record = await scene.queue.getJob(id);
        expect(record).toMatchObject({ failedReason: 'job stalled more than allowable limit', stalledCounter: 1 });
        const told = events.filter(({ jobId }) => jobId === id).map(({ name }) => name);
        expect(told).toEqual(['added', 'waiting', 'active', 'stalled', 'failed']);
      }
      expect((await scene.queue.getFailed()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    },
  );

  test('S4-12 a job that is handed back on shutdown never counts as stalled', async () => {
    const scene = await newScene(engine);
    const { id } = await scene.queue.add('long');
    for (let round = 0; round < 3; round += 1) {
      await scene.store.openSession({
        queue: 'work',
        id: `deploy-${round}`,
        owner: { host: 'h', pid: 1, name: 'n', instance: 'i' },
        durationMs: 60_000,
        maxStalls: 0,
        slots: 1,
      });
      await scene.store.claim('work', { session: `deploy-${round}`, seq: 1, count: 1 });
      await scene.store.closeSessions([{ queue: 'work', id: `deploy-${round}` }], 'closed');
    }
    expect(await scene.queue.getJob(id)).toMatchObject({ stalledCounter: 0, attemptsStarted: 3 });
    expect(await stateOf(scene, id)).toBe('waiting');
  });
});

describe('S4-11 a handler that blocks its loop for longer than the lock', () => {
  const OPTIONS = { lockDuration: paced(700), lockRenewTime: paced(150), stalledInterval: 50 };

  async function spin(
    engine: Engine,
    useDedicatedLockThread: boolean,
  ): Promise<{ scene: Scene; id: string; spinning: WorkerProcess; other: WorkerProcess }> {
    const scene = await newScene(engine);
    const { connection } = scene;
    const spinning = new WorkerProcess({
      queue: 'work',
      connection,
      options: { ...OPTIONS, name: 'spinning', useDedicatedLockThread },
    });
    await spinning.moment(useDedicatedLockThread ? 'threaded' : 'ready');
    // Without the thread, long enough for the other process to come up, find the lock lapsed and take the job.
    const ms = paced(useDedicatedLockThread ? 2200 : 6000);
    const { id } = await scene.queue.add('spin', { ms, only: 'spinning' });
    await spinning.moment('started');
    const other = new WorkerProcess({ queue: 'work', connection, options: { ...OPTIONS, name: 'other' } });
    await other.moment('ready');
    await spinning.moment('ended');
    return { scene, id, spinning, other };
  }

  test.each(oneInThisRun(SHARED_ENGINES))('S4-11 %s with the thread: the job runs once', async (engine) => {
    const { scene, id, spinning, other } = await spin(engine, true);
    await spinning.moment('completed');
    expect(other.all('started')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({
      returnvalue: { by: 'spinning' },
      attemptsStarted: 1,
      stalledCounter: 0,
    });
  });

  test.each(oneInThisRun(SHARED_ENGINES))(
    'S4-11 %s without the thread: run again elsewhere, the stale result refused and reported',
    async (engine) => {
      const { scene, id, spinning, other } = await spin(engine, false);
      await other.moment('completed');
      await spinning.moment('error', (moment) => messageOf(moment).includes(`Could not settle job ${id} as completed`));
      expect(spinning.all('completed')).toEqual([]);
      expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: { by: 'other' }, attemptsStarted: 2, stalledCounter: 1 });
    },
  );

  test('S4-11 memory: the late finish counts, because no other worker can run while the loop is blocked', async () => {
    const scene = await newScene('memory');
    const spinning = work(
      scene,
      () => {
        const end = performance.now() + paced(300);
        while (performance.now() < end);
        return 'late';
      },
      { lockDuration: paced(100), skipStalledCheck: true },
    );
    const { id } = await scene.queue.add('spin');
    await spinning.log.moment('completed');
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'late', attemptsStarted: 1 });
  });
});
