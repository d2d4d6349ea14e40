// S8-9: a worker says which function blocked its event loop, and which jobs ran meanwhile. The stack is taken by the lock thread while the
// loop is blocked.
import type { BlockReport } from 'holdfast';
import { describe, expect, test } from 'vitest';
import { type Environment, type ProcessPlan, WorkerProcess } from '../support/processes/worker-process.js';
import { oneInThisRun } from '../support/run/matrix.js';
import { LOCK_ENGINES, newScene, renewed, type Scene } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

/** Longer than it takes to see a block, and to take its stack. */
const BLOCK_MS = paced(2500);
/** Longer than a block that is not reported. */
const SHORT_MS = 2500;
const OPTIONS = { lockDuration: paced(1500), lockRenewTime: paced(300), maxStalledCount: 0 };
const NATIVE = '(inside a native call';

async function blocker(
  { connection }: Scene,
  plan: Partial<ProcessPlan> & { inThread?: boolean } = {},
  environment: Partial<Environment> = {},
): Promise<WorkerProcess> {
  const options = { ...OPTIONS, ...plan.options };
  const worker = new WorkerProcess({ queue: 'work', connection, ...plan, options }, 'blocker.mjs', {
    env: {},
    execArgv: [],
    ...environment,
  });
  await worker.moment('up');
  return worker;
}

const reportsOf = (worker: WorkerProcess): BlockReport[] => worker.all('blocked').map(({ args }) => (args as [BlockReport])[0]);

/** Runs a job that blocks, and returns the report of it. */
async function blockedBy(scene: Scene, worker: WorkerProcess, name: string, ms = BLOCK_MS): Promise<BlockReport> {
  const before = reportsOf(worker).length;
  const { id } = await scene.queue.add(name, { ms });
  await until('the block to be reported', () => reportsOf(worker).length > before, paced(30_000));
  await until('the job to be completed', async () => (await scene.queue.getJobState(id)) === 'completed');
  return reportsOf(worker)[before] as BlockReport;
}

describe.each(oneInThisRun(LOCK_ENGINES))('S8-9 a blocked event loop on %s', (engine) => {
  test('S8-9 the report names the function and the jobs, once for each block, and the lock is renewed meanwhile', async () => {
    const scene = await newScene(engine);
    const worker = await blocker(scene, { options: { concurrency: 2 } });
    const beside = await scene.queue.add('rest', { ms: 4 * BLOCK_MS });
    await worker.moment('started');
    const before = await scene.queue.add('echo', {});
    await worker.moment('ended', ({ jobId }) => jobId === before.id);
    const job = await scene.queue.add('loop', { ms: BLOCK_MS });
    await worker.moment('started', ({ jobId }) => jobId === job.id);
    // Far longer than the lock lasts without a renewal, and during the capture.
    await renewed(scene.store, job.id, 4);
    expect(
      worker.all('ended', ({ jobId }) => jobId === job.id),
      'all that happened during the block',
    ).toEqual([]);
    const [report] = (await worker.moment('blocked'))['args'] as [BlockReport];
    expect(report.ms).toBeGreaterThan(BLOCK_MS / 2);
    expect(report.ms).toBeLessThan(2 * BLOCK_MS);
    expect(report.jobIds.toSorted()).toEqual([beside.id, job.id].toSorted());
    expect(report.stack).toMatch(/^( {4}at .*\n){0,2} {4}at spinInLoop \(.*\/fixtures\/blocker\.mjs:\d+:\d+\)\n/);
    expect(report.stack).not.toContain('dist');
    expect(worker.all('ended', ({ jobId }) => jobId === job.id)).toMatchObject([{ held: true }]);
    expect(await blockedBy(scene, worker, 'atomicsWait')).toMatchObject({ stack: expect.stringContaining('at waitForLong (') });
    expect(reportsOf(worker)).toHaveLength(2);
    expect(worker.all('loopBlocked').map(({ args }) => (args as number[])[0])).toEqual(reportsOf(worker).map(({ ms }) => ms));
    expect([...worker.all('error'), ...worker.all('lockRenewalFailed'), ...worker.all('stalled')]).toEqual([]);
  }, 120_000);
});

