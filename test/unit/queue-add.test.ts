import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import type { Job } from '../../src/handle/job.js';
import { AddBatcher } from '../../src/queue/add-batcher.js';
import { Queue } from '../../src/queue/queue.js';
import { MemoryStore, SyncStore } from '../../src/store/memory/index.js';
import { FaultyStore } from '../../src/testing/faulty-store.js';
import { holder } from './claimed-job.js';

let store: FaultyStore;
let queue: Queue;

beforeEach(() => {
  store = new FaultyStore(new MemoryStore());
  queue = new Queue('mail', { connection: store });
});
afterEach(() => queue.close());

const refused = (code: string) => expect.objectContaining({ code });

describe('add of a queue', () => {
  test('sends the jobs of one turn of the event loop in one call, in order', async () => {
    const jobs = await Promise.all(Array.from({ length: 100 }, (_, n) => queue.add('job', { n })));
    expect(store.calls('add')).toBe(1);
    expect(jobs.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, n) => String(n + 1)));
    expect(jobs.map(({ data }) => (data as { n: number }).n)).toEqual(Array.from({ length: 100 }, (_, n) => n));
  });

  test('collects jobs for the next call while one is in flight', async () => {
    const held = store.on('add', { fault: 'hang', times: 1 });
    const first = queue.add('first', {});
    await store.called('add', 1);
    const rest = Array.from({ length: 50 }, () => queue.add('rest', {}));
    expect(store.calls('add')).toBe(1);
    held.release();
    await Promise.all([first, ...rest]);
    expect(store.calls('add')).toBe(2);
  });

  test('sends at most 1,000 jobs or about 8 MB in a call', async () => {
    await Promise.all(Array.from({ length: 2500 }, () => queue.add('small', {})));
    expect(store.calls('add')).toBe(3);
    const large = 'x'.repeat(3 * 1024 * 1024);
    await Promise.all([1, 2, 3].map(() => queue.add('large', large)));
    expect(store.calls('add')).toBe(5);
  });

  test('refuses an invalid job alone', async () => {
    const results = await Promise.allSettled([
      queue.add('a', {}),
      queue.add('', {}),
      queue.add('c', { f: () => 1 }),
      queue.add('d', {}),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect(await queue.count()).toBe(2);
  });

  test('rejects only the job that the store refuses, and keeps the order of the others', async () => {
    const error = new HoldfastError('PAYLOAD_TOO_LARGE', 'too large');
    store.on('add', { fault: 'fail', error, when: (_, jobs) => jobs.some(({ name }) => name === 'large') });
    const names = Array.from({ length: 20 }, (_, n) => (n === 7 ? 'large' : `job-${n}`));
    const results = await Promise.allSettled(names.map((name) => queue.add(name, {})));
    expect(results.flatMap((result, n) => (result.status === 'rejected' ? [[n, result.reason]] : []))).toEqual([[7, error]]);
    const waiting = await queue.getWaiting();
    expect(waiting.map(({ name }) => name)).toEqual(names.filter((name) => name !== 'large'));
    expect(store.calls('add')).toBeLessThan(12);
  });

  test.each([
    ['INVALID_JOB_NAME', ['', {}]],
    ['INVALID_JOB_NAME', [5, {}]],
    ['INVALID_JOB_ID', ['x', {}, { jobId: '5' }]],
    ['INVALID_OPTION', ['x', {}, { delay: Number.NaN }]],
    ['INVALID_OPTION', ['x', {}, null]],
    ['INVALID_OPTION', ['x', {}, 'opts']],
    ['OPTION_UNSUPPORTED', ['x', {}, { debounce: { id: 'a' } }]],
    ['INVALID_PAYLOAD', ['x', { n: 1n }]],
    ['INVALID_PAYLOAD', ['x', {}, { mine: () => 1 }]],
    ['PAYLOAD_TOO_LARGE', ['x', 'xxxx', { sizeLimit: 5 }]],
  ])('%s: add(%s) rejects and writes nothing', async (code, args) => {
    await expect((queue.add as (...given: unknown[]) => Promise<Job>).apply(queue, args)).rejects.toThrow(refused(code));
    expect(store.calls('add')).toBe(0);
  });

  test('stores {} without data', async () => {
    expect((await queue.add('x')).data).toEqual({});
    expect((await queue.getJob('1'))?.data).toEqual({});
  });

  test('applies default options that the job does not set', async () => {
    const connection = new MemoryStore();
    const defaults = { attempts: 3, removeOnComplete: true, priority: 2 };
    const own = new Queue('own', { connection, defaultJobOptions: defaults });
    defaults.attempts = Number.NaN;
    expect(own.defaultJobOptions.attempts).toBe(3);
    expect((await own.add('x')).opts).toEqual({ attempts: 3, removeOnComplete: true, priority: 2 });
    expect(await own.add('x', {}, { attempts: 1, delay: 5 })).toMatchObject({
      priority: 2,
      delay: 5,
      opts: { attempts: 1, removeOnComplete: true },
    });
    await own.close();
  });

  test('accepts a timestamp', async () => {
    expect((await queue.add('x', {}, { timestamp: 5 })).timestamp).toBe(5);
  });

  test('emits waiting with the job, but not for a delayed job or a duplicate', async () => {
    const told: string[] = [];
    queue.on('waiting', (job) => told.push(job.id));
    await queue.add('x', {}, { jobId: 'a' });
    await queue.add('x', {}, { jobId: 'a' });
    await queue.addBulk([
      { name: 'x', opts: { delay: 1000, jobId: 'b' } },
      { name: 'x', opts: { jobId: 'c' } },
    ]);
    expect(told).toEqual(['a', 'c']);
  });
});

