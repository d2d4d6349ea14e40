// Converts bun-queue's options to those of the core. 0 is a value here: with `maxStalledJobRetries: 0` a stalled job is not retried.
import { HoldfastError } from '../../errors.js';
import type { DefaultJobOptions, JobsOptions } from '../../job/options.js';
import type { RepeatOptions as CoreRepeat } from '../../job/schedule.js';
import type { QueueOptions as CoreQueueOptions } from '../../queue/queue-options.js';
import { checkInteger, invalidOption, MAX_TIMER_MS } from '../../runtime/check.js';
import { OptionNames } from '../../runtime/option-names.js';
import type { Connection } from '../../store/connection.js';
import { checkWorkerOptions, type WorkerOptions } from '../../worker/options.js';
import { connectionFrom } from '../connection.js';
import { checkTimeout } from '../time-limit.js';

export interface LeaderElection {
  heartbeatInterval?: number;
  leaderTimeout?: number;
}

export interface HorizontalScaling {
  enabled?: boolean;
  /** Name of this running instance. Each running instance needs its own. */
  instanceId?: string;
  maxWorkersPerInstance?: number;
  jobsPerWorker?: number;
  /** How many jobs of the queue run at once, on all instances together. An addition of Holdfast. */
  globalConcurrency?: number;
  leaderElection?: LeaderElection;
  workCoordination?: {
    pollInterval?: number;
    /** Accepted without effect: instances of a queue find each other through the queue. */
    keyPrefix?: string;
  };
}

export interface QueueOptions {
  /** Every job has a lock here, whatever this says. `false` is refused. */
  distributedLock?: boolean;
  stalledJobCheckInterval?: number;
  maxStalledJobRetries?: number;
  horizontalScaling?: HorizontalScaling;
  defaultJobOptions?: DefaultJobOptions;
  limiter?: { max: number; duration: number };
  redis?: string | object;
  redisUrl?: string;
  prefix?: string;
  /** Any Holdfast connection, instead of `redis`. */
  connection?: Connection;
  /** How long a lock outlives its worker, in ms. Default 30,000. An addition of Holdfast. */
  lockDuration?: number;
}

/** Makes a schedule. Give `cron` or `every`. */
export interface RepeatOptions extends Omit<CoreRepeat, 'pattern'> {
  cron?: string;
  /** The same as `tz`. */
  timezone?: string;
}

export interface JobOptions extends Omit<JobsOptions, 'jobId' | 'repeat'> {
  jobId?: string | number;
  repeat?: RepeatOptions;
  /** Milliseconds after which a run that has not ended fails. Default: no limit. */
  timeout?: number;
}

export interface Plan {
  prefix: string | undefined;
  queue: CoreQueueOptions;
  worker: WorkerOptions;
  /** The most jobs that this instance runs at once. */
  maxConcurrency: number | undefined;
  globalConcurrency: number | undefined;
}

/** Job options that this layer implements, not the core. */
export const FOREIGN_JOB_OPTIONS: ReadonlySet<string> = new Set(['timeout']);

const GUIDE = 'docs/migrating-from-bun-queue.md';
const LEAVE_OUT = 'Leave it out.';

const QUEUE_NAMES = new OptionNames<QueueOptions>({
  of: 'queue',
  known: {
    distributedLock: true,
    stalledJobCheckInterval: true,
    maxStalledJobRetries: true,
    horizontalScaling: true,
    defaultJobOptions: true,
    limiter: true,
    redis: true,
    redisUrl: true,
    prefix: true,
    connection: true,
    lockDuration: true,
  },
  without: ['verbose', 'logLevel'],
  unsupported: {
    defaultDeadLetterOptions: LEAVE_OUT,
    metrics: 'Use queue.core.exportPrometheusMetrics(), or a worker with the option metrics and queue.core.getMetrics().',
  },
  guide: GUIDE,
});

const SCALING_NAMES = new OptionNames<HorizontalScaling>({
  of: 'queue',
  known: {
    enabled: true,
    instanceId: true,
    maxWorkersPerInstance: true,
    jobsPerWorker: true,
    globalConcurrency: true,
    leaderElection: true,
    workCoordination: true,
  },
  guide: GUIDE,
});

// bun-queue's defaults.
const STALLED_CHECK_MS = 30_000;
const STALLED_RETRIES = 3;
const WORKERS = 10;
const JOBS_PER_WORKER = 10;

