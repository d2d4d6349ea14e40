// The options of a Worker, with BullMQ's names and defaults; Holdfast's own durations end in Ms. All are checked when the worker is made,
// and readable afterwards as `worker.opts`.
import { hostname } from 'node:os';
import type { BackoffStrategy } from '../handle/job-context.js';
import { DEFAULT_PREFIX } from '../job/names.js';
import { checkKeep, type KeepJobs } from '../job/options.js';
import {
  checkSessionOptions,
  SESSION_OPTION_NAMES,
  type CheckedSessionOptions,
  type SessionOptions,
} from '../session/session-options.js';
import { checkBoolean, checkInteger, checkText, invalidOption, MAX_TIMER_MS, show } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { BASE_NAMES, BASE_UNSUPPORTED, type QueueBaseOptions } from '../store/base-options.js';

export interface RateLimiterOptions {
  /** How many jobs may start within `duration`, on all workers of the queue together. */
  max: number;
  /** In ms. */
  duration: number;
}

export interface GetNextJobOptions {
  /** Waits for a job, up to `drainDelay` seconds. Default true. */
  block?: boolean;
}

export const NEXT_JOB_NAMES = new OptionNames<GetNextJobOptions>({ of: 'getNextJob', known: { block: true } });

export interface WorkerOptions extends QueueBaseOptions, SessionOptions {
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
  settings?: { backoffStrategy?: BackoffStrategy };
  /** true: each lock expires `lockDuration` after the claim, and is not renewed. Default false. */
  skipLockRenewal?: boolean;
}

type Defaulted = 'prefix' | 'name' | 'autorun' | 'concurrency' | 'prefetch' | 'drainDelay' | 'runRetryDelay' | 'skipLockRenewal';
export type CheckedWorkerOptions = WorkerOptions & CheckedSessionOptions & Required<Pick<WorkerOptions, Defaulted>>;

const NO_FILES = 'Pass a function as the processor: the lock thread renews even while it blocks.';
const NO_SCHEDULES = 'There are no job schedulers in this version.';
const OF_WORKER = 'Pass it to the Worker itself, beside `connection`.';

const WORKER_NAMES = new OptionNames<WorkerOptions>({
  of: 'worker',
  known: {
    ...SESSION_OPTION_NAMES,
    ...BASE_NAMES,
    name: true,
    autorun: true,
    concurrency: true,
    prefetch: true,
    limiter: true,
    maximumRateLimitDelay: true,
    maxStartedAttempts: true,
    removeOnComplete: true,
    removeOnFail: true,
    drainDelay: true,
    runRetryDelay: true,
    settings: true,
    skipLockRenewal: true,
  },
  unsupported: {
    ...BASE_UNSUPPORTED,
    useWorkerThreads: NO_FILES,
    workerForkOptions: NO_FILES,
    workerThreadsOptions: NO_FILES,
    metrics: 'Count the events of QueueEvents.',
    telemetry: 'Listen to the events of the worker.',
    group: 'Use the job option lockKey to run one job of a group at a time.',
    batch: 'Add one job for each batch.',
  },
});

const LIMITER_NAMES = new OptionNames<RateLimiterOptions>({
  of: 'worker',
  known: { max: true, duration: true },
  unsupported: { groupKey: 'Use a queue for each group, or the job option lockKey to run one job of a group at a time.' },
});

const SETTINGS_NAMES = new OptionNames<NonNullable<WorkerOptions['settings']>>({
  of: 'worker',
  known: { backoffStrategy: true },
  unsupported: {
    repeatStrategy: NO_SCHEDULES,
    repeatKeyHashAlgorithm: NO_SCHEDULES,
    backoffStrategies: 'Pass one function, settings.backoffStrategy, which gets the type as its second argument.',
    lockDuration: OF_WORKER,
    lockRenewTime: OF_WORKER,
    stalledInterval: OF_WORKER,
    maxStalledCount: OF_WORKER,
    drainDelay: OF_WORKER,
  },
});

export function checkWorkerOptions(given: WorkerOptions = {}): CheckedWorkerOptions {
  if (typeof given !== 'object' || given === null) throw invalidOption('options', given, 'an object');
  WORKER_NAMES.check(given);
  const checked: CheckedWorkerOptions = {
    ...given,
    ...checkSessionOptions(given),
    prefix: given.prefix ?? DEFAULT_PREFIX,
    name: checkName(given.name ?? `${hostname()}:${process.pid}`),
    autorun: checkBoolean('autorun', given.autorun ?? true),
    concurrency: checkConcurrency(given.concurrency ?? 1),
    prefetch: checkPrefetch(given.prefetch ?? 0),
    drainDelay: checkInteger('drainDelay', given.drainDelay ?? 5, { min: 1, max: 86_400 }),
    runRetryDelay: checkInteger('runRetryDelay', given.runRetryDelay ?? 15_000, { min: 1, max: MAX_TIMER_MS }),
    skipLockRenewal: checkBoolean('skipLockRenewal', given.skipLockRenewal ?? false),
  };
  if (given.maxStartedAttempts !== undefined) checkInteger('maxStartedAttempts', given.maxStartedAttempts);
  if (given.removeOnComplete !== undefined) checkKeep('removeOnComplete', given.removeOnComplete);
  if (given.removeOnFail !== undefined) checkKeep('removeOnFail', given.removeOnFail);
  if (given.limiter !== undefined) checkLimiter(given.limiter);
  if (given.settings !== undefined) {
    if (typeof given.settings !== 'object' || given.settings === null)
      throw invalidOption('settings', given.settings, 'an object');
    SETTINGS_NAMES.check(given.settings, 'settings');
  }
  const strategy = given.settings?.backoffStrategy;
  if (strategy !== undefined && typeof strategy !== 'function')
    throw invalidOption('settings.backoffStrategy', strategy, 'a function');
  return checked;
}

export function checkConcurrency(value: unknown): number {
  return checkInteger('concurrency', value, { min: 1, max: 100_000 });
}

export function checkPrefetch(value: unknown): number {
  return checkInteger('prefetch', value, { max: 100_000 });
}

function checkName(name: unknown): string {
  return name === '' ? name : checkText('name', name, 200);
}

function checkLimiter(limiter: RateLimiterOptions): void {
  if (typeof limiter !== 'object' || limiter === null)
    throw invalidOption('limiter', limiter, `{ max, duration }, not ${show(limiter)}`);
  LIMITER_NAMES.check(limiter, 'limiter');
  checkInteger('limiter.max', limiter.max, { min: 1 });
  checkInteger('limiter.duration', limiter.duration, { min: 1, max: MAX_TIMER_MS });
}
