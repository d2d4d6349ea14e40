// The pool of a sandbox: files that cannot be loaded, children that are replaced, options that are refused.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { UnrecoverableError } from '../../src/job/signals.js';
import { arrived, leaving } from '../../src/sandbox/crossing-error.js';
import { Worker } from '../../src/worker/worker.js';
import { KINDS, processor, sandboxScene, written } from '../support/scenes/sandbox.js';
import { until } from '../support/wait/until.js';

const ACTS = processor('acts.mjs');

function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-processor-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Counts the threads and processes that are started from now on. */
function countStarts(): () => number {
  let count = 0;
  const started = (): void => {
    count += 1;
  };
  for (const channel of ['worker_threads', 'child_process']) {
    subscribe(channel, started);
    onTestFinished(() => void unsubscribe(channel, started));
  }
  return () => count;
}

describe.each(KINDS)('a file that cannot be loaded, in %s', (kind) => {
  test.each([
    ['exports nothing', 'export const x = 1;', 'No function is exported'],
    ['throws', 'throw new Error("no database");', 'no database'],
    ['has a mistake in its syntax', 'export default async (job) => { return ] }', 'Unexpected token'],
    ['imports what is not there', 'import "./not-there.mjs";', 'not-there.mjs'],
    ['ends its process', 'console.error("leaving"); process.exit(4);', 'exit code 4'],
    [
      'rejects without a handler',
      'Promise.reject(new Error("astray")); await new Promise((r) => setTimeout(r, 1000));',
      'astray',
    ],
    ['never ends loading', 'setInterval(() => undefined, 1000); await new Promise(() => undefined);', 'took longer than 500 ms'],
  ])('fails its job with the reason if it %s', async (_title, source, reason) => {
    const file = join(tempFolder(), 'processor.mjs');
    writeFileSync(file, source);
    const { worker } = await sandboxScene('memory');
    const maxLoadMs = source.includes('setInterval') ? 500 : 30_000;
    const { run, worker: own } = worker(kind, { sandbox: { maxLoadMs } }, file);
    const error = await run('any');
    expect(error).toMatchObject({ code: 'PROCESSOR_UNLOADABLE', message: expect.stringContaining(reason) });
    expect((error as Error).message).toContain(file);
    expect(own.childPool?.getAllFree()).toEqual([]);
  });

  const loadsTypeScript = Boolean((process.features as { typescript?: unknown }).typescript);
  test.skipIf(loadsTypeScript)('says how to load TypeScript', async () => {
    const file = join(tempFolder(), 'processor.ts');
    writeFileSync(file, 'export default async (job: object): Promise<object> => job;');
    const { worker } = await sandboxScene('memory');
    const message = expect.stringMatching(/Unknown file extension.*Compile the file, or use Node\.js 22\.18.*'--import', 'tsx'/s);
    expect(await worker(kind, {}, file).run('any')).toMatchObject({ code: 'PROCESSOR_UNLOADABLE', message });
  });

  test('is reported once after three failures, starts no storm, and is used again when it loads', async () => {
    const file = join(tempFolder(), 'processor.mjs');
    writeFileSync(file, 'throw new Error("broken");');
    const starts = countStarts();
    const { worker, queue } = await sandboxScene('memory');
    await queue.addBulk(Array.from({ length: 40 }, () => ({ name: 'any', data: 1 })));
    const { errors } = worker(kind, { concurrency: 4 }, file);
    await until('the error', () => errors.length > 0);
    expect(errors).toMatchObject([{ code: 'PROCESSOR_UNLOADABLE', message: expect.stringContaining('in a row') }]);
    // One at a time, and after the third a pause: with four slots, four jobs fail with each.
    expect(starts()).toBe(3);
    expect(await queue.getFailedCount()).toBeLessThanOrEqual(12);
    writeFileSync(file, 'export default async (job) => job.data + 1;');
    await until('a completed job', async () => (await queue.getCompletedCount()) > 0);
    await until('the end of all jobs', async () => (await queue.count()) === 0 && (await queue.getActiveCount()) === 0);
    expect(errors).toHaveLength(1);
    expect(starts()).toBeLessThanOrEqual(3 + 1 + 4);
    expect((await queue.getFailedCount()) + (await queue.getCompletedCount())).toBe(40);
  });

  test('has not failed three times in a row if it loaded in between', async () => {
    const file = join(tempFolder(), 'processor.mjs');
    const broken = 'throw new Error("broken");';
    const { worker } = await sandboxScene('memory');
    writeFileSync(file, broken);
    const { run, errors, worker: own } = worker(kind, { sandbox: { maxJobsPerChild: 1 } }, file);
    for (let failures = 0; failures < 2; failures += 1) expect(await run('any')).toMatchObject({ code: 'PROCESSOR_UNLOADABLE' });
    writeFileSync(file, 'export default async () => "done";');
    expect(await run('any')).toBe('done');
    await until('the next child to be ready', () => own.childPool?.getAllFree().length === 1);
    writeFileSync(file, broken);
    expect(await run('any')).toBe('done');
    expect(await run('any')).toMatchObject({ code: 'PROCESSOR_UNLOADABLE' });
    expect(errors).toEqual([]);
  });

  test('does not hold up close(): jobs that wait for it go back without an attempt', async () => {
    const file = join(tempFolder(), 'processor.mjs');
    writeFileSync(file, 'throw new Error("broken");');
    const { worker, queue } = await sandboxScene('memory');
    await queue.addBulk(Array.from({ length: 4 }, () => ({ name: 'any' })));
    const { errors, worker: own } = worker(kind, {}, file);
    await until('the error', () => errors.length > 0);
    await until('the fourth job to wait', async () => (await queue.getActiveCount()) === 1);
    const [job] = await queue.getActive();
    await own.close();
    expect(await queue.getJobState(job?.id ?? '')).toBe('waiting');
    expect(await queue.getJob(job?.id ?? '')).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
  });

  test('does not hold up a cancel: the job that waits for it fails at once', async () => {
    const file = join(tempFolder(), 'processor.mjs');
    writeFileSync(file, 'setInterval(() => undefined, 1000); await new Promise(() => undefined);');
    const { worker, queue } = await sandboxScene('memory');
    worker(kind, { sandbox: { maxLoadMs: 600_000 } }, file);
    const job = await queue.add('any', {});
    await until('the job to be active', async () => (await job.getState()) === 'active');
    expect(await queue.cancel(job.id, 'not needed')).toBe(true);
    await until('the job to fail', async () => (await job.getState()) === 'failed');
    expect((await queue.getJob(job.id))?.failedReason).toContain('not needed');
  });
});

