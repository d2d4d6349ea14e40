// What a handler in a file of its own can do, in threads and in processes, on every store.
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { describe, expect, test } from 'vitest';
import { oneInThisRun } from '../support/run/matrix.js';
import { ENGINES } from '../support/scenes/faulty-scene.js';
import { KINDS, processor, sandboxScene, written } from '../support/scenes/sandbox.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

describe.each(oneInThisRun(ENGINES))('sandboxes on %s', (engine) => {
  describe.each(KINDS)('in %s', (kind) => {
    test('the handler sees the fields of its job, its token, its lock and its signal', async () => {
      const { queue, name, worker } = await sandboxScene(engine);
      const { run } = worker(kind);
      const shown = await run('show', { a: [1, 'zwei', null] }, { attempts: 3, priority: 2, jobId: 'the-job' });
      const job = await queue.getJob('the-job');
      expect(shown).toMatchObject({
        where: kind === 'threads' ? 'thread' : 'process',
        fields: {
          id: 'the-job',
          name: 'show',
          data: { a: [1, 'zwei', null] },
          opts: { attempts: 3, priority: 2 },
          progress: 0,
          returnvalue: null,
          stacktrace: [],
          attemptsMade: 0,
          attemptsStarted: 1,
          stalledCounter: 0,
          timestamp: job?.timestamp,
          priority: 2,
        },
        more: [name, 'bull', `bull:${name}`, 1, 3],
        lock: [true, true, true, true],
        signal: [false, true],
      });
    });

    test('progress, logs, data and state go through the worker, and its own handle shows them', async () => {
      const { queue, worker } = await sandboxScene(engine);
      const { worker: own, run } = worker(kind);
      const progressed = new Promise((resolve) => own.once('progress', (job, progress) => resolve([job.name, progress])));
      const completed = new Promise((resolve) => own.once('completed', (job) => resolve(job.data)));
      expect(await run('write', { first: true }, { jobId: 'written' })).toEqual({
        rows: [1, 2],
        progress: { done: 40 },
        data: { first: true, more: [1, null] },
        state: 'active',
        active: true,
      });
      expect(await progressed).toEqual(['write', { done: 40 }]);
      expect(await completed).toEqual({ first: true, more: [1, null] });
      expect((await queue.getJobLogs('written')).logs).toEqual(['one', 'two']);
      expect((await queue.getJob('written'))?.data).toEqual({ first: true, more: [1, null] });
    });

    test('steps, sleeps and signals work inside, and a recorded step does not run again', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { end } = worker(kind);
      const job = await queue.add('steps', { file: file('steps.txt') });
      await queue.signal(job.id, 'go', { by: 'a test' });
      expect(await end(job.id)).toEqual({
        first: { key: true, fence: true, signal: true },
        signalled: { by: 'a test' },
        refused: 'OPTION_UNSUPPORTED',
        repeated: 'STEP_REPEATED',
        steps: ['go', 'first', 'nap'],
      });
      expect(await written(file('steps.txt'))).toBe('first ');
      expect((await queue.getJob(job.id))?.attemptsStarted).toBe(2);
    });

    test('a handler that blocks its loop is ended by timeoutMs, and its job fails as timed out', async () => {
      const { queue, worker } = await sandboxScene(engine);
      const { end } = worker(kind, { timeoutMs: 100, sandbox: { graceMs: 50 } });
      const job = await queue.add('loop', {});
      expect(await end(job.id)).toMatchObject({ message: expect.stringContaining('timed out after 100 ms') as string });
      expect(await job.getState()).toBe('failed');
    });

    test('a handler that sends foreign messages to the worker harms its own job at most', async () => {
      const { run } = (await sandboxScene(engine)).worker(kind);
      await run('babble');
      expect(await run('echo', { a: 1 })).toEqual({ a: 1 });
    });

    test('a cancel from outside aborts the signal of a handler with CANCELLED', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { end } = worker(kind);
      const job = await queue.add('untilAborted', { file: file('began') });
      await written(file('began'));
      expect(await queue.cancel(job.id, 'not needed')).toBe(true);
      expect(await end(job.id)).toMatchObject({ message: 'CANCELLED' });
      expect((await queue.getJob(job.id))?.failedReason).toBe('CANCELLED (cancelled: not needed)');
    });

    test('a call with bad input rejects inside with the code that it has outside', async () => {
      const { run } = (await sandboxScene(engine)).worker(kind);
      expect(await run('refused')).toEqual([
        ['HoldfastError', 'INVALID_PAYLOAD'],
        ['HoldfastError', 'INVALID_OPTION'],
        ['HoldfastError', 'INVALID_OPTION'],
      ]);
    });

    test('extendLock lengthens the lock that the handler reads', async () => {
      const { run } = (await sandboxScene(engine)).worker(kind, { lockDuration: paced(5000) });
      expect(await run('extend')).toEqual([1, true, true]);
    });

    test('errors arrive with name, message, code, cause, stack and plain properties', async () => {
      const { run } = (await sandboxScene(engine)).worker(kind);
      const error = (await run('fail')) as Error & { code: string; status: number };
      expect(error).toMatchObject({ name: 'TypeError', message: 'no such thing', code: 'E_NOTHING', status: 404 });
      expect(error.cause).toMatchObject({ name: 'RangeError', message: 'deeper' });
      expect(error.stack).toContain('acts.mjs');
      expect(await run('odd')).toMatchObject({ message: 'a text' });
    });

    test('errors that say how the job goes on are obeyed', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { run } = worker(kind);
      expect(await run('unrecoverable', {}, { attempts: 3 })).toMatchObject({
        name: 'UnrecoverableError',
        message: 'never again',
      });
      expect(await run('discard', {}, { attempts: 3 })).toMatchObject({ message: 'discarded' });
      expect(await run('limited', { file: file('limited') }, { jobId: 'limited' })).toBe('after the limit');
      expect(await run('delay', {}, { jobId: 'delayed' })).toBe('after the delay');
      expect(await run('wait')).toBe('after the wait');
      expect(await queue.getJobCounts('failed', 'completed')).toEqual({ failed: 2, completed: 3 });
      expect((await queue.getJob('limited'))?.attemptsMade).toBe(1);
    });

    test('a result that JSON cannot hold fails the job once, with the path', async () => {
      const { queue, worker } = await sandboxScene(engine);
      const { run } = worker(kind);
      expect(await run('bad', {}, { attempts: 3, jobId: 'bad' })).toMatchObject({
        message: expect.stringContaining('it.result is a Map'),
      });
      expect((await queue.getJob('bad'))?.attemptsStarted).toBe(1);
    });

    test('a call after the end of the run is refused with LOCK_LOST and writes nothing', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { run } = worker(kind);
      expect(await run('late', { file: file('code') }, { jobId: 'late' })).toBe('done');
      expect(await written(file('code'), 'LOCK_LOST')).toBe('LOCK_LOST');
      expect((await queue.getJobLogs('late')).logs).toEqual([]);
    });

    test('a cancel reaches the signal inside as an error with the code CANCELLED', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { worker: own, end } = worker(kind);
      const { id } = await queue.add('polite', { file: file('told') });
      await written(file('told'));
      expect(own.cancelJob(id, 'the user left')).toBe(true);
      expect(await end(id)).toMatchObject({ message: 'stopped', cancelReason: 'the user left' });
      const [, told] = (await written(file('told'), ']\n')).split('\n');
      expect(JSON.parse(told ?? '')).toEqual([
        true,
        'HoldfastError',
        'CANCELLED',
        `Job ${id} was cancelled: the user left`,
        true,
      ]);
    });

    test('a lost lock reaches the signal inside with LOCK_LOST, and job.lock.held is false', async () => {
      const { queue, store, name, worker, file } = await sandboxScene(engine);
      worker(kind, { lockDuration: paced(3000), lockRenewTime: 100 });
      const { id } = await queue.add('polite', { file: file('told') });
      await written(file('told'));
      await store.change(name, [id], { kind: 'revoke', reason: 'an operator' });
      const [, told] = (await written(file('told'), ']\n')).split('\n');
      expect(JSON.parse(told ?? '')).toEqual([true, 'HoldfastError', 'LOCK_LOST', expect.stringContaining('an operator'), false]);
    });

    test('a handler that ignores its signal is ended after the grace time, and its job fails', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { worker: own, end, run } = worker(kind, { sandbox: { graceMs: 50 } });
      const { id } = await queue.add('deaf', { file: file('deaf') });
      await written(file('deaf'));
      const [child] = Object.values(own.childPool?.retained ?? {});
      own.cancelJob(id);
      expect(await end(id)).toMatchObject({
        code: 'SANDBOX_KILLED',
        message: expect.stringContaining('did not stop within 50 ms'),
      });
      expect(child?.hasProcessExited()).toBe(true);
      expect(await run('echo', 'next')).toBe('next');
    });

    test('close(true) ends a handler that ignores its signal, and its job goes back without an attempt', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { worker: own } = worker(kind);
      const { id } = await queue.add('deaf', { file: file('deaf') });
      await written(file('deaf'));
      const [child] = Object.values(own.childPool?.retained ?? {});
      await own.close(true);
      expect(child?.hasProcessExited()).toBe(true);
      await until('the job to be back', async () => (await queue.getJobState(id)) === 'waiting');
      expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 0, stalledCounter: 0 });
    });

    test('close() waits for the handler and leaves no child', async () => {
      const { queue, worker, file } = await sandboxScene(engine);
      const { worker: own, end } = worker(kind);
      const { id } = await queue.add('slow', { file: file('began'), until: file('go') });
      await written(file('began'));
      const [child] = Object.values(own.childPool?.retained ?? {});
      const closed = own.close();
      writeFileSync(file('go'), '');
      expect(await end(id)).toEqual(expect.any(Number));
      await closed;
      expect([child?.hasProcessExited(), own.childPool?.getAllFree(), own.childPool?.retained]).toEqual([true, [], {}]);
    });
  });

  test('the handler of a thread reads in a synchronous loop that its lock is lost', async () => {
    const { queue, store, name, worker, file } = await sandboxScene(engine);
    const { errors } = worker('threads', { lockDuration: paced(3000), lockRenewTime: 100, sandbox: { graceMs: 60_000 } });
    const { id } = await queue.add('held', { file: file('held') });
    await written(file('held'));
    await store.change(name, [id], { kind: 'revoke', reason: 'an operator' });
    // The loop never lets a message in: only the shared memory can end it.
    await until('the refusal of the late result', () =>
      errors.some(({ code, message }) => code === 'LOCK_LOST' && message.includes('settle')),
    );
  });

  test('a parent waits for its children, reads their results, and a child sees its parent', async () => {
    const { queue, worker, name } = await sandboxScene(engine);
    const { end } = worker('threads');
    const parent = await queue.add('parent', {}, { jobId: 'parent', delay: 3_600_000 });
    const child = await queue.add('child', {}, { parent: { id: parent.id, queue: `bull:${name}` } });
    await (await queue.getJob(parent.id))?.promote().catch(() => undefined);
    expect(await end(child.id)).toEqual([parent.id, true]);
    expect(await end(parent.id)).toEqual([
      [[parent.id, true]],
      { processed: 1, unprocessed: 0, failed: 0, ignored: 0 },
      [[parent.id, true]],
      {},
    ]);
  });
});

describe.each(KINDS)('processor files in %s', (kind) => {
  test.each([
    ['ESM, by its path', processor('acts.mjs'), ['echo', 'x'], 'x'],
    ['ESM, by its URL', pathToFileURL(processor('acts.mjs')), ['echo', 'x'], 'x'],
    ['ESM, by the text of its URL', pathToFileURL(processor('acts.mjs')).href, ['echo', 'x'], 'x'],
    ['ESM, by a path from the working directory', 'test/support/processors/acts.mjs', ['echo', 'x'], 'x'],
    ['CommonJS with module.exports', processor('answer.cjs'), ['any', {}], ['any', 2, true]],
    ['CommonJS with a default', processor('default.cjs'), ['any', {}], 'a default in CommonJS'],
  ] as const)('%s', async (_title, file, [name, data], result) => {
    const { worker } = await sandboxScene('memory');
    expect(await worker(kind, {}, file).run(name, data)).toEqual(result);
  });
});
