// S8-1, S8-2, S8-3, S8-11: processors in files, on the built package. HOLDFAST_SANDBOX_JOBS says how many jobs try to harm a worker (1,000 unless
// said otherwise, 16 in the gate).
import { type ChildProcess, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync, readdirSync, readlinkSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker as Thread } from 'node:worker_threads';
import { type HoldfastError, type Job, type JobsOptions, Worker, type WorkerOptions } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { OWN_CLOCK, WorkerProcess } from '../support/processes/worker-process.js';
import { FULL, oneInThisRun } from '../support/run/matrix.js';
import { ENGINES, newScene, type Scene, SHARED_ENGINES } from '../support/scenes/scene.js';
import { KINDS, type Kind, processor, written } from '../support/scenes/sandbox.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const HARMFUL = Number(process.env['HOLDFAST_SANDBOX_JOBS'] ?? (FULL ? 1000 : 16));
const ACTS = processor('acts.mjs');

interface Own {
  worker: Worker;
  errors: HoldfastError[];
  ends: Map<string, unknown>;
}

function workIn(kind: Kind, { connection }: Scene, options: WorkerOptions = {}, file: string | URL = ACTS): Own {
  const worker = new Worker('work', file, { connection, useWorkerThreads: kind === 'threads', ...options });
  onTestFinished(() => worker.close(true));
  const errors: HoldfastError[] = [];
  const ends = new Map<string, unknown>();
  worker.on('error', (error) => errors.push(error as HoldfastError));
  worker.on('completed', ({ id }, value) => ends.set(id, value));
  worker.on('failed', (job: Job | undefined, error) => ends.set(job?.id ?? '', error));
  return { worker, errors, ends };
}

async function endOf({ ends, errors }: Own, { id }: { id: string }): Promise<unknown> {
  await until(`the end of job ${id} (${String(errors[0])})`, () => ends.has(id), 60_000);
  return ends.get(id);
}

interface Started {
  threads: Thread[];
  processes: ChildProcess[];
}

/** Notes every thread and process that this process starts from now on. */
function watchStarts(): Started {
  const started: Started = { threads: [], processes: [] };
  const onThread = (message: unknown): void => void started.threads.push((message as { worker: Thread }).worker);
  const onProcess = (message: unknown): void => void started.processes.push((message as { process: ChildProcess }).process);
  subscribe('worker_threads', onThread);
  subscribe('child_process', onProcess);
  onTestFinished(() => {
    unsubscribe('worker_threads', onThread);
    unsubscribe('child_process', onProcess);
  });
  return started;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What each job that harms its sandbox is told as, in threads and in processes. */
const HARM: Record<string, Record<Kind, object>> = {
  loop: both({ code: 'SANDBOX_KILLED', message: expect.stringContaining('did not stop') }),
  deaf: both({ code: 'SANDBOX_KILLED', message: expect.stringContaining('did not stop') }),
  oom: both({ code: 'SANDBOX_DIED', message: expect.stringContaining('ran out of memory') }),
  exit: both({ code: 'SANDBOX_DIED', message: expect.stringMatching(/exit code 7[\s\S]*cannot go on/) }),
  abort: {
    threads: { code: 'ERR_WORKER_UNSUPPORTED_OPERATION' },
    processes: { code: 'SANDBOX_DIED', message: expect.stringContaining('SIGABRT') },
  },
  uncaught: both({ message: 'thrown in a timer' }),
  fail: both({ code: 'E_NOTHING', message: 'no such thing' }),
};

const handles = (): number => process.getActiveResourcesInfo().length;

/** What this process has open, on Linux. */
function openFiles(): string[] {
  if (!existsSync('/proc/self/fd')) return [];
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      // It was open for the list alone.
      return [];
    }
  });
}