describe.each(KINDS)('children of the pool, in %s', (kind) => {
  test('take the jobs one after the other, and are shown as BullMQ shows them', async () => {
    const { worker, queue, file } = await sandboxScene('memory');
    const { run, worker: own } = worker(kind);
    const first = await run('where');
    const [child] = own.childPool?.free[ACTS] ?? [];
    expect([await run('where'), child?.pid]).toEqual([first, first]);
    await queue.add('slow', { file: file('began'), until: file('go') });
    await written(file('began'));
    expect(own.childPool?.getFree(ACTS)).toEqual([]);
    expect(own.childPool?.retained).toEqual({ [String(first)]: child });
    writeFileSync(file('go'), '');
    await until('the child to be free', () => own.childPool?.getAllFree().length === 1);
  });

  test('are replaced after maxJobsPerChild jobs', async () => {
    const { run, worker } = (await sandboxScene('memory')).worker(kind, { sandbox: { maxJobsPerChild: 2 } });
    const jobs = new Map<number, number>();
    const place = async (): Promise<number> => {
      const pid = (await run('where')) as number;
      jobs.set(pid, (jobs.get(pid) ?? 0) + 1);
      return pid;
    };
    expect(await place()).toBe(await place());
    // A spare child gets ready meanwhile, and any child that is ready may take the next job.
    for (let n = 0; n < 6; n += 1) await place();
    expect(Math.max(...jobs.values())).toBe(2);
    const free = (): number[] => worker.childPool?.getAllFree().map(({ pid }) => pid) ?? [];
    await until('the spare child', () => free().length > 0);
    expect(free().filter((pid) => jobs.get(pid) === 2)).toEqual([]);
  });

  test('end when they have had no job for maxIdleMs', async () => {
    const { run, worker } = (await sandboxScene('memory')).worker(kind, { sandbox: { maxIdleMs: 50 } });
    const first = await run('where');
    const [child] = worker.childPool?.getAllFree() ?? [];
    await until('the child to end', () => child?.hasProcessExited());
    expect(worker.childPool?.getAllFree()).toEqual([]);
    expect(await run('where')).not.toBe(first);
  });

  test('are replaced when a job leaves most of maxMemoryMb in use, and the job completes', async () => {
    const file = join(tempFolder(), 'leak.mjs');
    const leak = 'Array.from({ length: 7e6 }, (_, n) => n + 0.5)';
    writeFileSync(
      file,
      `let kept; export default async ({ name }) => { if (name === 'leak') kept = ${leak}; return kept?.length ?? 0; };`,
    );
    const { run } = (await sandboxScene('memory')).worker(kind, { sandbox: { maxMemoryMb: 64 } }, file);
    expect([await run('leak'), await run('look')]).toEqual([7e6, 0]);
  });

  test('that were killed while they were idle get no job', async () => {
    const { run, worker } = (await sandboxScene('memory')).worker(kind);
    const first = await run('where');
    const [child] = worker.childPool?.getAllFree() ?? [];
    await child?.kill('SIGKILL');
    expect(await run('where')).not.toBe(first);
  });

  test('an error after the end of a run is reported, and neither that job nor the next one fails', async () => {
    const { worker, queue, file } = await sandboxScene('memory');
    const { errors, end } = worker(kind);
    const late = await queue.add('late error');
    const next = await queue.add('slow', { file: file('began'), until: file('go') });
    expect(await end(late.id)).toBe('done');
    await until('the late error', () => errors.length > 0);
    await written(file('began'));
    writeFileSync(file('go'), '');
    expect(await end(next.id)).toEqual(expect.any(Number));
    expect(errors).toMatchObject([{ code: 'LATE_ERROR', jobId: late.id, message: expect.stringContaining('thrown late') }]);
  });

  test('an error that the handler does not catch fails its job after the child has ended', async () => {
    const { run, errors } = (await sandboxScene('memory')).worker(kind);
    expect(await run('uncaught')).toMatchObject({ message: 'thrown in a timer' });
    expect([await run('echo', 1), errors]).toEqual([1, []]);
  });
});

