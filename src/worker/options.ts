// The options of a Worker, with BullMQ's names and defaults; Holdfast's own durations end in Ms. All are checked when the worker is made,
// and readable afterwards as `worker.opts`.
import { hostname } from 'node:os';
import { HoldfastError } from '../errors.js';
import type { BackoffStrategy } from '../handle/job-context.js';
import { DEFAULT_PREFIX } from '../job/names.js';
import { checkGroupLimits, type GroupLimitOptions } from '../job/group.js';
import { checkKeep, type KeepJobs } from '../job/options.js';
import {
  checkSessionOptions,
  SESSION_OPTION_NAMES,
  type CheckedSessionOptions,
  type SessionOptions,
} from '../session/session-options.js';
import { checkBoolean, checkInteger, checkText, invalidOption, MAX_TIMER_MS, show } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { checkTelemetry } from '../runtime/telemetry.js';
import { type BatchOptions, checkBatch } from './batch-options.js';
import { checkStrategy, type RepeatStrategy } from '../job/schedule.js';
import { checkSandboxOptions, SANDBOX_OPTION_NAMES, type SandboxWorkerOptions } from '../sandbox/options.js';
import { BASE_NAMES, BASE_IGNORED, type QueueBaseOptions } from '../store/base-options.js';

export interface RateLimiterOptions {
  /** How many jobs may start within `duration`, on all workers of the queue together. */
  max: number;
  /** In ms. */
  duration: number;
}

export interface MetricsOptions {
  /**
   * How many whole minutes are kept, at most 80,640 (8 weeks). All workers of a queue share them, and the worker that started last decides.
   * Without it, or with 0, this worker does not switch metrics on.
   */
  maxDataPoints?: number;
}

/** Eight weeks of minutes. */
const MAX_DATA_POINTS = 80_640;

export interface GetNextJobOptions {
  /** Waits for a job, up to `drainDelay` seconds. Default true. */
  block?: boolean;
}

export const NEXT_JOB_NAMES = new OptionNames<GetNextJobOptions>({ of: 'getNextJob', known: { block: true } });

export interface WorkerOptions extends QueueBaseOptions, SessionOptions, SandboxWorkerOptions {
  /** Shown as `processedBy` and in the list of sessions. Default: host and pid, as `host:1234`. */
  name?: string;
  /** true (default): starts with the constructor. false: starts with `run()`. */
  autorun?: boolean;
  /** How many jobs run at once. Default 1, at most 100,000. */
  concurrency?: number;
  /**
   * How many jobs may be claimed ahead of free slots, so that a slot need not wait for the store between two jobs. Default 0: none. Useful
   * for short handlers on a store behind a network. These jobs are locked and renewed like running ones, and `worker.prefetched` counts
   * them; fewer are claimed while handlers take long. A job that has not started after half a second goes back to the front of waiting. All
   * of them go back on pause, close or lower concurrency; neither a start nor a stall counts. Limits count jobs when they are claimed.
   * After a crash these jobs count as stalled, like those that ran.
   */
  prefetch?: number;
  /** Rate limit of the queue. Default: no limit. */
  limiter?: RateLimiterOptions;
  /**
   * Limits for each group of jobs that has no limits of its own. The worker sets them for the queue when it starts, before its first
   * claim, so they apply to all workers. Default: the queue keeps the limits that it has.
   */
  group?: GroupLimitOptions;
  /** Counts the finished jobs of the queue per minute, for `queue.getMetrics`. Default: off, until a worker of the queue switches it on. */
  metrics?: MetricsOptions;
  /** Option of BullMQ. Accepted without effect: a worker is woken when a limit ends or changes. */
  maximumRateLimitDelay?: number;
  /** How often a job may be started, stalls included; a further start fails it. Default: no limit. */
  maxStartedAttempts?: number;
  /** Which completed jobs stay, for jobs without this option of their own. Default: all. */
  removeOnComplete?: boolean | number | KeepJobs;
  /** The same for failed jobs. */
  removeOnFail?: boolean | number | KeepJobs;
  /** Seconds between two polls of an empty queue, in case a wake-up gets lost. Default 5. */
  drainDelay?: number;
  /** Milliseconds until the next try after an error of the store that will not heal with time. Default 15,000. */
  runRetryDelay?: number;
  settings?: WorkerSettings;
  /**
   * How long a run may take, for jobs without this option of their own. Then the signal of its handler is aborted with an error of the code
   * TIMEOUT. Default: no limit.
   */
  timeoutMs?: number;
  /**
   * How long a handler may take to end after its signal was aborted by `timeoutMs`. Then its run fails as timed out: it is retried if attempts
   * are left, its slot is free, and a later result of the handler does not count. Default 5,000.
   */
  timeoutGraceMs?: number;
  /** true: each lock expires `lockDuration` after the claim, and is not renewed. Default false. */
  skipLockRenewal?: boolean;
  /** Takes the stack of a blocked event loop, for the event `blocked`. Default true. */
  blockedStack?: boolean;
  /** See BatchWorkerOptions: with it, the processor gets a batch. */
  batch?: undefined;
}

