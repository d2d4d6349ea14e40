// Fake timers of a test: on `memory:` and `sync:` nothing hangs while they stand still, and delays are over when they say so.
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';

type Faked = NonNullable<Parameters<typeof vi.useFakeTimers>[0]>['toFake'];

/** vitest can fake `nextTick` in threads alone. */
const EVERYTHING: Faked = [
  ...(['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate', 'Date'] as const),
  ...(['performance', 'hrtime', 'queueMicrotask', 'requestAnimationFrame', 'requestIdleCallback'] as const),
];
const SETS: [string, Faked | undefined][] = [
  ["vitest's own choice", undefined],
  ['everything', EVERYTHING],
  ['timeouts and the clock', ['setTimeout', 'clearTimeout', 'Date']],
  ['immediates alone', ['setImmediate', 'clearImmediate']],
  ['the clocks alone', ['Date', 'performance', 'hrtime']],
];
const HOUR = 3_600_000;

afterEach(() => vi.useRealTimers());

function fake(toFake: Faked | undefined): void {
  vi.useFakeTimers(toFake === undefined ? {} : { toFake });
}

let names = 0;

function newQueue(scheme: string): { queue: Queue; connection: string } {
  const connection = `${scheme}:fake-${(names += 1)}`;
  const queue = new Queue('q', { connection });
  onTestFinished(() => queue.close());
  return { queue, connection };
}

function newWorker(connection: string, handler: (job: { name: string }) => unknown, options: object = {}): Worker {
  const worker = new Worker('q', handler, { connection, ...options });
  onTestFinished(() => worker.close());
  return worker;
}

function completed(worker: Worker, name: string): Promise<void> {
  return new Promise((resolve) => {
    worker.on('completed', (job) => {
      if (job.name === name) resolve();
    });
  });
}

describe.each(['memory', 'sync'])('fake timers on %s:', (scheme) => {
  describe.each(SETS)('with %s faked', (_, toFake) => {
    test('lets jobs be added, run, awaited and closed while time stands still', async () => {
      fake(toFake);
      const { queue, connection } = newQueue(scheme);
      const worker = newWorker(connection, ({ name }) => name);
      const done = completed(worker, 'second');
      await queue.add('first', {});
      await queue.addBulk([{ name: 'second', data: {} }]);
      await done;
      expect(await queue.getJobCounts('completed', 'waiting')).toMatchObject({ completed: 2, waiting: 0 });
      await worker.close();
      await queue.close();
    });

    test('lets a queue go on that was made before the timers were faked', async () => {
      const { queue, connection } = newQueue(scheme);
      const worker = newWorker(connection, ({ name }) => name);
      await worker.waitUntilReady();
      fake(toFake);
      const done = completed(worker, 'job');
      await queue.add('job', {});
      await done;
    });
  });

  test('runs a job that was delayed by an hour when the clock moves by an hour, and not before', async () => {
    vi.useFakeTimers();
    const { queue, connection } = newQueue(scheme);
    const ran: string[] = [];
    const worker = newWorker(connection, ({ name }) => ran.push(name));
    await queue.add('late', {}, { delay: HOUR });
    const done = completed(worker, 'soon');
    await queue.add('soon', {});
    await done;
    await vi.advanceTimersByTimeAsync(HOUR - 1000);
    const other = completed(worker, 'other');
    await queue.add('other', {});
    await other;
    expect(ran).toEqual(['soon', 'other']);
    const late = completed(worker, 'late');
    await vi.advanceTimersByTimeAsync(1000);
    await late;
    expect(ran).toEqual(['soon', 'other', 'late']);
    const [job] = await queue.getCompleted();
    expect(job).toMatchObject({ name: 'late', finishedOn: Date.now() });
  });

  test('delays retries by their backoff, and keeps the lock of a handler that runs for a fake hour', async () => {
    vi.useFakeTimers();
    const { queue, connection } = newQueue(scheme);
    let tries = 0;
    const started: (() => void)[] = [];
    const begun = new Promise<void>((resolve) => started.push(resolve));
    const worker = newWorker(
      connection,
      async () => {
        tries += 1;
        if (tries === 1) throw new Error('try again');
        started[0]?.();
        await new Promise((resolve) => setTimeout(resolve, HOUR));
        return 'long';
      },
      { stalledInterval: 20 },
    );
    const failed = new Promise((resolve) => worker.once('failed', resolve));
    const done = completed(worker, 'job');
    const adding = queue.add('job', {}, { attempts: 2, backoff: HOUR });
    await failed;
    await vi.advanceTimersByTimeAsync(HOUR);
    await begun;
    await vi.advanceTimersByTimeAsync(HOUR);
    await done;
    const { id } = await adding;
    expect(await queue.getJob(id)).toMatchObject({ attemptsMade: 2, attemptsStarted: 2, stalledCounter: 0, returnvalue: 'long' });
  });

  test('keeps finished jobs for their age on the fake clock', async () => {
    vi.useFakeTimers();
    const { queue, connection } = newQueue(scheme);
    const worker = newWorker(connection, ({ name }) => name, { removeOnComplete: { age: 3600 } });
    for (const [name, left] of [
      ['first', ['first']],
      ['second', ['second', 'first']],
      ['third', ['third', 'second']],
    ] as const) {
      const done = completed(worker, name);
      await queue.add(name, {});
      await done;
      expect((await queue.getCompleted()).map((job) => job.name)).toEqual(left);
      await vi.advanceTimersByTimeAsync(HOUR * 0.6);
    }
  });
});

test('does not hang when Holdfast is loaded after the timers were faked', async () => {
  vi.useFakeTimers({ toFake: EVERYTHING });
  vi.resetModules();
  const fresh = await import('../../src/index.js');
  const queue = new fresh.Queue('q', { connection: 'memory:' });
  const worker = new fresh.Worker('q', () => 'done', { connection: 'memory:' });
  const done = new Promise((resolve) => worker.once('completed', resolve));
  await queue.add('late', {}, { delay: HOUR });
  const due = vi.advanceTimersByTimeAsync(HOUR);
  await queue.add('job', {});
  await done;
  await due;
  await worker.close();
  await queue.close();
});
