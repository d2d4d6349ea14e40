// Every error that Holdfast throws or emits on purpose is a HoldfastError with one of these codes.
// docs/errors.md explains each; a test fails when a code is missing there. Codes are stable: programs branch on them.
import { types } from 'node:util';

export const ERROR_CODES = {
  INVALID_OPTION: 'an option has an invalid value',
  OPTION_UNSUPPORTED: 'an option of another queue that this version does not support',
  INVALID_QUEUE_NAME: 'a queue name is empty, too long or has forbidden characters',
  INVALID_JOB_NAME: 'a job name is empty, too long or not a string',
  INVALID_JOB_ID: 'a job id is empty, too long, a bare integer or has forbidden characters',
  INVALID_PAYLOAD: 'job data, progress or a result cannot be kept as JSON without losing something',
  PAYLOAD_TOO_LARGE: 'job data is over its sizeLimit, or a value is larger than the store takes',
  INVALID_STEP: 'the name of a step, sleep, wait or signal is empty, too long or not a text',
  NOT_COMMITTED: 'a handler called commit or complete with a transaction that has not committed',
  STEP_UNRECORDABLE: 'the result of a step is no JSON, or the job has no room for it: the job fails for good',
  STEP_REPEATED: 'a run used the same step name twice',
  INVALID_CONNECTION: 'a connection is not a known URL, options object or store',
  JOB_MISSING: 'the job does not exist, or no longer exists',
  JOB_STATE: 'the job is not in the state that the call needs',
  JOB_LOCKED: 'the lock of the job is held, so the job cannot be removed, retried or cleaned',
  JOB_FINISHED: 'waitUntilFinished: the job failed',
  RESULT_GONE: 'waitUntilFinished: the job is gone, and its result or its end is no longer in the event log',
  JOB_STALLED: 'the worker of the job died more often than maxStalledCount allows',
  INVALID_FLOW: 'a flow or graph is too large or too deep, has a cycle, or names a job twice or not at all',
  PARENT_MISSING: 'the parent of a new job does not exist',
  PARENT_TAKEN: 'the job exists already and has another parent',
  CHILDREN_PENDING: 'the job cannot complete: children of it have not ended',
  CHILDREN_FAILED: 'the job cannot complete: a child of it failed whose failure fails it',
  QUEUE_ACTIVE: 'obliterate without force while jobs are running',
  LOCK_LOST: 'the lock is lost: another owner may run the job, and nothing was written',
  LOCK_UNTRUSTED: 'the lock could not be renewed in time, so it is no longer trusted',
  OUTCOME_OVERDUE: 'the store has not accepted the outcome of a run for as long as its lock lasts, so the lock was given up',
  NO_TOKEN: 'only the owner of the lock may make this call, and no token was given',
  NO_PROCESSOR: 'run() was called on a worker that has no processor',
  NO_HANDLER: 'the map of handlers has none for jobs of this name',
  ALREADY_RUNNING: 'run() was called on a worker that is running',
  CANCELLED: 'the job was cancelled: the reason of the signal of its handler',
  SHUTDOWN: 'the worker was closed while the handler ran: the reason of its signal',
  PROCESSOR_UNLOADABLE: 'the file of a processor cannot be loaded',
  SANDBOX_DIED: 'the thread or process of a job ended before its handler did',
  SANDBOX_KILLED: 'a handler did not stop in time after its signal was aborted, so its thread or process was ended',
  LATE_ERROR: 'a handler in a sandbox threw after its run was over',
  EVENTS_MISSED: 'the store dropped events before a QueueEvents had read them',
  CLOSED: 'the queue, worker or listener was closed before the call',
  TIMEOUT: 'the call did not finish within its time limit',
  OUTCOME_UNKNOWN: 'the store did not reply in time: the call may or may not have happened',
  INSTANCE_TAKEN: 'another process runs under the same instanceId',
  THREAD_FAILED: 'the dedicated lock thread could not start or died; locks are renewed on the event loop meanwhile',
  NOT_CLONEABLE: 'connection options hold something that cannot be handed to a thread',
  LOOP_BLOCKED: 'the event loop was blocked for longer than maxBlockedMs, so its locks were given up',
  STORE_UNAVAILABLE: 'the store cannot be reached at the moment; the call is retried',
  STORE_BUSY: 'another program holds the write lock of the store for too long; the call is retried',
  STORE_FULL: 'the disk of the store, or the memory of Redis, is full',
  STORE_READONLY: 'the store cannot be written to',
  STORE_FOREIGN: 'the file or schema belongs to another program',
  STORE_GONE: 'a file of the store was deleted, replaced or cut while it was open',
  STORE_NEWER: 'the schema of the store is newer than this version of Holdfast',
  STORE_DENIED: 'the server refused the user, the password, the database or a right that Holdfast needs',
  STORE_UNTRUSTED: 'the TLS certificate of the server cannot be verified',
  STORE_UNSUPPORTED: 'the server is too old, or cannot do what Holdfast needs',
  STORE_UNSAFE: 'a setting of the server can lose acknowledged jobs',
  CRASH_HINTS_OFF: 'the store cannot notice a dead worker before its session expires',
  STORE_CLOSED: 'the store was closed before the call',
  STORE_FAILED: 'the store reported an error that has no code of its own',
  DRIVER_MISSING: 'the package that drives this store is not installed or cannot be loaded',
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

export interface ErrorDetails {
  cause?: unknown;
  /** True if a retry of the same call may succeed: the cause is temporary. */
  retryable?: boolean;
  jobId?: string;
  queue?: string;
  option?: string;
  store?: string;
  /** For JOB_STALLED: the process that lost the job, and how that was found. */
  lostBy?: Lost | undefined;
}

/** The same shape as LostBy of job/lost-by.ts, which this file must not import. */
type Lost = Readonly<{ host: string; pid: number; worker: string; found: string }>;

export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly retryable: boolean;
  readonly jobId?: string;
  readonly queue?: string;
  readonly option?: string;
  readonly store?: string;
  readonly lostBy?: Lost;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'HoldfastError';
    this.code = code;
    this.retryable = details.retryable ?? false;
    if (details.jobId !== undefined) this.jobId = details.jobId;
    if (details.queue !== undefined) this.queue = details.queue;
    if (details.option !== undefined) this.option = details.option;
    if (details.store !== undefined) this.store = details.store;
    if (details.lostBy !== undefined) this.lostBy = details.lostBy;
  }
}

