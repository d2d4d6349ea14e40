// addAndWait and getWorkers, on every store.
import { type JobsOptions, Queue } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ENGINES, newScene, work } from '../support/scenes/scene.js';

const code = (expected: string) => expect.objectContaining({ code: expected });

describe.each(ENGINES)('addAndWait on %s', (engine) => {
  test('resolves with the result, also of a job that is removed when it completes', async () => {
    const scene = await newScene(engine);
    work(scene, ({ data }) => ({ doubled: (data as number) * 2 }), { concurrency: 10 });
    expect(await scene.queue.addAndWait('double', 21)).toEqual({ doubled: 42 });
    const many = Array.from({ length: 20 }, (_, n) => scene.queue.addAndWait('double', n, { removeOnComplete: true }, 60_000));
    expect(await Promise.all(many)).toEqual(many.map((_, n) => ({ doubled: n * 2 })));
    expect(await scene.queue.getCompletedCount()).toBe(1);
  });

  test('rejects with the reason after the last attempt', async () => {
    const scene = await newScene(engine);
    let runs = 0;
    work(scene, () => {
      runs += 1;
      throw new Error('no paper');
    });
    await expect(scene.queue.addAndWait('print', {}, { attempts: 2 }, 60_000)).rejects.toThrow(
      expect.objectContaining({ code: 'JOB_FINISHED', message: 'no paper' }),
    );
    expect(runs).toBe(2);
  });

  test('rejects with TIMEOUT, and the job goes on', async () => {
    const { queue } = await newScene(engine);
    await expect(queue.addAndWait('slow', {}, { jobId: 'slow' }, 50)).rejects.toThrow(code('TIMEOUT'));
    await expect.poll(() => queue.getJobState('slow')).toBe('waiting');
  });

  test('waits for the job that has the jobId already', async () => {
    const scene = await newScene(engine);
    await scene.queue.add('once', 'first', { jobId: 'once' });
    const waiting = scene.queue.addAndWait('once', 'second', { jobId: 'once' }, 60_000);
    work(scene, ({ data }) => data);
    expect(await waiting).toBe('first');
  });
});

test('addAndWait rejects with CLOSED when the queue is closed, before and after the add', async () => {
  const { connection } = await newScene('memory');
  const queue = new Queue('closing', { connection });
  const rejection = queue.addAndWait('never', {}).catch((error: unknown) => error);
  await expect.poll(() => queue.getWaitingCount()).toBe(1);
  await queue.close();
  expect(await rejection).toEqual(code('CLOSED'));
  await expect(queue.addAndWait('never', {})).rejects.toThrow(code('CLOSED'));
});

test.each([
  [{ transaction: {} }, 100, 'transaction'],
  [{}, -1, 'timeoutMs'],
  [{}, 1.5, 'timeoutMs'],
  [{}, '5', 'timeoutMs'],
  [{ delay: -1 }, 100, 'delay'],
])('addAndWait refuses %j with a limit of %j, and adds nothing', async (opts, timeoutMs, option) => {
  const { queue } = await newScene('memory');
  await expect(queue.addAndWait('x', {}, opts as JobsOptions, timeoutMs as number)).rejects.toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', option }),
  );
  expect(await queue.count()).toBe(0);
});

test('addAndWait has the result type of the job', async () => {
  const { connection } = await newScene('memory');
  const queue = new Queue<{ sum: { data: number[]; result: number }; text: { data: string; result: string } }>('typed', {
    connection,
  });
  onTestFinished(() => queue.close());
  // Compiled only: no worker runs.
  const check = async (): Promise<void> => {
    const sum: number = await queue.addAndWait('sum', [1, 2]);
    const text: string = await queue.addAndWait('text', 'a', {}, 100);
    // @ts-expect-error: the data of 'sum' is a list of numbers
    await queue.addAndWait('sum', 'a');
    expect([sum, text]).toHaveLength(2);
  };
  expect(check).toBeTypeOf('function');
});

describe.each(ENGINES)('getWorkers on %s', (engine) => {
  test('lists running workers and those that are ready, and no queues and paused workers', async () => {
    const scene = await newScene(engine);
    expect(await scene.queue.getWorkers()).toEqual([]);
    const { worker } = work(scene, () => undefined, { name: 'printer', concurrency: 3 });
    const { worker: unnamed } = work(scene, () => undefined, { name: '', autorun: false });
    await scene.queue.takeLock('held by the queue');
    await Promise.all([worker.waitUntilReady(), unnamed.waitUntilReady()]);
    const listed = await scene.queue.getWorkers();
    const client = `bull:${Buffer.from('work').toString('base64')}`;
    expect(listed.map(({ rawname }) => rawname).sort()).toEqual([client, `${client}:w:printer`]);
    expect(listed.find(({ worker: name }) => name === 'printer')).toMatchObject({
      name: 'work',
      pid: String(process.pid),
      slots: '3',
      running: '0',
      age: expect.stringMatching(/^\d+$/),
      idle: expect.stringMatching(/^\d+$/),
    });
    expect(await scene.queue.getWorkersCount()).toBe(2);
    await worker.close();
    expect(await scene.queue.getWorkersCount()).toBe(1);
    await unnamed.close();
    expect(await scene.queue.getWorkersCount()).toBe(0);
  });
});
