import { expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { Job } from '../../src/handle/job.js';
import type { JobContext } from '../../src/handle/job-context.js';
import type { ClaimedJob } from '../../src/job/record.js';
import { DelayedError, RateLimitError, UnrecoverableError } from '../../src/job/signals.js';
import type { HeldLock } from '../../src/session/held-lock.js';
import { MemoryStore } from '../../src/store/memory/index.js';
import { type RunEnd, Runner, takesSignal } from '../../src/worker/runner.js';
import { lockOn, openSession } from '../support/scenes/locks.js';

async function claimed(opts: object = {}, extra: Partial<ClaimedJob> = {}): Promise<{ job: Job; lock: HeldLock }> {
  const lock = lockOn(await openSession(1000));
  const record: ClaimedJob = {
    id: lock.jobId,
    name: 'n',
    data: '{}',
    opts: JSON.stringify(opts),
    state: 'active',
    priority: 0,
    delay: 0,
    timestamp: 0,
    attemptsMade: 0,
    attemptsStarted: 1,
    stalledCounter: 0,
    token: lock.token,
    fence: lock.fence,
    ...extra,
  };
  const store = new MemoryStore();
  const context: JobContext = {
    name: 'q',
    prefix: 'bull',
    stored: 'q',
    ready: async () => store,
    settle: async () => ({ status: 'done' }),
  };
  return { job: new Job(context, record, { lock }), lock };
}

const endOf = (runner: Runner, job: Job, lock: HeldLock): Promise<RunEnd> =>
  new Promise((resolve) => runner.run(job, lock, { ended: resolve }));

const run = async (processor: () => unknown, opts: object = {}, extra: Partial<ClaimedJob> = {}) => {
  const { job, lock } = await claimed(opts, extra);
  const end = await endOf(new Runner({ processor, rules: {}, maxStartedAttempts: 5 }), job, lock);
  return { end, token: lock.token, id: job.id };
};

test('settles a run with the token of its lock', async () => {
  const { end, token, id } = await run(() => ({ a: 1 }));
  expect(end).toMatchObject({ event: 'completed', outcome: { kind: 'completed', jobId: id, token, value: '{"a":1}' } });
});

test('retries after a processor throws or rejects, and fails at the last attempt', async () => {
  const thrower = () => {
    throw new Error('no');
  };
  expect((await run(thrower, { attempts: 2 })).end).toMatchObject({ event: 'failed', outcome: { kind: 'retry', reason: 'no' } });
  expect((await run(() => Promise.reject(new Error('no')), { attempts: 1 })).end).toMatchObject({
    event: 'failed',
    outcome: { kind: 'failed' },
  });
  const unrecoverable = () => Promise.reject(new UnrecoverableError('never'));
  expect((await run(unrecoverable, { attempts: 9 })).end).toMatchObject({ outcome: { kind: 'failed', reason: 'never' } });
});

test('fails a cancelled job for good, with its own error and the reason of the cancel said once', async () => {
  const ends = [];
  for (const text of ['stopped', 'stopped because enough is enough']) {
    const { job, lock } = await claimed({ attempts: 5 });
    const own = Object.assign(new TypeError(text), { kept: true });
    const processor = () => {
      lock.doomed = 'enough is enough';
      lock.cancel('enough is enough');
      throw own;
    };
    const end = await endOf(new Runner({ processor, rules: {}, maxStartedAttempts: undefined }), job, lock);
    expect(end).toMatchObject({ event: 'failed', error: own, outcome: { kind: 'failed' } });
    expect(own).toMatchObject({ kept: true, cancelReason: 'enough is enough' });
    ends.push((end.outcome as { reason: string }).reason);
  }
  expect(ends).toEqual(['stopped (cancelled: enough is enough)', 'stopped because enough is enough']);
});

test('hands a job back without an attempt when the worker shuts down, whatever its handler throws', async () => {
  const { job, lock } = await claimed({ attempts: 1 });
  const reason = new HoldfastError('SHUTDOWN', 'stop');
  const processor = () => {
    lock.withdraw(reason);
    throw new Error('stopped');
  };
  const end = await endOf(new Runner({ processor, rules: {}, maxStartedAttempts: undefined }), job, lock);
  expect(end).toMatchObject({ event: 'interrupted', error: reason, outcome: { kind: 'release', token: lock.token } });
});

test('does not begin a job that was cancelled between its claim and its start', async () => {
  const { job, lock } = await claimed({ attempts: 5 });
  lock.doomed = 'cancelled: not needed';
  let ran = false;
  const end = await endOf(new Runner({ processor: () => (ran = true), rules: {}, maxStartedAttempts: undefined }), job, lock);
  expect([ran, end.event]).toEqual([false, 'failed']);
  expect(end).toMatchObject({ outcome: { kind: 'failed', reason: 'cancelled: not needed' } });
});

test('hands a rate-limited job back without an event', async () => {
  const { end } = await run(() => Promise.reject(new RateLimitError()));
  expect(end).toMatchObject({ event: 'none', outcome: { kind: 'release' } });
});

test('hands a job back without an attempt when its handler throws the error of lock.assert(), and fails it after another error', async () => {
  const { job, lock } = await claimed();
  const runner = (processor: () => unknown) => new Runner({ processor, rules: {}, maxStartedAttempts: undefined });
  const foreign = new HoldfastError('LOCK_LOST', 'the lock of another job', { jobId: 'other' });
  const failed = { event: 'failed', outcome: { kind: 'failed' } };
  const throws = (error: Error) => () => {
    throw error;
  };
  const own = new HoldfastError('LOCK_LOST', 'made up', { jobId: job.id });
  expect(await endOf(runner(throws(own)), job, lock)).toMatchObject(failed);
  lock.session.memory.markLost();
  expect(await endOf(runner(throws(foreign)), job, lock)).toMatchObject(failed);
  expect(await endOf(runner(throws(new Error('no'))), job, lock)).toMatchObject(failed);
  const end = await endOf(
    runner(() => job.lock.assert()),
    job,
    lock,
  );
  expect(end).toMatchObject({ event: 'none', outcome: { kind: 'release', jobId: job.id, token: lock.token } });
});

test('has no other outcome after the processor moved the job itself', async () => {
  const { job, lock } = await claimed();
  lock.settled = true;
  const error = new Error('x');
  const processors = [() => 'x', () => Promise.reject(new DelayedError()), () => Promise.reject(error)];
  const ends = [];
  for (const processor of processors)
    ends.push(await endOf(new Runner({ processor, rules: {}, maxStartedAttempts: undefined }), job, lock));
  const moved = { event: 'none', outcome: undefined };
  expect(ends).toEqual([{ ...moved, returned: true }, moved, { ...moved, error }]);
});

test('fails a job that was started too often without running it', async () => {
  let ran = false;
  const { end } = await run(() => (ran = true), { attempts: 50 }, { attemptsStarted: 6 });
  expect(ran).toBe(false);
  expect(end).toMatchObject({ outcome: { kind: 'failed', reason: 'job started more than allowable limit' } });
});

test('ends the run of a job whose options or error cannot be read', async () => {
  expect((await run(() => 'x', {}, { opts: 'not json' })).end).toMatchObject({
    event: 'failed',
    outcome: { kind: 'failed', keep: {} },
  });
  const hostile = Object.defineProperty(new Error('x'), 'message', {
    get: () => {
      throw new Error('y');
    },
  });
  expect((await run(() => Promise.reject(hostile))).end).toMatchObject({ outcome: { kind: 'failed' } });
});

test('makes a signal for a processor with three parameters, or with none unless it is an arrow function', () => {
  const withSignal: ((...args: never[]) => unknown)[] = [
    (_job, _token, _signal) => undefined,
    (...args) => args,
    async (...args) => args,
    // oxlint-disable-next-line prefer-arrow-callback
    function () {
      return arguments[2] as unknown;
    },
    (() => undefined).bind(undefined),
    ((job: unknown = {}, _token: unknown, signal: unknown) => [job, signal]) as never,
    ((_job: unknown, _token: unknown, _signal: unknown) => undefined).bind(undefined) as never,
    new Proxy((_job: unknown, _token: unknown, _signal: unknown) => undefined, {}) as never,
  ];
  for (const processor of withSignal) expect(takesSignal(processor), processor.toString()).toBe(true);
  const without: ((...args: never[]) => unknown)[] = [
    async (_job) => undefined,
    () => undefined,
    async () => undefined,
    async () =>
      (...args: never[]) =>
        args,
    ((_job: unknown, ...rest: unknown[]) => rest) as never,
    (({ data }: { data: unknown }, _token: string) => data) as never,
  ];
  for (const processor of without) expect(takesSignal(processor), processor.toString()).toBe(false);
});