describe('a jobId that exists', () => {
  test('changes nothing, and add returns the existing job', async () => {
    const first = await queue.add('one', { n: 1 }, { jobId: 'only' });
    const second = await queue.add('two', { n: 2 }, { jobId: 'only' });
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    expect(second).toMatchObject({ id: 'only', name: 'one', data: { n: 1 } });
    expect(await queue.count()).toBe(1);
  });

  test('leaves a running job alone', async () => {
    await queue.add('one', {}, { jobId: 'only' });
    const running = await (await holder(store, 'mail')).take();
    expect((await queue.add('one', {}, { jobId: 'only' })).duplicate).toBe(true);
    await running.moveToCompleted('x', undefined, false);
    expect(await queue.getJobCounts('waiting', 'completed')).toMatchObject({ waiting: 0, completed: 1 });
  });

  test('is reported as a duplicate even when the job cannot be read', async () => {
    await queue.add('one', { n: 1 }, { jobId: 'only' });
    store.on('jobs', { fault: 'fail', times: 1 });
    expect(await queue.add('two', { n: 2 }, { jobId: 'only' })).toMatchObject({ duplicate: true, id: 'only' });
  });
});

describe('addBulk', () => {
  test('sends one call, and returns jobs in order', async () => {
    const jobs = await queue.addBulk([
      { name: 'a', data: { n: 1 } },
      { name: 'b', data: { n: 2 }, opts: { jobId: 'mine' } },
    ]);
    expect(jobs.map(({ id, name }) => [id, name])).toEqual([
      ['1', 'a'],
      ['mine', 'b'],
    ]);
    expect(store.calls('add')).toBe(1);
  });

  test('adds nothing when one job is invalid', async () => {
    await expect(queue.addBulk([{ name: 'a' }, { name: 'b', data: 1n }])).rejects.toThrow(refused('INVALID_PAYLOAD'));
    for (const bad of [null, 'x', [null], [5]])
      await expect(queue.addBulk(bad as never)).rejects.toThrow(refused('INVALID_OPTION'));
    expect(store.calls('add')).toBe(0);
  });

  test('does nothing for an empty list', async () => {
    expect(await queue.addBulk([])).toEqual([]);
    expect(store.calls('add')).toBe(0);
  });

  test('sends more than 1,000 jobs in several calls, and says how far it came', async () => {
    const bulk = Array.from({ length: 2100 }, () => ({ name: 'x' }));
    expect(await queue.addBulk(bulk)).toHaveLength(2100);
    expect(store.calls('add')).toBe(3);
    store.on('add', { fault: 'fail', after: 1, error: new HoldfastError('STORE_FULL', 'no room') });
    await expect(queue.addBulk(bulk)).rejects.toThrow(
      expect.objectContaining({ code: 'STORE_FULL', message: expect.stringMatching(/^The first 1000 of 2100/) }),
    );
    expect(await queue.count()).toBe(3100);
  });
});