/** Runs so many jobs in turn, most of which harm their sandbox, and closes the worker. */
async function harm(kind: Kind, scene: Scene, count: number): Promise<Started> {
  const started = watchStarts();
  const options = {
    concurrency: 3,
    useDedicatedLockThread: false,
    sandbox: { graceMs: 10, maxMemoryMb: 32 },
    workerForkOptions: { silent: true },
  };
  const own = workIn(kind, scene, options);
  // Some are cancelled before they have begun, some later.
  own.worker.on('active', ({ id, name }) => {
    if (name === 'loop' || name === 'deaf') setTimeout(() => own.worker.cancelJob(id), 50);
  });
  const names = [...Object.keys(HARM), 'late error', 'echo'];
  const jobs = Array.from({ length: count }, (_, n) => ({ name: names[n % names.length] as string, data: { n } }));
  await scene.queue.addBulk(jobs);
  await until('the end of all jobs', () => own.ends.size === count, 60_000 + count * 1000);
  const completed = jobs.filter(({ name }) => name === 'late error' || name === 'echo').length;
  const ends = [...own.ends.values()];
  expect(ends.filter((end) => end instanceof Error)).toHaveLength(count - completed);
  expect(await scene.queue.getJobCountByTypes('waiting', 'active', 'delayed')).toBe(0);
  await own.worker.close();
  expect(started.threads.filter(({ threadId }) => threadId !== -1)).toEqual([]);
  expect(started.processes.filter(({ pid = 0 }) => isAlive(pid))).toEqual([]);
  return started;
}

function both(end: object): Record<Kind, object> {
  return { threads: end, processes: end };
}

describe.each(oneInThisRun(ENGINES))('S8 sandboxes on %s', (engine) => {
  test.each(KINDS)('S8-1 a processor in a file runs in %s, with progress, logs, data, its lock and its signal', async (kind) => {
    const scene = await newScene(engine);
    const own = workIn(kind, scene);
    const shown = await scene.queue.add('show', { a: 1 });
    const wrote = await scene.queue.add('write', { b: 2 });
    expect(await endOf(own, shown)).toMatchObject({
      where: kind === 'threads' ? 'thread' : 'process',
      fields: { id: shown.id, data: { a: 1 } },
      lock: [true, true, true, true],
      signal: [false, true],
    });
    expect(await endOf(own, wrote)).toMatchObject({ rows: [1, 2], progress: { done: 40 }, state: 'active' });
    expect((await scene.queue.getJobLogs(wrote.id)).logs).toEqual(['one', 'two']);
    expect(own.errors).toEqual([]);
  });

  test.each(KINDS)(
    'S8-2 in %s, each way to harm a sandbox fails or retries its own job alone, and the reason says which',
    {
      timeout: paced(120_000),
    },
    async (kind) => {
      const scene = await newScene(engine);
      const started = watchStarts();
      const own = workIn(kind, scene, { concurrency: 4, sandbox: { graceMs: 50, maxMemoryMb: 64 } });
      const file = (name: string): string => join(scene.folder, name);
      own.worker.on('active', ({ id, name }) => {
        if (name === 'loop' || name === 'deaf') void written(file(name)).then(() => own.worker.cancelJob(id));
      });
      const added: [Job, object | string][] = [];
      const add = async (name: string, end: object | string, options?: JobsOptions): Promise<void> => {
        added.push([await scene.queue.add(name, { file: file(name) }, options), end]);
      };
      for (const [name, ends] of Object.entries(HARM)) {
        await add(name, ends[kind]);
        await add('late error', 'done');
      }
      await add('exit', HARM['exit']?.[kind] ?? {}, { attempts: 2 });
      for (const [job, end] of added) {
        const found = await endOf(own, job);
        if (typeof end === 'string') expect(found).toBe(end);
        else expect(found, job.name).toMatchObject(end);
      }
      const retried = added.at(-1)?.[0] as Job;
      await until('the second attempt to fail', async () => (await scene.queue.getJobState(retried.id)) === 'failed');
      expect(await scene.queue.getJob(retried.id)).toMatchObject({
        attemptsMade: 2,
        failedReason: expect.stringContaining('exit code 7'),
      });
      expect(own.errors.filter(({ code }) => code !== 'LATE_ERROR')).toEqual([]);
      await own.worker.close();
      expect(started.threads.filter(({ threadId }) => threadId !== -1 && kind === 'threads').length).toBeLessThanOrEqual(1);
      expect(started.processes.filter(({ pid = 0 }) => isAlive(pid))).toEqual([]);
    },
  );
});

