// holdfast/bull: Bull's names and arguments, on a store in memory.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, onTestFinished, test } from 'vitest';
import Bull, { type Job, Queue, type QueueOptions } from '../../src/compat/bull/index.js';
import { Queue as CoreQueue } from '../../src/queue/queue.js';

function newQueue(options: QueueOptions = {}, connection = `memory:${randomUUID()}`): Queue {
  const queue = new Queue('work', { connection, ...options });
  onTestFinished(() => queue.close());
  return queue;
}

/** Resolves with the arguments of the next such event. */
function next(queue: Queue, event: string): Promise<unknown[]> {
  return once(queue, event);
}

async function ended(queue: Queue, job: Job): Promise<unknown> {
  await queue.isReady();
  return job.finished();
}

describe('making a Bull queue', () => {
  test('the default export, the named one and a call without new are one class', () => {
    expect(Bull).toBe(Queue);
    const queue = Queue('work', { connection: 'memory:' });
    onTestFinished(() => queue.close());
    expect(queue).toBeInstanceOf(Bull);
    expect(queue.name).toBe('work');
  });

  test('a URL may come before the options', async () => {
    const url = `memory:${randomUUID()}`;
    const queue = new Queue('work', url, { settings: { lockDuration: 1000 } });
    onTestFinished(() => queue.close());
    await queue.add({ a: 1 });
    const core = new CoreQueue('work', { connection: url });
    onTestFinished(() => core.close());
    expect(await core.getJobCountByTypes('waiting')).toBe(1);
  });

  test.each<[QueueOptions, object]>([
    [{ settings: { lockDuration: -1 } }, { code: 'INVALID_OPTION', option: 'lockDuration' }],
    [{ settings: { lockDuration: 100, lockRenewTime: 100 } }, { code: 'INVALID_OPTION', option: 'lockRenewTime' }],
    [{ settings: { maxStalledCount: Number.NaN } }, { code: 'INVALID_OPTION', option: 'maxStalledCount' }],
    [{ settings: { drainDelay: -1 } }, { code: 'INVALID_OPTION', option: 'drainDelay' }],
    [{ limiter: { max: 0, duration: 1 } }, { code: 'INVALID_OPTION', option: 'limiter.max' }],
    [{ limiter: { max: 1, duration: 1, groupKey: '' } }, { code: 'INVALID_OPTION', option: 'limiter.groupKey' }],
    [{ limiter: { max: 0, duration: 1, groupKey: 'a' } }, { code: 'INVALID_OPTION', option: 'limiter.max' }],
    [{ metrics: { maxDataPoints: -1 } }, { code: 'INVALID_OPTION', option: 'metrics.maxDataPoints' }],
  ])('refuses %j at once', (options, error) => {
    expect(() => new Queue('work', { connection: 'memory:', ...options })).toThrow(expect.objectContaining(error));
  });

  test('metrics count finished jobs from the first handler on, and utils.MetricsTime names minutes', async () => {
    const queue = newQueue({ metrics: { maxDataPoints: Bull.utils.MetricsTime.TWO_WEEKS } });
    expect(await queue.getMetrics('completed')).toEqual({ meta: { count: 0, prevTS: 0, prevCount: 0 }, data: [], count: 0 });
    void queue.process(({ data }: Job) => (data.fails === true ? Promise.reject(new Error('no')) : undefined));
    const jobs = [await queue.add({}), await queue.add({ fails: true }), await queue.add({})];
    await Promise.allSettled(jobs.map((job) => ended(queue, job)));
    const counts = await Promise.all([queue.getMetrics('completed'), queue.getMetrics('failed', 0, 5)]);
    expect(counts.map(({ meta }) => meta.count)).toEqual([2, 1]);
    // The negative control.
    const plain = newQueue();
    void plain.process(() => undefined);
    await ended(plain, await plain.add({}));
    expect((await plain.getMetrics('completed')).meta.count).toBe(0);
  });

  test('a limiter lets max jobs start within its window, and the others wait', async () => {
    const queue = newQueue({ limiter: { max: 2, duration: 600_000 } });
    await Promise.all([1, 2, 3].map((n) => queue.add({ n })));
    const done = new Promise<void>((resolve) => {
      let left = 2;
      queue.on('completed', () => void ((left -= 1) === 0 && resolve()));
    });
    void queue.process(5, () => undefined);
    await done;
    expect(await queue.core.getRateLimitTtl(2)).toBeGreaterThan(300_000);
    expect(await queue.getJobCounts()).toMatchObject({ completed: 2, waiting: 1, active: 0 });
  });

  test('a job option deduplication makes one job of several adds, with the event duplicated', async () => {
    const queue = new Queue('work', { connection: `memory:${randomUUID()}` });
    onTestFinished(() => queue.close());
    const duplicated: string[] = [];
    queue.on('duplicated', (jobId) => duplicated.push(jobId));
    const [first, second] = [
      await queue.add({ n: 1 }, { deduplication: { id: 'a' } }),
      await queue.add({ n: 2 }, { deduplication: { id: 'a' } }),
    ];
    expect([second.id, second.duplicate, second.data]).toEqual([first.id, true, { n: 1 }]);
    expect([await queue.count(), duplicated]).toEqual([1, [first.id]]);
  });

  test('queues with different prefixes are different queues, and names may hold what stores do not take', async () => {
    const connection = `memory:${randomUUID()}`;
    const [one, two] = ['{one}', 'two'].map((prefix) => {
      const queue = new Queue('mail:out', { connection, prefix });
      onTestFinished(() => queue.close());
      return queue;
    }) as [Queue, Queue];
    const job = await one.add({});
    expect(await one.count()).toBe(1);
    expect(await two.count()).toBe(0);
    expect(job.lockKey()).toBe('{one}:mail:out:1:lock');
    const alike = ['mailout', 'mail%3Aout', 'mail/out'].map((name) => new Queue(name, { connection, prefix: '{one}' }));
    for (const queue of alike) {
      expect(await queue.count()).toBe(0);
      await queue.close();
    }
  });
});