describe('a worker with a file refuses', () => {
  const missing = join(tmpdir(), 'holdfast-no-such-processor.js');
  test.each([
    ['a missing file', missing, {}, 'processor', 'does not exist'],
    ['a missing file by its URL', pathToFileURL(missing), {}, 'processor', 'does not exist'],
    ['a URL of the network', new URL('https://example.com/processor.js'), {}, 'processor', 'not the URL of a file'],
    ['a folder', tmpdir(), {}, 'processor', 'is not a file'],
    ['an empty path', '', {}, 'processor', 'is empty'],
    ['a file for batches', ACTS, { batch: { size: 2 } }, 'processor', 'a file takes single jobs'],
    ['a map with a path', { a: ACTS }, {}, 'processor.a', 'a file can only run all jobs of a worker'],
    ['sandbox with a function', () => 1, { sandbox: {} }, 'sandbox', 'for a processor in a file'],
    ['a mistyped setting', ACTS, { sandbox: { maxJobPerChild: 1 } }, 'sandbox.maxJobPerChild', 'did you mean maxJobsPerChild'],
    ['no jobs per child', ACTS, { sandbox: { maxJobsPerChild: 0 } }, 'sandbox.maxJobsPerChild', 'from 1'],
    ['too little memory', ACTS, { sandbox: { maxMemoryMb: 1 } }, 'sandbox.maxMemoryMb', 'from 16'],
    ['a text as sandbox', ACTS, { sandbox: 'yes' }, 'sandbox', 'an object'],
    ['a missing entry', ACTS, { sandbox: { entry: missing } }, 'sandbox.entry', 'does not exist'],
    ['a text as execArgv', ACTS, { workerForkOptions: { execArgv: '--x' } }, 'workerForkOptions.execArgv', 'a list of strings'],
    ['detached processes', ACTS, { workerForkOptions: { detached: true } }, 'workerForkOptions.detached', 'false'],
    ['a number as useWorkerThreads', ACTS, { useWorkerThreads: 1 }, 'useWorkerThreads', 'true or false'],
  ])('%s', (_title, file, options, option, text) => {
    const make = (): Worker => new Worker('q', file as never, { connection: 'memory:', ...(options as object) });
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option, message: expect.stringContaining(text) }));
  });

  test.each([
    ['arguments of Node that do not exist', 'processes', { workerForkOptions: { execArgv: ['--no-such-flag'] } }, 'bad option'],
    ['a working directory that does not exist', 'processes', { workerForkOptions: { cwd: missing } }, 'ENOENT'],
    [
      'arguments that threads cannot have',
      'threads',
      { workerThreadsOptions: { execArgv: ['--no-such-flag'] } },
      '--no-such-flag',
    ],
  ] as const)('%s fail the job with the reason, and the worker goes on', async (_title, kind, options, text) => {
    const { worker } = await sandboxScene('memory');
    const { run } = worker(kind, options as object);
    expect(await run('echo', 1)).toMatchObject({ code: 'PROCESSOR_UNLOADABLE', message: expect.stringContaining(text) });
  });
});

describe('errors that cross', () => {
  test('arrive as the same class with the same facts', () => {
    const lost = new HoldfastError('LOCK_LOST', 'gone', { jobId: '5', queue: 'q', cause: new Error('why') });
    expect(arrived(leaving(lost))).toMatchObject({ code: 'LOCK_LOST', jobId: '5', queue: 'q', cause: { message: 'why' } });
    expect(arrived(leaving(lost))).toBeInstanceOf(HoldfastError);
    expect(arrived(leaving(new UnrecoverableError('never')))).toBeInstanceOf(UnrecoverableError);
    expect(arrived(JSON.parse(JSON.stringify(leaving(lost)))).stack).toBe(lost.stack);
  });

  test('may have causes in a circle, hostile getters, odd names and keys', () => {
    const circle = new Error('round');
    circle.cause = circle;
    expect(arrived(leaving(circle)).message).toBe('round');
    const hostile = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no');
      },
    });
    expect(arrived(leaving(hostile)).message).toContain('cannot be read');
    expect(arrived(leaving(undefined)).message).toContain('undefined');
    expect(arrived({ name: 'constructor', message: 'm', fields: { stack: 'forged' } })).toMatchObject({
      name: 'constructor',
      message: 'm',
    });
    expect(arrived({ name: 'HoldfastError', message: 'm', fields: { code: 'toString' } })).not.toBeInstanceOf(HoldfastError);
  });
});
