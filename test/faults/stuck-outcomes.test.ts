// The event loop of a worker does not reach the store, and its lock thread does: it renews the session of jobs whose runs have ended, over a
// connection of its own. In memory there is no thread, and only settles and claims fail.
import { openStore, type Store, type Worker } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Engine, ENGINES, newScene, renewed, type Scene, work } from '../support/scenes/scene.js';
import { newGate } from '../support/wait/gate.js';
import type { LockInfo } from '../../src/store/contract/index.js';
import { errorsWith, messageOf } from '../support/wait/moments.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const OPTIONS = { lockDuration: paced(1500), lockRenewTime: paced(300), stalledInterval: paced(1000), maxStalledCount: 1 };
/** All that a worker calls. */
const VERBS = ['claim', 'settle', 'locks', 'extend', 'change', 'jobs', 'status', 'openSession', 'renew'] as const;

interface Cut extends Scene {
  /** The loop's way to the store. */
  loop: FaultyStore;
  cut(): void;
}

async function cutScene(engine: Engine): Promise<Cut> {
  const scene = await newScene(engine);
  const loop = new FaultyStore(engine === 'memory' ? scene.store : await openStore(scene.url), { reachableFromThreads: true });
  if (engine !== 'memory') onTestFinished(() => loop.close());
  const verbs = engine === 'memory' ? (['claim', 'settle'] as const) : VERBS;
  const cut = (): void => verbs.forEach((verb) => loop.on(verb, { fault: 'fail' }));
  return { ...scene, loop, cut };
}

const isRenewing = (engine: Engine, worker: Worker) =>
  until('the worker to renew', () => worker.health().lockThread === (engine === 'memory' ? 'loop' : 'thread'));

const stateOf = async (store: Store, id: string) => (await store.jobs('work', [id])).jobs[0];

describe.each(ENGINES)('the loop is cut off from %s, and the lock thread is not:', (engine) => {
  test('A11 another worker runs the job whose outcome is stuck, and the late outcome is refused; a job that runs keeps its lock', async () => {
    const scene = await cutScene(engine);
    const { loop, cut, store, queue } = scene;
    const [ends, lasts] = [newGate(), newGate()];
    const held: boolean[] = [];
    const { worker, log } = work(
      { connection: loop },
      async (job) => {
        await (job.name === 'ends' ? ends.opened : lasts.opened);
        held.push(job.lock.held);
        return 'first';
      },
      { ...OPTIONS, concurrency: 2 },
    );
    await isRenewing(engine, worker);
    const job = await queue.add('ends', {});
    await log.moment('active');
    const long = await queue.add('lasts', {});
    await log.moment('active', ({ args }) => (args as { id: string }[])[0]?.id === long.id);
    cut();
    ends.open();
    const second = work(scene, () => 'second', OPTIONS);
    await second.log.moment('completed');
    expect(await stateOf(store, job.id)).toMatchObject({ state: 'completed', returnvalue: '"second"', stalledCounter: 1 });
    expect((await stateOf(store, job.id))?.attemptsStarted).toBe(2);
    expect(JSON.parse((await stateOf(store, job.id))?.lostBy ?? '{}')).toMatchObject({ found: 'lock-expired' });
    expect(errorsWith(log, `outcome of job ${job.id}`)).toHaveLength(1);
    expect(worker.isHealthy()).toBe(false);
    expect(worker.health().reasons.join('\n')).toContain('OUTCOME_OVERDUE');
    // The job that runs is renewed all the time.
    await renewed(store, long.id, 3);
    loop.clear();
    await log.moment('error', (moment) => messageOf(moment).includes(`Could not settle job ${job.id}`));
    lasts.open();
    await log.moment('completed');
    expect(await stateOf(store, long.id)).toMatchObject({ returnvalue: '"first"', attemptsStarted: 1, stalledCounter: 0 });
    expect(held).toEqual([true, true]);
    expect(await stateOf(store, job.id)).toMatchObject({ returnvalue: '"second"' });
    await until('the worker to be healthy', () => worker.isHealthy());
  });

  test('A11 another worker runs a job whose claim the worker never heard of', async () => {
    const scene = await cutScene(engine);
    const { loop, cut, store, queue } = scene;
    loop.on('claim', { fault: 'drop-reply', when: (_, { count }) => count > 0 });
    const { id } = await queue.add('job', {});
    const ran: string[] = [];
    const { worker, log } = work({ connection: loop }, (job) => ran.push(job.id), OPTIONS);
    await until('the job to be claimed', async () => (await stateOf(store, id))?.state === 'active');
    await isRenewing(engine, worker);
    cut();
    const second = work(scene, () => 'second', OPTIONS);
    await second.log.moment('completed');
    loop.clear();
    await until('the worker to claim again', () => worker.isHealthy());
    expect(ran).toEqual([]);
    expect(await stateOf(store, id)).toMatchObject({ state: 'completed', returnvalue: '"second"', stalledCounter: 1 });
    expect(errorsWith(log, 'Could not settle')).toEqual([]);
  });

  test('A11 a job whose claim is heard of after its lock was given up goes back, and begins under another lock', async () => {
    const scene = await cutScene(engine);
    const { loop, cut, store, queue } = scene;
    loop.on('claim', { fault: 'drop-reply', when: (_, { count }) => count > 0 });
    const { id } = await queue.add('job', {});
    const ran: number[] = [];
    // Nothing sweeps, so that the store still lists the worker as the owner.
    const { worker, log } = work({ connection: loop }, (job) => ran.push(job.lock.fence), { ...OPTIONS, skipStalledCheck: true });
    await until('the job to be claimed', async () => (await stateOf(store, id))?.state === 'active');
    const [first] = (await store.locks('work', { jobIds: [id] })) as LockInfo[];
    await isRenewing(engine, worker);
    cut();
    const lock = async () => ((await store.locks('work', { jobIds: [id] })) as LockInfo[])[0];
    await until('the lock to be given up', async () => ((await lock())?.endsInMs ?? 1) <= 0);
    expect(await lock()).toMatchObject({ fence: first?.fence });
    loop.clear();
    await log.moment('completed');
    expect(ran).toHaveLength(1);
    expect(ran[0]).toBeGreaterThan(first?.fence ?? Number.POSITIVE_INFINITY);
    expect(await stateOf(store, id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
  });
});
