// The options and events of a Queue, and the checks of its options.
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
import { type AdvancedRepeatOptions, checkQueueSettings } from './repeat-settings.js';
import { BASE_NAMES, BASE_IGNORED, type QueueBaseOptions } from '../store/base-options.js';

/** The lock options apply to locks taken through this queue: of jobs taken by hand, and named locks. */
export interface QueueOptions extends QueueBaseOptions, SessionOptions {
  /** The default options of every job. */
  defaultJobOptions?: DefaultJobOptions;
  /** How long an add is retried while the store does not reply, in ms. Default 30,000. */
  addTimeoutMs?: number;
  /** Takes part in the leader election of this queue, which emits `leader` and `follower`. Default false. */
  leaderElection?: boolean | ElectionOptions;
  /** Option of BullMQ. Accepted without effect. */
  skipMetasUpdate?: boolean;
  settings?: AdvancedRepeatOptions;
}

export interface TransactionOption {
  /**
   * Adds inside this transaction: if it is rolled back, the job was never added. Others see the job after the commit. On PostgreSQL: a pg
   * client with an open transaction, a transaction of Knex, Kysely or Drizzle, or any object with `query(text, values)`. On SQLite: a
   * connection of yours to the same file, with an open transaction. Other stores refuse it.
   */
  transaction?: object;
}

export const BULK_NAMES = new OptionNames<TransactionOption>({ of: 'addBulk', known: { transaction: true } });

/** The options of `add`. `transaction` belongs to the call, not to the job, and is never stored. */
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
  /** An add was acknowledged again, after an outage that was emitted as `error`. `outageMs`: its length. */
  recovered: [outageMs: number];
  /** For programs of BullMQ that listen to it. Never emitted: `error` and `recovered` say when a store cannot be reached, whichever it is. */
  'ioredis:close': [];
  removed: [jobId: string];
  resumed: [];
  /** This queue found a job whose owner died. It sweeps while it holds locks. */
  stalled: [jobId: string, lostBy?: LostBy];
  waiting: [job: J];
};

export type CheckedQueueOptions = QueueOptions & CheckedSessionOptions & Required<Pick<QueueOptions, 'addTimeoutMs' | 'prefix'>>;

const QUEUE_NAMES = new OptionNames<QueueOptions>({
  of: 'queue',
  known: {
    ...BASE_NAMES,
    ...SESSION_OPTION_NAMES,
    defaultJobOptions: true,
    addTimeoutMs: true,
    leaderElection: true,
    skipMetasUpdate: true,
    settings: true,
  },
  // Frameworks pass `name` beside the name of the queue.
  without: ['name'],
  ignored: BASE_IGNORED,
  unsupported: {
    redis: 'Pass it as `connection`.',
    createClient: 'Pass the client as `connection`.',
    limiter: 'Pass it to the Worker.',
    metrics: 'Pass it to the Worker.',
  },
});

export function checkQueueOptions(options: unknown): CheckedQueueOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw invalidOption('opts', options, 'an object with queue options');
  const given = options as QueueOptions & Record<string, unknown>;
  QUEUE_NAMES.check(given);
  checkQueueSettings(given.settings);
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

/** Type of BullMQ. */
export type QueueListener<J extends Job = Job> = ListenersOf<QueueEventMap<J>>;

/** Like `PlainListeners` of a worker. */
export type PlainQueueListeners<T, R, N extends string> = {
  [E in keyof QueueEventMap<T>]: IfPlain<T, R, (...args: QueueEventMap<Job<T, R, N>>[E]) => void>;
};
