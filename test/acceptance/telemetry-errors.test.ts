// A telemetry object that misbehaves harms no add and no run: its errors are emitted as `error`.
import { type ContextManager, type Meter, Queue, type Span, type Telemetry } from 'holdfast';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newScene, type Scene, work } from '../support/scenes/scene.js';
import { until } from '../support/wait/until.js';

type With = (context: unknown, fn: () => unknown) => unknown;

const BROKEN = 'the telemetry is broken';
const fail = (): never => {
  throw new Error(BROKEN);
};

/** A telemetry object whose method `broken` returns a promise that rejects. */
function telemetryWith(own: Partial<ContextManager>, broken?: string): Telemetry {
  const method =
    <V>(name: string, value: V) =>
    (): V =>
      name === broken ? (Promise.reject(new Error(BROKEN)) as V) : value;
  const instrument = (name: string) => ({ add: method(`${name}.add`, undefined), record: method(`${name}.record`, undefined) });
  const span: Span = {
    setSpanOnContext: method('setSpanOnContext', 'a context'),
    setAttribute: method('setAttribute', undefined),
    setAttributes: method('setAttributes', undefined),
    addEvent: method('addEvent', undefined),
    recordException: method('recordException', undefined),
    end: method('end', undefined),
  };
  const meter: Meter = {
    createCounter: method('createCounter', instrument('counter')),
    createHistogram: method('createHistogram', instrument('histogram')),
    createGauge: method('createGauge', instrument('gauge')),
  };
  const contextManager: ContextManager = {
    with: (_context, fn) => fn(),
    active: method('active', 'a context'),
    root: method('root', 'a context'),
    getMetadata: method('getMetadata', 'a context'),
    fromMetadata: method('fromMetadata', 'a context'),
    ...own,
  };
  return { tracer: { startSpan: method('startSpan', span) }, contextManager, meter };
}

function tracedQueue({ connection }: Scene, telemetry: Telemetry): { queue: Queue; errors: Error[] } {
  const queue = new Queue('work', { connection, telemetry });
  onTestFinished(() => queue.close());
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  return { queue, errors };
}

/** Notes the rejections that nothing handles. */
function unhandled(): unknown[] {
  const seen: unknown[] = [];
  const note = (reason: unknown): void => void seen.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  return seen;
}

/** Node reports unhandled rejections before the next turn of the loop. */
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const messages = (errors: Error[]): string[] => errors.map(({ message }) => message);

const WITHS: [string, With, string[]][] = [
  ['throws before it calls its function', fail, [BROKEN]],
  ['throws after it called its function', (_context, fn) => [fn(), fail()], [BROKEN]],
  ['never calls its function', () => undefined, []],
  ['rejects before it calls its function', async () => fail(), [BROKEN]],
  ['rejects after it called its function', async (_context, fn) => [await Promise.allSettled([fn()]), fail()], [BROKEN]],
  ['rejects while its function runs', (_context, fn) => [fn(), Promise.reject(new Error(BROKEN))][1], [BROKEN]],
  ['calls its function twice', (_context, fn) => [fn(), fn()][1], []],
  ['calls its function later', (_context, fn) => queueMicrotask(() => void Promise.resolve(fn()).catch(() => undefined)), []],
  ['returns another value', (_context, fn) => [void Promise.resolve(fn()).catch(() => undefined), 'another'][1], []],
  ['hides the error of its function', async (_context, fn) => Promise.resolve(fn()).catch(() => undefined), []],
  ['passes the rejection of its function on', async (_context, fn) => await fn(), []],
];

