// Cancelling jobs from any process, and time limits of runs, as a handler sees them, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import type { Job } from '../../src/handle/job.js';
import { FlowProducer } from '../../src/queue/flow-producer.js';
import { CHUNK } from '../../src/queue/cleaning.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { newGate, openGates } from '../support/wait/gate.js';
import { paced } from '../support/wait/pace.js';
import { stopwatch } from '../support/wait/stopwatch.js';
import { until } from '../support/wait/until.js';

type Handler = (job: Job, token: string, signal?: AbortSignal) => Promise<unknown>;

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

/** Rejects with the reason when the signal is aborted. */
function untilAborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)));
}

describe.each(ENGINES)('on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const errors: Error[] = [];
    const work = (handler: Handler, options: object = {}): Worker => {
      const worker = new Worker(name, handler as never, { connection, drainDelay: 1, ...options });
      onTestFinished(() => {
        openGates();
        return worker.close(true);
      });
      worker.on('error', (error) => errors.push(error));
      return worker;
    };
    const reaches = (job: Job, state: string): Promise<Job> =>
      until(`job ${job.id} to be ${state}`, async () =>
        (await job.getState()) === state ? await queue.getJob(job.id) : undefined,
      );
    return { connection, name, queue, work, reaches, errors };
  }

  test('S8-4 a cancel aborts the signal of a run within about a second, with its reason, and the job fails for good', async () => {
    const { queue, work, reaches } = await start();
    const began = newGate();
    const seen: unknown[] = [];
    work(
      async (_job, _token, signal) => {
        began.open();
        await untilAborted(signal).catch((reason: unknown) => {
          seen.push(reason);
          throw reason;
        });
      },
      { lockDuration: 30_000 },
    );
    const job = await queue.add('long', {}, { attempts: 5 });
    await began.opened;
    const took = stopwatch();
    expect(await queue.cancel(job.id, 'the customer left')).toBe(true);
    const { failedReason, attemptsMade } = await reaches(job, 'failed');
    expect(took(), 'time until the job failed').toBeLessThan(paced(1500));
    expect(seen).toMatchObject([{ name: 'HoldfastError', code: 'CANCELLED', message: 'cancelled: the customer left' }]);
    expect([failedReason, attemptsMade]).toEqual(['cancelled: the customer left', 1]);
    expect(await job.cancel()).toBe(false);
  });

  test('S8-4 waiting, delayed and parent jobs fail at once, and no handler begins', async () => {
    const { connection, name, queue, work } = await start();
    const flow = kept(new FlowProducer({ connection }));
    const child = { name: 'child', queueName: `${name}-children` };
    const { job: parent } = await flow.add({ name: 'parent', queueName: name, children: [child] });
    const [waits, later] = [await queue.add('waits', {}), await queue.add('later', {}, { delay: 600_000 })];
    for (const job of [parent, waits, later]) {
      expect(await queue.cancel(job.id)).toBe(true);
      expect((await queue.getJob(job.id))?.failedReason).toBe('cancelled');
      expect(await job.getState()).toBe('failed');
    }
    const ran: string[] = [];
    const worker = work(async ({ name: ofJob }) => void ran.push(ofJob));
    const last = await queue.add('last', {});
    await until('the last job to run', async () => (await last.getState()) === 'completed');
    expect(ran).toEqual(['last']);
    await worker.close();
  });

  test('S8-4 a cancelled job whose handler completes is completed', async () => {
    const { queue, work, reaches } = await start();
    const [began, goOn] = [newGate(), newGate()];
    work(async () => {
      began.open();
      await goOn.opened;
      return 'done';
    });
    const job = await queue.add('long', {});
    await began.opened;
    await job.cancel('too late');
    goOn.open();
    expect((await reaches(job, 'completed')).returnvalue).toBe('done');
  });

  test('a handler that ignores its cancel and throws is not retried', async () => {
    const { queue, work, reaches } = await start();
    const [began, goOn] = [newGate(), newGate()];
    work(async () => {
      began.open();
      await goOn.opened;
      throw new Error('broken');
    });
    const job = await queue.add('long', {}, { attempts: 5 });
    await began.opened;
    await job.cancel('not needed');
    goOn.open();
    const { failedReason } = await reaches(job, 'failed');
    expect(['cancelled: not needed', 'broken (cancelled: not needed)']).toContain(failedReason);
  });

  test('cancelJobs cancels all that match, with its progress, and stops when asked to', async () => {
    const { queue } = await start();
    await queue.addBulk(Array.from({ length: 5 }, (_, n) => ({ name: `job ${n}`, data: {} })));
    await queue.add('later', {}, { delay: 600_000 });
    await queue.add('latest', {}, { delay: 600_000 });
    expect(await queue.cancelJobs({ types: ['waiting'], limit: 2, reason: 'half' })).toBe(2);
    expect(await queue.getJobCounts('waiting', 'failed', 'delayed')).toEqual({ waiting: 3, failed: 2, delayed: 2 });
    expect(await queue.cancelJobs({ types: ['delayed'], limit: 1 })).toBe(1);
    expect(await queue.getJobCounts('waiting', 'failed', 'delayed')).toEqual({ waiting: 3, failed: 3, delayed: 1 });
    const progress: number[] = [];
    expect(await queue.cancelJobs({ onProgress: (cancelled) => void progress.push(cancelled) })).toBe(4);
    expect(await queue.getJobCounts('waiting', 'failed', 'delayed')).toEqual({ waiting: 0, failed: 7, delayed: 0 });
    expect(await queue.cancelJobs()).toBe(0);
  });

  test('cancelJobs leaves younger jobs alone, and ends when its progress says so', async () => {
    const { queue } = await start();
    const count = CHUNK + 20;
    await queue.addBulk(Array.from({ length: count }, () => ({ name: 'job', data: {} })));
    expect(await queue.cancelJobs({ olderThanMs: 3_600_000 })).toBe(0);
    const cancelled = await queue.cancelJobs({ onProgress: () => false });
    expect([cancelled > 0, cancelled < count]).toEqual([true, true]);
    expect(await queue.cancelJobs()).toBe(count - cancelled);
  });

  test('a cancel without a reason, or with an empty one, says that the job was cancelled', async () => {
    const { queue, reaches } = await start();
    for (const reason of [undefined, '']) {
      const job = await queue.add('waits', {});
      expect(await queue.cancel(job.id, reason)).toBe(true);
      expect((await reaches(job, 'failed')).failedReason).toBe('cancelled');
    }
  });

  test('a cancel of a parent reaches its children only if asked to', async () => {
    const { connection, name, queue } = await start();
    const flow = kept(new FlowProducer({ connection }));
    const children = kept(new Queue(`${name}-children`, { connection }));
    const tree = (id: string) => ({
      name: 'parent',
      queueName: name,
      opts: { jobId: id },
      children: [
        {
          name: 'child',
          queueName: children.name,
          opts: { jobId: `${id}-child` },
          children: [{ name: 'grandchild', queueName: children.name, opts: { jobId: `${id}-grandchild` } }],
        },
      ],
    });
    await flow.addBulk([tree('alone'), tree('all')]);
    expect(await queue.cancel('alone', 'one')).toBe(true);
    expect(await queue.cancel('all', 'both', { children: true })).toBe(true);
    expect(await children.getJobState('alone-child')).toBe('waiting-children');
    expect(await children.getJobState('alone-grandchild')).toBe('waiting');
    await until('the child to fail', async () => (await children.getJobState('all-child')) === 'failed');
    await until('the grandchild to fail', async () => (await children.getJobState('all-grandchild')) === 'failed');
    for (const id of ['all-child', 'all-grandchild']) expect((await children.getJob(id))?.failedReason).toBe('cancelled: both');
  });

  test('QueueEvents emits `failed` for a cancelled job, with its reason', async () => {
    const { connection, name, queue } = await start();
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    const failed = new Promise<unknown>((resolve) => void events.on('failed', resolve));
    const job = await queue.add('waits', {});
    await job.cancel('enough');
    expect(await failed).toMatchObject({ jobId: job.id, failedReason: 'cancelled: enough', prev: 'waiting' });
  });

  test('S8-5 a run over its timeoutMs is aborted with TIMEOUT, and is retried if attempts are left', async () => {
    const { queue, work, reaches } = await start();
    const codes: unknown[] = [];
    work(
      async (_job, _token, signal) =>
        untilAborted(signal).catch((reason: { code: unknown }) => {
          codes.push(reason.code);
          throw new Error('aborted');
        }),
      { timeoutMs: 600_000 },
    );
    const job = await queue.add('long', {}, { timeoutMs: 40, attempts: 2 });
    const { failedReason, attemptsMade } = await reaches(job, 'failed');
    expect(codes).toEqual(['TIMEOUT', 'TIMEOUT']);
    expect([failedReason, attemptsMade]).toEqual(['aborted (timed out after 40 ms)', 2]);
  });

  test('S8-5 a handler that ignores its time limit loses the job, frees its slot, and its late result is refused', async () => {
    const { queue, work, reaches, errors } = await start();
    const goOn = newGate();
    const refused: unknown[] = [];
    let runs = 0;
    work(
      async (job) => {
        runs += 1;
        if (job.name === 'stuck') {
          await goOn.opened;
          for (const write of [() => job.log('late'), () => job.clearLogs(), () => job.updateProgress(1)])
            await write().catch((error: { code: unknown }) => refused.push(error.code));
        }
        return 'late';
      },
      { timeoutMs: 40, timeoutGraceMs: 20 },
    );
    const stuck = await queue.add('stuck', {});
    const next = await queue.add('next', {});
    expect((await reaches(stuck, 'failed')).failedReason).toBe('timed out after 40 ms');
    await reaches(next, 'completed');
    goOn.open();
    await until('the late result to be reported', () => errors.length > 0);
    expect(errors).toMatchObject([{ code: 'LOCK_LOST' }]);
    expect((await queue.getJob(stuck.id))?.returnvalue).toBe(null);
    expect([runs, refused]).toEqual([2, ['LOCK_LOST', 'LOCK_LOST', 'LOCK_LOST']]);
  });

  test('a run within its time limit is not touched by it', async () => {
    const { queue, work, reaches, errors } = await start();
    work(async (_job, _token, signal) => signal?.aborted, { timeoutMs: 60_000 });
    const job = await queue.add('short', {});
    expect((await reaches(job, 'completed')).returnvalue).toBe(false);
    expect(errors).toEqual([]);
  });
});
