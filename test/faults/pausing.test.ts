// Pausing, resuming, changing the concurrency and being frozen while calls are under way.
import { describe, expect, test } from 'vitest';
import { ENGINES, messagesOf, next, scene } from '../support/scenes/faulty-scene.js';
import { outcomeOf, sleep, until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';

describe.each(ENGINES)('a worker that is paused, slowed or stuck on %s', (engine) => {
  test('hands back the job of a claim in flight on pause(), without a stall, and runs it after resume()', async () => {
    const { add, worker, store, reaches } = await scene(engine);
    const { worker: watched } = worker(() => 'done');
    await next(watched, 'ready');
    const held = store.on('claim', { fault: 'hold-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    await until('the claim to be held', () => held.holding > 0);
    const pausing = watched.pause();
    held.release();
    await pausing;
    expect(await reaches(id, 'waiting')).toMatchObject({ stalledCounter: 0, attemptsMade: 0 });
    expect(watched.isPaused()).toBe(true);
    watched.resume();
    expect(await reaches(id, 'completed')).toMatchObject({ stalledCounter: 0, attemptsMade: 1 });
  });

  test('waits for running jobs on pause(), not on pause(true), and claims no more after both', async () => {
    const { add, worker, record } = await scene(engine);
    const finish = newGate();
    const first = await add();
    const { worker: watched } = worker(() => finish.opened);
    await next(watched, 'active');
    const second = await add();
    expect(await outcomeOf(watched.pause(true), paced(3000))).toBe('resolved');
    watched.resume();
    const pausing = watched.pause();
    expect(await outcomeOf(pausing, 50)).toBe('pending');
    finish.open();
    await pausing;
    expect(await record(first)).toMatchObject({ state: 'completed' });
    expect(await record(second)).toMatchObject({ state: 'waiting', attemptsStarted: 0 });
  });

  test('runs a job once when pause() and resume() are called while its claim is in flight', async () => {
    const { add, worker, store, reaches } = await scene(engine);
    const { worker: watched } = worker(() => 'done');
    await next(watched, 'ready');
    const held = store.on('claim', { fault: 'hold-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    await until('the claim to be held', () => held.holding > 0);
    void watched.pause(true);
    watched.resume();
    held.release();
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1 });
  });

  test('claims more at once when concurrency is raised, and none until enough have ended when it is lowered', async () => {
    const { add, worker } = await scene(engine);
    for (let count = 0; count < 8; count += 1) await add();
    const finishes: (() => void)[] = [];
    let running = 0;
    let most = 0;
    const { worker: watched } = worker(async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => finishes.push(resolve));
      running -= 1;
    });
    await until('one to run', () => running === 1);
    watched.concurrency = 4;
    await until('four to run', () => running === 4);
    watched.concurrency = 2;
    for (const finish of finishes.splice(0, 2)) finish();
    await until('two to end', () => running === 2);
    await sleep(50);
    expect(running).toBe(2);
    finishes.shift()?.();
    await until('another to start', () => finishes.length === 2);
    expect(running).toBe(2);
    expect(most).toBe(4);
    watched.concurrency = 100;
    await until('the rest to run', () => running === 5);
    for (const finish of finishes) finish();
    expect(watched.opts.concurrency).toBe(100);
    for (const wrong of [0, -1, 1.5, Number.NaN]) expect(() => (watched.concurrency = wrong)).toThrow(/concurrency/);
  });

  test('reports a claim that hangs, and repeats it', async () => {
    const { add, worker, store, reaches } = await scene(engine);
    store.on('claim', { fault: 'hang', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    const { errors } = worker(() => 'done', { lockDuration: paced(300) });
    expect(await reaches(id, 'completed')).toMatchObject({ attemptsStarted: 1 });
    expect(messagesOf(errors, 'does not answer')).toHaveLength(1);
  });

  test('reports a finish that hangs, repeats it, and counts it once when both arrive', async () => {
    const { add, worker, store, record, reaches } = await scene(engine);
    const hung = store.on('settle', { fault: 'hang', times: 1 });
    const id = await add();
    const { worker: watched } = worker(() => 'done', { lockDuration: paced(300) });
    await next(watched, 'completed');
    const before = await reaches(id, 'completed');
    // The first one arrives after all.
    const late = store.answered('settle');
    hung.release();
    await late;
    expect(await record(id)).toEqual(before);
    expect(before).toMatchObject({ attemptsMade: 1 });
  });

  test('does not start jobs behind a blocking handler whose locks ended meanwhile', async () => {
    const { add, worker, reaches } = await scene(engine);
    const ids = [await add(), await add(), await add()];
    const starts: { id: string; held: boolean }[] = [];
    worker(
      (job) => {
        starts.push({ id: job.id, held: job.lock.held });
        const end = performance.now() + (starts.length === 1 ? paced(400) : 0);
        while (performance.now() < end);
      },
      { concurrency: 3, lockDuration: paced(150), skipStalledCheck: true },
    );
    for (const id of ids) expect(await reaches(id, 'completed')).toMatchObject({ attemptsMade: 1, stalledCounter: 0 });
    expect(starts).toHaveLength(3);
    expect(starts.every(({ held }) => held)).toBe(true);
  });

  test('starts nothing when the reply of a claim comes after the session has lapsed', async () => {
    const { add, worker, store, reaches, inner, queue } = await scene(engine);
    const held = store.on('claim', { fault: 'hold-reply', times: 1, when: (_, { count }) => count > 0 });
    const id = await add();
    const starts: string[] = [];
    const { worker: frozen, errors } = worker(() => starts.push('frozen'), { lockDuration: paced(300), skipStalledCheck: true });
    await until('the claim to be held', () => held.holding > 0);
    const heldSince = performance.now();
    // As if the whole process had been stopped: nothing renews, nothing else is claimed, and the answer lies unread.
    const stopped = (['renew', 'openSession', 'claim'] as const).map((verb) => store.on(verb, { fault: 'hang' }));
    await until('the session to be reaped', async () => (await inner.sweep(queue, 10)).stalled.length > 0);
    const { worker: other } = worker(() => starts.push('other'), { connection: inner });
    expect(await reaches(id, 'completed')).toMatchObject({ stalledCounter: 1 });
    // After five seconds the worker repeats its claim, and no longer waits for the first reply.
    const isLate = performance.now() - heldSince > 4_000;
    held.release();
    for (const outage of stopped) outage.remove();
    await until('the frozen worker to have a new session', () => store.calls('openSession') > 1);
    await Promise.all([frozen.close(), other.close()]);
    expect(starts).toEqual(['other']);
    const refusals = messagesOf(errors, `Job ${id} was not started`).length;
    expect(refusals).toBe(isLate ? Math.min(refusals, 1) : 1);
    expect(messagesOf(errors, 'Could not settle')).toEqual([]);
  });
});
