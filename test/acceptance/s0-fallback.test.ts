// S0-8, S0-9, S0-16: the lock thread cannot start, cannot reach the store, or loses it. Locks are renewed all the same.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkerOptions } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { detour } from '../support/servers/detour.js';
import { messageOf, type Moment } from '../support/wait/moments.js';
import { newScene, renewed, type Scene, SERVER_ENGINES, SHARED_ENGINES, work, type Working } from '../support/scenes/scene.js';
import { watched, type Watched } from '../support/faults/watched-store.js';
import type { FaultProxy } from '../support/servers/proxy.js';
import { paced } from '../support/wait/pace.js';
import { newGate, type Gate } from '../support/wait/gate.js';
import { until } from '../support/wait/until.js';

const options = { lockDuration: paced(1000), lockRenewTime: paced(150), stalledInterval: 100 } satisfies WorkerOptions;

const isStartFailure = (moment: Moment): boolean => messageOf(moment).includes('Failed to initialize dedicated lock thread');

/** A job that outlives its lock if nobody renews it, and nothing but it. */
async function holdsThrough(scene: Scene, { log }: Working, gate: Gate): Promise<void> {
  const { id } = await scene.queue.add('long', {});
  await log.moment('active');
  await renewed(scene.store, id, 8);
  gate.open();
  await log.moment('completed');
  expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1, stalledCounter: 0 });
  expect(log.all('stalled')).toEqual([]);
  expect(log.all('lockRenewalFailed')).toEqual([]);
}

describe.each(SHARED_ENGINES)('S0-8 the thread cannot start, on %s', (engine) => {
  test('S0-8 a missing entry file is reported, and the loop renews', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const working = work(scene, () => gate.opened.then(() => 'done'), {
      ...options,
      lockThreadEntry: join(scene.folder, 'missing.js'),
    });
    const error = await working.log.moment('error', isStartFailure);
    expect(messageOf(error)).toContain('missing.js');
    expect(messageOf(error)).toContain('renewed on the event loop');
    expect(working.worker.lockManagerThread?.isRunning()).toBe(false);
    await holdsThrough(scene, working, gate);
  });

  test('S0-8 an entry file that throws is reported, and the loop renews', async () => {
    const scene = await newScene(engine);
    const entry = join(scene.folder, 'broken.mjs');
    writeFileSync(entry, 'throw new Error("broken on purpose");');
    const gate = newGate();
    const working = work(scene, () => gate.opened.then(() => 'done'), { ...options, lockThreadEntry: entry });
    expect(messageOf(await working.log.moment('error', isStartFailure))).toContain('broken on purpose');
    await holdsThrough(scene, working, gate);
  });

  test('S0-8 a dead address is reported, the loop renews, and the thread takes over once the address replies', async () => {
    const scene = await newScene(engine);
    const closed = join(scene.folder, 'closed');
    writeFileSync(closed, '');
    const { connection, renewals, threadRenews } = watched(scene, { closed });
    const gate = newGate();
    const working = work({ connection }, () => gate.opened.then(() => 'done'), options);
    const error = await working.log.moment('error', isStartFailure);
    expect(messageOf(error)).toContain('nobody listens at this address');
    expect(messageOf(error)).toContain('renewed on the event loop');
    expect(working.worker.lockManagerThread?.isRunning()).toBe(false);
    const { id } = await scene.queue.add('long', {});
    await working.log.moment('active');
    await renewed(scene.store, id, 8);
    expect(renewals().every(({ thread }) => !thread)).toBe(true);
    rmSync(closed);
    await threadRenews();
    await until('the worker knows', async () => working.worker.lockManagerThread?.isRunning() === true);
    gate.open();
    await working.log.moment('completed');
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1, stalledCounter: 0 });
  });

  test('S0-8 (N) a thread that starts renews alone, without an error', async () => {
    const scene = await newScene(engine);
    const { connection, renewals } = watched(scene, {});
    const gate = newGate();
    const working = work({ connection }, () => gate.opened.then(() => 'done'), options);
    await until('the thread takes over', async () => working.worker.health().lockThread === 'thread');
    await holdsThrough(scene, working, gate);
    expect(working.log.all('error')).toEqual([]);
    expect(
      renewals()
        .slice(-5)
        .every(({ thread }) => thread),
    ).toBe(true);
  });
});

