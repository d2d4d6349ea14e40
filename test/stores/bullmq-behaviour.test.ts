// The view of BullMQ 6 users on counts, lists, events and removals, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import { UnrecoverableError } from '../../src/job/signals.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

describe.each(ENGINES)('BullMQ behaviour on %s', (engine: Engine) => {
  test('lists and counts jobs of a paused queue as waiting, each once when a type is repeated', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    await queue.pause();
    await queue.addBulk([{ name: 'a' }, { name: 'b', opts: { priority: 3 } }, { name: 'c', opts: { delay: 60_000 } }]);
    expect(await queue.getJobCounts()).toEqual({
      active: 0,
      completed: 0,
      delayed: 1,
      failed: 0,
      prioritized: 1,
      waiting: 1,
      'waiting-children': 0,
    });
    expect(await queue.getJobCounts('wait', 'paused')).toEqual({ wait: 1, paused: 0 });
    expect([await queue.count(), await queue.getWaitingCount()]).toEqual([3, 1]);
    const namesOf = async (...args: Parameters<Queue['getJobs']>) => (await queue.getJobs(...args)).map((job) => job.name);
    expect(await namesOf(['waiting', 'wait', 'paused', 'waiting'])).toEqual(['a']);
    expect(await namesOf(['prioritized', 'waiting'], 0, -1, true)).toEqual(['b', 'a']);
  });

  test('clamps ranges, and returns nothing beyond the end', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    await queue.addBulk(['a', 'b', 'c'].map((job) => ({ name: job })));
    const range = async (start: number, end: number) => (await queue.getWaiting(start, end)).map((job) => job.name);
    expect(await range(0, 100)).toEqual(['a', 'b', 'c']);
    expect(await range(-5, 100)).toEqual(['a', 'b', 'c']);
    expect(await range(-2, -1)).toEqual(['b', 'c']);
    expect(await range(1, -2)).toEqual(['b']);
    expect(await range(5, 10)).toEqual([]);
    expect(await range(0, -10)).toEqual([]);
    expect(await range(2, 1)).toEqual([]);
  });

  test('removes an active job whose lock has ended, and frees its place under the global concurrency', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    await queue.setGlobalConcurrency(1);
    const worker = kept(new Worker(name, null, { connection, skipStalledCheck: true }));
    await queue.addBulk([{ name: 'lost' }, { name: 'next' }]);
    const job = await worker.getNextJob('mine');
    expect([job?.name, await queue.remove(job?.id ?? '')]).toEqual(['lost', 0]);
    expect(await job?.extendLock('mine', 1)).toBe(1);
    await until('the lock to end', async () => ((await queue.getLock(job?.id ?? ''))?.endsInMs ?? 0) < 0);
    expect(await queue.remove(job?.id ?? '')).toBe(1);
    expect(await queue.getJob(job?.id ?? '')).toBeUndefined();
    expect((await worker.getNextJob('mine', { block: false }))?.name).toBe('next');
  });

  test('emits each event of a job under its id too, and `cleaned` with its count as a string', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    const told: unknown[] = [];
    events.on('completed:mine', (args, id) => told.push(['completed:mine', args, typeof id]));
    events.on('completed:other', () => told.push('another job'));
    events.on('cleaned', (args) => told.push(['cleaned', args]));
    kept(new Worker(name, async () => 5, { connection }));
    const job = await queue.add('x', {}, { jobId: 'mine' });
    await job.waitUntilFinished(events);
    await queue.clean(0, 0, 'completed');
    await until('both events', () => told.length === 2);
    expect(told).toEqual([
      ['completed:mine', { jobId: 'mine', returnvalue: 5, prev: 'active' }, 'string'],
      ['cleaned', { count: '1' }],
    ]);
  });

  test('emits attempts and cleans as BullMQ does: due times, waiting{prev: active}, retries-exhausted only at the end', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    const told = new Map<string, string[]>();
    const tell = (jobId: string, what: string): void => void told.set(jobId, [...(told.get(jobId) ?? []), what]);
    const cleaned: string[] = [];
    let due: unknown;
    events.on('waiting', ({ jobId, prev = 'new' }) => tell(jobId, `waiting ${prev}`));
    events.on('failed', ({ jobId }) => tell(jobId, 'failed'));
    events.on('retries-exhausted', ({ jobId, attemptsMade }) => tell(jobId, `exhausted ${attemptsMade}`));
    events.on('delayed', ({ delay }) => void (due = delay));
    events.on('cleaned', ({ count }) => cleaned.push(count));
    const before = Date.now();
    await queue.add('later', {}, { delay: 60_000 });
    const process = async (job: { name: string }): Promise<void> => {
      throw job.name === 'hopeless' ? new UnrecoverableError('no') : new Error('not yet');
    };
    kept(new Worker(name, process, { connection }));
    await queue.add('tried', {}, { jobId: 'tried', attempts: 2 });
    await queue.add('hopeless', {}, { jobId: 'hopeless', attempts: 3 });
    await until(
      'both to fail',
      () => told.get('tried')?.at(-1)?.startsWith('exhausted') && told.get('hopeless')?.includes('failed'),
    );
    expect(told.get('tried')).toEqual(['waiting new', 'waiting active', 'failed', 'exhausted 2']);
    await queue.clean(0, 0, 'completed');
    await queue.clean(0, 0, 'wait');
    await queue.pause();
    await queue.addBulk([{ name: 'a' }, { name: 'b' }]);
    expect(await queue.clean(0, 0, 'waiting')).toHaveLength(2);
    await queue.clean(0, 0, 'failed');
    await until('all cleans', () => cleaned.length === 4);
    expect(cleaned).toEqual(['0', '0', '2', '2']);
    expect(told.get('hopeless')).toEqual(['waiting new', 'failed']);
    expect(due).toBeGreaterThan(before + 30_000);
  });

  test('moves a delayed job to waiting on time in a paused queue with a worker', async () => {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    await queue.pause();
    // Its own look, every `drainDelay`, would come much later.
    const worker = kept(new Worker(name, async () => 5, { connection, drainDelay: 600 }));
    await worker.waitUntilReady();
    const waiting = new Promise<unknown>((resolve) => void events.on('waiting:later', resolve));
    await queue.add('later', {}, { jobId: 'later', delay: 300 });
    expect(await waiting).toMatchObject({ jobId: 'later', prev: 'delayed' });
    expect(await queue.getJobCounts('waiting', 'delayed', 'active')).toEqual({ waiting: 1, delayed: 0, active: 0 });
    const job = await queue.getJob('later');
    await queue.resume();
    expect(await job?.waitUntilFinished(events)).toBe(5);
  });
});