describe.each(WITHS)('a contextManager.with that %s', (_title, given, expected) => {
  const telemetry = telemetryWith({ with: given as ContextManager['with'] });

  test('lets a handler run once, with its own result', async () => {
    const rejections = unhandled();
    const scene = await newScene('memory');
    let runs = 0;
    const { log } = work(scene, () => (runs += 1), { telemetry });
    await scene.queue.add('print', {});
    const { args } = await log.moment('completed');
    await nextTurn();
    expect({ runs, result: (args as unknown[])[1], rejections }).toEqual({ runs: 1, result: 1, rejections: [] });
    expect(log.all('error').map((moment) => moment['args'])).toMatchObject(expected.map((message) => [{ message }]));
  });

  test('lets an add resolve with its job, which is added once', async () => {
    const rejections = unhandled();
    const scene = await newScene('memory');
    const { queue, errors } = tracedQueue(scene, telemetry);
    const added = [await queue.add('print', {}), ...(await queue.addBulk([{ name: 'copy' }]))];
    await nextTurn();
    expect(added.map((job) => job.name)).toEqual(['print', 'copy']);
    expect(await queue.count()).toBe(2);
    expect({ errors: messages(errors), rejections }).toEqual({ errors: [...expected, ...expected], rejections: [] });
  });

  test('lets a refused add reject with its own error', async () => {
    const rejections = unhandled();
    const { queue, errors } = tracedQueue(await newScene('memory'), telemetry);
    await expect(queue.add('print', {}, { delay: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'delay' });
    await nextTurn();
    expect({ errors: messages(errors), rejections }).toEqual({ errors: expected, rejections: [] });
  });
});

describe('the metadata of a telemetry object', () => {
  test.each<[string, unknown]>([
    ['an empty text', ''],
    ['null', null],
    ['a number', 5],
    ['an object', { traceparent: '00' }],
    ['a text with NUL', 'a\0b'],
    ['broken unicode', '\ud800'],
    ['65,537 characters', 'x'.repeat(65_537)],
  ])('is reported and left out if it is %s', async (_title, metadata) => {
    const { queue, errors } = tracedQueue(await newScene('memory'), telemetryWith({ getMetadata: () => metadata as string }));
    const added = [await queue.add('print', {}), ...(await queue.addBulk([{ name: 'copy' }]))];
    expect(added.map(({ opts }) => opts.telemetry)).toEqual([undefined, undefined]);
    const option = 'telemetry.contextManager.getMetadata()';
    expect(errors).toMatchObject(Array(2).fill({ code: 'INVALID_OPTION', option }));
  });

  test('is stored if it has 65,536 characters', async () => {
    const metadata = 'x'.repeat(65_536);
    const { queue, errors } = tracedQueue(await newScene('memory'), telemetryWith({ getMetadata: () => metadata }));
    expect((await queue.add('print', {})).opts.telemetry).toEqual({ metadata });
    expect(errors).toEqual([]);
  });
});

describe('a promise that rejects is reported, and the job is added and run, if it comes from', () => {
  const methods = ['startSpan', 'setSpanOnContext', 'setAttributes', 'addEvent', 'recordException', 'end'];
  const contexts = ['active', 'root', 'getMetadata', 'fromMetadata'];
  const meters = ['createCounter', 'counter.add', 'createHistogram', 'histogram.record'];
  test.each([...methods, ...contexts, ...meters])('%s', async (broken) => {
    const rejections = unhandled();
    const scene = await newScene('memory');
    const telemetry = telemetryWith({}, broken);
    const { queue, errors } = tracedQueue(scene, telemetry);
    const { worker, log } = work(
      scene,
      () => {
        throw new Error('no paper');
      },
      { telemetry },
    );
    worker.on('error', (error) => errors.push(error));
    await queue.add('print', {});
    await log.moment('failed');
    await until(`an error of ${broken}`, () => rejections.length > 0 || messages(errors).includes(BROKEN));
    await nextTurn();
    expect(rejections).toEqual([]);
    expect(log.all('failed')).toHaveLength(1);
  });

  test.each(['createGauge', 'gauge.record'])('%s, and the counts are returned', async (broken) => {
    const rejections = unhandled();
    const { queue, errors } = tracedQueue(await newScene('memory'), telemetryWith({}, broken));
    expect(await queue.recordJobCountsMetric('failed')).toEqual({ failed: 0 });
    await nextTurn();
    expect(rejections).toEqual([]);
    expect(messages(errors)).toContain(BROKEN);
  });
});
