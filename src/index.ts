// The public door: re-exports only. The default is an object of all names: `import holdfast from 'holdfast'`.
// oxlint-disable-next-line import/no-self-import -- its own names are what the default holds
export * as default from './index.js';
export { ERROR_CODES, type ErrorCode, HoldfastError } from './errors.js';
export type { QueueEventsListener, QueueEventsMap } from './events/event-map.js';
export { QueueEvents, type QueueEventsOptions } from './events/queue-events.js';
export { type PublishedEvent, QueueEventsProducer } from './events/queue-events-producer.js';
export { Job, type LetterOrigin } from './handle/job.js';
export type {
  Dependencies,
  Dependencies as JobDependencies,
  DependenciesOptions,
  DependenciesOptions as DependenciesOpts,
  DependencyCounts,
  DependencyStates,
  ParentKeys,
  ParentKeys as ParentKeyOpts,
  WaitForChildrenOptions,
  WaitForChildrenOptions as MoveToWaitingChildrenOpts,
} from './handle/children.js';
export type { JobJson, JobView } from './handle/json.js';
export type { CancelOptions } from './handle/cancel.js';
export type { CompleteOptions, NextJob, PriorityOptions, RetryOptions } from './handle/moves.js';
export type { StepContext, StepInfo, WaitForOptions } from './handle/steps.js';
export type { StepKind } from './job/step-names.js';
export type { CancellableType, CancelJobsOptions } from './queue/cancelling.js';
export type { RemoveOptions } from './handle/removal.js';
export type { JobProgress } from './handle/job-context.js';
export type { JobHandlers, JobOf, NamedJob, Processor, ResultOf } from './handle/typed-job.js';
export type { BackoffStrategy } from './job/backoff.js';
export type { DeduplicationOptions } from './job/deduplication.js';
export type { FailureOptions, ParentOptions } from './job/family-options.js';
export type { GroupLimitOptions, GroupOptions, GroupRateLimit } from './job/group.js';
export type { JobLock } from './job/lock.js';
export type { LossFound, LostBy } from './job/lost-by.js';
export type {
  BackoffOptions,
  DefaultJobOptions,
  JobsOptions,
  JobsOptions as BaseJobOptions,
  JobsOptions as BulkJobOptions,
  JobTelemetryOptions,
  KeepJobs,
  KeepOption,
} from './job/options.js';
export type { CatchUp, Overlap, RepeatOptions, RepeatStrategy } from './job/schedule.js';
export { DelayedError, RateLimitError, UnrecoverableError, WaitingChildrenError, WaitingError } from './job/signals.js';
export type { JobState, JobType } from './job/state.js';
export type { Instance } from './lock/instances.js';
export type { SessionOptions } from './session/session-options.js';
export { type ElectionOptions, Leader, type LeaderEvents, type LeaderOptions, type LeaderWork } from './lock/leader.js';
export { LockManager, type LockManagerContext, type LockManagerOptions } from './lock/lock-manager.js';
export type { NamedLock } from './lock/named-lock.js';
export { type BulkJob, Queue } from './queue/queue.js';
export type {
  CleanType,
  ObliterateOptions,
  ObliterateOptions as ObliterateOpts,
  RequeueOptions,
  RequeueOptions as RetryJobOpts,
} from './queue/cleaning.js';
export { FlowProducer, type FlowProducerEvents } from './queue/flow-producer.js';
export type {
  FlowGraph,
  FlowJob,
  FlowJobOptions,
  FlowOptions,
  FlowOptions as FlowOpts,
  FlowProducerOptions,
  GetFlowOptions,
  GetFlowOptions as NodeOpts,
  GraphNode,
  JobNode,
} from './queue/flow-options.js';
export type { DependencyList, DependencyType } from './queue/dependencies.js';
export type { RedriveOptions } from './queue/redrive.js';
export { JobScheduler, type JobSchedulerOpts } from './queue/job-scheduler.js';
export type { ClientInfo, WorkerInfo } from './queue/clients.js';
export type { QueueMeta } from './queue/getters.js';
export type { GroupStatus } from './queue/grouping.js';
export type { LockHolding, LockOptions } from './queue/locking.js';
export { type Metrics, MetricsTime } from './queue/metrics.js';
export type { AddOptions, QueueEventMap, QueueListener, QueueOptions, TransactionOption } from './queue/queue-options.js';
export type { RedisClient } from './queue/redis-client.js';
export { RedisConnection } from './queue/redis-connection.js';
export type { AdvancedRepeatOptions } from './queue/repeat-settings.js';
export type {
  JobSchedulerJson,
  JobSchedulerTemplateJson,
  JobSchedulerTemplateOptions,
  RepeatableJob,
} from './queue/scheduler-json.js';
export type { JobTemplate } from './queue/schedulers.js';
export {
  type Attributes,
  type AttributeValue,
  type ContextManager,
  type Counter,
  type Exception,
  type Gauge,
  type Histogram,
  type Meter,
  MetricNames,
  type MetricOptions,
  type Span,
  SpanKind,
  type SpanOptions,
  type Telemetry,
  TelemetryAttributes,
  type Time,
  type Tracer,
} from './runtime/telemetry.js';
export type { SandboxOptions, SandboxWorkerOptions } from './sandbox/options.js';
export type { SandboxedJob, SandboxedProcessor } from './sandbox/sandboxed-job.js';
export type { QueueBaseOptions } from './store/base-options.js';
export type { Connection, Connection as ConnectionOptions, ServerConnection as RedisOptions } from './store/connection.js';
export type { Store } from './store/contract/index.js';
export { type Migrated, migratePostgres, openStore } from './store/open.js';
export type { WorkerHealth } from './worker/health.js';
export type { BlockReport, WorkerListener } from './worker/events.js';
export type { Batch, BatchProcessor } from './worker/batch.js';
export type { BatchOptions } from './worker/batch-options.js';
export type {
  BatchWorkerOptions,
  GetNextJobOptions,
  MetricsOptions,
  RateLimiterOptions,
  WorkerOptions,
  WorkerSettings,
} from './worker/options.js';
export { type Closable, onSignals, type OnSignalsOptions } from './worker/on-signals.js';
export type { CloseOptions } from './worker/shutdown.js';
export { Worker } from './worker/worker.js';
