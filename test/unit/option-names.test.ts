// Options by their names, through the public classes: refused, accepted without meaning, or accepted with one warning.
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { Queue as BullQueue } from '../../src/compat/bull/queue.js';
import { Queue as BunQueue } from '../../src/compat/bun-queue/queue.js';
import { QueueEvents } from '../../src/events/queue-events.js';
import { Leader } from '../../src/lock/leader.js';
import { LockManager } from '../../src/lock/lock-manager.js';
import { FlowProducer } from '../../src/queue/flow-producer.js';
import { Queue } from '../../src/queue/queue.js';
import { Worker } from '../../src/worker/worker.js';

const connection = 'memory:option-names';
type Made = { close(): Promise<void> };

const MAKERS: Record<string, (opts: object) => Made> = {
  Queue: (opts) => new Queue('q', { connection, ...opts }),
  Worker: (opts) => new Worker('q', null, { connection, ...opts }),
  QueueEvents: (opts) => new QueueEvents('q', { connection, autorun: false, ...opts }),
  FlowProducer: (opts) => new FlowProducer({ connection, ...opts }),
  Leader: (opts) => new Leader('q', { connection, ...opts }),
  defaultJobOptions: (opts) => new Queue('q', { connection, defaultJobOptions: opts }),
  Bull: (opts) => new BullQueue('q', { connection, ...opts }),
  'bun-queue': (opts) => new BunQueue('q', { connection, ...opts }),
};

function make(what: string, opts: object): Made {
  const made = (MAKERS[what] as (opts: object) => Made)(opts);
  onTestFinished(() => made.close());
  return made;
}

const warnings: Error[] = [];
const keep = (warning: Error): void => void warnings.push(warning);
process.on('warning', keep);
afterEach(() => {
  warnings.length = 0;
});

/** Warnings are emitted in a tick of their own. */
const emitted = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an option of BullMQ that is not supported is refused with what to do instead', () => {
  test.each<[string, object, string]>([
    ['Queue', { redis: { port: 6379 } }, 'redis'],
    ['Worker', { limiter: { max: 1, duration: 5, groupKey: 'a' } }, 'limiter.groupKey'],
    ['Worker', { settings: { backoffStrategies: {} } }, 'settings.backoffStrategies'],
    ['Worker', { settings: { lockDuration: 5000 } }, 'settings.lockDuration'],
    ['defaultJobOptions', { timeout: 100 }, 'defaultJobOptions.timeout'],
    ['defaultJobOptions', { rateLimiterKey: 'a' }, 'defaultJobOptions.rateLimiterKey'],
    ['defaultJobOptions', { repeat: { every: 5 } }, 'defaultJobOptions.repeat'],
    ['bun-queue', { metrics: {} }, 'metrics'],
  ])('%s %j', (what, opts, option) => {
    const refusal = {
      code: 'OPTION_UNSUPPORTED',
      option,
      message: expect.stringMatching(/program does\. \S.{20,} See docs\/[a-z-]+\.md/),
    };
    expect(() => make(what, opts)).toThrow(expect.objectContaining(refusal));
  });

  test('in the options of a job', async () => {
    const queue = make('Queue', {}) as Queue;
    for (const option of ['timeout', 'rateLimiterKey', 'debounce']) {
      const refusal = { code: 'OPTION_UNSUPPORTED', option };
      await expect(queue.add('x', {}, { [option]: { id: 'a' } })).rejects.toMatchObject(refusal);
      const inList = { ...refusal, option: `jobs[0].opts.${option}` };
      await expect(queue.addBulk([{ name: 'x', data: {}, opts: { [option]: { id: 'a' } } }])).rejects.toMatchObject(inList);
    }
    expect(await queue.count()).toBe(0);
  });

  test('unless its value is false or undefined', () => {
    make('Worker', { useWorkerThreads: false, metrics: undefined });
    make('defaultJobOptions', { failParentOnFailure: false, timeout: undefined });
  });

  test('with a document and heading that exist', () => {
    const heading = /^## What is not there$/m;
    expect(readFileSync('docs/migrating-from-bullmq.md', 'utf8')).toMatch(heading);
    readFileSync('docs/migrating-from-bull.md');
    readFileSync('docs/migrating-from-bun-queue.md');
  });
});

