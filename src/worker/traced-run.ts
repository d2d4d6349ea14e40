// A run with a span: from the start of its handler to the store's acknowledgement. The handler runs in the context of the span, which
// continues the trace of the process that added the job.
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import type { SettleStatus } from '../job/outcome.js';
import { MetricNames, type OpenSpan, SpanKind, TelemetryAttributes, type Tracing } from '../runtime/telemetry.js';
import type { HeldLock } from '../session/held-lock.js';
import type { Substituted } from '../store/client/refusal.js';
import { Run, type RunOwner } from './run.js';
import type { RunEnd } from './runner.js';

/** The queue, and the name of the worker. */
interface Place {
  queue: string;
  worker: string;
}

export class TracedRun extends Run {
  readonly #tracing: Tracing;
  readonly #place: Place;
  #open: OpenSpan | undefined;

  constructor(owner: RunOwner, job: Job, lock: HeldLock, tracing: Tracing, place: Place) {
    super(owner, job, lock);
    this.#tracing = tracing;
    this.#place = place;
  }

  /** Begins the span. */
  override begun(): void {
    super.begun();
    const { queue, worker } = this.#place;
    const { job } = this;
    const source = this.#tracing.guarded(() => job.opts.telemetry?.metadata);
    // Without the producer's context, the span begins a trace: the active context is that of the program's start.
    this.#open = this.#tracing.open(SpanKind.CONSUMER, 'process', queue, true, source);
    this.#set({
      [TelemetryAttributes.WorkerName]: worker,
      [TelemetryAttributes.JobId]: job.id,
      [TelemetryAttributes.JobName]: job.name,
    });
  }

  /** Calls the handler in the context of the span. */
  within(call: () => void): void {
    this.#tracing.within(this.#open, call);
  }

  override conclude(end: RunEnd): void {
    // The handler has moved the job itself: the store's acknowledgement has come already.
    if (end.outcome === undefined) this.#close();
    super.conclude(end);
  }

  override settled(status: SettleStatus | 'unknown', error?: Error, substituted?: Substituted): void {
    super.settled(status, error, substituted);
    const { end, job } = this;
    if (status !== 'done')
      this.#record(error ?? new HoldfastError('LOCK_LOST', `The end of job ${job.id} was not accepted: ${status}.`));
    else if (end !== undefined) this.#describe(end);
    this.#close();
  }

  #describe(end: RunEnd): void {
    const { attemptsMade, name, processedOn } = this.job;
    this.#set({ [TelemetryAttributes.JobAttemptsMade]: attemptsMade });
    const durationMs = processedOn === undefined ? undefined : Math.max(0, Date.now() - processedOn);
    if (end.event === 'completed') {
      const { outcome } = end;
      this.#event('job completed', TelemetryAttributes.JobResult, outcome.kind === 'completed' ? outcome.value : '');
      this.#tracing.count(MetricNames.JobsCompleted, 'completed', name, durationMs);
    } else if (end.event === 'failed') {
      const { outcome, error } = end;
      this.#event('job failed', TelemetryAttributes.JobFailedReason, error.message);
      this.#record(error);
      if (outcome.kind !== 'retry') this.#tracing.count(MetricNames.JobsFailed, 'failed', name, durationMs);
      else if (outcome.delayMs > 0) this.#tracing.count(MetricNames.JobsDelayed, 'delayed', name, durationMs);
      else this.#tracing.count(MetricNames.JobsRetried, 'retried', name, durationMs);
    }
  }

  #set(attributes: Record<string, string | number | undefined>): void {
    this.#tracing.guarded(() => this.#open?.span.setAttributes(attributes));
  }

  #event(name: string, attribute: string, value: string): void {
    this.#tracing.guarded(() => this.#open?.span.addEvent(name, { [attribute]: value }));
  }

  #record(error: Error): void {
    this.#tracing.guarded(() => this.#open?.span.recordException(error));
  }

  #close(): void {
    this.#set({
      [TelemetryAttributes.JobAttemptFinishedTimestamp]: this.job.finishedOn ?? Date.now(),
      [TelemetryAttributes.JobProcessedTimestamp]: this.job.processedOn,
    });
    this.#tracing.guarded(() => this.#open?.span.end());
  }
}
