// `batch`: the processor gets several jobs at once, and each of them has its own lock, token and outcome.
import { type Batch, type BatchOptions, type BatchProcessor, type BatchWorkerOptions, type Job, Queue, Worker } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listenTo, type MomentLog, WORKER_EVENTS } from '../support/wait/moments.js';
import { ENGINES, newScene, type Scene, work } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { newGate } from '../support/wait/gate.js';
import { outcomeOf, until } from '../support/wait/until.js';

const UNCHARGED = { attemptsMade: 0, attemptsStarted: 0, stalledCounter: 0 };
const LONG_MS = 600_000;

type Options = Omit<BatchWorkerOptions, 'connection'>;

function workBatches({ connection }: Scene, processor: BatchProcessor, options: Options): { worker: Worker; log: MomentLog } {
  const worker = new Worker('work', processor, { connection, ...options });
  onTestFinished(() => worker.close(true));
  return { worker, log: listenTo(worker, [...WORKER_EVENTS, 'drained']) };
}

async function addJobs({ queue }: Scene, count: number, opts = {}): Promise<string[]> {
  const jobs = await queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'job', data: n, opts })));
  return jobs.map(({ id }) => id);
}

const allDone = ({ queue }: Scene, count: number): Promise<unknown> =>
  until(`${count} jobs are completed`, async () => (await queue.getCompletedCount()) === count);

const idsOf = (log: MomentLog, event: string): unknown[] => log.all(event).map(({ args }) => (args as { id: string }[])[0]?.id);