describe('S8-9 a function that blocks the event loop', () => {
  test.each(
    oneInThisRun([
      ['regularExpression', 'matchForLong'],
      ['json', 'parseForLong'],
      ['atomicsWait', 'waitForLong'],
    ]),
  )(
    'S8-9 %s: the report names %s',
    async (name, functionName) => {
      const scene = await newScene('sqlite');
      const worker = await blocker(scene);
      const { stack } = await blockedBy(scene, worker, name);
      // The clock that the function reads may be on top.
      expect(stack).toMatch(new RegExp(`^( {4}at .*\\n){0,2} {4}at ${functionName} \\(.*/blocker\\.mjs:\\d+:\\d+\\)\\n`));
    },
    60_000,
  );

  test.each(oneInThisRun(['execFileSync', 'pbkdf2Sync']))(
    'S8-9 %s: the report says that it was inside a native call',
    async (name) => {
      const scene = await newScene('sqlite');
      const worker = await blocker(scene);
      const { stack, jobIds } = await blockedBy(scene, worker, name);
      expect(stack.startsWith(NATIVE), stack).toBe(true);
      expect(jobIds).toHaveLength(1);
    },
    60_000,
  );

  test.each(oneInThisRun(['close', 'exit']))(
    'S8-9 a process ends after stacks were taken (%s), and prints nothing of a debugger',
    async (how) => {
      const scene = await newScene('sqlite');
      const worker = await blocker(scene);
      const { stack } = await blockedBy(scene, worker, 'loop');
      expect(stack).toContain('spinInLoop');
      worker.send(how);
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect(worker.stderr).not.toMatch(/debugger/i);
      // The stack may have been taken inside a function that the handler called for a moment.
      const own = stack.split('\n').find((frame) => frame.includes('/fixtures/'));
      expect(worker.stderr).toMatch(/blocked for \d+ ms .* at (spinInLoop|monotonicNow) \(.*\.mjs/);
      expect(worker.stderr).toContain(own?.trim());
    },
    60_000,
  );
});

test('S8-9 a process that exits in its handler, after a block, ends at once and hands the job back', async () => {
  const scene = await newScene('sqlite');
  const worker = await blocker(scene);
  const { id } = await scene.queue.add('exitAfterBlock', { ms: SHORT_MS });
  expect(await worker.exited).toEqual({ code: 7, signal: null });
  expect(worker.stderr).not.toMatch(/debugger/i);
  expect(await scene.queue.getJob(id)).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
  expect(await scene.queue.getJobState(id)).toBe('waiting');
}, 60_000);

describe('S8-9 no stack is taken', () => {
  const DEBUGGED = '(not taken: a debugger is attached)';

  test.each(
    oneInThisRun([
      ['--inspect', { execArgv: ['--inspect=0'] }],
      ['NODE_OPTIONS', { env: { NODE_OPTIONS: '--inspect=0' } }],
    ]),
  )(
    'S8-9 from a process with a debugger: %s',
    async (_name, environment) => {
      const scene = await newScene('sqlite');
      const worker = await blocker(scene, {}, environment);
      expect(await blockedBy(scene, worker, 'loop', SHORT_MS)).toMatchObject({ stack: DEBUGGED, jobIds: [expect.any(String)] });
    },
    60_000,
  );

  test('S8-9 from a process that opens its inspector later, and until then one is', async () => {
    const scene = await newScene('sqlite');
    const worker = await blocker(scene);
    expect((await blockedBy(scene, worker, 'loop')).stack).toContain('spinInLoop');
    worker.send('open inspector');
    await worker.moment('inspector');
    // The next beat of the loop says it to the lock thread.
    const { id } = await scene.queue.add('rest', { ms: 1000 });
    await worker.moment('ended', ({ jobId }) => jobId === id);
    expect((await blockedBy(scene, worker, 'loop', SHORT_MS)).stack).toBe(DEBUGGED);
  }, 60_000);

  test.each(
    oneInThisRun([
      ['with blockedStack: false', { options: { blockedStack: false } }, '(not taken: blockedStack is false)'],
      [
        'without the lock thread',
        { options: { useDedicatedLockThread: false } },
        '(not taken: no lock thread watches this event loop)',
      ],
      ['of a worker in a thread', { inThread: true }, '(not taken: the worker does not run in the main thread of its process)'],
    ]),
  )(
    'S8-9 %s, and the report says so',
    async (_name, plan, stack) => {
      const scene = await newScene('sqlite');
      const options = { lockDuration: 60_000, ...('options' in plan ? plan.options : {}) };
      const worker = await blocker(scene, { ...plan, options });
      expect((await blockedBy(scene, worker, 'loop', SHORT_MS)).stack).toBe(stack);
    },
    60_000,
  );
});