describe('add with a store that fails', () => {
  test('repeats the call after a lost reply, and adds no job twice', async () => {
    const errors: Error[] = [];
    queue.on('error', (error) => errors.push(error));
    store.on('add', { fault: 'drop-reply', times: 2 });
    const jobs = await Promise.all([queue.add('a', {}), queue.add('b', {})]);
    expect(jobs.map(({ id }) => id)).toEqual(['1', '2']);
    expect(store.calls('add')).toBe(3);
    expect(await queue.count()).toBe(2);
    expect(errors).toMatchObject([{ code: 'STORE_UNAVAILABLE' }]);
    store.on('add', { fault: 'fail', times: 1 });
    await queue.add('c', {});
    expect(errors).toHaveLength(2);
  });

  test('rejects with OUTCOME_UNKNOWN without a reply in time, and the next add is not taken for a repetition', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 120 });
    const errors: Error[] = [];
    impatient.on('error', (error) => errors.push(error));
    const rule = store.on('add', { fault: 'drop-reply' });
    await expect(impatient.add('a', {})).rejects.toThrow(
      expect.objectContaining({ code: 'OUTCOME_UNKNOWN', cause: expect.objectContaining({ code: 'STORE_UNAVAILABLE' }) }),
    );
    expect(errors).toHaveLength(1);
    rule.remove();
    const next = await impatient.add('b', {});
    expect(next).toMatchObject({ id: '2', name: 'b' });
    expect(await queue.getJob('2')).toMatchObject({ name: 'b' });
    await impatient.close();
  });

  test.each(['STORE_FULL', 'STORE_BUSY', 'STORE_READONLY'] as const)('passes on %s, and nothing was added', async (code) => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 1000 });
    impatient.on('error', () => undefined);
    const error = new HoldfastError(code, 'nothing of the call was written', { retryable: true });
    const rule = store.on('add', { fault: 'fail', error });
    const refusal = await impatient.add('a', {}).catch((thrown: unknown) => thrown);
    expect(refusal).toMatchObject({ code, retryable: true, queue: 'mail', cause: error });
    expect((refusal as Error).message).toBe('The job was not added to queue "mail". nothing of the call was written');
    expect(store.calls('add')).toBeGreaterThan(1);
    rule.remove();
    expect(await impatient.add('b', {})).toMatchObject({ id: '1' });
    expect(await queue.count()).toBe(1);
    await impatient.close();
  });

  test('starts no try that leaves no time for its reply', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 300 });
    impatient.on('error', () => undefined);
    store.on('add', { fault: 'fail', error: new HoldfastError('STORE_FULL', 'full', { retryable: true }), times: 3 });
    store.on('add', { fault: 'hang', after: 3 });
    await expect(impatient.add('a', {})).rejects.toMatchObject({ code: 'STORE_FULL' });
    await impatient.close();
  });

  test('rejects with OUTCOME_UNKNOWN when the store refuses after an earlier try had no reply', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 120 });
    impatient.on('error', () => undefined);
    store.on('add', { fault: 'fail', error: new HoldfastError('STORE_FULL', 'full', { retryable: true }) });
    store.on('add', { fault: 'drop-reply', times: 1 });
    await expect(impatient.add('a', {})).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', cause: { code: 'STORE_FULL' } });
    expect(await queue.count()).toBe(1);
    await impatient.close();
  });

  test('rejects when the store never replies, and queued adds were not applied', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 100 });
    const rule = store.on('add', { fault: 'hang' });
    const first = impatient.add('a', {});
    await store.called('add', 1);
    const behind = impatient.add('b', {});
    await expect(first).rejects.toThrow(refused('OUTCOME_UNKNOWN'));
    const error = (await behind.catch((thrown: unknown) => thrown)) as HoldfastError;
    // Added a moment after the first, it is either sent with little time left, or sent back as not sent.
    expect(['OUTCOME_UNKNOWN', 'TIMEOUT']).toContain(error.code);
    rule.remove();
    await impatient.close();
  });

  test('rejects jobs as not added whose time ran out before they were sent', async () => {
    const onError = (): void => {};
    const intake = new AddBatcher({ queue: 'mail', open: () => Promise.resolve(store), timeoutMs: 50, onError });
    const job = { name: 'x', data: '{}', opts: '{}', priority: 0, delayMs: 0, lifo: false, timestamp: 0 };
    const rule = store.on('add', { fault: 'hang' });
    const add = (): Promise<unknown> => intake.add([job]).catch((error: HoldfastError) => error.code);
    const first = add();
    await store.called('add', 1);
    const behind = add();
    // The second one is too old before the call of the first can be given up.
    for (const end = performance.now() + 60; performance.now() < end; );
    expect(await Promise.all([first, behind])).toEqual(['OUTCOME_UNKNOWN', 'TIMEOUT']);
    expect(store.calls('add')).toBe(1);
    rule.remove();
    await intake.close();
  });

  test('rejects at once when the store refuses for good, and later adds go on', async () => {
    store.on('add', { fault: 'fail', times: 1, error: new HoldfastError('STORE_READONLY', 'read-only') });
    await expect(queue.add('a', {})).rejects.toThrow(refused('STORE_READONLY'));
    expect((await queue.add('b', {})).id).toBe('1');
    expect(store.calls('add')).toBe(2);
  });

  test('retries a store that cannot be opened until the time is up, while other calls reject and one error is emitted', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 120 });
    const errors: Error[] = [];
    impatient.on('error', (error) => errors.push(error));
    const rule = store.on('open', { fault: 'fail' });
    await expect(impatient.add('a', {})).rejects.toThrow(refused('STORE_UNAVAILABLE'));
    expect(rule.struck).toBeGreaterThan(1);
    await expect(impatient.getJob('1')).rejects.toThrow(refused('STORE_UNAVAILABLE'));
    await expect(impatient.waitUntilReady()).rejects.toThrow(refused('STORE_UNAVAILABLE'));
    expect(errors).toHaveLength(1);
    rule.remove();
    expect((await impatient.add('a', {})).id).toBe('1');
    await impatient.close();
  });

  test('rejects in time when the store never opens, and the job was not added', async () => {
    const impatient = new Queue('mail', { connection: store, addTimeoutMs: 100 });
    const rule = store.on('open', { fault: 'hang' });
    await expect(impatient.add('a', {})).rejects.toThrow(refused('TIMEOUT'));
    rule.remove();
    await impatient.close();
  });
});