export interface WorkerSettings {
  /** Computes the wait before the next attempt, for a `backoff` of another type. */
  backoffStrategy?: BackoffStrategy;
  /** Computes the slots of the patterns of schedules, instead of cron. The queue needs the same function. */
  repeatStrategy?: RepeatStrategy;
  /** Option of BullMQ. Accepted without effect. */
  repeatKeyHashAlgorithm?: string;
}

/** With `batch`, the processor gets several jobs at once. */
export interface BatchWorkerOptions extends Omit<WorkerOptions, 'batch' | 'prefetch' | 'concurrency'> {
  batch: BatchOptions;
  /** How many batches run at once. Default 1. */
  concurrency?: number;
}

type Defaulted =
  | 'timeoutGraceMs'
  | 'prefix'
  | 'name'
  | 'autorun'
  | 'concurrency'
  | 'prefetch'
  | 'drainDelay'
  | 'runRetryDelay'
  | 'skipLockRenewal'
  | 'blockedStack';
export type CheckedWorkerOptions = Omit<WorkerOptions, 'batch'> &
  CheckedSessionOptions &
  Required<Pick<WorkerOptions, Defaulted>> & { batch?: Required<BatchOptions> };

const OF_WORKER = 'Pass it to the Worker itself, beside `connection`.';

const WORKER_NAMES = new OptionNames<WorkerOptions>({
  of: 'worker',
  known: {
    ...SESSION_OPTION_NAMES,
    ...BASE_NAMES,
    ...SANDBOX_OPTION_NAMES,
    name: true,
    autorun: true,
    concurrency: true,
    prefetch: true,
    limiter: true,
    group: true,
    metrics: true,
    maximumRateLimitDelay: true,
    maxStartedAttempts: true,
    removeOnComplete: true,
    removeOnFail: true,
    drainDelay: true,
    runRetryDelay: true,
    settings: true,
    skipLockRenewal: true,
    timeoutMs: true,
    timeoutGraceMs: true,
    blockedStack: true,
    batch: true,
  },
  ignored: BASE_IGNORED,
});

const LIMITER_NAMES = new OptionNames<RateLimiterOptions>({
  of: 'worker',
  known: { max: true, duration: true },
  unsupported: {
    groupKey: 'Give each job the option group: { id }, and the worker the option group: { limit: { max, duration } }.',
  },
});

const SETTINGS_NAMES = new OptionNames<WorkerSettings>({
  of: 'worker',
  known: { backoffStrategy: true, repeatStrategy: true, repeatKeyHashAlgorithm: true },
  unsupported: {
    backoffStrategies: 'Pass one function, settings.backoffStrategy, which gets the type as its second argument.',
    lockDuration: OF_WORKER,
    lockRenewTime: OF_WORKER,
    stalledInterval: OF_WORKER,
    maxStalledCount: OF_WORKER,
    drainDelay: OF_WORKER,
  },
});