export function planOf(options: QueueOptions = {}): Plan {
  if (typeof options !== 'object' || options === null) throw invalidOption('options', options, 'an object with queue options');
  if (options.distributedLock === false) throw unsupported('distributedLock: false', 'Every job has a lock. Leave it out.');
  QUEUE_NAMES.check(options);
  const { prefix, limiter, lockDuration, horizontalScaling = {}, defaultJobOptions } = options;
  if (typeof horizontalScaling !== 'object' || horizontalScaling === null)
    throw invalidOption('horizontalScaling', horizontalScaling, 'an object');
  SCALING_NAMES.check(horizontalScaling, 'horizontalScaling');
  const { connection: named, redis, redisUrl: url } = options;
  const scaling = horizontalScaling.enabled === true ? horizontalScaling : undefined;
  const connection = connectionFrom({ connection: named, redis, url });
  const stalledInterval = interval('stalledJobCheckInterval', options.stalledJobCheckInterval, STALLED_CHECK_MS);
  const shared = defined({
    connection,
    lockDuration,
    instanceId: scaling?.instanceId,
    stalledInterval,
    maxStalledCount: checkInteger('maxStalledJobRetries', options.maxStalledJobRetries ?? STALLED_RETRIES),
  });
  const drainDelay = secondsOf(scaling?.workCoordination?.pollInterval);
  const worker = defined({ ...shared, limiter, drainDelay }) as WorkerOptions;
  checkWorkerOptions(worker);
  const defaults = defaultJobOptions === undefined ? {} : { defaultJobOptions: jobOptionsOf(defaultJobOptions) };
  return {
    prefix,
    queue: {
      ...shared,
      ...defaults,
      ...(scaling === undefined ? {} : { leaderElection: { stalledInterval, ...scaling.leaderElection } }),
    },
    worker,
    maxConcurrency: scaling === undefined ? undefined : boundOf(scaling),
    globalConcurrency: checkLimit(scaling?.globalConcurrency),
  };
}

export function jobOptionsOf(options: JobOptions): JobsOptions {
  refuse(options, ['dependsOn', 'deadLetter'], LEAVE_OUT);
  refuse(options, ['cron'], 'Use queue.scheduleCron, or repeat: { cron }.');
  const { jobId, timeout, repeat } = options;
  checkTimeout(timeout);
  return {
    ...options,
    ...(jobId === undefined ? {} : { jobId: String(jobId) }),
    ...(repeat === undefined ? {} : { repeat: coreRepeatOf(repeat) }),
  } as JobsOptions;
}

/** Values that the core refuses pass as they are, so that the core says what is wrong with them. */
function coreRepeatOf(repeat: RepeatOptions): CoreRepeat {
  if (typeof repeat !== 'object' || repeat === null || Array.isArray(repeat)) return repeat;
  const { cron: pattern, timezone, tz = timezone, ...rest } = repeat;
  return { ...rest, ...(pattern === undefined ? {} : { pattern }), ...(tz === undefined ? {} : { tz }) };
}

export function unsupported(option: string, instead: string): HoldfastError {
  return new HoldfastError('OPTION_UNSUPPORTED', `Holdfast does not support ${option} of bun-queue. ${instead}`, {
    option,
  });
}

function refuse(options: object, names: string[], instead: string): void {
  for (const name of names) {
    if ((options as Record<string, unknown>)[name] !== undefined) throw unsupported(name, instead);
  }
}

function boundOf({ maxWorkersPerInstance = WORKERS, jobsPerWorker = JOBS_PER_WORKER }: HorizontalScaling): number {
  const workers = checkInteger('horizontalScaling.maxWorkersPerInstance', maxWorkersPerInstance, { min: 1, max: 1000 });
  return workers * checkInteger('horizontalScaling.jobsPerWorker', jobsPerWorker, { min: 1, max: 100 });
}

function checkLimit(limit: number | undefined): number | undefined {
  return limit === undefined ? undefined : checkInteger('horizontalScaling.globalConcurrency', limit, { min: 1 });
}

function interval(option: string, value: number | undefined, otherwise: number): number {
  return checkInteger(option, value ?? otherwise, { min: 1, max: MAX_TIMER_MS });
}

/** Converts the poll interval to seconds, as the core takes it. Wake-ups bring new jobs at once; polling is the fallback. */
function secondsOf(pollInterval: number | undefined): number | undefined {
  if (pollInterval === undefined) return undefined;
  return Math.ceil(
    checkInteger('horizontalScaling.workCoordination.pollInterval', pollInterval, { min: 1, max: MAX_TIMER_MS }) / 1000,
  );
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
