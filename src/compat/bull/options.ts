// Converts Bull's options to those of the core. Options of Bull that this version does not support are refused by name, never ignored.
import { HoldfastError } from '../../errors.js';
import type { DeduplicationOptions } from '../../job/deduplication.js';
import type { DefaultJobOptions, JobsOptions, KeepJobs } from '../../job/options.js';
import type { QueueOptions as CoreQueueOptions } from '../../queue/queue-options.js';
import { checkInteger, checkText, invalidOption } from '../../runtime/check.js';
import { OptionNames } from '../../runtime/option-names.js';
import type { Connection } from '../../store/connection.js';
import { checkWorkerOptions, type MetricsOptions, type WorkerOptions } from '../../worker/options.js';
import { connectionFrom } from '../connection.js';
import { checkTimeout } from '../time-limit.js';
import { coreRepeatOf, type RepeatOptions } from './repeat.js';

/** Returns the milliseconds until the next attempt. -1: no further attempt. */
export type BullBackoffStrategy = (attemptsMade: number, error: Error, options?: unknown) => number | Promise<number>;

export interface AdvancedSettings {
  lockDuration?: number;
  lockRenewTime?: number;
  /** In ms. 0: this instance never sweeps for stalled jobs. */
  stalledInterval?: number;
  maxStalledCount?: number;
  /** Accepted without effect: the store's clock starts delayed jobs. */
  guardInterval?: number;
  retryProcessDelay?: number;
  backoffStrategies?: Record<string, BullBackoffStrategy>;
  /** In seconds. */
  drainDelay?: number;
}

export interface RateLimiter {
  max: number;
  duration: number;
  /** Accepted, and always true: jobs over the limit stay waiting. */
  bounceBack?: boolean;
  /** The path of a field of the data, as `network.handle`: jobs with the same value share the limit, and others have their own. */
  groupKey?: string;
}

export interface QueueOptions {
  /** Options of an ioredis client, or a URL of any store. */
  redis?: object | string;
  createClient?(type: 'client' | 'subscriber' | 'bclient', redisOpts?: object): object;
  prefix?: string;
  settings?: AdvancedSettings;
  limiter?: RateLimiter;
  defaultJobOptions?: JobOptions;
  /** Counts finished jobs per minute, for `getMetrics`, from the first `process` or `getNextJob` on. */
  metrics?: MetricsOptions;
  /** Any Holdfast connection, instead of `redis`. */
  connection?: Connection;
}

export interface JobOptions extends Omit<DefaultJobOptions, 'backoff'> {
  jobId?: number | string;
  backoff?: number | { type: string; delay?: number; options?: unknown };
  /** Milliseconds after which a run that has not ended fails. Default: no limit. */
  timeout?: number;
  /** Several adds with one deduplication id make one job. An addition of Holdfast. */
  deduplication?: DeduplicationOptions;
  /** Makes a schedule: see `getRepeatableJobs`. */
  repeat?: RepeatOptions;
  removeOnComplete?: boolean | number | KeepJobs;
  removeOnFail?: boolean | number | KeepJobs;
}

export interface Plan {
  prefix: string | undefined;
  queue: CoreQueueOptions;
  worker: WorkerOptions;
  /** The path of the field of the data that names a job's group. */
  groupKey: string | undefined;
}

const RETRY_DELAY_MS = 5000;

/** Job options that this layer implements, not the core. */
export const FOREIGN_JOB_OPTIONS: ReadonlySet<string> = new Set(['timeout']);

const GUIDE = 'docs/migrating-from-bull.md';

const QUEUE_NAMES = new OptionNames<QueueOptions>({
  of: 'queue',
  known: {
    redis: true,
    createClient: true,
    prefix: true,
    settings: true,
    limiter: true,
    defaultJobOptions: true,
    metrics: true,
    connection: true,
  },
  guide: GUIDE,
});

const SETTINGS_NAMES = new OptionNames<AdvancedSettings>({
  of: 'queue',
  known: {
    lockDuration: true,
    lockRenewTime: true,
    stalledInterval: true,
    maxStalledCount: true,
    guardInterval: true,
    retryProcessDelay: true,
    backoffStrategies: true,
    drainDelay: true,
  },
  without: ['isSharedChildPool'],
});

const LIMITER_NAMES = new OptionNames<RateLimiter>({
  of: 'queue',
  known: { max: true, duration: true, bounceBack: true, groupKey: true },
  guide: GUIDE,
});