describe.each(ENGINES)('batches on %s', (engine) => {
  test('have at most size jobs, and each job gets its own result', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 25);
    const sizes: number[] = [];
    const processor: BatchProcessor<number, number> = async ({ jobs }) => {
      sizes.push(jobs.length);
      return jobs.map(({ data }) => data * 2);
    };
    const { log } = workBatches(scene, processor, { batch: { size: 10 } });
    await allDone(scene, 25);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(25);
    expect(sizes[0]).toBe(10);
    expect(Math.max(...sizes)).toBe(10);
    const completed = await scene.queue.getCompleted();
    expect(completed.map(({ data, returnvalue, attemptsMade }) => [data * 2, attemptsMade, returnvalue])).toEqual(
      completed.map(({ returnvalue }) => [returnvalue, 1, returnvalue]),
    );
    expect(log.all('active')).toHaveLength(25);
    expect(log.all('completed')).toHaveLength(25);
    expect(log.all('error')).toEqual([]);
  });

  test('S7-5 fail one job and complete the others; the failed one is retried with its attempts', async () => {
    const scene = await newScene(engine);
    const [first = '', second = '', third = ''] = await addJobs(scene, 3, { attempts: 2 });
    const seen: string[][] = [];
    const { log } = workBatches(
      scene,
      async (batch) => {
        seen.push(batch.jobs.map(({ id }) => id));
        for (const job of batch.jobs) if (job.id === second) batch.fail(job, new Error('bad address'));
      },
      { batch: { size: 3 } },
    );
    await allDone(scene, 2);
    await until('the second has failed for good', async () => (await scene.queue.getFailedCount()) === 1);
    expect(seen).toEqual([[first, second, third], [second]]);
    expect(await scene.queue.getJob(second)).toMatchObject({ failedReason: 'bad address', attemptsMade: 2 });
    expect(idsOf(log, 'failed')).toEqual([second, second]);
    expect(new Set(idsOf(log, 'completed'))).toEqual(new Set([first, third]));
  });

  test('fail every job that is not decided when the processor throws', async () => {
    const scene = await newScene(engine);
    const ids = await addJobs(scene, 4);
    workBatches(
      scene,
      async (batch) => {
        batch.complete(batch.jobs[0] as Job, 'done');
        throw new Error('the mail server is down');
      },
      { batch: { size: 4 } },
    );
    await until('three have failed', async () => (await scene.queue.getFailedCount()) === 3);
    expect(await scene.queue.getJob(ids[0] ?? '')).toMatchObject({ returnvalue: 'done' });
    for (const id of ids.slice(1))
      expect(await scene.queue.getJob(id)).toMatchObject({ failedReason: 'the mail server is down' });
  });

  test('settle a decided job while the processor goes on, and close() waits for the processor', async () => {
    const scene = await newScene(engine);
    const [first = ''] = await addJobs(scene, 2);
    const gate = newGate();
    let over = false;
    const { worker } = workBatches(
      scene,
      async (batch) => {
        for (const job of batch.jobs) batch.complete(job, job.id);
        expect(batch.pending).toEqual([]);
        await gate.opened;
        over = true;
      },
      { batch: { size: 2 } },
    );
    await until('the first is completed', async () => (await scene.queue.getJobState(first)) === 'completed');
    const closing = worker.close();
    expect(await outcomeOf(closing, 100)).toBe('pending');
    gate.open();
    await closing;
    expect(over).toBe(true);
    await allDone(scene, 2);
  });

  test('run as many at once as concurrency says, and claim no jobs for others', async () => {
    const scene = await newScene(engine);
    const gate = newGate();
    const { worker } = workBatches(
      scene,
      async ({ jobs }) => {
        await gate.opened;
        return jobs.map(() => null);
      },
      { batch: { size: 10 }, concurrency: 2 },
    );
    // Two small batches take both slots, although 17 more jobs would fit into them.
    await addJobs(scene, 1);
    await until('one runs', async () => (await scene.queue.getActiveCount()) === 1);
    await addJobs(scene, 2);
    await until('three run', async () => (await scene.queue.getActiveCount()) === 3);
    await addJobs(scene, 5);
    await work(scene, () => undefined, { name: 'other' }).log.moment('ready');
    await until('the other worker did the rest', async () => (await scene.queue.getCompletedCount()) === 5);
    expect(worker.health()).toMatchObject({ running: 3, slots: 20, prefetched: 0, healthy: true });
    gate.open();
    await allDone(scene, 8);
  });

  test('wait for minSize jobs', async () => {
    const scene = await newScene(engine);
    const sizes: number[] = [];
    const { worker, log } = workBatches(scene, ({ jobs }) => void sizes.push(jobs.length), {
      batch: { size: 10, minSize: 3, waitMs: LONG_MS },
    });
    await addJobs(scene, 2);
    await until('two wait in the worker', async () => worker.prefetched === 2);
    expect(worker.health()).toMatchObject({ running: 0, prefetched: 2 });
    expect(log.all('active')).toEqual([]);
    await addJobs(scene, 1);
    await allDone(scene, 3);
    expect(sizes).toEqual([3]);
  });

  test('begin with what they have after waitMs', async () => {
    const scene = await newScene(engine);
    const sizes: number[] = [];
    workBatches(scene, ({ jobs }) => void sizes.push(jobs.length), { batch: { size: 10, waitMs: 50 } });
    await addJobs(scene, 2);
    await allDone(scene, 2);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(2);
  });

  test.each<[string, (worker: Worker) => Promise<void>]>([
    ['pause()', (worker) => worker.pause()],
    ['close()', (worker) => worker.close()],
    ['close(true)', (worker) => worker.close(true)],
  ])('a worker hands the jobs of a batch that has not begun back on %s in order, without a start or a stall', async (_, stop) => {
    const scene = await newScene(engine);
    const ids = await addJobs(scene, 4);
    const { worker, log } = workBatches(scene, () => undefined, { batch: { size: 10, waitMs: LONG_MS } });
    await until('four wait in the worker', async () => worker.prefetched === 4);
    await stop(worker);
    await until('four wait in the queue', async () => (await scene.queue.getWaitingCount()) === 4);
    const waiting = await scene.queue.getWaiting();
    expect(waiting.map(({ id }) => id)).toEqual(ids);
    for (const job of waiting) expect(job).toMatchObject(UNCHARGED);
    expect(log.all('active')).toEqual([]);
    expect(log.all('error')).toEqual([]);
    expect(worker.prefetched).toBe(0);
  });

  test('lose one job with its lock: it drops out, its late result is refused, and the others are settled', async () => {
    const scene = await newScene(engine);
    const [first = '', second = '', third = ''] = await addJobs(scene, 3);
    const gate = newGate();
    let batch: Batch | undefined;
    const { worker, log } = workBatches(
      scene,
      async (given) => {
        batch ??= given;
        if (batch === given) await gate.opened;
        return given.jobs.map(() => (batch === given ? 'of the first run' : 'of the second run'));
      },
      { batch: { size: 3 }, lockDuration: paced(1000) },
    );
    const running = await until('the batch runs', async () => batch);
    const aborted = running.signalOf(running.jobs[1] as Job);
    expect(running.signal.aborted).toBe(false);
    await scene.store.change('work', [second], { kind: 'revoke', reason: 'an operator' });
    await log.moment('lockRenewalFailed');
    expect(aborted.reason).toMatchObject({ code: 'LOCK_LOST' });
    expect(running.pending.map(({ id }) => id)).toEqual([first, third]);
    expect(running.signal.aborted).toBe(false);
    gate.open();
    await allDone(scene, 3);
    const values = await Promise.all([first, second, third].map(async (id) => (await scene.queue.getJob(id))?.returnvalue));
    expect(values).toEqual(['of the first run', 'of the second run', 'of the first run']);
    expect(log.all('error').map(({ args }) => (args as { code: string }[])[0]?.code)).toEqual(['LOCK_UNTRUSTED', 'LOCK_LOST']);
    expect(worker.health().running).toBe(0);
  });

  test('the control of the test above: without the revocation, all results of the first run count', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 3);
    workBatches(scene, ({ jobs }) => jobs.map(() => 'of the first run'), { batch: { size: 3 } });
    await allDone(scene, 3);
    expect((await scene.queue.getCompleted()).map(({ returnvalue }) => returnvalue)).toEqual(Array(3).fill('of the first run'));
  });

  test('hand back a job whose lock is lost before its batch begins', async () => {
    const scene = await newScene(engine);
    const [first = '', second = ''] = await addJobs(scene, 2);
    const seen: string[] = [];
    const { worker, log } = workBatches(scene, ({ jobs }) => void seen.push(...jobs.map(({ id }) => id)), {
      batch: { size: 4, waitMs: LONG_MS },
      lockDuration: paced(1000),
      limiter: { max: 3, duration: LONG_MS },
    });
    await until('two wait in the worker', async () => worker.prefetched === 2);
    await scene.store.change('work', [first], { kind: 'revoke', reason: 'an operator' });
    // The worker takes it again, as the third claim that the limiter allows.
    await until('it was dropped and claimed again', async () => {
      const lock = (await scene.store.locks('work', { jobIds: [first] }))[0];
      return lock !== undefined && worker.prefetched === 2;
    });
    expect(log.all('lockRenewalFailed')).toEqual([]);
    expect(seen).toEqual([]);
    await worker.close();
    expect((await scene.queue.getWaiting()).map(({ id }) => id).sort()).toEqual([first, second].sort());
  });

  test('keep to the rate limit, job by job', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 7);
    const sizes: number[] = [];
    workBatches(scene, ({ jobs }) => void sizes.push(jobs.length), {
      batch: { size: 5 },
      limiter: { max: 3, duration: LONG_MS },
    });
    await allDone(scene, 3);
    expect(sizes.reduce((sum, size) => sum + size)).toBe(3);
    expect(await scene.queue.getWaitingCount()).toBe(4);
  });

  test('leave jobs alone that the processor moved itself', async () => {
    const scene = await newScene(engine);
    const [first = '', second = ''] = await addJobs(scene, 2);
    const { log } = workBatches(
      scene,
      async ({ jobs }) => {
        await jobs[0]?.moveToDelayed(Date.now() + LONG_MS, jobs[0].token);
      },
      { batch: { size: 2 } },
    );
    await allDone(scene, 1);
    expect(await scene.queue.getJobState(first)).toBe('delayed');
    expect(await scene.queue.getJobState(second)).toBe('completed');
    expect(log.all('error')).toEqual([]);
  });

  test('end unstarted a job that was started too often, beside a batch of the others', async () => {
    const scene = await newScene(engine);
    const [first = ''] = await addJobs(scene, 3, { attempts: 3 });
    const seen: string[] = [];
    workBatches(
      scene,
      ({ jobs }) => {
        seen.push(...jobs.map(({ id }) => id));
        if (jobs.some(({ id }) => id === first)) throw new Error('again');
      },
      { batch: { size: 3 }, maxStartedAttempts: 1 },
    );
    await until('all have failed', async () => (await scene.queue.getFailedCount()) === 3);
    expect(seen).toHaveLength(3);
    expect((await scene.queue.getJob(first))?.failedReason).toBe('job started more than allowable limit');
  });

  test('of one worker have at most size jobs each, also when as many wait as fill several', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 20);
    const sizes: number[] = [];
    const gate = newGate();
    const processor: BatchProcessor = async ({ jobs }) => {
      sizes.push(jobs.length);
      await gate.opened;
    };
    workBatches(scene, processor, { batch: { size: 5, waitMs: LONG_MS }, concurrency: 4 });
    await until('all run', async () => sizes.length === 4);
    expect(sizes).toEqual([5, 5, 5, 5]);
    gate.open();
    await allDone(scene, 20);
  });

  test('keep their decisions when the worker is closed by force after the last one', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 2);
    let isDecided = false;
    const { worker } = workBatches(
      scene,
      async (batch) => {
        for (const job of batch.jobs) batch.complete(job);
        isDecided = true;
        await newGate().opened;
      },
      { batch: { size: 2 } },
    );
    await until('the processor has decided', async () => isDecided);
    await worker.close(true);
    await allDone(scene, 2);
  });

  test('abort when the worker is closed by force, and undecided jobs go back without a stall', async () => {
    const scene = await newScene(engine);
    await addJobs(scene, 3);
    let batch: Batch | undefined;
    const { worker } = workBatches(
      scene,
      async (given) => {
        batch = given;
        given.complete(given.jobs[0] as Job);
        await new Promise((_, reject) => given.signal.addEventListener('abort', () => reject(given.signal.reason as Error)));
      },
      { batch: { size: 3 } },
    );
    const running = await until('the batch runs', async () => batch);
    await worker.close(true);
    expect(running.signal.reason).toMatchObject({ code: 'SHUTDOWN' });
    await until('two wait again', async () => (await scene.queue.getWaitingCount()) === 2);
    for (const job of await scene.queue.getWaiting()) expect(job).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
    await allDone(scene, 1);
  });
});

