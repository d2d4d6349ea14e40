// The option `telemetry`, in BullMQ's shape: an object that makes spans and carries their context from the process that adds a job to the
// process that runs it. The published package bullmq-otel is such an object. An error of the telemetry is reported, and never fails
// the work that it watches.
import { toError } from '../errors.js';
import { checkText, invalidOption } from './check.js';
import { TelemetryGuard } from './telemetry-guard.js';

/** The most characters of a context as text. Trace headers and baggage together stay far below it. */
export const MAX_METADATA = 65_536;

/** As in OpenTelemetry. */
export const SpanKind = { INTERNAL: 0, SERVER: 1, CLIENT: 2, PRODUCER: 3, CONSUMER: 4 } as const;
export type SpanKind = (typeof SpanKind)[keyof typeof SpanKind];

/** The names of BullMQ's attributes: dashboards look for them. */
export const TelemetryAttributes = {
  QueueName: 'bullmq.queue.name',
  QueueOperation: 'bullmq.queue.operation',
  QueueJobsState: 'bullmq.queue.jobs.state',
  BulkCount: 'bullmq.job.bulk.count',
  BulkNames: 'bullmq.job.bulk.names',
  JobName: 'bullmq.job.name',
  JobId: 'bullmq.job.id',
  JobAttemptsMade: 'bullmq.job.attempts.made',
  JobAttemptFinishedTimestamp: 'bullmq.job.attempt_finished_timestamp',
  JobProcessedTimestamp: 'bullmq.job.processed.timestamp',
  JobResult: 'bullmq.job.result',
  JobFailedReason: 'bullmq.job.failed.reason',
  JobState: 'bullmq.job.state',
  WorkerName: 'bullmq.worker.name',
} as const;

export const MetricNames = {
  QueueJobsCount: 'bullmq.queue.jobs',
  JobsCompleted: 'bullmq.jobs.completed',
  JobsFailed: 'bullmq.jobs.failed',
  JobsDelayed: 'bullmq.jobs.delayed',
  JobsRetried: 'bullmq.jobs.retried',
  JobDuration: 'bullmq.job.duration',
} as const;

// oxlint-disable-next-line typescript/no-explicit-any
type AnyContext = any;

export interface Telemetry<Context = AnyContext> {
  tracer: Tracer<Context>;
  contextManager: ContextManager<Context>;
  meter?: Meter;
}

export interface Tracer<Context = AnyContext> {
  /** Without a context, the active one is the parent. */
  startSpan(name: string, options?: SpanOptions, context?: Context): Span<Context>;
}

export interface SpanOptions {
  kind: SpanKind;
}

export interface Span<Context = AnyContext> {
  setSpanOnContext(context: Context): Context;
  setAttribute(key: string, value: AttributeValue): void;
  setAttributes(attributes: Attributes): void;
  addEvent(name: string, attributes?: Attributes): void;
  recordException(exception: Exception, time?: Time): void;
  end(): void;
}

export interface ContextManager<Context = AnyContext> {
  // oxlint-disable-next-line typescript/no-explicit-any
  with<A extends (...args: any[]) => any>(context: Context, fn: A): ReturnType<A>;
  active(): Context;
  /** An empty context. Without it, the context in which the worker was made takes its place. */
  root?(): Context;
  /** Returns the context as text. */
  getMetadata(context: Context): string;
  fromMetadata(activeContext: Context, metadata: string): Context;
}

export interface Meter {
  createCounter(name: string, options?: MetricOptions): Counter;
  createHistogram(name: string, options?: MetricOptions): Histogram;
  createGauge(name: string, options?: MetricOptions): Gauge;
}

export interface MetricOptions {
  description?: string;
  unit?: string;
}

export interface Counter {
  add(value: number, attributes?: Attributes): void;
}
export interface Histogram {
  record(value: number, attributes?: Attributes): void;
}
export interface Gauge {
  record(value: number, attributes?: Attributes): void;
}

export interface Attributes {
  [attribute: string]: AttributeValue | undefined;
}
export type AttributeValue =
  | string
  | number
  | boolean
  | (null | undefined | string)[]
  | (null | undefined | number)[]
  | (null | undefined | boolean)[];
export type Exception = string | { code?: string | number; name?: string; message?: string; stack?: string };
export type Time = number | Date | [number, number];

