import { describe, expect, test } from 'vitest';
import { backoffDelay } from '../../src/job/backoff.js';
import type { JobsOptions } from '../../src/job/options.js';
import { UnrecoverableError } from '../../src/job/signals.js';
import { blockedOutcome, completedOutcome, failedOutcome, substituteOutcome, type TriedJob } from '../../src/job/verdict.js';
import { MAX_DELAY_MS } from '../../src/runtime/check.js';

function tried(opts: JobsOptions, more: Partial<TriedJob> = {}): TriedJob {
  return { id: '7', name: 'mail', opts, attemptsMade: 0, stacktrace: [], discarded: false, ...more };
}

const boom = new Error('boom');

describe('a run that returned', () => {
  test('completes with its value and the retention of job or worker', () => {
    expect(completedOutcome(tried({}), 't', { a: 1 }, {})).toEqual({
      kind: 'completed',
      jobId: '7',
      token: 't',
      value: '{"a":1}',
      keep: {},
    });
    expect(completedOutcome(tried({}), 't', undefined, { removeOnComplete: 5 })).toMatchObject({
      value: 'null',
      keep: { count: 5 },
    });
    expect(completedOutcome(tried({ removeOnComplete: true }), 't', 1, { removeOnComplete: 5 })).toMatchObject({
      keep: { count: 0 },
    });
  });

  test('fails for good with a value that cannot be kept, because another run would repeat its effects', () => {
    const outcome = completedOutcome(tried({ attempts: 5, removeOnFail: 3 }), 't', { total: 1n }, {});
    expect(outcome).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('it.total is a BigInt'),
      keep: { count: 3 },
    });
  });
});

describe('a run that threw', () => {
  test.each([
    [0, 0, 'failed'],
    [1, 0, 'failed'],
    [2, 0, 'retry'],
    [2, 1, 'failed'],
    [3, 1, 'retry'],
  ])('with attempts %i and %i made before: %s', async (attempts, attemptsMade, kind) => {
    expect(await failedOutcome(tried({ attempts }, { attemptsMade }), 't', boom, {})).toMatchObject({
      kind,
      jobId: '7',
      token: 't',
      reason: 'boom',
    });
  });

  test('is not retried after an UnrecoverableError, by class or by name, or after discard', async () => {
    const named = Object.assign(new Error('gone'), { name: 'UnrecoverableError' });
    class Mine extends UnrecoverableError {
      override name = 'Mine';
    }
    for (const error of [new UnrecoverableError('gone'), named, new Mine('gone')]) {
      expect(await failedOutcome(tried({ attempts: 5 }), 't', error, {})).toMatchObject({ kind: 'failed', reason: 'gone' });
    }
    expect(await failedOutcome(tried({ attempts: 5 }, { discarded: true }), 't', boom, {})).toMatchObject({ kind: 'failed' });
  });

  test('waits for its backoff, and comes back to the front if it is lifo', async () => {
    const job = tried({ attempts: 9, backoff: { type: 'exponential', delay: 100 }, lifo: true }, { attemptsMade: 3 });
    expect(await failedOutcome(job, 't', boom, {})).toMatchObject({ kind: 'retry', delayMs: 800, lifo: true });
    expect(await failedOutcome(tried({ attempts: 2 }), 't', boom, {})).toMatchObject({ kind: 'retry', delayMs: 0, lifo: false });
  });

  test('keeps the newest stack traces, ten by default', async () => {
    const stacktrace = Array.from({ length: 12 }, (_, index) => `old ${index}`);
    const kept = async (opts: JobsOptions) =>
      JSON.parse(((await failedOutcome(tried(opts, { stacktrace }), 't', boom, {})) as { stacktrace: string }).stacktrace);
    expect(await kept({})).toHaveLength(10);
    expect(await kept({ stackTraceLimit: 2 })).toEqual(['old 11', boom.stack]);
    expect(await kept({ stackTraceLimit: 0 })).toEqual([]);
  });

  test('has a reason even when the error has no message, or one that stores cannot keep', async () => {
    expect(await failedOutcome(tried({}), 't', new TypeError(), {})).toMatchObject({ reason: 'TypeError' });
    expect(await failedOutcome(tried({}), 't', new Error('a\0b'), {})).toMatchObject({ reason: 'a\ufffdb' });
    const odd = Object.assign(new Error('x'), { message: { not: 'text' }, stack: 5 });
    expect(await failedOutcome(tried({}), 't', odd as unknown as Error, {})).toMatchObject({
      reason: 'Error',
      stacktrace: '["Error"]',
    });
  });

  const custom = tried({ attempts: 5, backoff: { type: 'mine', delay: 3 } }, { attemptsMade: 1 });

  test('waits as the backoff strategy of the worker says', async () => {
    const asked: unknown[] = [];
    const backoffStrategy = (...args: unknown[]) => {
      asked.push(...args);
      return Promise.resolve(41.6);
    };
    expect(await failedOutcome(custom, 't', boom, { backoffStrategy })).toMatchObject({ kind: 'retry', delayMs: 42 });
    expect(asked).toEqual([2, 'mine', boom, custom]);
    expect(await failedOutcome(custom, 't', boom, { backoffStrategy: () => 0 })).toMatchObject({ kind: 'retry', delayMs: 0 });
    expect(await failedOutcome(custom, 't', boom, { backoffStrategy: () => -1 })).toMatchObject({
      kind: 'failed',
      reason: 'boom',
    });
    expect(await failedOutcome(custom, 't', boom, { backoffStrategy: () => 1e300 })).toMatchObject({ delayMs: MAX_DELAY_MS });
  });

  test.each([
    ['is missing', undefined, 'unknown backoff strategy "mine"'],
    [
      'throws',
      () => {
        throw new Error('strategy broke');
      },
      'strategy broke',
    ],
    [
      'throws nothing sensible',
      () => {
        throw undefined as unknown as Error;
      },
      'non-error',
    ],
    ['rejects', () => Promise.reject(new Error('rejected')), 'rejected'],
    ['answers NaN', () => Number.NaN, 'answered NaN'],
    ['answers -2', () => -2, 'answered -2'],
    ['answers text', () => '5' as unknown as number, 'answered "5"'],
  ])('fails with both reasons when the strategy %s', async (_what, backoffStrategy, reason) => {
    const outcome = await failedOutcome(custom, 't', boom, { backoffStrategy });
    expect(outcome).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/^boom \(not tried again: /) });
    expect(outcome).toMatchObject({ reason: expect.stringContaining(reason) });
  });
});