describe.each(KINDS)('S8 sandboxes in %s', (kind) => {
  test(`S8-2 after ${HARMFUL} harmful jobs the worker has run them all, and no thread, process, handle or connection is left`, {
    timeout: paced(60_000 + HARMFUL * 1500),
  }, async () => {
    const scene = await newScene('sqlite');
    // What is opened once for good is there before the counting: libuv keeps what its first watch of a file opens.
    watch(scene.folder).close();
    await harm(kind, scene, 9);
    const before = { handles: handles(), files: openFiles() };
    const started = await harm(kind, scene, HARMFUL);
    await until('no handle to be left', () => handles() <= before.handles);
    await until('no file to be left open', () => openFiles().length <= before.files.length).catch((error: Error) => {
      throw new Error(`${error.message}: ${openFiles().join(' ')}, before: ${before.files.join(' ')}`);
    });
    console.log(
      `${HARMFUL} harmful jobs in ${kind}: ${started.threads.length} threads, ${started.processes.length} processes started`,
    );
  });

  test('S8-3 a file that cannot be loaded: an error after three tries, no storm of processes, and jobs fail with the reason', async () => {
    const scene = await newScene('memory');
    const file = join(scene.folder, 'broken.mjs');
    writeFileSync(file, 'throw new Error("no database here");');
    const started = watchStarts();
    await scene.queue.addBulk(Array.from({ length: 200 }, () => ({ name: 'job' })));
    const own = workIn(kind, scene, { concurrency: 2, useDedicatedLockThread: false }, file);
    await until('the error', () => own.errors.length > 0);
    expect(own.errors[0]).toMatchObject({ code: 'PROCESSOR_UNLOADABLE', message: expect.stringContaining('no database here') });
    const tries = (): number => started.threads.length + started.processes.length;
    expect(tries()).toBe(3);
    // After a pause comes one more try, not one for each of the jobs that wait.
    await until('the next try', () => tries() > 3);
    expect(tries()).toBe(4);
    expect(await scene.queue.getFailedCount()).toBeLessThanOrEqual(8);
    const [failed] = await scene.queue.getFailed(0, 0);
    expect(failed?.failedReason).toContain('no database here');
    await own.worker.close();
    expect(await scene.queue.getJobCountByTypes('waiting', 'failed')).toBe(200);
  });
});

test('S8-2 the same acts in a processor without a sandbox end its process', async () => {
  const scene = await newScene('sqlite');
  const ends = await Promise.all(
    ['exit', 'abort', 'uncaught'].map(async (act) => {
      const child = spawn(process.execPath, [processor('bare-worker.mjs'), scene.url, act], { stdio: 'ignore' });
      onTestFinished(() => void child.kill('SIGKILL'));
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
    }),
  );
  expect(ends).toEqual([7, 'SIGABRT', 1]);
});

