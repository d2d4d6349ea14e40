// The options of a job, in BullMQ's shape, and the check that each option passes before it reaches a store.
// The check is strict on purpose: a NaN or a fraction that reaches a score or an index fails much later and far away.
import { MAX_TIMER_MS, MAX_DELAY_MS, checkBoolean, checkInteger, checkText, invalidOption } from '../runtime/check.js';
import { closest, OptionNames } from '../runtime/option-names.js';
import { MAX_METADATA } from '../runtime/telemetry.js';
import { checkDeduplication, type DeduplicationOptions } from './deduplication.js';
import { checkGroup, checkOneLine, type GroupOptions } from './group.js';
import {
  checkDeadLetter,
  checkFailureOption,
  checkFamilyOptions,
  checkParent,
  FAILURE_NAMES,
  type FailureOptions,
  type ParentOptions,
} from './family-options.js';
import { checkJobId } from './names.js';
import type { Keep } from './outcome.js';
import type { RepeatOptions } from './schedule.js';

export interface DefaultJobOptions extends FailureOptions {
  /** Milliseconds until the job may start, counted from the moment the store takes it. Default 0. */
  delay?: number;
  /** 0 (the default) runs first, then 1, 2 … up to 2097152. */
  priority?: number;
  /** Number of attempts until the job has failed for good. 0 and 1 both mean one attempt. */
  attempts?: number;
  /** Wait before the next attempt. A number is a fixed delay in milliseconds. Default: no wait. */
  backoff?: number | BackoffOptions;
  /** true: the job goes ahead of the waiting jobs; false (the default): behind them. */
  lifo?: boolean;
  /** true: removed once completed; a number: that many completed jobs of the queue stay; false (the default): all stay. */
  removeOnComplete?: KeepOption;
  /** The same for failed jobs. */
  removeOnFail?: KeepOption;
  /** How many of the newest log rows stay. */
  keepLogs?: number;
  /** How many of the newest stack traces stay. Default 10. */
  stackTraceLimit?: number;
  /** Jobs of a queue with the same key run one at a time, on any machine. The others wait without taking a slot. */
  lockKey?: string;
  /** Jobs of different groups take turns, and each group has its own limits. Not together with `lockKey`. */
  group?: GroupOptions;
  /** The largest size of the data, in bytes of JSON. Default: no limit. */
  sizeLimit?: number;
  /**
   * How long a run may take, in ms. Then the signal of its handler is aborted with an error of the code TIMEOUT, and the run fails. Default:
   * the option `timeoutMs` of the worker.
   */
  timeoutMs?: number;
  /** When the job was made, in ms since the epoch. For people: nothing is scheduled by it. Default: now. */
  timestamp?: number;
  /** Tracing of this job, if the queue has the option `telemetry`. */
  telemetry?: JobTelemetryOptions;
  /** The name of the queue, of the same prefix, that gets a copy of the job when the job has failed for good. */
  deadLetter?: string;
}

export interface JobsOptions extends DefaultJobOptions {
  /** Own id instead of a number. Adding the same id again while the job exists changes nothing. */
  jobId?: string;
  /** Several adds with one deduplication id make one job. */
  deduplication?: DeduplicationOptions;
  /** Makes a schedule, as in BullMQ 5: see `upsertJobScheduler`. A job of a schedule shows it with `count` and `offset`. */
  repeat?: RepeatOptions;
  /** The job that waits for this one, in any queue. */
  parent?: ParentOptions;
  /** Set for a job of a schedule: its slot, in epoch ms. */
  prevMillis?: number;
}

export interface JobTelemetryOptions {
  /** The context of the span that added the job. Default: set by the queue. */
  metadata?: string;
  /** true: the run begins a trace of its own. Default false. */
  omitContext?: boolean;
}

export interface BackoffOptions {
  /** Any other name is passed to the worker's `settings.backoffStrategy`. */
  type: 'fixed' | 'exponential' | (string & {});
  /** Milliseconds. */
  delay?: number;
  /** 0 … 1: the largest share of the delay that is taken off at random. Default 0. */
  jitter?: number;
}

export interface KeepJobs {
  /** Finished jobs older than this many seconds are removed. */
  age?: number;
  /** How many finished jobs stay. */
  count?: number;
  /** BullMQ's bound on removals per finish. Accepted; the stores here have their own bound. */
  limit?: number;
}

export type KeepOption = boolean | number | KeepJobs;

export const MAX_PRIORITY = 2 ** 21;
const MAX_LOCK_KEY = 500;
const MAX_TIMESTAMP = 8.64e15;

type Check = (path: string, value: unknown) => void;

