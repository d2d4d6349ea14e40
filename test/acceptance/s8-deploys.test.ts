// S8-6: processes are replaced one after the other under load, and how a process ends when it is asked to.
import { readFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { oneInThisRun } from '../support/run/matrix.js';
import { newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import type { Moment } from '../support/wait/moments.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const OPTIONS = { concurrency: 4, lockDuration: paced(10_000), stalledInterval: 200, crashGraceMs: 500, maxStalledCount: 100 };
const PATIENCE_MS = paced(30_000);
/** Far longer than a short job takes. */
const TIMEOUT_MS = paced(1500);
const SHORT_MS = 25;
const PACE_MS = 8;
const IN_NAMESPACE = [
  '--fork',
  '--kill-child',
  '--pid',
  '--mount-proc',
  ...(process.getuid?.() === 0 ? [] : ['--user', '--map-root-user']),
];

interface Terms {
  timeoutMs?: number;
  /** Without onSignals. */
  bare?: boolean;
  asPid1?: boolean;
}

function deployed({ connection }: Scene, { asPid1 = false, ...terms }: Terms = {}): WorkerProcess {
  const plan = { queue: 'work', connection, options: OPTIONS, timeoutMs: TIMEOUT_MS, ...terms };
  const by = asPid1 ? { execPath: 'unshare', execArgv: [...IN_NAMESPACE, process.execPath] } : { execArgv: [] };
  return new WorkerProcess(plan, 'deployed.mjs', { env: {}, ...by });
}

async function up(scene: Scene, terms?: Terms): Promise<WorkerProcess> {
  const started = deployed(scene, terms);
  await started.moment('up');
  return started;
}

const isBusy = (process: WorkerProcess): boolean => process.all('started').length > process.all('ended').length;

/** Adds short jobs until it is stopped. */
function load({ queue }: Scene, { ms = SHORT_MS, paceMs = PACE_MS } = {}): { ids: string[]; stop(): Promise<void> } {
  const ids: string[] = [];
  let isOver = false;
  const adding = (async () => {
    while (!isOver) {
      ids.push((await queue.add('short', { ms })).id);
      await new Promise((resolve) => setTimeout(resolve, paceMs));
    }
  })();
  const stop = async (): Promise<void> => {
    isOver = true;
    await adding;
  };
  onTestFinished(stop);
  return { ids, stop };
}

/** Replaces three processes one after the other. `end`: how the old one is ended. */
async function deploy(scene: Scene, end: (old: WorkerProcess) => Promise<void>): Promise<WorkerProcess[]> {
  const olds = [await up(scene), await up(scene), await up(scene)];
  const all = [...olds];
  for (const old of olds) {
    all.push(await up(scene));
    await until('the old process to run a job', () => isBusy(old), PATIENCE_MS);
    await end(old);
  }
  return all;
}

const told = (processes: WorkerProcess[], event: string): Moment[] =>
  processes.flatMap((each) => each.all(event)).sort((a, b) => a.at - b.at);
const idOf = (moment: Moment): string => String(moment['jobId']);

async function allCompleted({ store }: Scene, count: number): Promise<void> {
  const completed = async (): Promise<boolean> => (await store.status('work')).counts.completed === count;
  await until(`${count} jobs to be completed`, completed, PATIENCE_MS);
}

describe.each(oneInThisRun(SHARED_ENGINES))('S8-6 a rolling deploy on %s', (engine) => {
  test('S8-6 three processes are replaced under load: nothing is lost, runs twice or counts as stalled', async () => {
    const scene = await newScene(engine);
    const { ids, stop } = load(scene);
    const processes = await deploy(scene, async (old) => {
      old.kill('SIGTERM');
      expect(await old.exited).toEqual({ code: 0, signal: null });
    });
    await stop();
    await allCompleted(scene, ids.length);
    const jobs = await Promise.all(ids.map((id) => scene.queue.getJob(id)));
    expect(jobs.filter((job) => job?.attemptsStarted !== 1 || job.attemptsMade !== 1 || job.stalledCounter !== 0)).toEqual([]);
    expect(told(processes, 'started').map(idOf).sort()).toEqual([...ids].sort());
    // The store has the last outcome before its worker has the reply.
    await until('all completions to be told', () => told(processes, 'completed').length >= ids.length);
    expect(told(processes, 'completed')).toHaveLength(ids.length);
    for (const event of ['stalled', 'failed', 'aborted', 'interrupted']) expect(told(processes, event)).toEqual([]);
    // On a busy machine a renewal may be late, which is told and costs nothing.
    const isLate = ({ args }: Moment): boolean => (args as [Error])[0].message.includes('did not answer a lock renewal in time');
    expect(told(processes, 'error').filter((moment) => !isLate(moment))).toEqual([]);
  }, 120_000);

  test('S8-6 jobs that take longer than a deploy waits go on in another process, one run at a time', async () => {
    const scene = await newScene(engine);
    const old = await up(scene, { timeoutMs: paced(100) });
    const long = await scene.queue.add('long', {}, { attempts: 1 });
    const stubborn = await scene.queue.add('stubborn', {}, { attempts: 1 });
    await until('both to run', () => old.all('started').length === 2, PATIENCE_MS);
    const young = await up(scene);
    old.kill('SIGTERM');
    expect(await old.exited).toEqual({ code: 0, signal: null });
    await allCompleted(scene, 2);
    for (const { id } of [long, stubborn]) {
      expect(await scene.queue.getJob(id)).toMatchObject({ attemptsStarted: 2, attemptsMade: 1, stalledCounter: 0 });
      expect(old.all('aborted').filter((moment) => idOf(moment) === id)).toMatchObject([{ code: 'SHUTDOWN' }]);
    }
    const endedAt = old.all('ended').find((moment) => idOf(moment) === long.id)?.at;
    const restarted = young.all('started').find((moment) => idOf(moment) === long.id)?.at;
    expect(restarted).toBeGreaterThan(endedAt ?? Number.POSITIVE_INFINITY);
    expect(old.all('interrupted').map(({ args }) => (args as [{ id: string }, { code: string }])[0].id)).toEqual([
      long.id,
      stubborn.id,
    ]);
    expect(told([old, young], 'stalled')).toEqual([]);
  }, 60_000);

  test('S8-6 (N) with SIGKILL instead, jobs count as stalled and are started twice', async () => {
    const scene = await newScene(engine);
    // So long that the kill comes while they run.
    const { ids, stop } = load(scene, { ms: paced(400), paceMs: paced(60) });
    const processes = await deploy(scene, async (old) => {
      old.kill('SIGKILL');
      expect(await old.exited).toEqual({ code: null, signal: 'SIGKILL' });
    });
    await stop();
    await allCompleted(scene, ids.length);
    const jobs = await Promise.all(ids.map((id) => scene.queue.getJob(id)));
    expect(jobs.filter((job) => (job?.stalledCounter ?? 0) > 0)).not.toEqual([]);
    expect(told(processes, 'started').length).toBeGreaterThan(ids.length);
  }, 120_000);
});

describe('S8-6 onSignals in a process', () => {
  const HOLDS = { timeoutMs: 600_000 };

  test.each(['SIGTERM', 'SIGINT'] as const)(
    'S8-6 a second %s ends the process at once, and its job goes back without a stall',
    async (signal) => {
      const scene = await newScene('sqlite');
      const held = await scene.queue.add('stubborn', {}, { attempts: 1 });
      const process = await up(scene, HOLDS);
      await process.moment('started');
      process.kill(signal);
      // A worker that closes takes no more jobs.
      const next = await scene.queue.add('short', { ms: 0 });
      await until('the worker to close', () => process.all('closing').length > 0);
      process.kill(signal);
      expect(await process.exited).toEqual({ code: signal === 'SIGTERM' ? 143 : 130, signal: null });
      expect(await next.getState()).toBe('waiting');
      await until('the job to be back', async () => (await held.getState()) === 'waiting');
      expect(await scene.queue.getJob(held.id)).toMatchObject({ attemptsStarted: 1, attemptsMade: 0, stalledCounter: 0 });
    },
  );

  test('S8-6 PID 1 of a container ends with code 0 after SIGTERM, and its job goes back', async () => {
    const scene = await newScene('sqlite');
    const { id } = await scene.queue.add('long', {}, { attempts: 1 });
    const container = await up(scene, { timeoutMs: 100, asPid1: true });
    expect(await container.moment('up')).toMatchObject({ pid: 1 });
    await container.moment('started');
    process.kill(firstChildOf(container.pid), 'SIGTERM');
    expect(await container.exited).toEqual({ code: 0, signal: null });
    expect(await scene.queue.getJob(id)).toMatchObject({ attemptsStarted: 1, attemptsMade: 0, stalledCounter: 0 });
    expect(await scene.queue.getJobState(id)).toBe('waiting');
  });

  test('S8-6 (N) PID 1 without onSignals does not hear SIGTERM', async () => {
    const scene = await newScene('sqlite');
    const container = await up(scene, { bare: true, asPid1: true });
    process.kill(firstChildOf(container.pid), 'SIGTERM');
    const job = await scene.queue.add('short', { ms: 0 });
    await until('it to go on with jobs', async () => (await job.getState()) === 'completed');
  });
});

/** `unshare` starts the program as its child, which has another number inside. */
function firstChildOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0]);
}
