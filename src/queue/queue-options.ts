// What a Queue is made with and what it tells.
import type { JobProgress } from '../handle/job-context.js';
import type { Job } from '../handle/job.js';
import type { LostBy } from '../job/lost-by.js';
import { DEFAULT_PREFIX } from '../job/names.js';
import type { DefaultJobOptions, JobsOptions } from '../job/options.js';
import type { IfPlain } from '../job/typing.js';
import {
  checkSessionOptions,
  SESSION_OPTION_NAMES,
  type CheckedSessionOptions,
  type SessionOptions,
} from '../session/session-options.js';
import { ELECTION_NAMES, type ElectionOptions } from '../lock/leader.js';
import { MAX_TIMER_MS, checkInteger, invalidOption } from '../runtime/check.js';
import type { ListenersOf } from '../runtime/emitter.js';
import { OptionNames } from '../runtime/option-names.js';
import { BASE_NAMES, BASE_UNSUPPORTED, type QueueBaseOptions } from '../store/base-options.js';

/** The options of locks hold for those that are taken through this queue: jobs by hand, named locks. */
export interface QueueOptions extends QueueBaseOptions, SessionOptions {
  /** What every job starts from. */
  defaultJobOptions?: DefaultJobOptions;
  /** How long an add is repeated while the store does not answer; 30 s unless said otherwise. */
  addTimeoutMs?: number;
  /** Stand for election among all that do so on this queue: `leader` and `follower` are emitted here. */
  leaderElection?: boolean | ElectionOptions;
  /** BullMQ's. Accepted, and without meaning here. */
  skipMetasUpdate?: boolean;
}

export interface TransactionOption {
  /**
   * Adds inside this transaction: rolled back means never added. A client of pg on which a transaction was begun, a transaction of Knex,
   * Kysely or Drizzle, or anything with `query(text, values)`. PostgreSQL only. The job is there for others after the commit.
   */
  transaction?: object;
}

export const BULK_NAMES = new OptionNames<TransactionOption>({ of: 'addBulk', known: { transaction: true } });

/** What `add` takes with a job. `transaction` is of the call, not of the job, and is never stored. */
export interface AddOptions extends JobsOptions, TransactionOption {}

export const ADD_TIMEOUT_MS = 30_000;

export type QueueEventMap<J> = {
  cleaned: [jobIds: string[], type: string];
  error: [error: Error];
  /** With `leaderElection`: this instance leads now. */
  leader: [term: number];
  follower: [reason: string];
  paused: [];
  progress: [jobId: string, progress: JobProgress];
  /** An add was acknowledged again, after an outage that was told as `error` so many milliseconds ago. */
  recovered: [outageMs: number];
  removed: [jobId: string];
  resumed: [];
  /** A job whose owner died was found by this queue, which looks for them while it holds locks. */
  stalled: [jobId: string, lostBy?: LostBy];
  waiting: [job: J];
};

export type CheckedQueueOptions = QueueOptions & CheckedSessionOptions & Required<Pick<QueueOptions, 'addTimeoutMs' | 'prefix'>>;

const NO_SCHEDULES = 'There are no job schedulers in this version.';

const QUEUE_NAMES = new OptionNames<QueueOptions>({
  of: 'queue',
  known: {
    ...BASE_NAMES,
    ...SESSION_OPTION_NAMES,
    defaultJobOptions: true,
    addTimeoutMs: true,
    leaderElection: true,
    skipMetasUpdate: true,
  },
  // `name` is what frameworks pass beside the name of the queue.
  without: ['name', 'settings'],
  unsupported: {
    ...BASE_UNSUPPORTED,
    telemetry: 'Listen to the events of Worker and QueueEvents.',
    redis: 'Pass it as `connection`.',
    createClient: 'Pass the client as `connection`.',
    limiter: 'Pass it to the Worker.',
    metrics: 'Count the events of QueueEvents.',
  },
});

const QUEUE_SETTINGS = new OptionNames<object>({
  of: 'queue',
  known: {},
  unsupported: { repeatStrategy: NO_SCHEDULES, repeatKeyHashAlgorithm: NO_SCHEDULES },
});

export function checkQueueOptions(options: unknown): CheckedQueueOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalidOption('opts', options, 'an object with queue options');
  const given = options as QueueOptions & Record<string, unknown>;
  QUEUE_NAMES.check(given);
  const { settings } = given;
  if (typeof settings === 'object' && settings !== null) QUEUE_SETTINGS.check(settings, 'settings');
  const { addTimeoutMs = ADD_TIMEOUT_MS, leaderElection = false } = given;
  if (typeof leaderElection !== 'boolean' && (typeof leaderElection !== 'object' || leaderElection === null)) {
    throw invalidOption('leaderElection', leaderElection, 'true, or { leaderTimeout, heartbeatInterval }');
  }
  if (typeof leaderElection === 'object') ELECTION_NAMES.check(leaderElection, 'leaderElection');
  return {
    ...given,
    ...checkSessionOptions(given),
    prefix: given.prefix ?? DEFAULT_PREFIX,
    addTimeoutMs: checkInteger('addTimeoutMs', addTimeoutMs, { min: 1, max: MAX_TIMER_MS }),
  };
}

export function checkTransaction(transaction: unknown): object | undefined {
  if (transaction === undefined || (typeof transaction === 'object' && transaction !== null) || typeof transaction === 'function')
    return transaction;
  throw invalidOption('transaction', transaction, 'a transaction of yours');
}

/** BullMQ's type. */
export type QueueListener<J extends Job = Job> = ListenersOf<QueueEventMap<J>>;

/** As `PlainListeners` of a worker. */
export type PlainQueueListeners<T, R, N extends string> = {
  [E in keyof QueueEventMap<T>]: IfPlain<T, R, (...args: QueueEventMap<Job<T, R, N>>[E]) => void>;
};