describe('process of a Bull queue', () => {
  test('accepts promises and done callbacks, with results and errors', async () => {
    const queue = newQueue();
    void queue.process('promise', async (job) => job.data.n * 2);
    void queue.process('callback', (job, done) => void setImmediate(() => done(null, job.data.n * 3)));
    void queue.process('refused', (_job, done) => done(new Error('not today')));
    void queue.process('broken', async (_job, _done) => {
      throw new Error('rejected beside done');
    });
    const jobs = await queue.addBulk([
      { name: 'promise', data: { n: 1 } },
      { name: 'callback', data: { n: 1 } },
      { name: 'refused', data: {} },
      { name: 'broken', data: {} },
    ]);
    const ends = await Promise.allSettled(jobs.map((job) => ended(queue, job)));
    expect(ends.map((end) => (end.status === 'fulfilled' ? end.value : (end.reason as Error).message))).toEqual([
      2,
      3,
      'not today',
      'rejected beside done',
    ]);
  });

  test('reports a done that is called twice, and counts the first call', async () => {
    const queue = newQueue();
    const told = next(queue, 'error');
    void queue.process((_job, done) => {
      done(null, 'first');
      done(new Error('second'));
    });
    const job = await queue.add({});
    expect(await ended(queue, job)).toBe('first');
    expect((await told)[0]).toMatchObject({ code: 'JOB_STATE', jobId: job.id });
  });

  test('fails a job whose name has no handler, unless * has one', async () => {
    const queue = newQueue();
    void queue.process('known', async () => 'known');
    const lost = await queue.add('unknown', {});
    await expect(ended(queue, lost)).rejects.toThrow('Missing process handler for job type unknown');
    void queue.process('*', async (job) => `any ${job.name}`);
    expect(await ended(queue, await queue.add('unknown', {}))).toBe('any unknown');
    expect(await ended(queue, await queue.add('known', {}))).toBe('known');
  });

  test('adds up the concurrency of all names', async () => {
    const queue = newQueue();
    let running = 0;
    let most = 0;
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const hold = async (): Promise<void> => {
      most = Math.max(most, (running += 1));
      if (running === 3) open();
      await opened;
      running -= 1;
    };
    void queue.process('a', 2, hold);
    void queue.process('b', hold);
    const jobs = await queue.addBulk(['a', 'a', 'a', 'b'].map((name) => ({ name, data: {} })));
    await Promise.all(jobs.map((job) => ended(queue, job)));
    expect(most).toBe(3);
  });

  test.each([
    ['the path of a file', ['/some/processor.js'], { code: 'OPTION_UNSUPPORTED' }],
    ['a name and the path of a file', ['name', 2, '/some/processor.js'], { code: 'OPTION_UNSUPPORTED' }],
    ['nothing', [], { code: 'INVALID_OPTION' }],
    ['a fraction', [1.5, () => undefined], { code: 'INVALID_OPTION' }],
  ])('refuses %s', (_what, args, error) => {
    const queue = newQueue();
    expect(() => (queue.process as (...args: unknown[]) => unknown)(...args)).toThrow(expect.objectContaining(error));
  });

  test('refuses a second handler of the same name', () => {
    const queue = newQueue();
    void queue.process(async () => undefined);
    expect(() => queue.process(async () => undefined)).toThrow('Cannot define the same handler twice');
  });

  test('fails a run that exceeds its timeout', async () => {
    const queue = newQueue();
    let open = (): void => undefined;
    void queue.process(() => new Promise<void>((resolve) => (open = resolve)));
    const job = await queue.add({}, { timeout: 20 });
    await expect(ended(queue, job)).rejects.toThrow('Promise timed out after 20 milliseconds');
    open();
  });

  test('waits between attempts as the backoff strategy of the user says', async () => {
    const asked: unknown[] = [];
    const queue = newQueue({
      settings: {
        backoffStrategies: {
          mine: (attemptsMade, error, options) => {
            asked.push([attemptsMade, error.message, options]);
            return 1;
          },
        },
      },
    });
    void queue.process(async (job) => {
      if (job.attemptsMade < 2) throw new Error(`attempt ${job.attemptsMade}`);
      return 'at last';
    });
    const job = await queue.add({}, { attempts: 3, backoff: { type: 'mine', options: { base: 7 } } });
    expect(await ended(queue, job)).toBe('at last');
    expect(asked).toEqual([
      [1, 'attempt 0', { base: 7 }],
      [2, 'attempt 1', { base: 7 }],
    ]);
  });
});