describe('backoff', () => {
  const after = (attemptsMade: number) => ({ attemptsMade, error: boom, job: {} });

  test.each([
    [undefined, 1, 0],
    [0, 1, 0],
    [500, 3, 500],
    [{ type: 'fixed' }, 1, 0],
    [{ type: 'fixed', delay: 500 }, 3, 500],
    [{ type: 'exponential', delay: 500 }, 1, 500],
    [{ type: 'exponential', delay: 500 }, 4, 4000],
    [{ type: 'exponential', delay: 500 }, 5000, MAX_DELAY_MS],
    [{ type: 'exponential', delay: 0 }, 3, 0],
  ])('%j after %i attempts waits %i ms', async (backoff, attemptsMade, delay) => {
    expect(await backoffDelay(backoff, after(attemptsMade), undefined)).toBe(delay);
  });

  test('shortens by jitter at most by its share', async () => {
    const backoff = { type: 'fixed', delay: 1000, jitter: 0.3 };
    expect(await backoffDelay(backoff, after(1), undefined, () => 0)).toBe(700);
    expect(await backoffDelay(backoff, after(1), undefined, () => 0.9999)).toBe(999);
    expect(await backoffDelay({ ...backoff, type: 'exponential' }, after(3), undefined, () => 0.5)).toBe(3400);
  });
});

describe('long reasons and stack traces', () => {
  test('are cut, with a note of how much is missing', async () => {
    const long = Object.assign(new Error('m'.repeat(1_000_000)), { stack: 's'.repeat(1_000_000) });
    const outcome = await failedOutcome(tried({}), 't', long, {});
    const { reason, stacktrace } = outcome as { reason: string; stacktrace: string };
    expect(reason).toMatch(/^m{16384}… \(983616 more characters\)$/);
    expect((JSON.parse(stacktrace) as string[])[0]).toMatch(/^s{16384}… \(983616 more characters\)$/);
  });

  test('of usual length stay as they are', async () => {
    expect(await failedOutcome(tried({}), 't', new Error('x'.repeat(16_384)), {})).toMatchObject({ reason: 'x'.repeat(16_384) });
  });
});

describe('a run that ends before its last attempt', () => {
  test('says that it failed early, and only then', async () => {
    const never = new UnrecoverableError('never');
    expect(await failedOutcome(tried({ attempts: 3 }), 't', never, {})).toMatchObject({ kind: 'failed', early: true });
    for (const [attempts, attemptsMade] of [
      [1, 0],
      [3, 2],
    ] as const)
      expect(await failedOutcome(tried({ attempts }, { attemptsMade }), 't', never, {})).not.toHaveProperty('early');
  });

  test('is tried again by the lock thread as often as by the worker', () => {
    const opts = { attempts: 2, backoff: { type: 'fixed', delay: 70 } } as const;
    expect(blockedOutcome(tried(opts), 't', boom, {})).toMatchObject({ kind: 'retry', delayMs: 70 });
    expect(blockedOutcome(tried(opts, { attemptsMade: 1 }), 't', boom, {})).toMatchObject({ kind: 'failed' });
    // A strategy of the user runs on the event loop, which is blocked.
    expect(blockedOutcome(tried({ attempts: 2, backoff: { type: 'own' } }), 't', boom, {})).toMatchObject({ delayMs: 0 });
  });
});

test('an outcome that replaces a refused one has a short text, and a refused result fails its job', () => {
  const job = tried({ attempts: 2, removeOnFail: 3 });
  const refusal = new Error('too large');
  const completed = completedOutcome(job, 't', 'x'.repeat(50), {});
  expect(substituteOutcome(job, completed, refusal, {})).toMatchObject({
    kind: 'failed',
    token: 't',
    reason: expect.stringMatching(/refused the result .*52 bytes.*too large/) as string,
    keep: { count: 3 },
    early: true,
  });
  const retry = blockedOutcome(job, 't', boom, {});
  expect(substituteOutcome(job, retry, refusal, {})).toMatchObject({
    kind: 'retry',
    reason: expect.stringContaining('refused the error') as string,
    stacktrace: '[]',
  });
  expect(substituteOutcome(job, { kind: 'release', jobId: '7', token: 't' }, refusal, {})).toBeUndefined();
});