/** The error of a call to a queue, worker or listener that was closed. `what` names it. */
export function closedError(what: string): HoldfastError {
  return new HoldfastError('CLOSED', `${what} was closed. Make a new one to go on.`);
}

export function isRetryable(error: unknown): boolean {
  return error instanceof HoldfastError && error.retryable;
}

export function isTimeout(error: unknown): boolean {
  return error instanceof HoldfastError && error.code === 'TIMEOUT';
}

const late = new WeakSet<HoldfastError>();

/** Marks the error of a call that was sent to a server and ran into the time limit of its store, whatever its code is. */
export function asLate(error: HoldfastError): HoldfastError {
  late.add(error);
  return error;
}

/** True if the call ran into a time limit. A call that was too much for the store in this time is too much again: ask for less. */
export function isLate(error: unknown): boolean {
  return isTimeout(error) || late.has(error as HoldfastError);
}

/** Also recognises errors of Node.js itself inside test runners that give each test file its own `Error`. */
export function isError(thrown: unknown): thrown is Error {
  return thrown instanceof Error || types.isNativeError(thrown);
}

/** Returns anything that was thrown as an Error: handlers throw strings, undefined and other values. */
export function toError(thrown: unknown): Error {
  if (isError(thrown)) return thrown;
  if (typeof thrown === 'object' && thrown !== null && typeof (thrown as { message?: unknown }).message === 'string') {
    return Object.assign(new Error((thrown as { message: string }).message), { cause: thrown });
  }
  return new Error(describeThrown(thrown), { cause: thrown });
}

function describeThrown(thrown: unknown): string {
  try {
    return typeof thrown === 'string' ? thrown : `a non-error was thrown: ${String(thrown)}`;
  } catch {
    return 'a non-error was thrown that cannot be printed';
  }
}
