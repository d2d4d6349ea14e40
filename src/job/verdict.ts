// Decides how a run ends, from what the processor did. Pure, apart from the call of the user's backoff strategy. If deciding fails, the
// verdict is "failed" with that reason: a job must never be left without an outcome.
import { type ErrorCode, HoldfastError, toError } from '../errors.js';
import { keepable } from '../runtime/check.js';
import { type BackoffStrategy, backoffDelay, builtInDelay } from './backoff.js';
import { type JobsOptions, type KeepOption, keepOf } from './options.js';
import type { Outcome } from './outcome.js';
import { encodeResult } from './payload.js';
import { UnrecoverableError, isSignal } from './signals.js';

/** The fields of a job that a verdict needs; a Job fits. */
export interface TriedJob {
  readonly id: string;
  readonly name: string;
  readonly opts: JobsOptions;
  /** Attempts before this run. */
  readonly attemptsMade: number;
  readonly stacktrace: readonly string[];
  /** `job.discard()` was called: no further attempt. */
  readonly discarded: boolean;
}

/** The worker's settings. */
export interface VerdictRules {
  readonly backoffStrategy?: BackoffStrategy | undefined;
  readonly removeOnComplete?: KeepOption | undefined;
  readonly removeOnFail?: KeepOption | undefined;
  /** True: the job fails, whatever attempts are left. */
  readonly final?: boolean;
  /** Said beside the message of the error. */
  readonly why?: string;
}

const STACKTRACES_KEPT = 10;
/** The longest reason, and the longest stack trace, in characters. Some libraries put a whole response into an error's message. */
const MAX_REASON = 16_384;
const MAX_STACK = 16_384;
/** The longest reason that replaces a refused text, in characters. It must be short, because the refused text may have been too long. */
const REFUSAL_KEPT = 1000;

/**
 * The outcome after the processor returned. A value that cannot be stored fails the job for good: the work has been done, so another
 * attempt would repeat its effects and fail here again.
 */
export function completedOutcome(job: TriedJob, token: string, value: unknown, rules: VerdictRules): Outcome {
  try {
    const keep = keepOf(job.opts.removeOnComplete, rules.removeOnComplete);
    return { kind: 'completed', jobId: job.id, token, value: encodeResult(job.name, value), keep };
  } catch (thrown) {
    return failed(job, token, toError(thrown), rules);
  }
}

/** The outcome after the processor threw: a retry if attempts are left, else failed. */
export async function failedOutcome(job: TriedJob, token: string, error: Error, rules: VerdictRules): Promise<Outcome> {
  const attemptsMade = job.attemptsMade + 1;
  if (rules.final === true || job.discarded || isUnrecoverable(error) || attemptsMade >= (job.opts.attempts ?? 0))
    return failed(job, token, error, rules);
  try {
    const delayMs = await backoffDelay(job.opts.backoff, { attemptsMade, error, job }, rules.backoffStrategy);
    if (delayMs < 0) return failed(job, token, error, rules);
    const lifo = job.opts.lifo ?? false;
    return {
      kind: 'retry',
      jobId: job.id,
      token,
      reason: reasonOf(error, rules.why),
      stacktrace: stacktraceOf(job, error),
      delayMs,
      lifo,
    };
  } catch (thrown) {
    const cause = toError(thrown);
    return failed(job, token, new Error(`${reasonOf(error)} (not tried again: ${reasonOf(cause)})`, { cause: error }), rules);
  }
}

/**
 * Returns the outcome of a run that the lock thread ends, because its handler blocks the event loop. No user code runs for it: where a
 * strategy of the user would compute the delay of the retry, there is none.
 */
export function blockedOutcome(job: TriedJob, token: string, error: Error, rules: VerdictRules): Outcome {
  const attemptsMade = job.attemptsMade + 1;
  if (attemptsMade >= (job.opts.attempts ?? 0)) return failed(job, token, error, rules);
  const delayMs = builtInDelay(job.opts.backoff, attemptsMade) ?? 0;
  const lifo = job.opts.lifo ?? false;
  return { kind: 'retry', jobId: job.id, token, reason: reasonOf(error), stacktrace: stacktraceOf(job, error), delayMs, lifo };
}

/**
 * Returns a substitute for an outcome that the store refuses for good because of its texts. A completed job fails with that reason: its
 * work has been done, and another attempt would fail here again. A failed or retried job keeps its outcome with a short text. Returns
 * undefined if the outcome has no text to refuse.
 */
export function substituteOutcome(job: TriedJob, outcome: Outcome, refusal: Error, rules: VerdictRules): Outcome | undefined {
  if (outcome.kind === 'completed') {
    const reason = refusedReason('result', outcome.value, refusal);
    return {
      ...ended(outcome),
      kind: 'failed',
      reason,
      stacktrace: '[]',
      keep: keepOf(job.opts.removeOnFail, rules.removeOnFail),
      ...early(job),
    };
  }
  if (outcome.kind !== 'failed' && outcome.kind !== 'retry') return undefined;
  return { ...outcome, reason: refusedReason('error', outcome.reason + outcome.stacktrace, refusal), stacktrace: '[]' };
}

function ended({ jobId, token }: Outcome): { jobId: string; token: string } {
  return { jobId, token };
}

function refusedReason(what: string, text: string, refusal: Error): string {
  const size = Buffer.byteLength(text);
  return keepable(`The store refused the ${what} of this job (${size} bytes): ${reasonOf(refusal)}`, REFUSAL_KEPT);
}

function failed(job: TriedJob, token: string, error: Error, rules: VerdictRules): Outcome {
  const keep = keepOf(job.opts.removeOnFail, rules.removeOnFail);
  return {
    kind: 'failed',
    jobId: job.id,
    token,
    reason: reasonOf(error, rules.why),
    stacktrace: stacktraceOf(job, error),
    keep,
    ...early(job),
  };
}

/** Sets `early` if attempts are left after this one. */
function early({ attemptsMade, opts }: TriedJob): { early?: true } {
  return attemptsMade + 1 < (opts.attempts ?? 0) ? { early: true } : {};
}

/** Returns the stack traces as JSON text, newest last. */
function stacktraceOf(job: TriedJob, error: Error): string {
  const limit = job.opts.stackTraceLimit ?? STACKTRACES_KEPT;
  if (limit === 0) return '[]';
  const stack = typeof error.stack === 'string' ? keepable(error.stack, MAX_STACK) : reasonOf(error);
  return JSON.stringify([...job.stacktrace, stack].slice(-limit));
}

/** Foreign errors may have a message that is empty, not a string, or has characters that not every store can keep. */
function reasonOf(error: Error, why?: string): string {
  const message: unknown = error.message;
  const text = typeof message === 'string' && message !== '' ? message : String(error.name);
  return keepable(why === undefined ? text : `${text} (${why})`, MAX_REASON);
}

/** Another attempt would end in the same way. After STEP_UNRECORDABLE it would also repeat the effect of the step. */
const FINAL_CODES: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['CHILDREN_FAILED', 'STEP_UNRECORDABLE']);

function isUnrecoverable(error: Error): boolean {
  if (error instanceof HoldfastError && FINAL_CODES.has(error.code)) return true;
  return error instanceof UnrecoverableError || isSignal(error, 'UnrecoverableError');
}
