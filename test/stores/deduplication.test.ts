// The option `deduplication` of a job, as users of BullMQ know it, on every store.
import { describe, expect, onTestFinished, test } from 'vitest';
import { QueueEvents } from '../../src/events/queue-events.js';
import type { DeduplicationOptions } from '../../src/job/deduplication.js';
import { checkDefaultJobOptions, checkJobOptions } from '../../src/job/options.js';
import { Queue } from '../../src/queue/queue.js';
import { MAX_DELAY_MS } from '../../src/runtime/check.js';
import { Worker } from '../../src/worker/worker.js';
import { ENGINES, type Engine, scene } from '../support/scenes/faulty-scene.js';
import { until } from '../support/wait/until.js';
import { newGate } from '../support/wait/gate.js';

function kept<T extends { close(): Promise<void> }>(made: T): T {
  onTestFinished(() => made.close());
  return made;
}

describe('the option deduplication', () => {
  const check = (deduplication: unknown) => checkJobOptions({ deduplication });

  test.each<DeduplicationOptions>([
    { id: 'a' },
    { id: '7' },
    { id: 'order:{7} 😀' },
    { id: 'x'.repeat(500) },
    { id: 'a', ttl: 1 },
    { id: 'a', ttl: MAX_DELAY_MS, extend: true },
    { id: 'a', replace: true },
    { id: 'a', ttl: 5, extend: true, replace: true },
    { id: 'a', keepLastIfActive: true },
    { id: 'a', keepLastIfActive: true, replace: true },
    { id: 'a', keepLastIfActive: false, ttl: 5 },
    { id: 'a', keepLastIfActive: true, ttl: 5 },
  ])('accepts %j', (value) => expect(() => check(value)).not.toThrow());

  test.each<[unknown, string]>([
    [null, 'deduplication'],
    [true, 'deduplication'],
    ['a', 'deduplication'],
    [[], 'deduplication'],
    [{}, 'deduplication.id'],
    [{ id: '' }, 'deduplication.id'],
    [{ id: 7 }, 'deduplication.id'],
    [{ id: null }, 'deduplication.id'],
    [{ id: ['a'] }, 'deduplication.id'],
    [{ id: 'x'.repeat(501) }, 'deduplication.id'],
    [{ id: 'a\0b' }, 'deduplication.id'],
    [{ id: '\ud800' }, 'deduplication.id'],
    [{ id: 'a', ttl: 0 }, 'deduplication.ttl'],
    [{ id: 'a', ttl: -1 }, 'deduplication.ttl'],
    [{ id: 'a', ttl: 1.5 }, 'deduplication.ttl'],
    [{ id: 'a', ttl: Number.NaN }, 'deduplication.ttl'],
    [{ id: 'a', ttl: '5' }, 'deduplication.ttl'],
    [{ id: 'a', ttl: null }, 'deduplication.ttl'],
    [{ id: 'a', ttl: MAX_DELAY_MS + 1 }, 'deduplication.ttl'],
    [{ id: 'a', extend: 1 }, 'deduplication.extend'],
    [{ id: 'a', replace: 'yes' }, 'deduplication.replace'],
    [{ id: 'a', keepLastIfActive: null }, 'deduplication.keepLastIfActive'],
    [{ id: 'a', replaec: true }, 'deduplication.replaec'],
  ])('refuses %j and names %s', (value, option) => {
    expect(() => check(value)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
  });

  test('is refused as a default of the queue', () => {
    const refusal = { code: 'INVALID_OPTION', option: 'defaultJobOptions.deduplication' };
    expect(() => checkDefaultJobOptions({ deduplication: { id: 'a' } })).toThrow(expect.objectContaining(refusal));
  });

  test('is named when debounce is refused', () => {
    const refusal = { code: 'OPTION_UNSUPPORTED', message: expect.stringContaining('Use deduplication') as string };
    expect(() => checkJobOptions({ debounce: { id: 'a', ttl: 5 } })).toThrow(expect.objectContaining(refusal));
  });
});

describe.each(ENGINES)('deduplication on %s', (engine: Engine) => {
  async function start() {
    const { inner: connection, queue: name } = await scene(engine);
    const queue = kept(new Queue(name, { connection }));
    return { connection, name, queue };
  }

  test('adds one job for one id, and returns that job to the others', async () => {
    const { queue } = await start();
    const [first, second, other] = await queue.addBulk([
      { name: 'x', data: { n: 1 }, opts: { deduplication: { id: 'a' } } },
      { name: 'x', data: { n: 2 }, opts: { deduplication: { id: 'a' }, delay: 5000 } },
      { name: 'x', data: { n: 3 }, opts: { deduplication: { id: 'b' } } },
    ]);
    expect([first?.duplicate, second?.duplicate, other?.duplicate]).toEqual([false, true, false]);
    expect([second?.id, second?.data, second?.deduplicationId]).toEqual([first?.id, { n: 1 }, 'a']);
    expect(await queue.count()).toBe(2);
    expect((await queue.getJob(first?.id ?? ''))?.deduplicationId).toBe('a');
    expect((await queue.add('plain')).deduplicationId).toBeUndefined();
    expect(JSON.parse(JSON.stringify(first))).toMatchObject({ deduplicationId: 'a', opts: { deduplication: { id: 'a' } } });
  });

  test('getDeduplicationJobId names the job until its id is free', async () => {
    const { queue } = await start();
    expect(await queue.getDeduplicationJobId('a')).toBeNull();
    const job = await queue.add('x', {}, { deduplication: { id: 'a' } });
    expect(await queue.getDeduplicationJobId('a')).toBe(job.id);
    await job.remove();
    expect(await queue.getDeduplicationJobId('a')).toBeNull();
    await expect(queue.getDeduplicationJobId('')).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'id' });
  });

  test('removeDeduplicationKey frees the id and leaves the job', async () => {
    const { queue } = await start();
    const job = await queue.add('x', {}, { deduplication: { id: 'a', ttl: 60_000 } });
    expect([await queue.removeDeduplicationKey('a'), await queue.removeDeduplicationKey('a')]).toEqual([1, 0]);
    const next = await queue.add('x', {}, { deduplication: { id: 'a' } });
    expect(next.id).not.toBe(job.id);
    // The id belongs to another job now.
    expect(await job.removeDeduplicationKey()).toBe(false);
    expect(await queue.getDeduplicationJobId('a')).toBe(next.id);
    expect([await next.removeDeduplicationKey(), await next.removeDeduplicationKey()]).toEqual([true, false]);
    expect(await (await queue.add('plain')).removeDeduplicationKey()).toBe(false);
    expect(await queue.count()).toBe(3);
    await expect(queue.removeDeduplicationKey(5 as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'id' });
  });

  test('a throttled id stays taken after its job has finished and is gone', async () => {
    const { queue, name, connection } = await start();
    kept(new Worker(name, async () => 1, { connection }));
    const opts = { deduplication: { id: 'a', ttl: 600_000 }, removeOnComplete: true };
    const job = await queue.add('x', { n: 1 }, opts);
    await until('the job to be gone', async () => (await queue.getJob(job.id)) === undefined);
    const again = await queue.add('x', { n: 2 }, opts);
    expect([again.id, again.duplicate]).toEqual([job.id, true]);
    expect(await queue.getDeduplicationJobId('a')).toBe(job.id);
  });

  test('a simple id is free when its job has failed for good, and not before', async () => {
    const { queue, name, connection } = await start();
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    const met: (string | null)[] = [];
    const fail = async (): Promise<void> => {
      met.push(await queue.getDeduplicationJobId('a'));
      throw new Error('not yet');
    };
    kept(new Worker(name, fail, { connection }));
    const job = await queue.add('x', {}, { deduplication: { id: 'a' }, attempts: 3, backoff: 1 });
    await expect(job.waitUntilFinished(events)).rejects.toThrow('not yet');
    expect(met).toEqual([job.id, job.id, job.id]);
    expect(await queue.getDeduplicationJobId('a')).toBeNull();
    await job.retry('failed');
    await until('the retried job to fail', () => met.length === 4);
    // A finished job that is retried has its id again.
    expect(met.at(-1)).toBe(job.id);
  });

  test('replace keeps the newest delayed job, and listeners learn what became of the others', async () => {
    const { queue, name, connection } = await start();
    const events = kept(new QueueEvents(name, { connection }));
    await events.waitUntilReady();
    const seen: unknown[] = [];
    events.on('deduplicated', (args) => seen.push(args));
    events.on('removed', ({ jobId, prev }) => seen.push([jobId, prev]));
    const opts = (jobId: string) => ({
      jobId,
      delay: 600_000,
      deduplication: { id: 'a', ttl: 600_000, extend: true, replace: true },
    });
    await queue.add('x', { n: 1 }, opts('one'));
    const two = await queue.add('x', { n: 2 }, opts('two'));
    expect([two.id, two.duplicate]).toEqual(['two', false]);
    expect((await queue.getDelayed()).map((job) => job.data as unknown)).toEqual([{ n: 2 }]);
    await two.promote();
    const three = await queue.add('x', { n: 3 }, opts('three'));
    expect([three.id, three.duplicate]).toEqual(['two', true]);
    await until('all events', () => seen.length === 3);
    expect(seen).toEqual([
      ['one', 'delayed'],
      { jobId: 'two', deduplicationId: 'a', deduplicatedJobId: 'one' },
      { jobId: 'two', deduplicationId: 'a', deduplicatedJobId: 'three' },
    ]);
  });

  test('S7-1 keepLastIfActive runs the last job that was added during the run, and no other', async () => {
    const { queue, name, connection } = await start();
    const [began, go] = [newGate(), newGate()];
    const ran: unknown[] = [];
    const run = async (job: { data: unknown }): Promise<void> => {
      ran.push(job.data);
      began.open();
      await go.opened;
    };
    kept(new Worker(name, run, { connection, concurrency: 5 }));
    const add = (n: number) => queue.add('x', n, { deduplication: { id: 'a', keepLastIfActive: true } });
    const first = await add(1);
    await began.opened;
    for (const n of [2, 3, 4]) expect((await add(n)).id).toBe(first.id);
    expect(await queue.count()).toBe(0);
    go.open();
    await until('both to finish', async () => (await queue.getCompletedCount()) === 2);
    expect(ran).toEqual([1, 4]);
    expect(await queue.getDeduplicationJobId('a')).toBeNull();
  });

  test('S7-1 fifty adds at once make one job, and fifty without the id make fifty', async () => {
    const { queue } = await start();
    const jobs = await Promise.all(Array.from({ length: 50 }, () => queue.add('x', {}, { deduplication: { id: 'a' } })));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
    expect(jobs.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect(await queue.count()).toBe(1);
    await Promise.all(Array.from({ length: 50 }, () => queue.add('x', {})));
    expect(await queue.count()).toBe(51);
  });

  test('drain, clean and obliterate free the ids of the jobs that they remove', async () => {
    const { queue, name, connection } = await start();
    const add = (id: string, delay = 0) => queue.add('x', {}, { delay, deduplication: { id, ttl: 600_000 } });
    await add('drained');
    await queue.drain();
    expect(await queue.getDeduplicationJobId('drained')).toBeNull();
    await add('cleaned', 600_000);
    await queue.clean(0, 0, 'delayed');
    expect(await queue.getDeduplicationJobId('cleaned')).toBeNull();
    const worker = kept(new Worker(name, async () => 1, { connection, removeOnComplete: { count: 0 } }));
    const job = await add('gone');
    await until('the job to be gone', async () => (await queue.getJob(job.id)) === undefined);
    await worker.close();
    await queue.obliterate();
    expect(await queue.getDeduplicationJobId('gone')).toBeNull();
  });

  test('addAndWait waits for the job that has the id', async () => {
    const { queue, name, connection } = await start();
    const go = newGate();
    kept(
      new Worker(
        name,
        async (job: { data: unknown }) => {
          await go.opened;
          return job.data;
        },
        { connection },
      ),
    );
    const waiting = [1, 2].map((n) => queue.addAndWait('x', n, { deduplication: { id: 'a' } }));
    await until('the second add', async () => (await queue.getJobCountByTypes('active', 'waiting')) === 1);
    await until('both adds', async () =>
      (await connection.events(name, 0, 100)).events.some((event) => event.name === 'deduplicated'),
    );
    go.open();
    expect(await Promise.all(waiting)).toEqual([1, 1]);
  });
});