describe('a name within two edits of a known one is refused with that name', () => {
  test.each<[string, object, string, string]>([
    ['Worker', { concurency: 5 }, 'concurency', 'concurrency'],
    ['Worker', { concurrencys: 5 }, 'concurrencys', 'concurrency'],
    ['Worker', { lockduration: 5 }, 'lockduration', 'lockDuration'],
    ['Worker', { nmae: 'a' }, 'nmae', 'name'],
    ['Worker', { limiter: { max: 1, duraton: 5 } }, 'limiter.duraton', 'duration'],
    ['Worker', { removeOnComplete: { cuont: 5 } }, 'removeOnComplete.cuont', 'count'],
    ['Queue', { conection: 'memory:' }, 'conection', 'connection'],
    ['Queue', { defaultJobOption: {} }, 'defaultJobOption', 'defaultJobOptions'],
    ['Queue', { leaderElection: { leaderTimeut: 5 } }, 'leaderElection.leaderTimeut', 'leaderTimeout'],
    ['QueueEvents', { lastEventID: '0' }, 'lastEventID', 'lastEventId'],
    ['Leader', { leaderTimout: 5 }, 'leaderTimout', 'leaderTimeout'],
    ['defaultJobOptions', { atempts: 3 }, 'defaultJobOptions.atempts', 'attempts'],
    ['defaultJobOptions', { backoff: { type: 'fixed', dealy: 5 } }, 'defaultJobOptions.backoff.dealy', 'delay'],
    ['defaultJobOptions', { timout: 3 }, 'defaultJobOptions.timout', 'timeout'],
    ['Bull', { settings: { lockDuraton: 5 } }, 'settings.lockDuraton', 'lockDuration'],
    ['Bull', { limitr: {} }, 'limitr', 'limiter'],
    ['bun-queue', { horizontalScaling: { instanceID: 'a' } }, 'horizontalScaling.instanceID', 'instanceId'],
  ])('%s %j', (what, opts, option, meant) => {
    const refusal = { code: 'INVALID_OPTION', option, message: expect.stringContaining(`did you mean ${meant}?`) };
    expect(() => make(what, opts)).toThrow(expect.objectContaining(refusal));
  });

  test('in the options of a job', async () => {
    const queue = make('Queue', {}) as Queue;
    const adding = queue.add('x', {}, { jobID: 'a' } as object);
    await expect(adding).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining('jobId') });
  });
});

describe('the options of one call', () => {
  type Call = (queue: Queue, opts: object) => Promise<unknown>;
  const added = (queue: Queue) => queue.add('x', {}, { delay: 60_000 });
  const CALLS: [string, Call, string, string][] = [
    ['obliterate', (queue, opts) => queue.obliterate(opts), 'forse', 'force'],
    ['retryJobs', (queue, opts) => queue.retryJobs(opts), 'cuont', 'count'],
    ['promoteJobs', (queue, opts) => queue.promoteJobs(opts), 'coutn', 'count'],
    ['addBulk', (queue, opts) => queue.addBulk([{ name: 'x', data: {} }], opts), 'transction', 'transaction'],
    ['remove of a queue', async (queue, opts) => queue.remove((await added(queue)).id, opts), 'removeChildern', 'removeChildren'],
    ['lock', (queue, opts) => queue.lock('name', opts, () => undefined), 'durationMS', 'durationMs'],
    ['takeLock', async (queue, opts) => (await queue.takeLock('name', opts))?.release(), 'waitms', 'waitMs'],
    ['retry', async (queue, opts) => (await added(queue)).retry('failed', opts), 'resetAttemptMade', 'resetAttemptsMade'],
    ['remove', async (queue, opts) => (await added(queue)).remove(opts), 'removeChildrn', 'removeChildren'],
    ['changePriority', async (queue, opts) => (await added(queue)).changePriority(opts), 'prioritiy', 'priority'],
    ['getNextJob', (_, opts) => (make('Worker', {}) as Worker).getNextJob('t', { ...opts, block: false }), 'blok', 'block'],
    ['LockManager', async (_, opts) => new LockManager(make('Worker', {}) as Worker, opts), 'lockDuraton', 'lockDuration'],
  ];

  test.each(CALLS)('%s refuses a misspelt name, before it does anything', async (_, call, misspelt, meant) => {
    const queue = make('Queue', { connection: 'memory:option-names-of-calls' }) as Queue;
    await queue.obliterate({ force: true });
    const refusal = { code: 'INVALID_OPTION', option: misspelt, message: expect.stringContaining(`did you mean ${meant}?`) };
    await expect(call(queue, { [misspelt]: 1 })).rejects.toMatchObject(refusal);
    for (const job of await queue.getJobs()) expect(job).toMatchObject({ priority: 0, delay: 60_000 });
    expect(await queue.isPaused()).toBe(false);
  });

  test.each(CALLS.filter(([name]) => name !== 'getNextJob'))('%s refuses what is not an object', async (_, call) => {
    const queue = make('Queue', {}) as Queue;
    for (const odd of [null, 5, ['count']]) {
      await expect(call(queue, odd as object)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'options' });
    }
  });

  test('remove accepts removeChildren, which means nothing here', async () => {
    const queue = make('Queue', { connection: 'memory:option-names-of-calls' }) as Queue;
    await (await added(queue)).remove({ removeChildren: true });
    expect(await queue.remove((await added(queue)).id, { removeChildren: false })).toBe(1);
  });

  test('accept an unknown name with one warning', async () => {
    const queue = make('Queue', { connection: 'memory:option-names-of-calls' }) as Queue;
    for (let time = 0; time < 2; time++) await queue.promoteJobs({ ofMyOwnMaking: 5 } as object);
    await emitted();
    expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('promoteJobs option "ofMyOwnMaking"')]);
  });
});