describe('events of a Bull queue', () => {
  test('emits local events with the arguments of Bull', async () => {
    const queue = newQueue();
    const told: unknown[][] = [];
    const events = [
      'waiting',
      'active',
      'progress',
      'completed',
      'failed',
      'drained',
      'removed',
      'paused',
      'resumed',
      'cleaned',
    ] as const;
    for (const event of events) queue.on(event, (...args: unknown[]) => told.push([event, ...args]));
    const drained = next(queue, 'drained');
    let seen: unknown;
    void queue.process(async (job) => {
      seen = job;
      await job.progress(42);
      if (job.data.fail) throw new Error('no');
      return 'yes';
    });
    const good = await queue.add({});
    expect(await ended(queue, good)).toBe('yes');
    const job = seen;
    const bad = await queue.add({ fail: true });
    await expect(ended(queue, bad)).rejects.toThrow('no');
    await drained;
    await queue.pause();
    await queue.resume();
    await queue.clean(0, 'completed');
    await (await queue.getJob(bad.id))?.remove();
    expect(told.filter(([event]) => event !== 'drained')).toEqual([
      ['waiting', good.id, null],
      ['active', job, expect.any(Promise), 'waiting'],
      ['progress', job, 42],
      ['completed', job, 'yes', 'active'],
      ['waiting', bad.id, null],
      ['active', seen, expect.any(Promise), 'waiting'],
      ['progress', seen, 42],
      ['failed', seen, expect.objectContaining({ message: 'no' }), 'active'],
      ['paused'],
      ['resumed'],
      ['cleaned', [good.id], 'completed'],
      ['removed', expect.objectContaining({ id: bad.id })],
    ]);
  });

  test('emits global events of all instances with the arguments of Bull', async () => {
    const connection = `memory:${randomUUID()}`;
    const queue = newQueue({}, connection);
    const watcher = newQueue({}, connection);
    const told: unknown[][] = [];
    const events = [
      'waiting',
      'active',
      'progress',
      'completed',
      'failed',
      'paused',
      'resumed',
      'removed',
      'duplicated',
    ] as const;
    for (const event of events) watcher.on(`global:${event}`, (...args: unknown[]) => told.push([event, ...args]));
    const removed = next(watcher, 'global:removed');
    await watcher.isReady();
    void queue.process(async (job) => {
      await job.progress({ half: true });
      if (job.data.fail) throw new Error('no');
      return { ok: true };
    });
    const good = await queue.add({}, { jobId: 'good' });
    await ended(queue, good);
    await queue.add({}, { jobId: 'good' });
    await ended(queue, await queue.add({ fail: true })).catch(() => undefined);
    await queue.pause();
    await queue.resume();
    await (await queue.getJob('good'))?.remove();
    await removed;
    expect(told).toEqual([
      ['waiting', 'good', null],
      ['active', 'good', 'waiting'],
      ['progress', 'good', { half: true }],
      ['completed', 'good', '{"ok":true}', 'active'],
      ['duplicated', 'good'],
      ['waiting', '1', null],
      ['active', '1', 'waiting'],
      ['progress', '1', { half: true }],
      ['failed', '1', 'no', 'active'],
      ['paused'],
      ['resumed'],
      ['removed', 'good'],
    ]);
  });

  test('the promise of an active job can be cancelled through the signal of its lock', async () => {
    const queue = newQueue();
    queue.on('active', (_job, promise) => promise.cancel());
    void queue.process(
      (job) =>
        new Promise((_resolve, reject) => {
          job.lock.signal.addEventListener('abort', () => reject(new Error('cancelled')));
        }),
    );
    await expect(ended(queue, await queue.add({}))).rejects.toThrow('cancelled');
  });
});

