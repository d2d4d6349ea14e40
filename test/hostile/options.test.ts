// Options of jobs, queues and workers: a value that cannot be meant is refused when it is given, and then nothing has happened.
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { type HoldfastError, Queue, Worker } from '../../src/index.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { oddValue } from './odd-values.js';
import { holds, PATIENCE } from './property.js';
import { verdictOn, watchForDamage } from './verdict.js';

watchForDamage();

const REFUSALS = [
  'INVALID_OPTION',
  'OPTION_UNSUPPORTED',
  'INVALID_JOB_ID',
  'INVALID_PAYLOAD',
  'PAYLOAD_TOO_LARGE',
  'INVALID_CONNECTION',
  'INVALID_QUEUE_NAME',
];
const JOB_OPTIONS =
  'jobId delay priority attempts backoff lifo removeOnComplete removeOnFail lockKey keepLogs stackTraceLimit sizeLimit timestamp transaction repeat parent deduplication toJSON constructor odd'.split(
    ' ',
  );
const QUEUE_OPTIONS =
  'defaultJobOptions addTimeoutMs leaderElection lockDuration lockRenewTime stalledInterval maxStalledCount useDedicatedLockThread instanceId crashGraceMs prefix odd'.split(
    ' ',
  );
const WORKER_OPTIONS =
  'name autorun concurrency prefetch limiter maxStartedAttempts removeOnComplete removeOnFail drainDelay runRetryDelay settings skipLockRenewal lockDuration lockRenewTime stalledInterval maxStalledCount maxBlockedMs instanceId lockThreadEntry metrics odd'.split(
    ' ',
  );

const optionsOf = (names: string[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    {
      weight: 9,
      arbitrary: fc.dictionary(
        fc.constantFrom(...names),
        fc.oneof(
          oddValue,
          fc.record(
            { type: oddValue, delay: oddValue, age: oddValue, count: oddValue, max: oddValue, duration: oddValue },
            { requiredKeys: [] },
          ),
        ),
        { maxKeys: 3 },
      ),
    },
    { weight: 1, arbitrary: oddValue },
  );

function known(refused: HoldfastError | undefined): void {
  expect([undefined, ...REFUSALS]).toContain(refused?.code);
}

const isPlainWhole = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

test('job options', PATIENCE, async () => {
  const store = new MemoryStore();
  const queue = new Queue('work', { connection: store });
  onTestFinished(() => queue.close());
  let accepted = 0;
  await holds(optionsOf(JOB_OPTIONS), 1_500, async (options) => {
    const before = (await store.events('work', undefined, 1)).last;
    const { value: job, refused } = await verdictOn(() => queue.add('job', { a: 1 }, options as object));
    if (job === undefined) {
      known(refused);
      expect((await store.events('work', undefined, 1)).last, 'nothing was done').toBe(before);
      return;
    }
    accepted += 1;
    const [record] = (await store.jobs('work', [job?.id ?? ''])).jobs;
    const { priority, delay, timestamp, opts } = record ?? expect.fail('it was acknowledged and is not there');
    for (const number of [priority, delay, timestamp]) expect(isPlainWhole(number)).toBe(true);
    expect(typeof JSON.parse(opts)).toBe('object');
    expect(job?.opts).toEqual({ attempts: 0, ...(JSON.parse(opts) as object) });
    await queue.remove(job?.id ?? '');
  });
  expect(accepted).toBeGreaterThan(50);
  expect((await store.status('work')).counts).toEqual({
    waiting: 0,
    prioritized: 0,
    delayed: 0,
    active: 0,
    completed: 0,
    failed: 0,
    'waiting-children': 0,
  });
});

test.each(['{"__proto__":{"delay":-1}}', '{"__proto__":{"priority":"high"}}'])(
  'job options that are a prototype of others: %s',
  async (text) => {
    const queue = new Queue('work', { connection: `memory:${randomUUID()}` });
    onTestFinished(() => queue.close());
    await expect(queue.add('job', {}, JSON.parse(text) as object)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      option: '__proto__',
    });
    expect(await queue.count()).toBe(0);
  },
);

test('queue options', PATIENCE, async () => {
  await holds(optionsOf(QUEUE_OPTIONS), 700, async (options) => {
    const { value: queue, refused } = await verdictOn(() => new Queue('work', withConnection(options)));
    known(refused);
    if (queue === undefined) return;
    const { refused: unusable } = await verdictOn(async () => (await queue.add('job', {})).id);
    await queue.close();
    expect(unusable).toBeUndefined();
  });
});

test('worker options', PATIENCE, async () => {
  await holds(optionsOf(WORKER_OPTIONS), 700, async (options) => {
    const given = withConnection(options);
    const { value: worker, refused } = await verdictOn(() => new Worker('work', async () => 1, given));
    known(refused);
    if (worker === undefined) return;
    const { concurrency, lockDuration, lockRenewTime, stalledInterval, drainDelay } = worker.opts;
    for (const number of [concurrency, lockDuration, lockRenewTime, stalledInterval, drainDelay])
      expect(isPlainWhole(number)).toBe(true);
    await worker.close();
  });
});

test('connections', PATIENCE, async () => {
  const connections = fc.oneof(
    oddValue,
    fc.record(
      { url: oddValue, host: oddValue, port: oddValue, path: oddValue, module: oddValue, synchronous: oddValue },
      { requiredKeys: [] },
    ),
    fc.constantFrom(
      'sqlite:',
      'sqlite:%zz',
      'sqlite:///%zz',
      'sqlite:a?b=c',
      'sqlite:a?busyTimeoutMs=x',
      'redis:',
      'redis://%zz@',
      'redis://h:99999',
      'postgres:',
      'postgres://%zz',
      'mysql://x',
      'http://x',
    ),
  );
  // Made and closed: nobody connects before the first call.
  await holds(connections, 500, async (connection) => {
    const { value: queue, refused } = await verdictOn(() => new Queue('work', { connection: connection as string }));
    known(refused);
    await queue?.close();
  });
});

function withConnection(options: unknown): object {
  const connection = `memory:${randomUUID()}`;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) return options as object;
  // Not a copy: whatever they are made of is part of the case.
  try {
    return Object.assign(options, { connection });
  } catch {
    return { connection };
  }
}
