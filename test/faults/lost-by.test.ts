// Which process lost a job, and how that was found: in the job, in the events of workers and of QueueEvents, and in the log of the process.
// Runs the built package, in processes of its own.
import { once } from 'node:events';
import { hostname } from 'node:os';
import { type HoldfastError, type Job, type LossFound, type LostBy, QueueEvents } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { WorkerProcess } from '../support/processes/worker-process.js';
import { newScene, type Scene, SHARED_ENGINES, work } from '../support/scenes/scene.js';
import { until } from '../support/wait/until.js';
import { paced } from '../support/wait/pace.js';

/** Long enough that only the death of the process can be what was found. */
const PATIENT = { lockDuration: 120_000, crashGraceMs: 300, stalledInterval: 120_000 };

interface Held {
  owner: WorkerProcess;
  jobId: string;
}

/** A process that holds one job. */
async function holding(scene: Scene, options: { name: string; lockDuration?: number; maxStalledCount?: number }): Promise<Held> {
  const owner = new WorkerProcess({ queue: 'work', connection: scene.url, options: { ...PATIENT, ...options } });
  const { jobId } = await owner.moment('started');
  return { owner, jobId: jobId as string };
}

function lostBy(owner: WorkerProcess, worker: string, found: LossFound): LostBy {
  return { host: hostname(), pid: owner.pid, worker, found };
}

/** Warnings of this process that jobs were lost. */
function warnings(): string[] {
  const seen: string[] = [];
  const note = (warning: Error & { code?: string }): void => {
    if (warning.code === 'HOLDFAST_JOBS_LOST') seen.push(warning.message);
  };
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return seen;
}

describe.each(SHARED_ENGINES)('lostBy on %s', (engine) => {
  test('names a killed process in job, events and errors, and how it was found', { timeout: paced(60_000) }, async () => {
    const scene = await newScene(engine);
    const warned = warnings();
    await scene.queue.addBulk(Array.from({ length: 3 }, () => ({ name: 'hold', data: {} })));
    const [killed, failing, frozen] = await Promise.all([
      holding(scene, { name: 'killed' }),
      holding(scene, { name: 'failing', maxStalledCount: 0 }),
      holding(scene, { name: 'frozen', lockDuration: paced(1500) }),
    ]);

    const events = new QueueEvents('work', { connection: scene.connection });
    onTestFinished(() => events.close());
    const told: Record<'stalled' | 'failed', Map<string, LostBy | undefined>> = { stalled: new Map(), failed: new Map() };
    events.on('stalled', (args) => told.stalled.set(args.jobId, args.lostBy));
    events.on('failed', (args) => {
      expect(args.failedReason).toBe('job stalled more than allowable limit');
      told.failed.set(args.jobId, args.lostBy);
    });
    await events.waitUntilReady();
    await frozen.owner.freeze();
    killed.owner.kill('SIGKILL');
    failing.owner.kill('SIGKILL');
    await Promise.all([killed.owner.exited, failing.owner.exited]);

    const handed = new Map<string, LostBy | undefined>();
    const { worker } = work(scene, (job) => void handed.set(job.id, job.lostBy), {
      stalledInterval: 200,
      lockDuration: paced(2000),
    });
    const stalled = new Set<string>();
    worker.on('stalled', (jobId) => void stalled.add(jobId));
    const [failed, error] = (await once(worker, 'failed')) as [Job, HoldfastError];
    await until('the other jobs to run', () => handed.size === 2);

    const expected = {
      [killed.jobId]: lostBy(killed.owner, 'killed', 'process-gone'),
      [failing.jobId]: lostBy(failing.owner, 'failing', 'process-gone'),
      [frozen.jobId]: lostBy(frozen.owner, 'frozen', 'session-expired'),
    };
    const { [failing.jobId]: over, ...again } = expected;
    await until('the events', () => stalled.size === 3 && told.stalled.size === 3 && told.failed.size === 1);
    expect(stalled).toEqual(new Set(Object.keys(expected)));
    expect(Object.fromEntries(told.stalled)).toEqual(expected);
    expect(Object.fromEntries(told.failed)).toEqual({ [failing.jobId]: over });
    expect(Object.fromEntries(handed), 'in the hands of the next handler').toEqual(again);
    expect(failed.id).toBe(failing.jobId);
    expect(error).toMatchObject({ code: 'JOB_STALLED', message: 'job stalled more than allowable limit', lostBy: over });
    expect(failed.toJSON()).toMatchObject({ failedReason: 'job stalled more than allowable limit', lostBy: over });
    await until('the warnings', () => warned.length === 3);
    for (const { owner } of [killed, failing, frozen]) {
      expect(warned.filter((message) => message.includes(`Process ${owner.pid} on ${hostname()}`))).toHaveLength(1);
    }
    // It is history that stays.
    for (const id of Object.keys(expected)) {
      const job = await until('the job to end', async () => {
        const found = await scene.queue.getJob(id);
        return found?.finishedOn === undefined ? undefined : found;
      });
      expect(job.lostBy).toEqual(expected[id]);
    }
  });
});
