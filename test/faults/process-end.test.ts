// A process that ends with jobs in its hands: if its lock thread can still call the store, it hands them back at once, as stalls or not.
// Runs the built package, for the lock thread is part of it.
import { hostname } from 'node:os';
import { type Store, Worker } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { type Engine, LOCK_ENGINES, newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { type Program, runFixture } from '../support/processes/fixture.js';
import { until } from '../support/wait/until.js';
import { freePort } from '../support/servers/free-port.js';
import { stopwatch } from '../support/wait/stopwatch.js';

interface Place extends Scene {
  start(options?: object): Program;
}

async function place(engine: Engine = 'sqlite'): Promise<Place> {
  const scene = await newScene(engine);
  return { ...scene, start: (options = {}) => runFixture('ending.mjs', { connection: scene.url, options }) };
}

/** The thread has taken over, so that it is there to hand back. */
async function threadRenews(store: Store): Promise<void> {
  await until('the lock thread to renew', async () => (await store.sessions('work')).some(({ renewals }) => renewals > 0));
}

// Long enough that neither expiry nor the crash hint can be what brings the job back.
const PATIENT = { lockDuration: 60_000, crashGraceMs: 60_000 };

describe.each(oneInThisRun(LOCK_ENGINES))('the end of a process on %s', (engine) => {
  test.each([
    ['exit', 3, 0],
    ['exitLater', 0, 0],
    ['uncaught', 1, 1],
    ['rejection', 1, 1],
    ['survive', 0, 0],
  ])('a process that ends by %s (code %i): its job is free before it is gone, with %i stalls', async (ending, code, stalls) => {
    const { queue, store, start } = await place(engine);
    const program = start(PATIENT);
    await threadRenews(store);
    const job = await queue.add(ending, {});
    const end = await program.ended;
    expect(end, end.stderr).toMatchObject({ code });
    expect((await store.jobs('work', [job.id])).jobs[0]).toMatchObject({
      state: 'waiting',
      stalledCounter: stalls,
      attemptsMade: 0,
    });
    const lostBy = (await queue.getJob(job.id))?.lostBy;
    if (stalls === 0) expect(lostBy).toBeUndefined();
    else expect(lostBy).toMatchObject({ host: hostname(), pid: program.child.pid, found: 'exit' });
    expect(await store.sessions('work')).toEqual([]);
  });

  test('fails a job for good that kills its process by an exception more often than the stall limit', async () => {
    const { queue, store, start } = await place(engine);
    const program = start({ ...PATIENT, maxStalledCount: 0 });
    await threadRenews(store);
    const job = await queue.add('uncaught', {});
    await program.ended;
    expect((await store.jobs('work', [job.id])).jobs[0]).toMatchObject({
      state: 'failed',
      failedReason: 'job stalled more than allowable limit',
    });
  });

  test('(N) leaves the job to a sweep without the lock thread', async () => {
    const { queue, store, start } = await place(engine);
    const program = start({ ...PATIENT, useDedicatedLockThread: false });
    const job = await queue.add('exit', {});
    await program.ended;
    expect((await store.jobs('work', [job.id])).jobs[0]).toMatchObject({ state: 'active' });
  });
});

test.each(SHARED_ENGINES)('%s: a process ends by itself after close(true), and hands its job back then', async (engine) => {
  const { queue, store, start } = await place(engine);
  const program = start(PATIENT);
  await threadRenews(store);
  const job = await queue.add('forced', {});
  expect(await program.ended).toMatchObject({ code: 0, signal: null });
  expect((await store.jobs('work', [job.id])).jobs[0]).toMatchObject({ state: 'waiting', stalledCounter: 0 });
});

test.each(SHARED_ENGINES)('%s: a process whose queue is idle and was never closed ends by itself', async (engine) => {
  const { queue, url } = await place(engine);
  const end = await runFixture('idle-queue.mjs', { connection: url }).ended;
  expect(end).toEqual({ code: 0, signal: null, stderr: '' });
  expect((await queue.getJobs(['waiting'])).map(({ name }) => name)).toEqual(['last']);
});

test.each([
  ['redis', (port: number) => `redis://127.0.0.1:${port}`],
  ['redis-cluster', (port: number) => ({ cluster: [{ host: '127.0.0.1', port }] })],
  ['postgres', (port: number) => `postgres://postgres@127.0.0.1:${port}/postgres`],
  ['sqlite', () => 'sqlite:/dev/null/jobs.db'],
])('%s: a process that could not open its store ends at once', async (_engine, connectionTo) => {
  const program = runFixture('failed-open.mjs', { connection: connectionTo(await freePort()) });
  await program.says('failed');
  const took = stopwatch();
  expect(await program.ended).toEqual({ code: 0, signal: null, stderr: '' });
  expect(took()).toBeLessThan(paced(1000));
});

test.each(['SIGINT', 'SIGUSR2'] as const)(
  'the process of an idle worker ends at once and silently after close(true) (%s)',
  async (signal) => {
    const { store, start } = await place();
    const program = start({ lockDuration: 30_000 });
    await threadRenews(store);
    const took = stopwatch();
    program.child.kill(signal);
    expect(await program.ended).toEqual({ code: 0, signal: null, stderr: '' });
    expect(took()).toBeLessThan(paced(5000));
  },
);

test.each(['nobodyListens', 'throwingListener'])(
  'an error event without a working listener (%s) is printed and does not end the process',
  async (ending) => {
    const { queue, start } = await place();
    const program = start();
    const completed = program.says('completed');
    const first = await queue.add(ending, {});
    await completed;
    const again = program.says('completed');
    const second = await queue.add('nobodyListens', {});
    await again;
    program.child.kill('SIGTERM');
    const end = await program.ended;
    expect(end, end.stderr).toMatchObject({ code: 0, signal: null });
    expect(end.stderr).toContain(ending === 'nobodyListens' ? 'for nobody' : 'a listener broke');
    for (const { id } of [first, second]) expect((await queue.getJob(id))?.returnvalue).toBe('still here');
  },
);

test('a worker that is killed is noticed by its lock file: its job runs elsewhere within 5 s under default options', async () => {
  const { queue, connection, start } = await place();
  const program = start();
  const started = program.says('started');
  const job = await queue.add('stay', {});
  await started;
  program.child.kill('SIGKILL');
  const took = stopwatch();
  const stalled: string[] = [];
  const worker = new Worker('work', () => 'elsewhere', { connection });
  onTestFinished(() => worker.close());
  worker.on('stalled', (jobId) => stalled.push(jobId));
  await new Promise((resolve) => worker.once('completed', resolve));
  expect(took()).toBeLessThan(paced(5000));
  expect(stalled).toEqual([job.id]);
});