describe('a jobId that an open transaction holds', () => {
  const busy = new HoldfastError('STORE_BUSY', 'somebody holds it', { retryable: true });
  const holds = (id: string) => (_queue: string, jobs: { id?: string }[]) => jobs.some((job) => job.id === id);

  test('delays only the job with that id', async () => {
    queue.on('error', () => undefined);
    const held = store.on('add', { fault: 'fail', error: busy, when: holds('held') });
    const waiting = queue.add('job', {}, { jobId: 'held' });
    const others = [queue.add('job', {}), queue.add('job', {}, { jobId: 'free' })];
    await Promise.all(others);
    await queue.add('later', {});
    expect((await queue.getWaiting()).map(({ id }) => id).sort()).toEqual(['1', '2', 'free']);
    held.remove();
    expect((await waiting).id).toBe('held');
  });

  test('repeats the same call after a lost reply, and adds no job twice', async () => {
    queue.on('error', () => undefined);
    store.on('add', { fault: 'fail', error: busy, times: 1 });
    store.on('add', { fault: 'drop-reply', times: 1 });
    const added = await Promise.all([queue.add('job', {}), queue.add('job', {}, { jobId: 'named' })]);
    expect(added.map(({ id, duplicate }) => [id, duplicate])).toEqual([
      ['1', false],
      ['named', false],
    ]);
    expect(await queue.count()).toBe(2);
  });

  test('is awaited when the queue is closed', async () => {
    queue.on('error', () => undefined);
    const held = store.on('add', { fault: 'fail', error: busy, when: holds('held') });
    const waiting = queue.add('job', {}, { jobId: 'held' });
    await store.called('add', 2);
    const closing = queue.close();
    held.remove();
    await closing;
    expect((await waiting).duplicate).toBe(false);
  });
});

