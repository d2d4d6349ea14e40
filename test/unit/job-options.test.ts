import { describe, expect, test } from 'vitest';
import { HoldfastError } from '../../src/errors.js';
import { checkDefaultJobOptions, checkJobOptions, keepOf, mergeOptions } from '../../src/job/options.js';
import { MAX_DELAY_MS } from '../../src/runtime/check.js';

function codeOf(run: () => unknown): { code: string; option: string | undefined; message: string } | 'accepted' {
  try {
    run();
    return 'accepted';
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    return { code: error.code, option: error.option, message: error.message };
  }
}

const WHOLE_NUMBERS = ['delay', 'priority', 'attempts', 'keepLogs', 'stackTraceLimit', 'sizeLimit', 'timestamp'];
const NESTED = [
  'backoff.delay',
  'removeOnComplete.age',
  'removeOnComplete.count',
  'removeOnFail.age',
  'removeOnFail.count',
  'removeOnFail.limit',
];
const NOT_WHOLE = [Number.NaN, -1, 1.5, 1e300, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '5', null, {}, [], true, 5n];

function optionsWith(path: string, value: unknown): Record<string, unknown> {
  const [name = '', inner] = path.split('.');
  if (inner === undefined) return { [name]: value };
  return { [name]: name === 'backoff' ? { type: 'fixed', [inner]: value } : { [inner]: value } };
}

describe('a whole number is refused, by its name, when it is', () => {
  const cases = [...WHOLE_NUMBERS, ...NESTED].flatMap((path) => NOT_WHOLE.map((value) => [path, value] as const));
  // A count of finished jobs of -1 keeps all.
  const refused = cases.filter(([path, value]) => !(path.endsWith('.count') && value === -1));
  test.each(refused)('%s: %s', (path, value) => {
    expect(codeOf(() => checkJobOptions(optionsWith(path, value)))).toMatchObject({
      code: 'INVALID_OPTION',
      option: path,
      message: expect.stringContaining(path),
    });
  });
});

describe('other options are refused, by their name, when they are', () => {
  const BAD_BACKOFFS = [Number.NaN, -1, 1.5, 1e300, '5', null, [], true];
  const BAD_KEEPS = [Number.NaN, -2, 1.5, 1e300, '5', null, []];
  test.each<[string, unknown]>([
    ...[Number.NaN, -1, 0, 1, 1.5, 1e300, '5', null, {}].map((value): [string, unknown] => ['lifo', value]),
    ...BAD_BACKOFFS.map((value): [string, unknown] => ['backoff', value]),
    ...[undefined, '', 5, null, {}, 'exponental', 'exponentail', 'fixd', 'Fixed'].map((type): [string, unknown] => [
      'backoff.type',
      { type },
    ]),
    ...[Number.NaN, -1, -0.1, 1.1, 1e300, '5', null, {}].map((jitter): [string, unknown] => [
      'backoff.jitter',
      { type: 'fixed', jitter },
    ]),
    ...BAD_KEEPS.map((value): [string, unknown] => ['removeOnComplete', value]),
    ...BAD_KEEPS.map((value): [string, unknown] => ['removeOnFail', value]),
  ])('%s: %j', (path, value) => {
    const name = path.split('.')[0] as string;
    expect(codeOf(() => checkJobOptions({ [name]: value }))).toMatchObject({ code: 'INVALID_OPTION', option: path });
  });

  test.each([Number.NaN, -1, 1.5, 1e300, '5', '007', '', null, {}, 'a'.repeat(201), 'line\nbreak', '\0'])(
    'jobId: %j',
    (jobId) => {
      expect(codeOf(() => checkJobOptions({ jobId }))).toMatchObject({ code: 'INVALID_JOB_ID' });
    },
  );

  test.each([null, 5, 'x', [], true])('the options themselves: %j', (options) => {
    expect(codeOf(() => checkJobOptions(options))).toMatchObject({ code: 'INVALID_OPTION', option: 'opts' });
  });
});

test.each(['repeat', 'debounce', 'rateLimiterKey'])(
  '%s is known and not supported, which is said rather than ignored',
  (name) => {
    expect(codeOf(() => checkJobOptions({ [name]: { id: 'x' } }))).toMatchObject({ code: 'OPTION_UNSUPPORTED', option: name });
    expect(codeOf(() => checkJobOptions({ [name]: undefined }))).toBe('accepted');
    expect(codeOf(() => checkJobOptions({ [name]: false }))).toBe('accepted');
  },
);

test.each<object>([
  {},
  { delay: 0, priority: 0, attempts: 0, keepLogs: 0, sizeLimit: 0, stackTraceLimit: 0, timestamp: 0 },
  { delay: MAX_DELAY_MS, priority: 2 ** 21, timestamp: 8.64e15, attempts: Number.MAX_SAFE_INTEGER },
  { backoff: 0 },
  { backoff: { type: 'exponential', delay: 100, jitter: 0.5 } },
  { backoff: { type: 'mine' } },
  { removeOnComplete: true, removeOnFail: false },
  { removeOnComplete: 0, removeOnFail: { age: 3600, count: 10, limit: 5 } },
  { lifo: true, jobId: 'order-17' },
  { parent: { id: '7', queue: 'bull:orders' }, failParentOnFailure: true, ignoreDependencyOnFailure: false },
  { deadLetter: 'dead' },
  { delay: undefined, attempts: undefined, jobId: undefined },
  { ofMyOwn: Number.NaN, constructor: 5, toString: 'x' },
])('%j is fine', (options) => {
  expect(checkJobOptions(options)).toBe(options);
});

test.each([
  { delay: MAX_DELAY_MS + 1 },
  { priority: 2 ** 21 + 1 },
  { timestamp: 8.64e15 + 1 },
  { backoff: MAX_DELAY_MS + 1 },
  { backoff: { type: 'fixed', delay: MAX_DELAY_MS + 1 } },
])('%j is over the limit', (options) => {
  expect(codeOf(() => checkJobOptions(options))).toMatchObject({ code: 'INVALID_OPTION' });
});

describe('default options', () => {
  test('are checked, with the way to the fault', () => {
    const options = { backoff: { type: 'fixed', delay: -1 } };
    expect(codeOf(() => checkDefaultJobOptions(options))).toMatchObject({ option: 'defaultJobOptions.backoff.delay' });
  });

  test('cannot hold a jobId', () => {
    expect(codeOf(() => checkDefaultJobOptions({ jobId: 'one' }))).toMatchObject({ option: 'defaultJobOptions.jobId' });
  });

  test('hold where a job says nothing or undefined', () => {
    const options = { attempts: 5, delay: 0 } as { attempts: number };
    expect(mergeOptions({ attempts: 3, priority: 2, delay: 10 }, options)).toEqual({ attempts: 5, priority: 2, delay: 0 });
    expect(mergeOptions({ attempts: 3 }, { attempts: undefined } as never)).toEqual({ attempts: 3 });
  });
});

test.each([
  [undefined, undefined, {}],
  [true, undefined, { count: 0 }],
  [false, undefined, {}],
  [5, undefined, { count: 5 }],
  [0, undefined, { count: 0 }],
  [{ age: 60 }, undefined, { ageMs: 60_000 }],
  [{ age: 0, count: 0 }, undefined, { ageMs: 0, count: 0 }],
  [undefined, { count: 7 }, { count: 7 }],
  [false, true, {}],
  [0, 10, { count: 0 }],
  ['nonsense' as never, undefined, {}],
])('removeOn… %j with the worker saying %j keeps %j', (option, worker, keep) => {
  expect(keepOf(option, worker)).toEqual(keep);
});
