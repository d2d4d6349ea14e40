// S3 in bun-queue's shape: one job, one worker, however many processes there are; and what becomes of jobs whose process is killed.
import { writeFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import type { MomentLog } from '../support/wait/moments.js';
import type { WorkerProcess } from '../support/processes/worker-process.js';
import { newScene } from '../support/scenes/scene.js';
import { bunProcess, bunQueue, COMPAT_ENGINES } from '../support/scenes/compat-scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';
import { stopwatch } from '../support/wait/stopwatch.js';

const LOCKED = { distributedLock: true };
const QUICK = { ...LOCKED, lockDuration: paced(2000), stalledJobCheckInterval: 300 };

async function ready(processes: WorkerProcess[]): Promise<void> {
  await Promise.all(processes.map((process) => process.moment('ready')));
}

const of = (processes: MomentLog[], event: string, jobId?: string): unknown[] =>
  processes.flatMap((log) => log.all(event, (moment) => jobId === undefined || moment['jobId'] === jobId));

describe.each(oneInThisRun(COMPAT_ENGINES))('S3 in bun-queue’s shape on %s', (engine) => {
  test('S3-1 three processes and 1000 jobs: every job runs exactly once', { timeout: paced(60_000) }, async () => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, LOCKED);
    const processes = [1, 2, 3].map(() => bunProcess(scene, { ...LOCKED, concurrency: 5 }));
    await ready(processes);
    // One of them may begin late.
    let added = 1000;
    await until('each to run a job', async () => {
      added += (await Promise.all(processes.map(() => queue.add({ do: 'nothing' })))).length;
      return processes.every((process) => process.all('started').length > 0);
    });
    for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 100 }, () => queue.add({ do: 'nothing' })));
    await until('all are completed', async () => (await queue.getJobCounts())['completed'] === added);
    await until('all were told', async () => of(processes, 'jobCompleted').length === added);
    const started = of(processes, 'started').map((moment) => (moment as { jobId: string }).jobId);
    expect(started).toHaveLength(added);
    expect(new Set(started).size).toBe(added);
    expect(of(processes, 'jobFailed')).toEqual([]);
    expect(of(processes, 'jobStalled')).toEqual([]);
  });

  test('S3-2 an instance skips a job that another one has locked: it is not failed, and no attempt is counted', async () => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, LOCKED);
    const [owner, idle] = [bunProcess(scene, { ...LOCKED, concurrency: 1 }), bunProcess(scene, { ...LOCKED, concurrency: 1 })];
    await ready([owner, idle]);
    const { id } = await queue.add({ do: 'hold' });
    await until('somebody runs it', async () => of([owner, idle], 'started').length === 1);
    // Another takes it by hand, and the other worker has nothing else to do.
    const outsider = await queue.getJob(id);
    for (let n = 0; n < 20; n++) expect(await outsider?.takeLock()).toBe(false);
    expect(await queue.getJob(id)).toMatchObject({
      attemptsMade: 0,
      attemptsStarted: 1,
      stalledCounter: 0,
      failedReason: undefined,
    });
    for (const process of [owner, idle]) process.send('finish');
    await until('it is completed', async () => (await queue.getJob(id))?.isCompleted());
    expect(of([owner, idle], 'started')).toHaveLength(1);
    expect(of([owner, idle], 'jobFailed')).toEqual([]);
    expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 1 });
  });

  test('S3-3 a job whose owner is killed runs again within lock duration and check interval', async () => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, QUICK);
    const holder = bunProcess(scene, { ...QUICK, concurrency: 1 });
    await holder.moment('ready');
    const { id } = await queue.add({ do: 'hold' });
    await holder.moment('started');
    const other = bunProcess(scene, { ...QUICK, concurrency: 1 });
    await other.moment('ready');
    const took = stopwatch();
    holder.kill('SIGKILL');
    await other.moment('started', (moment) => moment['jobId'] === id);
    const tookMs = took();
    console.log(`S3-3 on ${engine}: run again ${Math.round(tookMs)} ms after the kill`);
    // A look at the store and a start of the run come on top.
    expect(tookMs).toBeLessThan(QUICK.lockDuration + QUICK.stalledJobCheckInterval + paced(1500));
    other.send('finish');
    await other.moment('jobCompleted');
  });

  test('S3-6 the queue emits jobStalled once for each stall', async () => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, QUICK);
    const stalled: string[] = [];
    queue.on('jobStalled', (jobId) => stalled.push(jobId));
    await queue.waitUntilReady();
    const holder = bunProcess(scene, { ...QUICK, concurrency: 1 });
    const { id } = await queue.add({ do: 'hold' });
    await holder.moment('started');
    const other = bunProcess(scene, { ...QUICK, concurrency: 1 });
    await other.moment('ready');
    holder.kill('SIGKILL');
    await other.moment('jobStalled');
    await until('it was told here too', async () => stalled.length > 0);
    other.send('finish');
    await other.moment('jobCompleted');
    expect(stalled).toEqual([id]);
    expect(other.all('jobStalled')).toHaveLength(1);
  });

  test('S3-6 (N) a healthy job that lasts for several locks never emits jobStalled', async () => {
    const scene = await newScene(engine);
    const short = { ...QUICK, lockDuration: paced(600), stalledJobCheckInterval: 100 };
    const queue = bunQueue(scene, short);
    const [owner, idle] = [bunProcess(scene, { ...short, concurrency: 1 }), bunProcess(scene, { ...short, concurrency: 1 })];
    await ready([owner, idle]);
    await queue.add({ do: 'sleep', ms: paced(2500) });
    await until('it has ended', async () => of([owner, idle], 'jobCompleted').length === 1);
    expect(of([owner, idle], 'jobStalled')).toEqual([]);
    expect(of([owner, idle], 'started')).toHaveLength(1);
  });

  test('S3-7 payments: with maxStalledJobRetries 0 a job whose worker is killed fails, and its handler ran once', async () => {
    const scene = await newScene(engine);
    const payments = { ...QUICK, maxStalledJobRetries: 0 };
    const queue = bunQueue(scene, payments);
    const holder = bunProcess(scene, { ...payments, concurrency: 1 });
    const { id } = await queue.add({ do: 'hold' });
    await holder.moment('started');
    const other = bunProcess(scene, { ...payments, concurrency: 1 });
    await other.moment('ready');
    holder.kill('SIGKILL');
    expect(await other.moment('jobFailed')).toMatchObject({ jobId: id, message: 'job stalled more than allowable limit' });
    expect(of([holder, other], 'started', id)).toHaveLength(1);
    expect(await (await queue.getJob(id))?.getState()).toBe('failed');
    // (N) With one retry, the handler would have run again.
    const lenient = bunProcess(scene, { ...QUICK, maxStalledJobRetries: 1, concurrency: 1 });
    await lenient.moment('ready');
    other.send('close');
    await other.moment('closed');
    const retried = await queue.add({ do: 'hold' });
    await lenient.moment('started');
    const third = bunProcess(scene, { ...QUICK, maxStalledJobRetries: 1, concurrency: 1 });
    await third.moment('ready');
    lenient.kill('SIGKILL');
    await third.moment('started', (moment) => moment['jobId'] === retried.id);
  });

  test.each([
    ['S3-8 inventory: jobs of one product with a lock key change its number one after the other', 'product-7'],
    ['S3-8 (N) without a key they overwrite each other', undefined],
  ])('%s', async (_title, lockKey) => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, LOCKED);
    const file = join(scene.folder, 'inventory');
    writeFileSync(file, '0');
    const processes = [bunProcess(scene, { ...LOCKED, concurrency: 5 }), bunProcess(scene, { ...LOCKED, concurrency: 5 })];
    await ready(processes);
    await queue.pause();
    const free = await Promise.all(Array.from({ length: 20 }, () => queue.add({ do: 'nothing' })));
    await Promise.all(
      Array.from({ length: 60 }, () => queue.add({ do: 'count', file }, lockKey === undefined ? {} : { lockKey })),
    );
    await queue.resume();
    await until('all are completed', async () => (await queue.getJobCounts())['completed'] === 80);
    const counted = Number(readFileSync(file, 'utf8'));
    if (lockKey === undefined) expect(counted).toBeLessThan(60);
    else expect(counted).toBe(60);
    expect(of(processes, 'started')).toHaveLength(60 + free.length);
  });

  test('S3-9 singleton: the same id again is one job, the running one untouched, and the second add says so', async () => {
    const scene = await newScene(engine);
    const queue = bunQueue(scene, LOCKED);
    const process = bunProcess(scene, { ...LOCKED, concurrency: 2 });
    await process.moment('ready');
    const first = await queue.add({ do: 'hold' }, { jobId: 'daily-cleanup' });
    await process.moment('started');
    const lock = await queue.core.getLock('daily-cleanup');
    const second = await bunQueue(scene, LOCKED).add({ do: 'nothing' }, { jobId: 'daily-cleanup' });
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    expect(await queue.core.getLock('daily-cleanup')).toMatchObject({ fence: lock?.fence });
    expect(await queue.getJob('daily-cleanup')).toMatchObject({ data: { do: 'hold' }, attemptsStarted: 1 });
    process.send('finish');
    await process.moment('jobCompleted');
    expect(process.all('started')).toHaveLength(1);
    const counts = await queue.getJobCounts();
    expect([counts['waiting'], counts['active'], counts['completed']]).toEqual([0, 0, 1]);
  });
});
