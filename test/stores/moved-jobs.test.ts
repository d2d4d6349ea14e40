// What a handler may still do with a job that it has moved itself, and what a caller may do with a job that it took by hand and loaded
// again by its id, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { Job } from '../../src/handle/job.js';
import { DelayedError, WaitingError } from '../../src/job/signals.js';
import { deferred } from '../../src/runtime/deferred.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

describe.each(ENGINES)('on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const errors: Error[] = [];
    const work = (handler: (job: Job, token: string) => Promise<unknown>, options: object = {}): Worker => {
      const worker = kept(new Worker(name, handler, { connection, drainDelay: 1, ...options }));
      worker.on('error', (error) => errors.push(error));
      return worker;
    };
    const ended = (id: string): Promise<Job> =>
      until(`job ${id} to end`, async () => {
        const now = await queue.getJob(id);
        return now?.finishedOn === undefined ? undefined : now;
      });
    return { connection, name, queue, work, ended, errors };
  }

  describe('a handler that moves its job, updates it and throws the signal', () => {
    test.each([
      ['moveToDelayed', DelayedError, (job: Job, token: string) => job.moveToDelayed(Date.now() + 1, token)],
      ['moveToWait', WaitingError, (job: Job, token: string) => job.moveToWait(token)],
    ] as const)('with %s goes from step to step', async (_move, Signal, move) => {
      const { queue, work, ended, errors } = await start();
      const seen: string[] = [];
      work(async (job, token) => {
        seen.push(job.data.step);
        if (job.data.step === 'last') return 'done';
        await move(job, token);
        await job.updateProgress({ passed: job.data.step });
        await job.updateData({ step: job.data.step === 'first' ? 'second' : 'last' });
        throw new Signal();
      });
      // While the job is being moved, another run may begin with the data of before: it then repeats its step.
      const { id } = await queue.add('walk', { step: 'first' });
      expect((await ended(id)).returnvalue).toBe('done');
      expect([...new Set(seen)]).toEqual(['first', 'second', 'last']);
      expect(errors).toEqual([]);
    });
  });

  test('an error that a handler throws after it has moved its job is emitted, and ends nothing', async () => {
    const { queue, work, ended, errors } = await start();
    const thrown = new TypeError('after the move');
    work(async (job, token) => {
      if (job.attemptsStarted > 1) return 'second run';
      await job.moveToDelayed(Date.now() + 1, token);
      throw thrown;
    });
    const { id } = await queue.add('moves', {});
    expect(await ended(id)).toMatchObject({ returnvalue: 'second run', attemptsMade: 1 });
    expect(errors).toEqual([thrown]);
  });

  test('a handler that goes on after it has thrown begins no step, and writes nothing but log rows into the next run', async () => {
    const { queue, work, ended } = await start();
    const second = deferred();
    const written = deferred();
    const late: unknown[] = [];
    let stepped = false;
    const codeOf = (write: Promise<unknown>): Promise<unknown> =>
      write.then(
        () => 'written',
        (error) => error.code,
      );
    work(async (job) => {
      if (job.attemptsStarted > 1) {
        second.resolve();
        await written.promise;
        return 'done';
      }
      void second.promise.then(async () => {
        late.push(
          await codeOf(job.updateData({ late: true })),
          await codeOf(job.updateProgress(99)),
          await codeOf(job.clearLogs()),
          await codeOf(job.step('late', () => void (stepped = true))),
        );
        late.push(await codeOf(job.log('late')));
        // Nothing awaits this one.
        void job.updateProgress(98);
        written.resolve();
      });
      throw new Error('first run');
    });
    const { id } = await queue.add('fails once', { late: false }, { attempts: 2 });
    const { data, progress } = await ended(id);
    expect([data, progress]).toEqual([{ late: false }, 0]);
    expect(late).toEqual(['LOCK_LOST', 'LOCK_LOST', 'LOCK_LOST', 'LOCK_LOST', 'written']);
    expect(stepped, 'the late step has begun').toBe(false);
  });

  test('a write that its handler does not await, and that comes after the end of the run, ends no process', async () => {
    const { queue, work, ended } = await start();
    const warnings: Error[] = [];
    const note = (warning: Error & { code?: string }): void => {
      if (warning.code === 'HOLDFAST_CALL_FORGOTTEN') warnings.push(warning);
    };
    process.on('warning', note);
    onTestFinished(() => void process.off('warning', note));
    work(async (job) => {
      for (let n = 0; n < 20; n += 1) void job.updateProgress(n);
      return 'done';
    });
    const { id } = await queue.add('forgets', {});
    await ended(id);
    await until('a warning', () => warnings.length > 0);
    expect(warnings).toHaveLength(1);
  });

  describe('a job that was taken by hand under a token of the caller, and loaded again by its id', () => {
    async function taken() {
      const parts = await start();
      const worker = kept(new Worker(parts.name, undefined, { connection: parts.connection }));
      const { id } = await parts.queue.add('by hand', {});
      const job = await worker.getNextJob('mine');
      const loaded = async (from: Queue | Worker): Promise<Job> => (await Job.fromId(from, id)) as Job;
      return { ...parts, worker, job, id, loaded };
    }

    test('is refused under a name that this process does not know, and completes with the token of its lock', async () => {
      const { queue, loaded, job: held } = await taken();
      const job = await loaded(queue);
      const message = expect.stringMatching(/known in its own process alone: elsewhere, pass job\.lock\.token/);
      await expect(job.moveToCompleted('done', 'of another process')).rejects.toMatchObject({ code: 'LOCK_LOST', message });
      expect(await job.isActive()).toBe(true);
      await job.moveToCompleted('done', held?.lock.token);
      expect(await job.isCompleted()).toBe(true);
    });

    test.each(['queue', 'worker'] as const)('completes through the %s with that token', async (from) => {
      const parts = await taken();
      const job = await parts.loaded(parts[from]);
      await job.moveToCompleted('done', 'mine');
      expect(await parts.queue.getJob(parts.id)).toMatchObject({ returnvalue: 'done' });
      expect(await job.isCompleted()).toBe(true);
    });

    test('fails, and goes to delayed, with that token', async () => {
      const parts = await taken();
      await (await parts.loaded(parts.queue)).moveToDelayed(Date.now() + 60_000, 'mine');
      expect(await parts.queue.getJobState(parts.id)).toBe('delayed');
      await (await parts.loaded(parts.queue)).promote();
      await parts.worker.getNextJob('mine');
      await (await parts.loaded(parts.queue)).moveToFailed(new Error('no'), 'mine');
      expect(await parts.queue.getJob(parts.id)).toMatchObject({ failedReason: 'no' });
    });

    test('keeps its lock with that token', async () => {
      const parts = await taken();
      expect(await (await parts.loaded(parts.queue)).extendLock('mine', 60_000)).toBe(1);
      expect(await (await parts.loaded(parts.worker)).extendLock('mine', 60_000)).toBe(1);
    });

    test('is refused to another token, and to the same one after its end', async () => {
      const parts = await taken();
      const lost = { code: 'LOCK_LOST' };
      await expect((await parts.loaded(parts.queue)).moveToCompleted(1, 'yours')).rejects.toMatchObject(lost);
      await (await parts.loaded(parts.queue)).moveToCompleted(1, 'mine');
      await expect((await parts.loaded(parts.queue)).moveToFailed(new Error('late'), 'mine')).rejects.toMatchObject(lost);
      expect(await parts.queue.getJobState(parts.id)).toBe('completed');
    });
  });
});