describe('a batch', () => {
  async function inBatch(check: (batch: Batch) => void): Promise<unknown> {
    const scene = await newScene('memory');
    await addJobs(scene, 2);
    const thrown = new Promise((resolve) => {
      workBatches(
        scene,
        async (batch) => {
          try {
            check(batch);
          } catch (error) {
            resolve(error);
          }
        },
        { batch: { size: 2 } },
      );
    });
    return thrown;
  }

  test('refuses jobs of other batches, and a second decision', async () => {
    expect(await inBatch((batch) => batch.fail({ id: '1' } as Job, new Error('x')))).toMatchObject({
      code: 'INVALID_OPTION',
      option: 'job',
    });
    const twice = await inBatch((batch) => {
      batch.complete(batch.jobs[0] as Job);
      batch.fail(batch.jobs[0] as Job, new Error('x'));
    });
    expect(twice).toMatchObject({ code: 'JOB_STATE', message: expect.stringContaining('was completed or failed before') });
  });

  test('refuses a decision after its processor has ended', async () => {
    const scene = await newScene('memory');
    await addJobs(scene, 1);
    let batch: Batch | undefined;
    workBatches(scene, (given) => void (batch = given), { batch: { size: 1 } });
    await allDone(scene, 1);
    expect(() => batch?.fail(batch.jobs[0] as Job, new Error('late'))).toThrow(expect.objectContaining({ code: 'JOB_STATE' }));
  });

  test.each([
    ['too few results', () => [1], 'returned 1 results for 2 jobs'],
    ['no list', () => 'done' as never, 'returned something that is no list'],
  ])('fails its jobs when the processor returns %s', async (_, processor, reason) => {
    const scene = await newScene('memory');
    const [first = ''] = await addJobs(scene, 2);
    workBatches(scene, processor as BatchProcessor, { batch: { size: 2 } });
    await until('both have failed', async () => (await scene.queue.getFailedCount()) === 2);
    expect((await scene.queue.getJob(first))?.failedReason).toContain(reason);
  });

  test('has typed jobs and results', async () => {
    type Mail = { welcome: { data: { to: string }; result: boolean } };
    const processor: BatchProcessor<Mail> = async ({ jobs }) => jobs.map((job) => job.data.to !== '');
    const { connection } = await newScene('memory');
    const queue = new Queue<Mail>('typed', { connection });
    onTestFinished(() => queue.close());
    const worker = new Worker<Mail>('typed', processor, { connection, batch: { size: 2 } });
    onTestFinished(() => worker.close());
    expect(await queue.addAndWait('welcome', { to: 'a@example.com' })).toBe(true);
    // @ts-expect-error: without batch the processor gets a job
    const wrong = (): Worker => new Worker('typed', async (batch) => batch.jobs.map(() => 1), { connection });
    expect(wrong).toBeTypeOf('function');
  });
});

