// S5-3: a schedule has one next job, whatever dies: processes that upsert it at once, and workers that are killed between the claim of a
// job and the job after it. HOLDFAST_SCHEDULE_KILLS says how many kills per store (100 unless said otherwise, 16 in the gate).
import { Queue, type Store } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { FULL, oneInThisRun } from '../support/run/matrix.js';
import { newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { sleep, until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const KILLS = Number(process.env['HOLDFAST_SCHEDULE_KILLS'] ?? (FULL ? 100 : 10));
const LANES = 2;
const ROUNDS = 100;
const GOES_ON_MS = paced(2000);
const EVERY = 200;
const OPTIONS = {
  concurrency: 4,
  lockDuration: paced(4000),
  lockRenewTime: paced(500),
  stalledInterval: 200,
  crashGraceMs: 200,
  maxStalledCount: 1000,
};

interface Lane {
  queue: string;
  recoveries: number[];
}

function queueOf({ url: connection }: Scene, name: string): Queue {
  const queue = new Queue(name, { connection });
  onTestFinished(() => queue.close());
  return queue;
}

/** A worker process of a lane. Plans carry one option more than those of other fixtures. */
function mortal({ url: connection }: Scene, queue: string, deaf = false): WorkerProcess {
  const options = deaf ? { ...OPTIONS, useDedicatedLockThread: false } : OPTIONS;
  return new WorkerProcess({ queue, connection, options, deaf } as never, 'mortal-worker.mjs');
}

async function versionOf(store: Store, queue: string): Promise<{ version: number; state: string }> {
  const { schedules } = await store.status(queue, { schedules: { ids: ['s'] } });
  return schedules?.records[0] ?? { version: 0, state: 'missing' };
}

/**
 * Lets one of two processes die at a time, and starts another in its place: `kills` times between claim and next job. One process more
 * dies after each third of them, when the next job has just been made.
 */
async function killOff(scene: Scene, { queue, recoveries }: Lane, kills: number): Promise<WorkerProcess[]> {
  let [victim, heir] = [mortal(scene, queue), mortal(scene, queue)];
  await Promise.all([victim.moment('ready'), heir.moment('ready')]);
  for (let death = 0; recoveries.length < kills; death += 1) {
    const next = mortal(scene, queue);
    await next.moment('ready');
    const when = death % 4 === 3 ? 'after' : 'before';
    victim.send(when);
    const { version } = await victim.moment('dying');
    const took = stopwatch();
    await until('the schedule to go on', async () => (await versionOf(scene.store, queue)).version > (version as number));
    if (when === 'before') recoveries.push(took());
    expect((await victim.exited).signal).toBe('SIGKILL');
    [victim, heir] = [heir, next];
  }
  return [victim, heir];
}

/** How often the store added each slot, and what became of the jobs. */
async function slotsOf(store: Store, name: string): Promise<Map<string, number>> {
  const added = new Map<string, number>();
  for (let after = 0; ; ) {
    const { events } = await store.events(name, after, 1000);
    if (events.length === 0) return added;
    for (const { id, name: event, jobId = '' } of events) {
      after = id;
      if (event === 'added') added.set(jobId, (added.get(jobId) ?? 0) + 1);
      // A pause takes the next job away before its time; the slot is none that is missing.
      if (event === 'removed') added.delete(jobId);
    }
  }
}

describe.each(oneInThisRun(SHARED_ENGINES))('S5 one next job on %s', (engine) => {
  test(`S5-3 five processes that upsert ${ROUNDS} schedules at the same moments make one next job for each`, {
    timeout: paced(60_000),
  }, async () => {
    const scene = await newScene(engine);
    const { queue, url: connection } = scene;
    const processes = Array.from({ length: 5 }, () => new WorkerProcess({ queue: 'work', connection }, 'upserter.mjs'));
    await Promise.all(processes.map((one) => one.moment('ready')));
    const make = async (kind: string, ids: string[]): Promise<string[][]> => {
      for (const one of processes) one.send(JSON.stringify({ kind, ids }));
      const made = await Promise.all(processes.map((one) => one.moment('made', (moment) => moment['kind'] === kind)));
      return made.map((moment) => moment['ids'] as string[]);
    };
    const namesOf = (kind: string): string[] => Array.from({ length: ROUNDS / 2 }, (_, n) => `${kind}-${n}`);
    for (const kind of ['every', 'pattern']) {
      const [first, ...others] = await make(kind, namesOf(kind));
      for (const other of others) expect(other).toEqual(first);
      expect(new Set(first).size).toBe(ROUNDS / 2);
    }
    expect([await queue.count(), await queue.getJobSchedulersCount()]).toEqual([ROUNDS, ROUNDS]);
    expect((await queue.getJobSchedulers()).every(({ iterationCount }) => iterationCount === 1)).toBe(true);
    // The negative control: five processes that add jobs without a schedule add five each.
    await make('plain', namesOf('plain'));
    expect(await queue.count()).toBe(ROUNDS + 5 * (ROUNDS / 2));
    expect(processes.flatMap((one) => one.all('error'))).toEqual([]);
  });

  test(`S5-3 ${KILLS} kills between claim and next job: the schedule goes on within 2 s, no slot twice, none missing`, {
    timeout: paced(60_000 + KILLS * 3000),
  }, async () => {
    const scene = await newScene(engine);
    const { store } = scene;
    const lanes: Lane[] = Array.from({ length: LANES }, (_, number) => ({ queue: `lane-${number}`, recoveries: [] }));
    const judged = lanes.map(async (lane) => {
      const queue = queueOf(scene, lane.queue);
      await queue.upsertJobScheduler('s', { every: EVERY, catchUp: 'all' });
      const survivors = await killOff(scene, lane, KILLS / LANES);
      await queue.pauseJobScheduler('s');
      const quiet = { waiting: 0, delayed: 0, active: 0 };
      await until('all jobs to end', async () => sameCounts(await queue.getJobCounts('waiting', 'delayed', 'active'), quiet));
      const record = await queue.getJobScheduler('s');
      const slots = await slotsOf(store, lane.queue);
      const completed = (await queue.getCompleted()).map(({ id }) => id);
      const times = completed.map((id) => Number(id.split(':').at(-1))).toSorted((a, b) => a - b);
      expect([...slots.values()].every((count) => count === 1)).toBe(true);
      expect([...slots.keys()].toSorted()).toEqual(completed.toSorted());
      expect(times).toEqual(times.map((_, n) => (times[0] ?? 0) + n * EVERY));
      expect(record?.iterationCount).toBe(times.length);
      expect(times.length).toBeGreaterThanOrEqual(KILLS / LANES);
      expect(survivors.flatMap((one) => one.all('error'))).toEqual([]);
      for (const one of survivors) one.kill('SIGKILL');
    });
    await Promise.all(judged);
    const recoveries = lanes.flatMap((lane) => lane.recoveries).toSorted((a, b) => a - b);
    console.log(
      `schedules on ${engine}: ${recoveries.length} kills; went on after ${Math.round(recoveries[recoveries.length >> 1] ?? 0)} ms ` +
        `(half), ${Math.round(recoveries.at(-1) ?? 0)} ms (all)`,
    );
    expect(recoveries.at(-1)).toBeLessThan(GOES_ON_MS);
  });

  test('S5-3 without word of the debt, a schedule whose worker was killed between claim and next job stops', async () => {
    const scene = await newScene(engine);
    const queue = queueOf(scene, 'deaf');
    await queue.upsertJobScheduler('s', { every: EVERY, catchUp: 'all' });
    const [victim, other] = [mortal(scene, 'deaf', true), mortal(scene, 'deaf', true)];
    await Promise.all([victim.moment('ready'), other.moment('ready')]);
    victim.send('before');
    const { version } = await victim.moment('dying');
    await sleep(GOES_ON_MS);
    expect(await versionOf(scene.store, 'deaf')).toMatchObject({ version, state: 'owing' });
    // The debt is still there: a worker that hears of it clears it.
    mortal(scene, 'deaf');
    await until('the schedule to go on', async () => (await versionOf(scene.store, 'deaf')).version > (version as number));
  });
});

function sameCounts(counts: Record<string, number>, wanted: Record<string, number>): boolean {
  return Object.entries(wanted).every(([type, count]) => counts[type] === count);
}