const whole =
  (max?: number): Check =>
  (path, value) => {
    checkInteger(path, value, max === undefined ? {} : { max });
  };

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['jobId', (_path, value) => void checkJobId(value)],
  ['delay', whole(MAX_DELAY_MS)],
  ['priority', whole(MAX_PRIORITY)],
  ['attempts', whole()],
  ['backoff', checkBackoff],
  ['lifo', (path, value) => void checkBoolean(path, value)],
  ['removeOnComplete', checkKeep],
  ['removeOnFail', checkKeep],
  ['lockKey', (path, value) => void checkText(path, value, MAX_LOCK_KEY)],
  ['group', checkGroup],
  ['keepLogs', whole()],
  ['stackTraceLimit', whole()],
  ['sizeLimit', whole()],
  ['timeoutMs', (path, value) => void checkInteger(path, value, { min: 1, max: MAX_TIMER_MS })],
  ['timestamp', whole(MAX_TIMESTAMP)],
  ['deduplication', checkDeduplication],
  ['telemetry', checkTelemetryOption],
  ['parent', checkParent],
  ['deadLetter', checkDeadLetter],
  ['failParentOnFailure', checkFailureOption],
  ['continueParentOnFailure', checkFailureOption],
  ['ignoreDependencyOnFailure', checkFailureOption],
  ['removeDependencyOnFailure', checkFailureOption],
]);

const OF_ADD = 'Pass it to queue.add or addBulk, or use queue.upsertJobScheduler.';
const OF_SCHEDULE = 'The schedule of a job sets it.';

// The queue carries out `repeat` itself, so here it comes from a place that cannot have it.
const JOB_NAMES = new OptionNames<Omit<JobsOptions, 'repeat' | 'prevMillis'>>({
  of: 'job',
  known: {
    jobId: true,
    delay: true,
    priority: true,
    attempts: true,
    backoff: true,
    lifo: true,
    removeOnComplete: true,
    removeOnFail: true,
    lockKey: true,
    group: true,
    keepLogs: true,
    stackTraceLimit: true,
    sizeLimit: true,
    timeoutMs: true,
    timestamp: true,
    telemetry: true,
    deduplication: true,
    parent: true,
    deadLetter: true,
    failParentOnFailure: true,
    continueParentOnFailure: true,
    ignoreDependencyOnFailure: true,
    removeDependencyOnFailure: true,
  },
  // Programs add a job again with the options that an earlier job shows.
  ignored: { repeatJobKey: OF_SCHEDULE, prevMillis: OF_SCHEDULE },
  unsupported: {
    repeat: OF_ADD,
    debounce: 'Use deduplication with the same id and ttl.',
    rateLimiterKey: 'Use the job option group: { id }, and the worker option group: { limit: { max, duration } }.',
    timeout: 'Use timeoutMs, and pass the signal of the handler to what it waits for.',
    preventParsingData: 'Pass the text as a string: it is read only when job.data is used.',
  },
});

const BACKOFF_NAMES = new OptionNames<BackoffOptions>({
  of: 'job',
  known: { type: true, delay: true, jitter: true },
  // A user's backoff strategy reads it from the job.
  without: ['options'],
});

const TELEMETRY_NAMES = new OptionNames<JobTelemetryOptions>({ of: 'job', known: { metadata: true, omitContext: true } });

const KEEP_NAMES = new OptionNames<KeepJobs>({ of: 'job', known: { age: true, count: true, limit: true } });

/**
 * Throws INVALID_OPTION, INVALID_JOB_ID or OPTION_UNSUPPORTED. Unknown names are stored with the job and have no effect. The caller
 * implements the names in `foreign`.
 */
export function checkJobOptions(options: unknown, within = '', foreign?: ReadonlySet<string>): JobsOptions {
  if (!isRecord(options)) throw invalidOption(within === '' ? 'opts' : within, options, 'an object with job options');
  for (const name of Object.keys(options)) {
    const value = options[name];
    // Merged into other options, `__proto__` would become their prototype, past every check; `toJSON` would be stored instead of them.
    if (name === '__proto__' || name === 'toJSON')
      throw invalidOption(within === '' ? name : `${within}.${name}`, value, 'left out');
    if (value === undefined) continue;
    const check = CHECKS.get(name);
    if (check !== undefined) check(within === '' ? name : `${within}.${name}`, value);
    else if (foreign?.has(name) !== true) JOB_NAMES.judge(name, value, within);
  }
  return options;
}