test.each([
  [{ size: 0 }, 'batch.size'],
  [{ size: -1 }, 'batch.size'],
  [{ size: 1.5 }, 'batch.size'],
  [{ size: 10_001 }, 'batch.size'],
  [{ size: '5' }, 'batch.size'],
  [{}, 'batch.size'],
  [null, 'batch'],
  [5, 'batch'],
  [[], 'batch'],
  [{ size: 5, minSize: 0 }, 'batch.minSize'],
  [{ size: 5, minSize: 6 }, 'batch.minSize'],
  [{ size: 5, waitMs: -1 }, 'batch.waitMs'],
  [{ size: 5, waitMs: 2 ** 31 }, 'batch.waitMs'],
  [{ size: 5, minsize: 2 }, 'batch.minsize'],
])('the batch option %j is refused', (batch, option) => {
  const make = (): Worker => new Worker('work', async () => undefined, { connection: 'memory:', batch: batch as BatchOptions });
  expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
});

test('batch is refused beside prefetch, handlers by name, and no processor', () => {
  const make = (processor: unknown, options: object): Worker =>
    new Worker('work', processor as BatchProcessor, { connection: 'memory:', batch: { size: 5 }, ...options });
  expect(() => make(async () => undefined, { prefetch: 5 })).toThrow(expect.objectContaining({ option: 'prefetch' }));
  expect(() => make(async () => undefined, { prefetch: 5 })).toThrow(/^prefetch cannot be used with batch/);
  expect(() => make({ mail: async () => undefined }, {})).toThrow(expect.objectContaining({ option: 'processor' }));
  expect(() => make(null, {})).toThrow(expect.objectContaining({ option: 'processor' }));
});