describe('jobs of a Bull queue', () => {
  test('show the fields that Bull shows', async () => {
    const queue = newQueue({ defaultJobOptions: { attempts: 2 } });
    const job = await queue.add('named', { a: 1 }, { jobId: 'mine', delay: 60_000 });
    expect(job.toJSON()).toEqual({
      id: 'mine',
      name: 'named',
      data: { a: 1 },
      opts: expect.objectContaining({ attempts: 2, delay: 60_000, jobId: 'mine' }),
      progress: 0,
      delay: 60_000,
      timestamp: expect.any(Number),
      attemptsMade: 0,
      failedReason: undefined,
      stacktrace: [],
      returnvalue: null,
      finishedOn: null,
      processedOn: null,
    });
    expect(job.queue).toBe(queue);
    expect(await job.getState()).toBe('delayed');
    await job.promote();
    expect(await job.getState()).toBe('waiting');
    await queue.pause();
    expect([await job.getState(), await job.isPaused(), await job.isWaiting()]).toEqual(['paused', true, false]);
    await job.update({ a: 2 });
    expect((await queue.getJob('mine'))?.data).toEqual({ a: 2 });
    await job.log('a row');
    expect(await queue.getJobLogs('mine')).toEqual({ logs: ['a row'], count: 1 });
    await job.progress(10);
    expect((await queue.getJob('mine'))?.progress()).toBe(10);
    await job.remove();
    expect([await job.getState(), await job.isStuck()]).toEqual(['stuck', true]);
    expect(await queue.getJob('mine')).toBeNull();
  });

  test('are found by their number', async () => {
    const queue = newQueue();
    const job = await queue.add({});
    expect(job.id).toBe('1');
    expect((await queue.getJob(1))?.id).toBe('1');
  });

  test('are not added again under an id that exists, and say so', async () => {
    const queue = newQueue();
    await queue.add({ n: 1 }, { jobId: 'once' });
    const duplicated = next(queue, 'duplicated');
    const again = await queue.add({ n: 2 }, { jobId: 'once' });
    expect(again.duplicate).toBe(true);
    expect(again.data).toEqual({ n: 1 });
    expect(await duplicated).toEqual(['once']);
  });

  test("come again with the option repeat, and are listed and removed with Bull's names", async () => {
    const queue = newQueue();
    const repeat = { cron: '0 3 * * *', tz: 'Europe/Berlin' };
    const job = await queue.add('mail', { a: 1 }, { repeat, attempts: 2 });
    expect(job.opts).toMatchObject({ repeat: { cron: '0 3 * * *', tz: 'Europe/Berlin', count: 1 }, attempts: 2 });
    expect(job.opts.repeat).not.toHaveProperty('pattern');
    await queue.add({ b: 1 }, { repeat: { every: 60_000, limit: 3 }, jobId: 7 });
    const [later, sooner] = await queue.getRepeatableJobs();
    expect(later).toMatchObject({ name: 'mail', cron: '0 3 * * *', every: null, tz: 'Europe/Berlin', id: null, endDate: null });
    expect(sooner).toMatchObject({ name: '__default__', cron: null, every: 60_000, key: '__default__:7:::60000' });
    expect((sooner?.next ?? 1) % 60_000).toBe(0);
    expect(await queue.getRepeatableCount()).toBe(2);
    await queue.removeRepeatable('mail', repeat);
    await queue.removeRepeatable({ every: 60_000, jobId: 7 });
    expect(await queue.getRepeatableCount()).toBe(0);
    await queue.add({}, { repeat });
    await queue.removeRepeatableByKey((await queue.getRepeatableJobs())[0]?.key ?? '');
    expect([await queue.getRepeatableCount(), await queue.getDelayedCount()]).toEqual([0, 0]);
    await expect(queue.add({}, { repeat: {} as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });

  test('are retried after they failed, alone or all together', async () => {
    const queue = newQueue();
    let fail = true;
    void queue.process(async () => {
      if (fail) throw new Error('no');
      return 'yes';
    });
    const [one, two] = await queue.addBulk([{ data: 1 }, { data: 2 }]);
    await Promise.allSettled([one, two].map((job) => ended(queue, job as Job)));
    fail = false;
    await queue.pause();
    await (await queue.getJob('1'))?.retry();
    await queue.retryJobs();
    expect(await queue.getJobCounts()).toEqual({ waiting: 0, active: 0, completed: 0, failed: 0, delayed: 0, paused: 2 });
    await queue.resume();
    expect(await ended(queue, two as Job)).toBe('yes');
  });

  test('are not retried after discard', async () => {
    const queue = newQueue();
    void queue.process(async (job) => {
      await job.discard();
      throw new Error('hopeless');
    });
    const job = await queue.add({}, { attempts: 5 });
    await expect(ended(queue, job)).rejects.toThrow('hopeless');
    expect((await queue.getJob(job.id))?.attemptsMade).toBe(1);
  });
});

describe('locks of Bull jobs that are taken by hand', () => {
  test('have growing numbers, keep workers and other takers out, and can be released', async () => {
    const queue = newQueue();
    const job = await queue.add({});
    expect(job.lockKey()).toBe('bull:work:1:lock');
    const first = await job.takeLock();
    expect(first).toBeTypeOf('number');
    const other = (await queue.getJob(job.id)) as Job;
    expect(await other.takeLock()).toBe(false);
    await expect(other.remove()).rejects.toMatchObject({ code: 'JOB_LOCKED' });
    expect(await job.extendLock(5000)).toBe(1);
    await job.releaseLock();
    expect(await job.getState()).toBe('waiting');
    expect(await other.takeLock()).toBeGreaterThan(first as number);
    await other.releaseLock();
  });

  test('finish their job without fetching the next one, and a later release does nothing', async () => {
    const queue = newQueue();
    const [job, next] = (await queue.addBulk([{ data: 1 }, { data: 2 }])) as [Job, Job];
    await job.takeLock();
    expect(await job.moveToCompleted('by hand', false)).toBeNull();
    await job.releaseLock();
    expect(await queue.getJob(job.id)).toMatchObject({ returnvalue: 'by hand' });
    expect(await next.getState()).toBe('waiting');
    await next.takeLock();
    await next.moveToFailed({ message: 'by hand' }, false);
    await next.releaseLock();
    expect(await queue.getJob(next.id)).toMatchObject({ failedReason: 'by hand' });
  });

  test('are needed to finish a job, and ignoreLock does not break the lock of another owner', async () => {
    const queue = newQueue();
    const [free, taken] = (await queue.addBulk([{ data: 1 }, { data: 2 }])) as [Job, Job];
    await expect(free.moveToCompleted('no lock')).rejects.toMatchObject({ code: 'NO_TOKEN' });
    await free.moveToCompleted('ignored', true);
    expect(await free.isCompleted()).toBe(true);
    await taken.takeLock();
    const other = (await queue.getJob(taken.id)) as Job;
    await expect(other.moveToFailed({ message: 'no' }, true)).rejects.toMatchObject({ code: 'JOB_LOCKED' });
    expect(await taken.isActive()).toBe(true);
    await taken.releaseLock();
  });

  test('last as long as settings.lockDuration says', async () => {
    const queue = newQueue({ settings: { lockDuration: 50_000 } });
    const job = await queue.add({});
    await job.takeLock();
    const lock = await queue.core.getLock(job.id);
    expect(lock?.endsInMs).toBeGreaterThan(45_000);
    expect(lock?.endsInMs).toBeLessThan(50_100);
    await job.releaseLock();
  });
});

describe('a Bull queue', () => {
  test('lists and counts by Bull’s names, jobs with a priority among the waiting ones', async () => {
    const queue = newQueue();
    await queue.addBulk([
      { data: 'plain' },
      { data: 'urgent', opts: { priority: 3 } },
      { data: 'later', opts: { delay: 60_000 } },
    ]);
    expect((await queue.getWaiting()).map(({ data }) => data)).toEqual(['plain', 'urgent']);
    expect((await queue.getDelayed()).map(({ data }) => data)).toEqual(['later']);
    expect(await queue.getJobCounts()).toEqual({ waiting: 2, active: 0, completed: 0, failed: 0, delayed: 1, paused: 0 });
    expect(await queue.getJobCountByTypes(['waiting', 'delayed'])).toBe(3);
    expect(await queue.count()).toBe(3);
    await queue.empty();
    expect(await queue.count()).toBe(0);
  });

  test('waits for its running jobs when it is paused locally, while other instances go on', async () => {
    const connection = `memory:${randomUUID()}`;
    const here = newQueue({}, connection);
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const active = next(here, 'active');
    void here.process(async () => {
      await opened;
      return 'here';
    });
    const first = await here.add({});
    await active;
    const pausing = here.pause(true);
    expect(await here.isPaused(true)).toBe(true);
    expect(await here.isPaused()).toBe(false);
    open();
    await pausing;
    expect(await first.isCompleted()).toBe(true);
    const elsewhere = newQueue({}, connection);
    const second = await here.add({});
    void elsewhere.process(async () => 'elsewhere');
    expect(await ended(elsewhere, second)).toBe('elsewhere');
    await elsewhere.pause(true);
    await here.resume(true);
    expect(await ended(here, await here.add({}))).toBe('here');
  });

  test('resolves whenCurrentJobsFinished as soon as the store has the outcomes', async () => {
    const queue = newQueue();
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const active = next(queue, 'active');
    void queue.process(() => opened);
    const job = await queue.add({});
    await active;
    let told = false;
    const finished = queue.whenCurrentJobsFinished().then(() => {
      told = true;
    });
    await queue.count();
    expect(told).toBe(false);
    open();
    await finished;
    expect(await job.isCompleted()).toBe(true);
    await queue.whenCurrentJobsFinished();
  });

  test('resolves the promise of process() and refuses calls after close', async () => {
    const queue = newQueue();
    const processing = queue.process(async () => undefined);
    const job = await queue.add({});
    await queue.isReady();
    await queue.close();
    await processing;
    await expect(queue.add({})).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(job.finished()).rejects.toMatchObject({ code: 'CLOSED' });
    queue.on('global:completed', () => undefined);
    expect(() => queue.process('more', async () => undefined)).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  });

  test('waits for a running job on close, unless closed by force', async () => {
    const queue = newQueue();
    const active = next(queue, 'active');
    let open = (): void => undefined;
    let reason: unknown;
    void queue.process((job) => {
      job.lock.signal.addEventListener('abort', () => (reason = job.lock.signal.reason));
      return new Promise<void>((resolve) => (open = resolve));
    });
    await queue.add({});
    await active;
    let closed = false;
    const closing = queue.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(closed).toBe(false);
    await queue.close(true);
    await closing;
    expect(reason).toMatchObject({ code: 'SHUTDOWN' });
    open();
  });

  test('returns the next job when a job of getNextJob is finished', async () => {
    const queue = newQueue();
    await queue.addBulk([{ data: 1 }, { data: 2 }]);
    const first = await queue.getNextJob();
    const fetched = (await first?.moveToCompleted('one', true)) as [object, string];
    const second = queue.nextJobFromJobData(fetched[0], fetched[1]);
    expect(second?.data).toBe(2);
    expect(await second?.moveToCompleted('two', true, true)).toBeNull();
    expect((await queue.getCompleted()).map(({ returnvalue }) => returnvalue as unknown)).toEqual(['two', 'one']);
  });

  test('removes everything with obliterate', async () => {
    const queue = newQueue();
    await queue.addBulk([{ data: 1 }, { data: 2, opts: { delay: 1000 } }]);
    await queue.obliterate();
    expect(await queue.count()).toBe(0);
  });
});
