// S4: the heartbeat, as a worker's user sees it. What a store must do for it is in the conformance suite.
import { Queue, type WorkerOptions } from 'holdfast';
import { FaultyStore } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { errorsWith, messageOf, type Moment } from '../support/wait/moments.js';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { ENGINES, SHARED_ENGINES, newScene, orphan, renewed, type Scene, work } from '../support/scenes/scene.js';
import { wallClockShiftedBy } from '../support/servers/wall-clock.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const SHORT: WorkerOptions = { lockDuration: paced(400), lockRenewTime: paced(100) };
/** Where no renewal may be late: a busy disk can hold up a commit for longer than `SHORT` locks last. */
const LASTING: WorkerOptions = { lockDuration: paced(1500), lockRenewTime: paced(150) };

/** A connection that fails on command. Renewal goes through it too, so it is on the loop. */
function faulty(scene: Scene): FaultyStore {
  return new FaultyStore(scene.store);
}

function aboutJob(id: string): (moment: Moment) => boolean {
  return ({ args }) => (args as [{ id: string }])[0].id === id;
}

describe.each(ENGINES)('S4 heartbeat on %s', (engine) => {
  test('S4-1 renewal keeps a job for many lock durations; (N) its twin that is not renewed is recovered', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const kept = await scene.queue.add('kept');
    const long = work(scene, () => gate.opened, { ...SHORT, skipStalledCheck: true });
    await long.log.moment('active', aboutJob(kept.id));
    const twin = await scene.queue.add('twin');
    const silent = work(scene, () => gate.opened, { ...SHORT, skipLockRenewal: true, skipStalledCheck: true });
    await silent.log.moment('active', aboutJob(twin.id));
    const other = work(scene, () => 'recovered', { stalledInterval: 50 });
    await other.log.moment('completed', aboutJob(twin.id));
    await renewed(scene.store, kept.id, 8);
    gate.open();
    await long.log.moment('completed', aboutJob(kept.id));
    expect(other.log.all('stalled').map(({ args }) => args)).toEqual([[twin.id, 'active']]);
    expect(await scene.queue.getJob(kept.id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
    expect(await scene.queue.getJob(twin.id)).toMatchObject({ attemptsStarted: 2, stalledCounter: 1, returnvalue: 'recovered' });
    // The twin's own run came too late.
    await until('the refusal to be told', async () => errorsWith(silent.log, `Could not settle job ${twin.id}`).length > 0);
    expect(silent.log.all('completed')).toEqual([]);
  });

  test('S4-6 each job runs once while all slots are busy with jobs longer than the lock', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const runs = new Map<string, number>();
    const busy = work(
      scene,
      async ({ id }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1);
        await gate.opened;
      },
      { ...SHORT, concurrency: 5, stalledInterval: 50 },
    );
    const jobs = await scene.queue.addBulk(Array.from({ length: 5 }, () => ({ name: 'long' })));
    const rival = work(scene, ({ id }) => void runs.set(id, 100), { stalledInterval: 50, autorun: false });
    await until('all to run', async () => runs.size === 5);
    rival.worker.run().catch(() => undefined);
    // All of them hang on one session.
    await renewed(scene.store, jobs[0]?.id ?? '', 8);
    gate.open();
    await until('all to be done', async () => (await scene.queue.getCompletedCount()) === 5);
    expect([...runs.values()]).toEqual([1, 1, 1, 1, 1]);
    expect([...busy.log.all('stalled'), ...rival.log.all('stalled')]).toEqual([]);
  });

  test('S4-7 no call of the store and no event follows after close', async () => {
    const scene = await newScene(engine);
    const connection = faulty(scene);
    const { worker, log } = work({ connection }, () => 'done', { ...SHORT, stalledInterval: 20 });
    await scene.queue.add('one');
    await log.moment('completed');
    await worker.close();
    const verbs = ['renew', 'sweep', 'claim', 'settle', 'probe', 'openSession'] as const;
    const calls = verbs.map((verb) => connection.calls(verb));
    const told = log.moments.length;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(verbs.map((verb) => connection.calls(verb))).toEqual(calls);
    expect(log.moments).toHaveLength(told);
    expect(log.moments.at(-1)?.event).toBe('closed');
    expect(worker.isRunning()).toBe(false);
  });

  test('S4-8 heartbeats go on during close() until a job longer than the lock ends', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { worker, log } = work(scene, () => gate.opened.then(() => 'finished'), LASTING);
    const { id } = await scene.queue.add('long');
    await log.moment('active');
    const closing = worker.close();
    const rival = work(scene, () => 'stolen', { stalledInterval: 50 });
    // Longer than the lock lasts without a renewal.
    await renewed(scene.store, id, 12);
    gate.open();
    await closing;
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'finished', attemptsStarted: 1, stalledCounter: 0 });
    expect(rival.log.all('stalled')).toEqual([]);
    expect(log.all('error')).toEqual([]);
  });

  test('S4-9 a second run() is refused, and there is still one session with one beat per tick', async () => {
    const scene = await newScene(engine);
    const connection = faulty(scene);
    const gate = newGate();
    const { worker, log } = work({ connection }, () => gate.opened, { lockDuration: paced(2000), lockRenewTime: paced(200) });
    await expect(worker.run()).rejects.toMatchObject({ code: 'ALREADY_RUNNING' });
    await scene.queue.add('long');
    await log.moment('active');
    expect(await scene.store.sessions('work')).toHaveLength(1);
    const before = { calls: connection.calls('renew'), at: performance.now() };
    await connection.called('renew', before.calls + 5);
    expect(performance.now() - before.at).toBeGreaterThan(4 * 200 - 50);
    gate.open();
  });

  test('S4-14 the stall check runs while all slots are busy, and a free worker takes a delayed job when it is due', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { log } = work(scene, () => gate.opened, { stalledInterval: 50 });
    const busyWith = await scene.queue.add('long');
    await log.moment('active', aboutJob(busyWith.id));
    const dead = await orphan(scene, 100);
    expect((await log.moment('stalled'))['args']).toEqual([dead, 'active']);
    const delayed = await scene.queue.add('delayed', {}, { delay: 100 });
    const other = work(scene, () => 'done');
    await other.log.moment('completed', aboutJob(dead));
    await other.log.moment('completed', aboutJob(delayed.id));
    expect(log.all('completed')).toEqual([]);
    gate.open();
  });

  test('S4-15 an add whose reply is lost makes one job, and resolves once', async () => {
    const scene = await newScene(engine);
    const connection = faulty(scene);
    const queue = new Queue('work', { connection });
    onTestFinished(() => queue.close());
    queue.on('error', () => undefined);
    connection.on('add', { fault: 'drop-reply', times: 3 });
    const [single, [...bulk]] = [
      await queue.add('one', { n: 0 }),
      await queue.addBulk([
        { name: 'two', data: { n: 1 } },
        { name: 'three', data: { n: 2 } },
      ]),
    ];
    expect(single.duplicate).toBe(false);
    const runs: unknown[] = [];
    work(scene, ({ data }) => void runs.push(data.n));
    await until('all to be done', async () => (await scene.queue.getCompletedCount()) >= 3);
    expect(await scene.queue.getJobCounts('waiting', 'active', 'completed')).toMatchObject({
      waiting: 0,
      active: 0,
      completed: 3,
    });
    expect(new Set(runs)).toEqual(new Set([0, 1, 2]));
    expect(runs).toHaveLength(3);
    expect(new Set([single.id, ...bulk.map(({ id }) => id)]).size).toBe(3);
  });

  test('S4-15 (N) a producer that repeats an add as a new call doubles the job', async () => {
    const scene = await newScene(engine);
    const connection = faulty(scene);
    connection.on('add', { fault: 'drop-reply', times: 1 });
    const job = { name: 'one', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
    await expect(connection.add('work', [job], { caller: 'careless', seq: 1 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    });
    await connection.add('work', [job], { caller: 'careless', seq: 2 });
    expect(await scene.queue.getWaitingCount()).toBe(2);
  });

  test('S4-15 every job runs once, and none is reported lost, when replies of claims and finishes are lost at random', async () => {
    const scene = await newScene(engine);
    const connection = faulty(scene);
    let calls = 0;
    const everyThird = (): boolean => ++calls % 3 === 0;
    connection.on('claim', { fault: 'drop-reply', when: everyThird });
    connection.on('settle', { fault: 'drop-reply', when: everyThird });
    const runs: string[] = [];
    const { log } = work({ connection }, ({ id }) => void runs.push(id), { concurrency: 3 });
    const jobs = await scene.queue.addBulk(
      Array.from({ length: 30 }, (_, n) => ({ name: 'job', opts: { removeOnComplete: n % 2 === 0 } })),
    );
    await until('all to be told', async () => log.all('completed').length === 30);
    expect(runs.toSorted()).toEqual(jobs.map(({ id }) => id).toSorted());
    expect(
      log
        .all('error')
        .map(messageOf)
        .filter((message) => !message.includes('reply was dropped')),
    ).toEqual([]);
    expect(await scene.queue.getJobCounts('waiting', 'active', 'failed')).toMatchObject({ waiting: 0, active: 0, failed: 0 });
  });
});

