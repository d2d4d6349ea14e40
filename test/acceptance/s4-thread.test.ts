// Lines of S4 that need a store which fails on command, with the lock thread in its place: the faults strike the connection of the thread alone. Those
// about beats hold on the event loop as well.
import { type Connection, openStore } from 'holdfast';
import { FaultyStore, type RenewReply } from 'holdfast/testing';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FaultySides, type Rule } from '../support/faults/faulty-thread.js';
import { errorsWith, monotonicNow } from '../support/wait/moments.js';
import { type Engine, ENGINES, LOCK_ENGINES, newScene, orphan, renewed, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const LOCK_MS = paced(1200);
const SHORT = { lockDuration: LOCK_MS, lockRenewTime: Math.round(LOCK_MS / 6), crashGraceMs: 10 * LOCK_MS };

interface Beats {
  connection: Connection;
  /** Resolves when the side that is meant renews. */
  ready(): Promise<void>;
  strike(rule: Rule): Promise<unknown>;
  /** Lets go of what was held up, and returns the reply to it. */
  heal(): Promise<RenewReply[]>;
}

function onThread(scene: Scene): Beats {
  const sides = new FaultySides(scene);
  return {
    connection: sides.connection,
    ready: () => sides.threadRenews(),
    strike: (rule) => sides.strike('thread', 'renew', rule),
    heal: async () => {
      const healedAt = monotonicNow();
      await sides.heal('thread');
      return (await sides.answered('thread', 'renew', healedAt))['reply'] as RenewReply[];
    },
  };
}

/** Renewal goes through a store of this thread too, so it is on the loop. */
function onLoop(scene: Scene): Beats {
  const connection = new FaultyStore(scene.store);
  return {
    connection,
    ready: async () => void (await connection.answered('renew', 1)),
    strike: async (rule) => connection.on('renew', rule),
    heal: async () => {
      const answered = connection.answered('renew');
      connection.clear();
      return (await answered).reply ?? [];
    },
  };
}

const BEATS: [engine: Engine, side: string, beats: (scene: Scene) => Beats][] = [
  ...ENGINES.map((engine): (typeof BEATS)[0] => [engine, 'loop', onLoop]),
  ...LOCK_ENGINES.map((engine): (typeof BEATS)[0] => [engine, 'thread', onThread]),
];

describe.each(BEATS)('S4 beats on %s by the %s', (engine, _, beatsOf) => {
  test('S4-2 a heartbeat that comes too late revives nothing', async () => {
    const scene = await newScene(engine);
    const beats = beatsOf(scene);
    const gate = newGate();
    let held: boolean | undefined;
    const slow = work(
      beats,
      async ({ lock }) => {
        await gate.opened;
        held = lock.held;
        return 'too late';
      },
      { ...SHORT, skipStalledCheck: true },
    );
    await beats.ready();
    const job = await scene.queue.add('slow');
    await slow.log.moment('active');
    const before = (await scene.store.locks('work', { jobIds: [job.id] }))[0];
    await beats.strike({ fault: 'hang' });
    await slow.worker.pause(true);
    const otherGate = newGate();
    const other = work(scene, () => otherGate.opened.then(() => 'in time'), { stalledInterval: 50 });
    await other.log.moment('active');
    // All the beats that were held up arrive now.
    expect((await beats.heal()).every(({ alive }) => !alive)).toBe(true);
    const after = (await scene.store.locks('work', { jobIds: [job.id] }))[0];
    expect(after?.session).not.toBe(before?.session);
    expect(after?.fence).toBeGreaterThan(before?.fence ?? Number.POSITIVE_INFINITY);
    gate.open();
    await until('the refusal to be told', async () => errorsWith(slow.log, `Could not settle job ${job.id}`).length > 0);
    expect(held).toBe(false);
    expect(errorsWith(slow.log, `could not renew lock for job ${job.id}`)).toHaveLength(1);
    expect((await scene.store.locks('work', { jobIds: [job.id] }))[0]).toMatchObject({ token: after?.token });
    otherGate.open();
    await other.log.moment('completed');
    expect(await scene.queue.getJob(job.id)).toMatchObject({ returnvalue: 'in time', stalledCounter: 1 });
  });

  test('S4-14 one beat that is lost, or whose reply is lost, stalls nothing', async () => {
    const scene = await newScene(engine);
    const beats = beatsOf(scene);
    const gate = newGate();
    const busy = work(beats, ({ lock }) => gate.opened.then(() => lock.held), { ...SHORT, skipStalledCheck: true });
    await beats.ready();
    const job = await scene.queue.add('long');
    await busy.log.moment('active');
    const rival = work(scene, () => 'stolen', { stalledInterval: 50 });
    await rival.log.moment('ready');
    for (const fault of ['fail', 'drop-reply'] as const) {
      const errors = busy.log.all('error').length;
      await beats.strike({ fault, times: 1 });
      await until('the lost beat to be told', async () => busy.log.all('error').length > errors);
      await renewed(scene.store, job.id, 8);
    }
    gate.open();
    await busy.log.moment('completed');
    expect(busy.log.all('error')).toHaveLength(2);
    expect(rival.log.all('stalled')).toEqual([]);
    expect(await scene.queue.getJob(job.id)).toMatchObject({ returnvalue: true, attemptsStarted: 1, stalledCounter: 0 });
  });
});

describe.each(LOCK_ENGINES)('S4 with the thread on %s', (engine) => {
  test('S4-12 a job fails once, and is reported once, when the reply to a sweep of the thread is lost', async () => {
    const scene = await newScene(engine);
    const sides = new FaultySides(scene);
    // One for both workers, so that a fault of the loop strikes the one that comes later too.
    const connection = await openStore(sides.connection);
    onTestFinished(() => connection.close());
    const dying = work({ connection }, () => undefined, { stalledInterval: 60_000, maxStalledCount: 0 });
    await sides.threadRenews();
    await dying.worker.pause();
    const id = await orphan(scene, 50, 0);
    // A worker that has just come sweeps on the loop until the thread has taken over.
    for (const side of ['loop', 'thread'] as const) await sides.strike(side, 'sweep', { fault: 'drop-reply' });
    const swept = sides.count('called', 'thread', 'sweep');
    const sweeping = work({ connection }, () => undefined, { stalledInterval: 30, maxStalledCount: 0, autorun: false });
    await sweeping.worker.startStalledCheckTimer();
    await until('the job to be failed', async () => (await (await scene.queue.getJob(id))?.getState()) === 'failed');
    await until('the thread to sweep', async () => sides.count('called', 'thread', 'sweep') > swept);
    await Promise.all([dying.worker.close(), sweeping.worker.close()]);
    const next = work(scene, () => 'run again', { stalledInterval: 30 });
    await until('it to have swept', async () => (await scene.store.sweep('work', 10)).more === false);
    expect([...dying.log.all('failed'), ...sweeping.log.all('failed'), ...next.log.all('stalled')]).toEqual([]);
    const { events } = await scene.store.events('work', 0, 1000);
    expect(events.filter(({ jobId, name }) => jobId === id && name === 'failed')).toHaveLength(1);
    expect(await scene.queue.getJob(id)).toMatchObject({ stalledCounter: 1 });
  });

  test('S4-15 a finish is delivered late, and no other worker runs the job, while only the connection of the loop is dead', async () => {
    const scene = await newScene(engine);
    const sides = new FaultySides(scene);
    const gate = newGate();
    const busy = work(sides, () => gate.opened.then(() => 'done'), { ...SHORT, skipStalledCheck: true });
    await sides.threadRenews();
    const job = await scene.queue.add('long');
    await busy.log.moment('active');
    const rival = work(scene, () => 'stolen', { stalledInterval: 50 });
    await rival.log.moment('ready');
    for (const verb of ['settle', 'claim'] as const) await sides.strike('loop', verb, { fault: 'drop-reply' });
    gate.open();
    await renewed(scene.store, job.id, 8).catch(() => undefined);
    await sides.heal('loop');
    await busy.log.moment('completed');
    expect(rival.log.all('active')).toEqual([]);
    expect(await scene.queue.getJob(job.id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1, stalledCounter: 0 });
  });
});
