// `prefetch`: jobs that were claimed ahead of free slots go back as they came whenever this worker does not get to them.
import type { Job, Worker, WorkerOptions } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene, work, type Working } from '../support/scenes/scene.js';
import { inThisRun } from '../support/run/matrix.js';
import { paced } from '../support/wait/pace.js';
import { newGate, type Gate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const STORES: Engine[] = inThisRun(['memory', 'sqlite', 'redis', 'postgres']);
const JOBS = 150;
/** Longer than another worker takes to start and to run the jobs behind. */
const BLOCK_MS = paced(3000);
/** So much claimed ahead is enough to see what becomes of it. */
const ENOUGH = 5;

interface Stuck extends Working {
  gate: Gate;
  /** The jobs that began here, in order. */
  begun: string[];
  /** Those behind the long one, in the order in which they were added. */
  rest: string[];
}

async function addAll({ queue }: Scene): Promise<string[]> {
  const jobs = await queue.addBulk(Array.from({ length: JOBS }, () => ({ name: 'job', data: {} })));
  return jobs.map(({ id }) => id);
}

/**
 * A worker with one slot, in which a job lasts as soon as enough was claimed ahead (without `prefetch`, the 40th). `whenLong` is called as it
 * begins, before anything else can happen.
 */
async function stuck(scene: Scene, options: WorkerOptions, whenLong: (worker: Worker) => void): Promise<Stuck> {
  const gate = newGate();
  const begun: string[] = [];
  let long: string | undefined;
  const ids = await addAll(scene);
  const handler = async ({ id }: Job): Promise<void> => {
    begun.push(id);
    const enough = options.prefetch === undefined ? begun.length >= 40 : working.worker.prefetched >= ENOUGH;
    if (long !== undefined || !enough) return;
    long = id;
    whenLong(working.worker);
    await gate.opened;
  };
  const working = work(scene, handler, { autorun: false, ...options });
  void working.worker.run();
  const id = await until('a job lasts', async () => long);
  return { ...working, gate, begun, rest: ids.slice(ids.indexOf(id) + 1) };
}

const uncharged = { attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 };

async function allWait({ store }: Scene, rest: string[]): Promise<void> {
  await until('all that was claimed ahead waits again', async () => {
    const { counts } = await store.status('work');
    return counts.waiting === rest.length;
  });
  const { jobs: waiting } = await store.jobs('work', { lists: ['waiting'], start: 0, end: -1, asc: true });
  expect(waiting.map(({ id }) => id)).toEqual(rest);
  for (const job of waiting) expect(job).toMatchObject(uncharged);
}

describe.each(STORES)('prefetch on %s', (engine) => {
  test('claims jobs ahead, counts them, and emits active only when they start', async () => {
    const scene = await newScene(engine);
    let ahead = { prefetched: 0, health: 0, running: 0 };
    const { worker, log, gate, begun } = await stuck(scene, { prefetch: 20 }, (seen) => {
      const { prefetched, running } = seen.health();
      ahead = { prefetched: seen.prefetched, health: prefetched, running };
    });
    expect(ahead.prefetched).toBeGreaterThan(0);
    expect(ahead.prefetched).toBeLessThanOrEqual(20);
    expect(ahead).toMatchObject({ health: ahead.prefetched, running: 1 });
    expect(log.all('active')).toHaveLength(begun.length);
    gate.open();
    await until('all are done', async () => (await scene.store.status('work')).counts.completed === JOBS);
    expect(worker.prefetched).toBe(0);
    expect(begun).toEqual([...new Set(begun)]);
    expect(log.all('error')).toEqual([]);
  });

  test('claims nothing ahead when it is 0', async () => {
    const scene = await newScene(engine);
    let ahead: number | undefined;
    const { rest } = await stuck(scene, {}, ({ prefetched }) => {
      ahead = prefetched;
    });
    expect(ahead).toBe(0);
    expect((await scene.store.status('work')).counts).toMatchObject({ active: 1, waiting: rest.length });
  });

  test.each<[string, (worker: Worker) => unknown]>([
    ['pause()', (worker) => worker.pause(true)],
    ['close()', (worker) => worker.close()],
    ['close(true)', (worker) => worker.close(true)],
  ])('%s hands prefetched jobs back without a stall, in their old order', async (_, stop) => {
    const scene = await newScene(engine);
    const ahead = { before: 0, after: -1 };
    const { rest, gate } = await stuck(scene, { prefetch: 20 }, (worker) => {
      ahead.before = worker.prefetched;
      void stop(worker);
      setImmediate(() => {
        ahead.after = worker.prefetched;
      });
    });
    expect(ahead.before).toBeGreaterThan(0);
    await allWait(scene, rest);
    expect(ahead.after, 'at once').toBe(0);
    gate.open();
    // Also what ends after a close by force is delivered, and needs the store for it.
    await until('nothing runs', async () => (await scene.store.status('work')).counts.active === 0);
  });

  test('hands jobs back behind a long handler, and an idle worker gets them within a second', async () => {
    const scene = await newScene(engine);
    let took = (): number => 0;
    let ahead = 0;
    const { rest } = await stuck(scene, { prefetch: 20 }, (worker) => {
      took = stopwatch();
      ahead = worker.prefetched;
    });
    expect(ahead).toBeGreaterThan(0);
    const other = work(scene, async () => undefined, { concurrency: 2 });
    await until('the other worker has done them', () => other.log.all('completed').length === rest.length);
    expect(took()).toBeLessThan(paced(1000) + startUp(other));
    for (const id of rest) expect(await scene.queue.getJob(id)).toMatchObject({ attemptsMade: 1, stalledCounter: 0 });
  });

  test('never starts a job whose lock was lost while it waited, and emits nothing', async () => {
    const scene = await newScene(engine);
    const ids = await addAll(scene);
    const begun: string[] = [];
    let victim: string | undefined;
    const { worker, log } = work(
      scene,
      async ({ id }) => {
        begun.push(id);
        const { prefetched } = worker;
        if (victim !== undefined || prefetched < ENOUGH) return;
        const next = ids[ids.indexOf(id) + 1] ?? '';
        // On a slow machine it may have gone back by now; then another one is taken.
        if (!(await scene.store.change('work', [next], { kind: 'revoke', reason: 'taken away' })).changed[0]) return;
        victim = next;
        await until('the worker has dropped it', async () => worker.prefetched < prefetched);
      },
      { prefetch: 20, lockRenewTime: 20 },
    );
    await until('all are done', async () => (await scene.store.status('work')).counts.completed === JOBS);
    expect(victim).toBeDefined();
    // A run under a lock that is lost could not be settled, which would be told.
    expect(begun.filter((id) => id === victim)).toHaveLength(1);
    expect(log.all('lockRenewalFailed')).toEqual([]);
    expect(log.all('error')).toEqual([]);
  });
});

/** Jobs around one that blocks the event loop of a worker in a process of its own. `rest`: those behind it. */
async function blockedWithJobsAhead(
  scene: Scene,
  options: object,
): Promise<{ blocker: WorkerProcess; rest: string[]; longId: string }> {
  const { connection, queue } = scene;
  const blocker = new WorkerProcess({ queue: 'work', connection, options: { prefetch: 50, ...options } }, 'blocker.mjs');
  await blocker.moment('up');
  const job = (name: string, ms = 0): { name: string; data: object } => ({ name, data: { ms } });
  const some = Array.from({ length: 60 }, () => job('echo'));
  const added = (await queue.addBulk([...some, job('loop', BLOCK_MS), ...some])).map(({ id }) => id);
  const longId = added[60] as string;
  await blocker.moment('started', ({ jobId }) => jobId === longId);
  return { blocker, longId, rest: added.slice(61) };
}

/** Which of these jobs were claimed more than once. */
async function claimedTwice({ store }: Scene, ids: string[]): Promise<string[]> {
  const { events } = await store.events('work', 0, 1000);
  return ids.filter((id) => events.filter(({ name, jobId }) => name === 'active' && jobId === id).length > 1);
}

describe.each(inThisRun(LOCK_ENGINES))('jobs that were claimed ahead of a blocked event loop on %s', (engine) => {
  test('are given back by the lock thread, and run elsewhere meanwhile, once each', async () => {
    const scene = await newScene(engine);
    const { blocker, longId, rest } = await blockedWithJobsAhead(scene, {});
    const other = work(scene, async () => undefined);
    await until('the other worker has done them', () => other.log.all('completed').length === rest.length);
    expect(
      blocker.all('ended', ({ jobId }) => jobId === longId),
      'the loop is still blocked',
    ).toEqual([]);
    expect(await claimedTwice(scene, rest)).not.toEqual([]);
    for (const id of rest)
      expect(await scene.queue.getJob(id)).toMatchObject({ attemptsMade: 1, attemptsStarted: 1, stalledCounter: 0 });
    await blocker.moment('ended', ({ jobId }) => jobId === longId);
    await until('the job that blocked is completed', async () => (await scene.queue.getJobState(longId)) === 'completed');
    expect(blocker.all('started', ({ jobId }) => rest.includes(jobId as string))).toEqual([]);
    expect([...blocker.all('error'), ...blocker.all('lockRenewalFailed'), ...blocker.all('stalled')]).toEqual([]);
  }, 60_000);
});

test('(N) without a lock thread, jobs that were claimed ahead wait until the event loop is free', async () => {
  const scene = await newScene('sqlite');
  const { blocker, longId, rest } = await blockedWithJobsAhead(scene, {
    useDedicatedLockThread: false,
    lockDuration: 4 * BLOCK_MS,
  });
  const other = work(scene, async () => undefined);
  await until('all are done', async () => (await scene.queue.getJobCounts('completed'))['completed'] === 61 + rest.length);
  const [ended] = blocker.all('ended', ({ jobId }) => jobId === longId);
  const late = other.log.all('completed').filter(({ at }) => at > (ended?.at ?? Infinity));
  expect(late.length + blocker.all('started', ({ jobId }) => rest.includes(jobId as string)).length).toBeGreaterThan(0);
}, 60_000);

/** How long after its making a worker was ready: the machine may be busy with other tests. */
function startUp({ log }: Working): number {
  const ready = log.all('ready')[0]?.at ?? 0;
  const first = log.all('active')[0]?.at ?? ready;
  return Math.max(0, first - ready) + 500;
}