/** In characters. */
const MAX_GROUP_KEY = 500;
/** The group of jobs whose data has no value for `groupKey`. */
const NO_GROUP = String(undefined);

/** Checks everything at once, so that a mistake is reported when the queue is made and not at its first `process`. */
export function planOf(url: unknown, options: unknown): Plan {
  const given = typeof url === 'string' ? (options ?? {}) : (url ?? {});
  if (typeof given !== 'object' || Array.isArray(given)) throw invalidOption('opts', given, 'an object with queue options');
  QUEUE_NAMES.check(given);
  const {
    redis,
    createClient,
    prefix,
    settings = {},
    limiter,
    metrics,
    defaultJobOptions,
    connection: named,
  } = given as QueueOptions;
  if (typeof settings !== 'object' || settings === null) throw invalidOption('settings', settings, 'an object');
  SETTINGS_NAMES.check(settings, 'settings');
  const client = createClient?.('client', typeof redis === 'object' ? redis : undefined);
  const connection = connectionFrom({
    connection: named,
    redis: client ?? redis,
    url: typeof url === 'string' ? url : undefined,
  });
  const { lockDuration, maxStalledCount, stalledInterval, lockRenewTime, drainDelay, retryProcessDelay } = settings;
  const keeping = defined({
    ...(connection === undefined ? {} : { connection }),
    lockDuration,
    lockRenewTime,
    maxStalledCount,
    stalledInterval: stalledInterval === 0 ? undefined : stalledInterval,
    skipStalledCheck: stalledInterval === 0,
  });
  const worker = defined({
    ...keeping,
    drainDelay,
    metrics,
    runRetryDelay: retryProcessDelay ?? RETRY_DELAY_MS,
    ...(limiter === undefined ? {} : limiterOf(limiter)),
    settings: settings.backoffStrategies === undefined ? undefined : { backoffStrategy: strategyOf(settings.backoffStrategies) },
  }) as WorkerOptions;
  checkWorkerOptions(worker);
  const defaults = defaultJobOptions === undefined ? {} : { defaultJobOptions: jobOptionsOf(defaultJobOptions) };
  return { prefix, queue: { ...keeping, ...defaults }, worker, groupKey: limiter?.groupKey };
}

/** Job ids are strings in the core, and `repeat` has other names; all other options have the same ones. */
export function jobOptionsOf(options: JobOptions): JobsOptions {
  const { jobId, timeout, repeat } = options;
  checkTimeout(timeout);
  return {
    ...options,
    ...(jobId === undefined ? {} : { jobId: String(jobId) }),
    ...(repeat === undefined ? {} : { repeat: coreRepeatOf(repeat) }),
  } as JobsOptions;
}

export function unsupported(option: string, instead: string): HoldfastError {
  return new HoldfastError('OPTION_UNSUPPORTED', `Holdfast does not support ${option} of Bull. ${instead}`, { option });
}

function limiterOf(limiter: RateLimiter): Pick<WorkerOptions, 'limiter' | 'group'> {
  if (typeof limiter !== 'object' || limiter === null) throw invalidOption('limiter', limiter, '{ max, duration }');
  LIMITER_NAMES.check(limiter, 'limiter');
  const { max, duration, groupKey } = limiter;
  if (groupKey === undefined) return { limiter: { max, duration } };
  checkText('limiter.groupKey', groupKey, MAX_GROUP_KEY);
  checkInteger('limiter.max', max, { min: 1 });
  checkInteger('limiter.duration', duration, { min: 1 });
  return { group: { limit: { max, duration } } };
}

/** Returns the group of a job with this data, as a job option. Jobs without the field of `groupKey` are one group. */
export function groupOf({ groupKey }: Plan, data: unknown): Pick<JobsOptions, 'group'> {
  if (groupKey === undefined) return {};
  const value = groupKey
    .split('.')
    .reduce<unknown>((part, field) => (part as Record<string, unknown> | null | undefined)?.[field], data);
  return { group: { id: value === '' ? NO_GROUP : String(value) } };
}

function strategyOf(
  strategies: Record<string, BullBackoffStrategy>,
): NonNullable<NonNullable<WorkerOptions['settings']>['backoffStrategy']> {
  return (attemptsMade, type, error, job) => {
    const strategy = strategies[type];
    if (strategy === undefined) throw new Error(`unknown backoff strategy ${type}: add it to settings.backoffStrategies`);
    const { backoff } = (job as { opts: { backoff?: { options?: unknown } } }).opts;
    return strategy(attemptsMade, error, backoff?.options);
  };
}

function defined(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