describe('close of a queue', () => {
  test('waits for the adds that are under way, and loses none', async () => {
    const rule = store.on('add', { fault: 'hang', times: 1 });
    const first = queue.add('a', {});
    await store.called('add', 1);
    const second = queue.add('b', {});
    const closing = queue.close();
    expect(queue.closing).toBe(closing);
    expect(queue.close()).toBe(closing);
    await expect(queue.add('c', {})).rejects.toThrow(refused('CLOSED'));
    await expect(queue.getJob('1')).rejects.toThrow(refused('CLOSED'));
    rule.release();
    expect([(await first).id, (await second).id]).toEqual(['1', '2']);
    await closing;
    const other = new Queue('mail', { connection: store });
    expect(await other.count()).toBe(2);
    await other.close();
  });

  test('opens no store for a queue that was never used', async () => {
    await queue.close();
    expect(store.calls('open')).toBe(0);
  });
});

describe('a store that runs handlers inside add', () => {
  test('lets a handler add to its own queue', async () => {
    const inline = new SyncStore();
    const own = new Queue('mail', { connection: inline, addTimeoutMs: 50 });
    const worker = await holder(inline, 'mail');
    const ran: string[] = [];
    const work = async (): Promise<void> => {
      const job = await worker.take().catch(() => undefined);
      if (job === undefined) return;
      if (job.name === 'outer') await own.add('inner', {});
      ran.push(job.name);
      await job.moveToCompleted('x', undefined, false);
    };
    const unwatch = inline.watch('mail', () => void work());
    await own.add('outer', {});
    expect(ran).toEqual(['inner', 'outer']);
    unwatch();
    await own.close();
  });
});

describe('the constructor of a queue', () => {
  test.each<[string, unknown[]]>([
    ['INVALID_QUEUE_NAME', ['']],
    ['INVALID_QUEUE_NAME', ['a:b']],
    ['INVALID_QUEUE_NAME', [undefined]],
    ['INVALID_OPTION', ['x', null]],
    ['INVALID_OPTION', ['x', []]],
    ['INVALID_CONNECTION', ['x', { connection: 5 }]],
    ['INVALID_OPTION', ['x', { connection: 'memory:', defaultJobOptions: { attempts: -1 } }]],
    ['INVALID_OPTION', ['x', { connection: 'memory:', defaultJobOptions: null }]],
    ['OPTION_UNSUPPORTED', ['x', { connection: 'memory:', redis: {} }]],
    ['INVALID_OPTION', ['x', { connection: 'memory:', telemetry: {} }]],
    ...[Number.NaN, 0, -1, 1.5, 1e300, '5', null, {}].map((addTimeoutMs): [string, unknown[]] => [
      'INVALID_OPTION',
      ['x', { connection: 'memory:', addTimeoutMs }],
    ]),
  ])('%s: new Queue(%j)', (code, args) => {
    expect(() => new Queue(...(args as [string]))).toThrow(refused(code));
  });
});