describe.each(oneInThisRun(SHARED_ENGINES))('S8 processes on %s', (engine) => {
  test('S8-1 the child of a frozen worker learns by the clock that its lock is lost, and a child ends with a killed worker', async () => {
    const scene = await newScene(engine);
    const options = { lockDuration: paced(1500), lockRenewTime: paced(300), concurrency: 2 };
    const plan = { queue: 'work', connection: scene.url, options, imports: [] };
    const worker = new WorkerProcess(plan, 'sandbox-worker.mjs');
    const file = (name: string): string => join(scene.folder, name);
    await scene.queue.add('watch', { file: file('held') });
    await scene.queue.add('slow', { file: file('slow'), until: file('never') });
    await written(file('slow'), 'began');
    const pids = JSON.parse((await written(file('held'), '\n')).split('\n')[0] ?? '') as number[];
    // The control: while the worker renews, the child trusts its lock for longer than the lock lasts.
    await until('the lock to be older than its duration', async () => (await written(file('held'))).includes('old'));
    expect((await written(file('held'))).includes('lost')).toBe(false);
    await worker.freeze();
    await written(file('held'), 'lost');
    worker.kill('SIGKILL');
    await until('the child to end with its worker', () => pids.every((pid) => !isAlive(pid)));
  });

  test.each(['SIGINT', 'SIGTERM'] as const)(
    'S8-2 %s to the process group fails no job: the worker closes when they have ended, and each has taken one attempt',
    async (signal) => {
      const scene = await newScene(engine);
      const options = { concurrency: 2, useDedicatedLockThread: false };
      const plan = { queue: 'work', connection: scene.url, options, closes: true };
      const worker = new WorkerProcess(plan, 'sandbox-worker.mjs', { ...OWN_CLOCK, detached: true });
      const file = (name: string): string => join(scene.folder, name);
      const jobs = await scene.queue.addBulk(
        ['one', 'two'].map((name) => ({ name: 'slow', data: { file: file(name), until: file('go') } })),
      );
      for (const name of ['one', 'two']) await written(file(name), 'began');
      worker.killGroup(signal);
      // The worker takes no further job once it closes.
      await worker.moment('closing');
      const late = await scene.queue.add('echo');
      writeFileSync(file('go'), '');
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect(worker.all('failed').concat(worker.all('error'))).toEqual([]);
      for (const { id } of jobs) {
        const job = await scene.queue.getJob(id);
        expect([await job?.getState(), job?.attemptsMade]).toEqual(['completed', 1]);
      }
      expect(await scene.queue.getJob(late.id)).toMatchObject({ attemptsMade: 0, failedReason: undefined });
    },
  );

  test('S8-2 (N) the child of a worker that does not handle SIGINT ends by it too', async () => {
    const scene = await newScene(engine);
    const plan = { queue: 'work', connection: scene.url, options: { useDedicatedLockThread: false } };
    const worker = new WorkerProcess(plan, 'sandbox-worker.mjs', { ...OWN_CLOCK, detached: true });
    const file = (name: string): string => join(scene.folder, name);
    await scene.queue.add('pid', { file: file('pid') });
    const pid = Number((await written(file('pid'), '\n')).trim());
    worker.killGroup('SIGINT');
    expect(await worker.exited).toEqual({ code: null, signal: 'SIGINT' });
    await until('the child to end', () => !isAlive(pid));
  });

  test('S8-11 a Worker inside a worker_thread runs jobs, its lock holds, and it may have a sandbox', async () => {
    const scene = await newScene(engine);
    const plan = { queue: 'work', connection: scene.url, options: { lockDuration: paced(1500), lockRenewTime: paced(300) } };
    const worker = new WorkerProcess(plan, 'threaded-worker.mjs');
    await worker.moment('ready');
    const long = await scene.queue.add('long', { ms: paced(3500) });
    const sandboxed = await scene.queue.add('echo', 'through two threads', { jobId: 'sandboxed' });
    await until('both ends', async () => (await scene.queue.getCompletedCount()) === 2, 30_000);
    expect(await scene.queue.getJob(long.id)).toMatchObject({ returnvalue: [true, 1], stalledCounter: 0, attemptsStarted: 1 });
    expect(await scene.queue.getJob(sandboxed.id)).toMatchObject({ returnvalue: 'through two threads' });
    worker.send('close');
    expect(await worker.exited).toEqual({ code: 0, signal: null });
    expect(worker.all('error')).toEqual([]);
  });
});