export function checkWorkerOptions(options: WorkerOptions | BatchWorkerOptions = {}): CheckedWorkerOptions {
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object');
  WORKER_NAMES.check(options);
  const { batch, ...given } = options as WorkerOptions & { batch?: BatchOptions };
  const checked: CheckedWorkerOptions = {
    ...given,
    ...checkSessionOptions(given),
    prefix: given.prefix ?? DEFAULT_PREFIX,
    name: checkName(given.name ?? `${hostname()}:${process.pid}`),
    autorun: checkBoolean('autorun', given.autorun ?? true),
    concurrency: checkConcurrency(given.concurrency ?? 1),
    prefetch: checkPrefetch(given.prefetch ?? 0, batch),
    drainDelay: checkInteger('drainDelay', given.drainDelay ?? 5, { min: 1, max: 86_400 }),
    runRetryDelay: checkInteger('runRetryDelay', given.runRetryDelay ?? 15_000, { min: 1, max: MAX_TIMER_MS }),
    skipLockRenewal: checkBoolean('skipLockRenewal', given.skipLockRenewal ?? false),
    timeoutGraceMs: checkInteger('timeoutGraceMs', given.timeoutGraceMs ?? 5000, { max: MAX_TIMER_MS }),
    blockedStack: checkBoolean('blockedStack', given.blockedStack ?? true),
  };
  if (given.timeoutMs !== undefined) checkInteger('timeoutMs', given.timeoutMs, { min: 1, max: MAX_TIMER_MS });
  checkTelemetry(given.telemetry);
  checkSandboxOptions(given);
  if (batch !== undefined) checked.batch = checkBatch(batch);
  if (given.maxStartedAttempts !== undefined) checkInteger('maxStartedAttempts', given.maxStartedAttempts);
  if (given.removeOnComplete !== undefined) checkKeep('removeOnComplete', given.removeOnComplete);
  if (given.removeOnFail !== undefined) checkKeep('removeOnFail', given.removeOnFail);
  if (given.limiter !== undefined) checkLimiter(given.limiter);
  if (given.group !== undefined) checkGroupLimits(given.group);
  if (given.metrics !== undefined) checkMetrics(given.metrics);
  if (given.settings !== undefined) {
    if (typeof given.settings !== 'object' || given.settings === null)
      throw invalidOption('settings', given.settings, 'an object');
    SETTINGS_NAMES.check(given.settings, 'settings');
  }
  const strategy = given.settings?.backoffStrategy;
  if (strategy !== undefined && typeof strategy !== 'function')
    throw invalidOption('settings.backoffStrategy', strategy, 'a function');
  checkStrategy(given.settings?.repeatStrategy);
  return checked;
}

export function checkConcurrency(value: unknown): number {
  return checkInteger('concurrency', value, { min: 1, max: 100_000 });
}

/** A batch is claimed when its slot is free, so nothing is claimed ahead. */
export function checkPrefetch(value: unknown, batch: BatchOptions | undefined): number {
  if (batch === undefined || value === 0) return checkInteger('prefetch', value, { max: 100_000 });
  const message = 'prefetch cannot be used with batch: a batch is claimed when its slot is free. Leave prefetch out.';
  throw new HoldfastError('INVALID_OPTION', message, { option: 'prefetch' });
}

function checkName(name: unknown): string {
  return name === '' ? name : checkText('name', name, 200);
}

const METRICS_NAMES = new OptionNames<MetricsOptions>({
  of: 'worker',
  known: { maxDataPoints: true },
});

function checkMetrics(metrics: MetricsOptions): void {
  if (typeof metrics !== 'object' || metrics === null) throw invalidOption('metrics', metrics, '{ maxDataPoints }');
  METRICS_NAMES.check(metrics, 'metrics');
  const { maxDataPoints } = metrics;
  if (maxDataPoints !== undefined) checkInteger('metrics.maxDataPoints', maxDataPoints, { max: MAX_DATA_POINTS });
}

function checkLimiter(limiter: RateLimiterOptions): void {
  if (typeof limiter !== 'object' || limiter === null)
    throw invalidOption('limiter', limiter, `{ max, duration }, not ${show(limiter)}`);
  LIMITER_NAMES.check(limiter, 'limiter');
  checkInteger('limiter.max', limiter.max, { min: 1 });
  checkInteger('limiter.duration', limiter.duration, { min: 1, max: MAX_TIMER_MS });
}
