// `telemetry`, with the package bullmq-otel as it is published, and the OpenTelemetry SDK that programs use with it.
import { spawnSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { type Meter, Queue, QueueEvents, type Telemetry, Worker } from 'holdfast';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { root } from '../package/install.js';
import { installed, tool } from '../package/tools.js';
import { ENGINES, newScene, type Scene, work, type Working } from '../support/scenes/scene.js';
import { paced } from '../support/wait/pace.js';
import { until } from '../support/wait/until.js';

const PACKAGES = [
  'bullmq-otel@2.0.1',
  'bullmq@6.7.0',
  '@opentelemetry/api@1.9.1',
  '@opentelemetry/core@2.12.0',
  '@opentelemetry/sdk-trace-base@2.12.0',
  '@opentelemetry/context-async-hooks@2.12.0',
];
const TRACER = { startSpan: (): void => undefined };
const LIMIT_MS = paced(240_000);

interface SpanContext {
  traceId: string;
  spanId: string;
}

interface FinishedSpan {
  name: string;
  kind: number;
  attributes: Record<string, unknown>;
  events: { name: string; attributes?: Record<string, unknown> }[];
  parentSpanContext?: SpanContext;
  spanContext(): SpanContext;
}

interface Otel {
  telemetry: Telemetry;
  finished(): FinishedSpan[];
  reset(): void;
  /** The span that is active now. */
  active(): SpanContext | undefined;
  shutDown(): Promise<void>;
}

let otel: Otel;
let modules: string;

/** The set-up of a program that uses bullmq-otel, with an exporter in memory. */
function setUp(require: NodeJS.Require): Otel {
  const { trace, context, propagation } = require('@opentelemetry/api');
  const { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } = require('@opentelemetry/sdk-trace-base');
  const { AsyncLocalStorageContextManager } = require('@opentelemetry/context-async-hooks');
  const { W3CTraceContextPropagator } = require('@opentelemetry/core');
  const { BullMQOtel } = require('bullmq-otel');
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return {
    telemetry: new BullMQOtel({ tracerName: 'mail' }),
    finished: () => exporter.getFinishedSpans(),
    reset: () => exporter.reset(),
    active: () => trace.getActiveSpan()?.spanContext(),
    shutDown: () => provider.shutdown(),
  };
}

beforeAll(() => {
  modules = installed('bullmq-otel', PACKAGES);
  otel = setUp(createRequire(join(modules, 'program.cjs')));
}, LIMIT_MS);
afterEach(() => otel.reset());
afterAll(() => otel.shutDown());

const named = (name: string): FinishedSpan[] => otel.finished().filter((span) => span.name === name);

async function spansNamed(name: string, count: number): Promise<FinishedSpan[]> {
  await until(`${count} spans "${name}"`, () => named(name).length >= count);
  return named(name);
}

function traced({ connection }: Scene): Queue {
  const queue = new Queue('work', { connection, telemetry: otel.telemetry });
  onTestFinished(() => queue.close());
  return queue;
}

const worked = (scene: Scene, processor: Parameters<typeof work>[1]): Working =>
  work(scene, processor, { name: 'printer', telemetry: otel.telemetry });

describe.each(ENGINES)('bullmq-otel on %s', (engine) => {
  test('gets a span of the add, and one of the run, which continues its trace', async () => {
    const scene = await newScene(engine);
    let inside: SpanContext | undefined;
    worked(scene, async () => {
      await Promise.resolve();
      inside = otel.active();
      return { pages: 3 };
    });
    const job = await traced(scene).add('print', {});
    const [run] = await spansNamed('process work', 1);
    const [add] = named('add work.print');
    expect(add).toMatchObject({
      kind: 3,
      attributes: {
        'bullmq.queue.name': 'work',
        'bullmq.queue.operation': 'add',
        'bullmq.job.name': 'print',
        'bullmq.job.id': job.id,
      },
    });
    expect(run).toMatchObject({
      kind: 4,
      attributes: {
        'bullmq.queue.name': 'work',
        'bullmq.queue.operation': 'process',
        'bullmq.job.name': 'print',
        'bullmq.job.id': job.id,
        'bullmq.worker.name': 'printer',
        'bullmq.job.attempts.made': 1,
        'bullmq.job.processed.timestamp': expect.any(Number),
        'bullmq.job.attempt_finished_timestamp': expect.any(Number),
      },
      events: [{ name: 'job completed', attributes: { 'bullmq.job.result': '{"pages":3}' } }],
    });
    expect(run?.spanContext().traceId).toBe(add?.spanContext().traceId);
    expect(run?.parentSpanContext?.spanId).toBe(add?.spanContext().spanId);
    expect(inside).toMatchObject(run?.spanContext() ?? {});
    expect((await scene.queue.getJob(job.id))?.opts.telemetry?.metadata).toContain(add?.spanContext().traceId);
  });

  test('gets one span for addBulk, and one for each run, with attempts that fail', async () => {
    const scene = await newScene(engine);
    worked(scene, ({ data }) => {
      if (data === 'bad') throw new Error('no paper');
    });
    await traced(scene).addBulk([
      { name: 'print', data: 'good' },
      { name: 'copy', data: 'bad', opts: { attempts: 2 } },
    ]);
    const runs = await spansNamed('process work', 3);
    const [bulk] = named('addBulk work');
    expect(bulk).toMatchObject({
      kind: 3,
      attributes: { 'bullmq.job.bulk.count': 2, 'bullmq.job.bulk.names': ['print', 'copy'] },
    });
    expect(new Set(runs.map((run) => run.parentSpanContext?.spanId))).toEqual(new Set([bulk?.spanContext().spanId]));
    const failed = runs.filter(({ events }) => events.some(({ name }) => name === 'job failed'));
    expect(failed.map(({ attributes }) => attributes['bullmq.job.attempts.made'])).toEqual([1, 2]);
    for (const { events } of failed) {
      expect(events).toMatchObject([
        { name: 'job failed', attributes: { 'bullmq.job.failed.reason': 'no paper' } },
        { name: 'exception', attributes: { 'exception.message': 'no paper' } },
      ]);
    }
  });

  test('begins a new trace for a job with omitContext, and for a job of a queue without telemetry', async () => {
    const scene = await newScene(engine);
    const omitted = await traced(scene).add('print', {}, { telemetry: { omitContext: true } });
    await scene.queue.addBulk([{ name: 'print' }, { name: 'print' }]);
    // One run follows the other, and must not become a part of its trace.
    worked(scene, () => undefined);
    const runs = await spansNamed('process work', 3);
    const traces = [...runs, ...named('add work.print')].map((span) => span.spanContext().traceId);
    expect(new Set(traces).size).toBe(4);
    for (const run of runs) expect(run.parentSpanContext).toBeUndefined();
    expect((await scene.queue.getJob(omitted.id))?.opts.telemetry).toEqual({ omitContext: true });
  });
});

test('a span records the error of an add that is refused', async () => {
  const queue = traced(await newScene('memory'));
  await expect(queue.add('print', {}, { delay: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  await expect(queue.addBulk('jobs' as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'jobs' });
  expect(named('add work.print')[0]?.events).toMatchObject([{ name: 'exception' }]);
  expect(named('addBulk work')[0]?.events).toMatchObject([{ name: 'exception' }]);
});

test('the span of a run whose result is refused says so', async () => {
  const scene = await newScene('memory');
  const job = await traced(scene).add('print', {});
  const { log } = worked(scene, async () => {
    await scene.store.change('work', [job.id], { kind: 'revoke', reason: 'an operator' });
    await scene.store.change('work', [job.id], { kind: 'remove' });
  });
  await log.moment('error');
  const [run] = await spansNamed('process work', 1);
  expect(run?.events).toMatchObject([
    { name: 'exception', attributes: { 'exception.message': expect.stringContaining('not accepted') } },
  ]);
});

test('each job of a batch has a span', async () => {
  const scene = await newScene('memory');
  const queue = traced(scene);
  await queue.addBulk([{ name: 'a' }, { name: 'b' }]);
  const { connection } = scene;
  const worker = new Worker('work', () => undefined, { connection, telemetry: otel.telemetry, batch: { size: 2 } });
  onTestFinished(() => worker.close());
  const runs = await spansNamed('process work', 2);
  const [bulk] = named('addBulk work');
  expect(runs.map((run) => run.parentSpanContext?.spanId)).toEqual(Array(2).fill(bulk?.spanContext().spanId));
});

describe('a telemetry object', () => {
  test('that throws is reported, and the job is added and run all the same', async () => {
    const { connection } = await newScene('memory');
    const startSpan = (): never => {
      throw new Error('the tracer is broken');
    };
    const telemetry: Telemetry = { contextManager: otel.telemetry.contextManager, tracer: { startSpan } };
    const queue = new Queue('work', { connection, telemetry });
    onTestFinished(() => queue.close());
    const worker = new Worker('work', () => 5, { connection, telemetry });
    onTestFinished(() => worker.close());
    const errors: string[] = [];
    queue.on('error', ({ message }) => errors.push(message));
    worker.on('error', ({ message }) => errors.push(message));
    expect(await queue.addAndWait('print', {})).toBe(5);
    expect(errors).toEqual(['the tracer is broken', 'the tracer is broken']);
  });

  test('that cannot read the context of a job is reported, and the job runs', async () => {
    const scene = await newScene('memory');
    const { log } = worked(scene, () => undefined);
    await scene.queue.add('print', {}, { telemetry: { metadata: 'not JSON' } });
    await log.moment('completed');
    expect(log.all('error')).toHaveLength(1);
  });

  test('with a meter counts the ends of runs and the jobs of the queue', async () => {
    const counted: string[] = [];
    const instrument = (name: string) => ({
      add: (value: number, attributes = {}) => counted.push(`${name} ${value} ${Object.values(attributes).join(' ')}`),
      record: (value: number, attributes = {}) =>
        counted.push(`${name} ${name === 'bullmq.job.duration' ? typeof value : value} ${Object.values(attributes).join(' ')}`),
    });
    const meter: Meter = { createCounter: instrument, createHistogram: instrument, createGauge: instrument };
    const telemetry = { ...otel.telemetry, meter };
    const { connection } = await newScene('memory');
    const queue = new Queue('work', { connection, telemetry });
    onTestFinished(() => queue.close());
    const worker = new Worker('work', ({ data }) => (data === 'bad' ? Promise.reject(new Error('bad')) : 1), {
      connection,
      telemetry,
    });
    onTestFinished(() => worker.close());
    await queue.addAndWait('good', '');
    await queue.addAndWait('bad', 'bad', { attempts: 2 }).catch(() => undefined);
    await until('three ends are counted', () => counted.length === 6);
    expect(counted.filter((line) => !line.includes('duration'))).toEqual([
      'bullmq.jobs.completed 1 work good completed',
      'bullmq.jobs.retried 1 work bad retried',
      'bullmq.jobs.failed 1 work bad failed',
    ]);
    expect(counted.filter((line) => line.includes('duration'))).toHaveLength(3);
    counted.length = 0;
    expect(await queue.recordJobCountsMetric('completed', 'failed')).toEqual({ completed: 1, failed: 1 });
    expect(counted).toEqual(['bullmq.queue.jobs 1 work completed', 'bullmq.queue.jobs 1 work failed']);
  });

  test.each([
    [5, 'telemetry'],
    [{}, 'telemetry.tracer'],
    [{ tracer: TRACER }, 'telemetry.contextManager'],
    [{ tracer: TRACER, contextManager: {} }, 'telemetry.contextManager'],
  ])('that lacks a method is refused: %j', (telemetry, option) => {
    const options = { connection: 'memory:', telemetry: telemetry as Telemetry };
    expect(() => new Queue('work', options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
    expect(() => new Worker('work', null, options)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
  });

  test.each([5, { metadata: 5 }, { metadata: '' }, { omitContext: 'yes' }, { omitcontext: true }])(
    'the job option telemetry %j is refused',
    async (telemetry) => {
      const { queue } = await newScene('memory');
      await expect(queue.add('x', {}, { telemetry: telemetry as object })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
      expect(await queue.count()).toBe(0);
    },
  );

  test('is accepted by QueueEvents, which make no spans', async () => {
    const { connection } = await newScene('memory');
    const events = new QueueEvents('work', { connection, telemetry: otel.telemetry });
    await events.waitUntilReady();
    await events.close();
    expect(otel.finished()).toEqual([]);
  });
});

test('the types of bullmq-otel fit, beside those of BullMQ', { timeout: LIMIT_MS }, async () => {
  const { folder } = await newScene('memory');
  mkdirSync(join(folder, 'node_modules'));
  for (const name of ['bullmq-otel', 'bullmq', '@opentelemetry'])
    symlinkSync(join(modules, name), join(folder, 'node_modules', name));
  symlinkSync(root, join(folder, 'node_modules', 'holdfast'));
  const program = `import { BullMQOtel } from 'bullmq-otel';
import { Queue, type Telemetry, Worker } from 'holdfast';
const telemetry: Telemetry = new BullMQOtel({ tracerName: 'mail', enableMetrics: true });
export const queue = new Queue('mail', { telemetry });
export const worker = new Worker('mail', async () => 1, { telemetry });
`;
  writeFileSync(join(folder, 'program.mts'), program);
  const compiler = tool('typescript59');
  const tsc = join(compiler, 'typescript', 'bin', 'tsc');
  const types = ['--types', 'node', '--typeRoots', join(compiler, '@types')];
  const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', ...types];
  const { stdout, status } = spawnSync(process.execPath, [tsc, ...flags, 'program.mts'], { cwd: folder, encoding: 'utf8' });
  expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
});