/** Returns undefined if there is no telemetry. Throws INVALID_OPTION if it lacks a method that is called later. */
export function checkTelemetry(given: unknown): Telemetry | undefined {
  if (given === undefined || given === null || given === false) return undefined;
  const wanted = '{ tracer, contextManager }, such as new BullMQOtel() of the package bullmq-otel';
  if (typeof given !== 'object') throw invalidOption('telemetry', given, wanted);
  const telemetry = given as Telemetry;
  const { tracer, contextManager } = telemetry as Partial<Telemetry>;
  if (typeof tracer?.startSpan !== 'function') throw invalidOption('telemetry.tracer', tracer, 'an object with startSpan');
  for (const method of ['with', 'active', 'getMetadata', 'fromMetadata'] as const) {
    if (typeof contextManager?.[method] !== 'function')
      throw invalidOption('telemetry.contextManager', contextManager, `an object with ${method}`);
  }
  return telemetry;
}

/** A span that has begun, and the context in which its work runs. */
export interface OpenSpan {
  span: Span;
  context: unknown;
}

/** Makes the spans of one queue or worker. */
export class Tracing extends TelemetryGuard {
  readonly #telemetry: Telemetry;
  readonly #queue: string;
  /** The context in which the queue or worker was made. */
  readonly #origin: unknown;

  constructor(telemetry: Telemetry, queue: string, onError: (error: Error) => void) {
    super(onError);
    this.#telemetry = telemetry;
    this.#queue = queue;
    this.#origin = this.guarded(() => telemetry.contextManager.active() as unknown);
  }

  /** `detached`: the active context, which may be that of another job, is not the parent. `source`: the context of another process, which becomes the parent. */
  open(kind: SpanKind, operation: string, destination: string, detached = false, source?: string): OpenSpan | undefined {
    return this.guarded(() => {
      const { tracer, contextManager } = this.#telemetry;
      const own: unknown = detached
        ? (this.watched(contextManager.root?.()) ?? this.#origin)
        : this.watched(contextManager.active());
      const parent: unknown = source === undefined ? own : this.watched(contextManager.fromMetadata(own, source));
      const span = this.watched(tracer.startSpan(`${operation} ${destination}`, { kind }, parent));
      const attributes = { [TelemetryAttributes.QueueName]: this.#queue, [TelemetryAttributes.QueueOperation]: operation };
      this.watched(span.setAttributes(attributes));
      return { span, context: this.watched(span.setSpanOnContext(parent)) as unknown };
    });
  }

  /** Runs `work` in the context of a span, or without one. */
  within<V>(open: OpenSpan | undefined, work: () => V): V {
    if (open === undefined) return work();
    return this.inside((once) => this.#telemetry.contextManager.with(open.context, once), work);
  }

  /** Returns the context of a span as text, for another process. A text that a job cannot have is reported and left out. */
  metadataOf(open: OpenSpan | undefined): string | undefined {
    if (open === undefined) return undefined;
    return this.guarded(() => {
      const metadata: unknown = this.watched(this.#telemetry.contextManager.getMetadata(open.context));
      return metadata === undefined ? undefined : checkText('telemetry.contextManager.getMetadata()', metadata, MAX_METADATA);
    });
  }

  /** Runs `work` inside a span, and ends the span with it. */
  async around<V>(open: OpenSpan | undefined, work: () => Promise<V>): Promise<V> {
    try {
      return await this.within(open, work);
    } catch (error) {
      this.guarded(() => open?.span.recordException(toError(error)));
      throw error;
    } finally {
      this.guarded(() => open?.span.end());
    }
  }

  /** Counts the end of a run and its duration, if the telemetry has a meter. */
  count(name: string, state: string, jobName: string, durationMs: number | undefined): void {
    const { meter } = this.#telemetry;
    if (meter === undefined) return;
    const attributes = {
      [TelemetryAttributes.QueueName]: this.#queue,
      [TelemetryAttributes.JobName]: jobName,
      [TelemetryAttributes.JobState]: state,
    };
    this.guarded(() => {
      const counter = this.watched(meter.createCounter(name, { description: `Number of jobs ${state}`, unit: '1' }));
      this.watched(counter.add(1, attributes));
      if (durationMs === undefined) return;
      const duration = { description: 'Job processing duration', unit: 'ms' };
      const histogram = this.watched(meter.createHistogram(MetricNames.JobDuration, duration));
      this.watched(histogram.record(durationMs, attributes));
    });
  }
}