test('accepts BullMQ options without meaning here, without a warning', async () => {
  const common = { skipVersionCheck: true, skipWaitingForReady: true, blockingConnection: false };
  make('Queue', { ...common, skipMetasUpdate: true, name: 'q', settings: {} });
  make('Worker', { ...common, maximumRateLimitDelay: 5, drainDelay: 5 });
  make('QueueEvents', common);
  await emitted();
  expect(warnings).toEqual([]);
});

test('accepts BullMQ options that carry no risk, and says once what there is instead', async () => {
  for (let time = 0; time < 2; time++) {
    const streams = { events: { maxLen: 5 } };
    for (const what of ['Queue', 'Worker', 'QueueEvents']) make(what, { streams });
    make('FlowProducer', { streams, name: 'flows', defaultJobOptions: { attempts: 3 } });
    const queue = make('Queue', {}) as Queue;
    await queue.add('x', {}, { repeatJobKey: 'a', prevMillis: 5 } as object);
    await queue.addBulk([{ name: 'x', data: {}, opts: { delay: 5 }, options: {} } as never]);
    await emitted();
  }
  expect(warnings.map(({ message }) => /"(.*)" has no effect\. \S/.exec(message)?.[1])).toEqual([
    'streams',
    'defaultJobOptions',
    'repeatJobKey',
    'prevMillis',
    'jobs[0].options',
  ]);
  const queue = make('Queue', {}) as Queue;
  const adding = queue.addBulk([{ name: 'x', data: {}, options: { delay: 5 } } as never]);
  await expect(adding).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'jobs[0].options' });
});

test('refuses an unknown name where its value may hold jobs or data', async () => {
  const flows = make('FlowProducer', {}) as FlowProducer;
  const queue = make('Queue', {}) as Queue;
  const children = [{ name: 'child', queueName: 'q' }];
  const refusal = (option: string) => ({ code: 'INVALID_OPTION', option, message: expect.stringContaining('Nothing was done.') });
  for (let time = 0; time < 2; time++) {
    const adding = flows.add({ name: 'parent', queueName: 'q', childs: children } as never);
    await expect(adding).rejects.toMatchObject(refusal('flow.childs'));
    const template = { name: 'x', payload: { to: 'a' } } as never;
    await expect(queue.upsertJobScheduler('s', { every: 1000 }, template)).rejects.toMatchObject(refusal('payload'));
  }
  await expect(queue.upsertJobScheduler('s', { every: 1000, data: {} } as never)).rejects.toMatchObject({
    code: 'OPTION_UNSUPPORTED',
    message: expect.stringContaining('template'),
  });
  await flows.add({ name: 'parent', queueName: 'q', configKeyOfFlow: 'nest' } as never);
  await emitted();
});

test('accepts any other option name with one warning per process', async () => {
  for (let time = 0; time < 2; time++) {
    make('Queue', { configKey: 'nest', forceDisconnectOnShutdown: true });
    make('Worker', { configKey: 'nest' });
    const queue = make('Queue', {}) as Queue;
    const job = await queue.add('x', {}, { traceOfMine: 'abc' } as object);
    expect(job.opts).toMatchObject({ traceOfMine: 'abc' });
    await emitted();
  }
  expect(warnings.map(({ message }) => /"(.*)"/.exec(message)?.[1])).toEqual([
    'configKey',
    'forceDisconnectOnShutdown',
    'traceOfMine',
  ]);
  for (const warning of warnings) expect(warning).toMatchObject({ name: 'HoldfastWarning', code: 'HOLDFAST_UNKNOWN_OPTION' });
});

test('still supports the timeout option of Bull and bun-queue in their entries', async () => {
  for (const what of ['Bull', 'bun-queue']) {
    const queue = make(what, { defaultJobOptions: { timeout: 50 } }) as BullQueue;
    const job = await queue.add({}, { timeout: 60 });
    expect(job.opts).toMatchObject({ timeout: 60 });
  }
});