describe.each(SHARED_ENGINES)('S0-9 only the connection of the thread is cut, on %s', (engine) => {
  test('S0-9 each failed attempt emits an error, renewals resume after the reconnect, and the job finishes', async () => {
    const scene = await newScene(engine);
    const cut = join(scene.folder, 'cut');
    const { connection, renewals, threadRenews } = watched(scene, { cut });
    const gate = newGate();
    const { log: told } = work({ connection }, () => gate.opened.then(() => 'done'), options);
    const { id } = await scene.queue.add('long', {});
    await told.moment('active');
    await threadRenews();
    writeFileSync(cut, '');
    await until('three attempts fail', async () => renewals().filter(({ failed }) => failed).length >= 3);
    rmSync(cut);
    await renewed(scene.store, id, 3);
    const attempts = renewals().filter(({ failed }) => failed).length;
    await until('all are told', async () => told.all('error').length >= attempts);
    expect(told.all('error').map(messageOf)).toEqual(Array<string>(attempts).fill('the connection of the thread was cut'));
    gate.open();
    await told.moment('completed');
    expect(told.all('lockRenewalFailed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1, stalledCounter: 0 });
  });

  test('S0-9 (N) a cut longer than the lock loses it, and aborts the signal of its handler', async () => {
    const scene = await newScene(engine);
    const cut = join(scene.folder, 'cut');
    const { connection, threadRenews } = watched(scene, { cut });
    let held: boolean | undefined;
    const gate = newGate();
    const processor = async (job: { lock: { held: boolean } }, _token: string, signal: AbortSignal) => {
      signal.addEventListener('abort', () => {
        held = job.lock.held;
      });
      await gate.opened;
      return 'too late';
    };
    const { log: told } = work({ connection }, processor, { ...options, skipStalledCheck: true });
    const { id } = await scene.queue.add('long', {});
    await told.moment('active');
    await threadRenews();
    const second = work(scene, async () => 'second', options);
    writeFileSync(cut, '');
    await told.moment('lockRenewalFailed');
    expect(messageOf(await told.moment('error', (moment) => messageOf(moment).includes('could not renew lock')))).toContain(id);
    expect(held).toBe(false);
    await second.log.moment('completed');
    rmSync(cut);
    gate.open();
    await told.moment('error', (moment) => messageOf(moment).includes('Could not settle'));
    expect((await scene.queue.getJob(id))?.returnvalue).toBe('second');
  });
});

describe.each(SERVER_ENGINES)('S0-9 the connection of the thread, and no other, goes through a bad network, on %s', (engine) => {
  async function throughProxy(scene: Scene): Promise<Watched & { proxy: FaultProxy }> {
    const { proxy, connection: threadConnection } = await detour(engine, scene.url);
    return { proxy, ...watched(scene, { threadConnection }) };
  }

  test('S0-9 three cuts emit an error for each failed attempt, the thread reconnects, and the job finishes', async () => {
    const scene = await newScene(engine);
    const { proxy, connection, renewals, threadRenews } = await throughProxy(scene);
    const failures = (): number => renewals().filter(({ failed }) => failed).length;
    // Of one Redis, renewals are all that comes. Elsewhere a new connection begins with other calls: who vouches for the sessions.
    const times = engine === 'redis' ? 1 : Number.POSITIVE_INFINITY;
    const gate = newGate();
    // Without sweeps, and with a grace that is no shorter than the lock, renewals are all that the thread sends.
    const quiet = { ...options, skipStalledCheck: true, crashGraceMs: options.lockDuration };
    const { log: told } = work({ connection }, () => gate.opened.then(() => 'done'), quiet);
    const { id } = await scene.queue.add('long', {});
    await told.moment('active');
    for (let cuts = 1; cuts <= 3; cuts += 1) {
      await threadRenews();
      const before = failures();
      proxy.dropReplies({ times });
      await until('an attempt fails', async () => failures() > before);
      proxy.heal();
    }
    await threadRenews();
    await renewed(scene.store, id, 3);
    const attempts = failures();
    await until('all are told', async () => told.all('error').length >= attempts);
    gate.open();
    await told.moment('completed');
    if (times === 1) expect({ attempts, ...proxy.counts }).toMatchObject({ attempts: 3, dropped: 3, opened: 4 });
    expect(told.all('error')).toHaveLength(attempts);
    for (const error of told.all('error')) expect(error).toMatchObject({ args: [{ code: 'STORE_UNAVAILABLE' }] });
    expect(told.all('lockRenewalFailed')).toEqual([]);
    expect(await scene.queue.getJob(id)).toMatchObject({ returnvalue: 'done', attemptsStarted: 1, stalledCounter: 0 });
  });

  test('S0-9 (N) a half-open connection longer than the lock loses it, aborts the signal, and the thread comes back', async () => {
    const scene = await newScene(engine);
    const { proxy, connection, renewals, threadRenews } = await throughProxy(scene);
    const signals: AbortSignal[] = [];
    const gate = newGate();
    const processor = async (_job: unknown, _token: string, signal: AbortSignal) => {
      signals.push(signal);
      await gate.opened;
      return 'too late';
    };
    const { log: told } = work({ connection }, processor, { ...options, skipStalledCheck: true });
    const { id } = await scene.queue.add('long', {});
    await told.moment('active');
    await threadRenews();
    proxy.swallow('both');
    const second = work(scene, async () => 'second', options);
    await told.moment('lockRenewalFailed');
    expect(String(signals[0]?.reason)).toContain('lock lost');
    await second.log.moment('completed');
    gate.open();
    await told.moment('error', (moment) => messageOf(moment).includes('Could not settle'));
    expect((await scene.queue.getJob(id))?.returnvalue).toBe('second');
    await second.worker.close();
    const before = renewals().length;
    proxy.heal();
    await until('the thread renews again', async () =>
      renewals()
        .slice(before)
        .some(({ thread, failed }) => thread && !failed),
    );
    const next = await scene.queue.add('next', {});
    await told.moment('completed', ({ args }) => (args as { id: string }[])[0]?.id === next.id);
  });
});

describe.each(SERVER_ENGINES)('S0-16 connection options that cannot be cloned, on %s', (engine) => {
  class Credentials {
    readonly user = 'me';
  }

  test.each<[path: string, extra: Record<string, unknown>]>([
    ['connection.auth.sign', { auth: { sign: () => 'signed' } }],
    ['connection.auth.credentials', { auth: { credentials: new Credentials() } }],
    ['connection.seeds[1]', { seeds: ['a', new Map()] }],
  ])('S0-16 %s is named, and locks are renewed on the loop', async (path, extra) => {
    const rejections: unknown[] = [];
    const note = (reason: unknown) => rejections.push(reason);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const scene = await newScene(engine);
    const connection = { url: scene.url, ...extra };
    const gate = newGate();
    const working = work({ connection }, () => gate.opened.then(() => 'done'), options);
    const error = await working.log.moment('error');
    expect(messageOf(error)).toContain('Failed to initialize dedicated lock thread');
    expect(messageOf(error)).toContain(path);
    expect(messageOf(error)).toContain('renewed on the event loop');
    await holdsThrough(scene, working, gate);
    expect(working.worker.lockManagerThread?.isRunning()).toBe(false);
    expect(working.log.all('error')).toHaveLength(1);
    expect(rejections).toEqual([]);
  });
});

test('S0-16 on sqlite, options that the store does not use do not keep the thread from running', async () => {
  const scene = await newScene('sqlite');
  const gate = newGate();
  const connection = { url: scene.url, retryStrategy: () => 50 };
  const working = work({ connection }, () => gate.opened.then(() => 'done'), options);
  await holdsThrough(scene, working, gate);
  expect(working.worker.lockManagerThread?.isRunning()).toBe(true);
  expect(working.log.all('error')).toEqual([]);
});