/** Checks the default options of a queue's jobs. */
export function checkDefaultJobOptions(options: unknown, foreign?: ReadonlySet<string>): DefaultJobOptions {
  const checked = checkJobOptions(options, 'defaultJobOptions', foreign);
  checkOneLine(checked);
  checkFamilyOptions(checked);
  for (const name of ['jobId', 'deduplication', 'parent'] as const) {
    if (checked[name] === undefined) continue;
    const wanted =
      name === 'parent' ? 'given with each job' : 'given with each job: as a default it would make every job a duplicate';
    throw invalidOption(`defaultJobOptions.${name}`, checked[name], wanted);
  }
  return checked;
}

/** Merges job options over the queue's defaults. Undefined means "not set", so it does not hide a default. Throws INVALID_OPTION. */
export function mergeOptions(defaults: DefaultJobOptions, options: JobsOptions): JobsOptions {
  const merged: Record<string, unknown> = { ...defaults };
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined) merged[name] = value;
  }
  checkOneLine(merged);
  checkFamilyOptions(withoutDefaultFailure(merged, options));
  return merged;
}

/** A job that says what its failure means for its parent does not follow the default. */
function withoutDefaultFailure(merged: Record<string, unknown>, options: JobsOptions): JobsOptions {
  if (!FAILURE_NAMES.some((name) => options[name] === true)) return merged;
  for (const name of FAILURE_NAMES) if (options[name] !== true) delete merged[name];
  return merged;
}

/** Returns which finished jobs stay: the job's own option, else the worker's, else all. Never throws: it also reads stored options. */
export function keepOf(option: KeepOption | undefined, workerDefault?: KeepOption): Keep {
  const chosen = option ?? workerDefault;
  if (chosen === true) return { count: 0 };
  if (typeof chosen === 'number') return chosen < 0 ? {} : { count: chosen };
  if (!isRecord(chosen)) return {};
  const { age, count } = chosen;
  return {
    ...(typeof count === 'number' && count >= 0 ? { count } : {}),
    ...(typeof age === 'number' ? { ageMs: age * 1000 } : {}),
  };
}

/** Returns which failed jobs stay by the job's own options, for a failure that no worker reports. */
export function keepOnFail(opts: string): Keep {
  try {
    return keepOf((JSON.parse(opts) as JobsOptions | null)?.removeOnFail);
  } catch {
    // Unreadable text removes nothing.
    return {};
  }
}

export function checkKeep(path: string, value: unknown): void {
  if (typeof value === 'boolean') return;
  // As in BullMQ, a count of -1 keeps all.
  if (value === -1) return;
  if (typeof value === 'number') return void checkInteger(path, value);
  if (!isRecord(value)) throw invalidOption(path, value, 'a boolean, a count or { age, count }');
  KEEP_NAMES.check(value, path);
  if (value.age !== undefined) checkInteger(`${path}.age`, value.age, { max: MAX_DELAY_MS / 1000 });
  if (value.count !== undefined && value.count !== -1) checkInteger(`${path}.count`, value.count);
  if (value.limit !== undefined) checkInteger(`${path}.limit`, value.limit);
}

function checkTelemetryOption(path: string, value: unknown): void {
  if (!isRecord(value)) throw invalidOption(path, value, '{ metadata, omitContext }');
  TELEMETRY_NAMES.check(value, path);
  if (value.metadata !== undefined) checkText(`${path}.metadata`, value.metadata, MAX_METADATA);
  if (value.omitContext !== undefined) checkBoolean(`${path}.omitContext`, value.omitContext);
}

const BUILT_IN: ReadonlySet<string> = new Set(['fixed', 'exponential']);

function checkBackoff(path: string, value: unknown): void {
  if (typeof value === 'number') return void checkInteger(path, value, { max: MAX_DELAY_MS });
  if (!isRecord(value)) throw invalidOption(path, value, 'a delay in milliseconds or { type, delay, jitter }');
  BACKOFF_NAMES.check(value, path);
  const { type, delay, jitter } = value;
  if (typeof type !== 'string' || type === '')
    throw invalidOption(`${path}.type`, type, "'fixed', 'exponential' or a name of yours");
  const meant = closest(type, BUILT_IN, 2);
  if (meant !== undefined && !type.startsWith(meant))
    throw invalidOption(`${path}.type`, type, `'${meant}', or a name of yours that is not so close to it`);
  if (delay !== undefined) checkInteger(`${path}.delay`, delay, { max: MAX_DELAY_MS });
  if (jitter !== undefined && !(typeof jitter === 'number' && jitter >= 0 && jitter <= 1)) {
    throw invalidOption(`${path}.jitter`, jitter, 'a number from 0 to 1');
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
