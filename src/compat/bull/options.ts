// Converts Bull's options to those of the core. Options of Bull that this version does not support are refused by name, never ignored.
import { HoldfastError } from '../../errors.js';
import type { DefaultJobOptions, JobsOptions, KeepJobs } from '../../job/options.js';
import type { QueueOptions as CoreQueueOptions } from '../../queue/queue-options.js';
import { invalidOption } from '../../runtime/check.js';
import { OptionNames } from '../../runtime/option-names.js';
import type { Connection } from '../../store/connection.js';
import { checkWorkerOptions, type WorkerOptions } from '../../worker/options.js';
import { connectionFrom } from '../connection.js';
import { checkTimeout } from '../time-limit.js';

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
  metrics?: object;
  /** Any Holdfast connection, instead of `redis`. */
  connection?: Connection;
}

export interface JobOptions extends Omit<DefaultJobOptions, 'backoff'> {
  jobId?: number | string;
  backoff?: number | { type: string; delay?: number; options?: unknown };
  /** Milliseconds after which a run that has not ended fails. Default: no limit. */
  timeout?: number;
  /** Jobs with the same key run one at a time. An addition of Holdfast. */
  lockKey?: string;
  repeat?: object;
  removeOnComplete?: boolean | number | KeepJobs;
  removeOnFail?: boolean | number | KeepJobs;
}

export interface Plan {
  prefix: string | undefined;
  queue: CoreQueueOptions;
  worker: WorkerOptions;
}

const RETRY_DELAY_MS = 5000;

/** Job options that this layer implements, not the core. */
export const FOREIGN_JOB_OPTIONS: ReadonlySet<string> = new Set(['timeout']);

const GUIDE = 'docs/migrating-from-bull.md';

const QUEUE_NAMES = new OptionNames<Omit<QueueOptions, 'metrics'>>({
  of: 'queue',
  known: {
    redis: true,
    createClient: true,
    prefix: true,
    settings: true,
    limiter: true,
    defaultJobOptions: true,
    connection: true,
  },
  unsupported: { metrics: 'Count the global:* events instead.' },
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

const LIMITER_NAMES = new OptionNames<Omit<RateLimiter, 'groupKey'>>({
  of: 'queue',
  known: { max: true, duration: true, bounceBack: true },
  unsupported: { groupKey: 'Give each group a queue of its own, or use lockKey to run one job of a group at a time.' },
  guide: GUIDE,
});

/** Checks everything at once, so that a mistake is reported when the queue is made and not at its first `process`. */
export function planOf(url: unknown, options: unknown): Plan {
  const given = typeof url === 'string' ? (options ?? {}) : (url ?? {});
  if (typeof given !== 'object' || Array.isArray(given)) throw invalidOption('opts', given, 'an object with queue options');
  QUEUE_NAMES.check(given);
  const { redis, createClient, prefix, settings = {}, limiter, defaultJobOptions, connection: named } = given as QueueOptions;
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
    runRetryDelay: retryProcessDelay ?? RETRY_DELAY_MS,
    limiter: limiter === undefined ? undefined : limiterOf(limiter),
    settings: settings.backoffStrategies === undefined ? undefined : { backoffStrategy: strategyOf(settings.backoffStrategies) },
  }) as WorkerOptions;
  checkWorkerOptions(worker);
  const defaults = defaultJobOptions === undefined ? {} : { defaultJobOptions: jobOptionsOf(defaultJobOptions) };
  return { prefix, queue: { ...keeping, ...defaults }, worker };
}

/** Job ids are strings in the core; all other options have the same names. */
export function jobOptionsOf(options: JobOptions): JobsOptions {
  const { jobId, timeout } = options;
  checkTimeout(timeout);
  return { ...options, ...(jobId === undefined ? {} : { jobId: String(jobId) }) } as JobsOptions;
}

export function unsupported(option: string, instead: string): HoldfastError {
  return new HoldfastError('OPTION_UNSUPPORTED', `${option} of Bull is not carried out by this version. ${instead}`, { option });
}

function limiterOf(limiter: RateLimiter): { max: number; duration: number } {
  if (typeof limiter !== 'object' || limiter === null) throw invalidOption('limiter', limiter, '{ max, duration }');
  LIMITER_NAMES.check(limiter, 'limiter');
  const { max, duration } = limiter;
  return { max, duration };
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
