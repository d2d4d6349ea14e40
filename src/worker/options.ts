// What a Worker may be told, with BullMQ's names and defaults; Holdfast's own durations end in Ms. All of it is checked when the worker
// is made, and readable afterwards as `worker.opts`.
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
  /** So many jobs, of all workers of the queue … */
  max: number;
  /** … in so many milliseconds. */
  duration: number;
}

export interface GetNextJobOptions {
  /** Wait for a job, for as long as `drainDelay` says; true unless said otherwise. */
  block?: boolean;
}

export const NEXT_JOB_NAMES = new OptionNames<GetNextJobOptions>({ of: 'getNextJob', known: { block: true } });

export interface WorkerOptions extends QueueBaseOptions, SessionOptions {
  /** Shown as `processedBy` and in the list of sessions. Default: host and pid, as `host:1234`. */
  name?: string;
  /** Start with the constructor (true), or with `run()`. */
  autorun?: boolean;
  concurrency?: number;
  /**
   * How many jobs may be claimed ahead of free slots (0: none), so that a slot need not wait for the store between two jobs: worth it for
   * short handlers on a store behind a network. They are locked and renewed as running ones are, and `worker.prefetched` counts them; fewer
   * are taken while handlers take long. What has not begun after half a second, and all of it on pause, close or less concurrency,
   * goes back to the front of waiting, uncharged. Limits count jobs when they are claimed. A crash charges them as stalls, like those that ran.
   */
  prefetch?: number;
  limiter?: RateLimiterOptions;
  /** BullMQ's. Accepted, and without meaning here: a worker is woken when a limit ends or changes. */
  maximumRateLimitDelay?: number;
  maxStartedAttempts?: number;
  removeOnComplete?: boolean | number | KeepJobs;
  removeOnFail?: boolean | number | KeepJobs;
  /** Seconds between two looks at an empty queue, should a wake-up get lost. */
  drainDelay?: number;
  /** Milliseconds until the next try after the store refused for a reason that time alone does not heal. */
  runRetryDelay?: number;
  settings?: { backoffStrategy?: BackoffStrategy };
  /** Locks get an end of their own, `lockDuration` after the claim, and are not renewed. */
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