describe.each(SHARED_ENGINES)('S4-14 clocks on %s', (engine) => {
  const MINUTES = 5 * 60_000;

  /** A worker on a host whose wall clock is wrong from the beginning. */
  async function skewed({ connection }: Scene, name: string, ms: number): Promise<WorkerProcess> {
    const options = { name, lockDuration: paced(800), lockRenewTime: paced(200), stalledInterval: 50, crashGraceMs: 100 };
    const skewedOne = new WorkerProcess({ queue: 'work', connection, options }, 'worker.mjs', await wallClockShiftedBy(ms));
    const { wall } = await skewedOne.moment('clock');
    expect(Math.abs((wall as number) - Date.now() - ms)).toBeLessThan(60_000);
    await skewedOne.moment('ready');
    return skewedOne;
  }

  test('S4-14 with five minutes of clock skew two workers take nothing from each other, and each recovers the other', async () => {
    const scene = await newScene(engine);
    const early = await skewed(scene, 'early', -MINUTES);
    const { id } = await scene.queue.add('hold', { only: 'early' });
    await early.moment('started');
    const late = await skewed(scene, 'late', MINUTES);
    await renewed(scene.store, id, 3);
    expect(late.all('stalled')).toEqual([]);
    early.kill('SIGKILL');
    expect((await late.moment('stalled'))['args']).toEqual([id, 'active']);
    await late.moment('completed');
    const second = await scene.queue.add('hold', { only: 'late' });
    await late.moment('started', ({ jobId }) => jobId === second.id);
    const next = await skewed(scene, 'next', -MINUTES);
    await renewed(scene.store, second.id, 3);
    expect(next.all('stalled')).toEqual([]);
    late.kill('SIGKILL');
    await next.moment('completed');
    expect(await scene.queue.getJob(second.id)).toMatchObject({ returnvalue: { by: 'next' }, stalledCounter: 1 });
  });
});

test('S4-9 two workers of one process share one beat, which goes on when one of them is closed', async () => {
  const scene = await newScene('memory');
  const gates = { first: newGate(), second: newGate() };
  const first = work(scene, () => gates.first.opened, SHORT);
  await scene.queue.add('a');
  await first.log.moment('active');
  const second = work(scene, () => gates.second.opened, SHORT);
  const { id } = await scene.queue.add('b');
  await second.log.moment('active');
  gates.first.open();
  await first.worker.close();
  await renewed(scene.store, id, 6);
  gates.second.open();
  await second.log.moment('completed');
  expect(second.log.all('error')).toEqual([]);
});
