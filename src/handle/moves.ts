// The moves of a handle. An owner's moves (how a run ends) carry the token and go through the job context, so that a worker knows that the
// run has ended. The others are changes from outside; the store refuses them while the lock of the job is held.
import { HoldfastError, toError } from '../errors.js';
import type { Outcome } from '../job/outcome.js';
import type { StoredState } from '../job/state.js';
import { encodeResult } from '../job/payload.js';
import { completedOutcome, failedOutcome, type TriedJob, type VerdictRules } from '../job/verdict.js';
import { MAX_DELAY_MS, checkBoolean, checkInteger, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { MAX_PRIORITY } from '../job/options.js';
import type { Change } from '../store/contract/index.js';
import type { JobSnapshot } from './job-snapshot.js';
import { type JobJson, jsonOfClaimed } from './json.js';
import { checkRemoveOptions, removeJob, type RemoveOptions } from './removal.js';
import { storedStep } from './steps.js';

/** The next job if one was fetched, in BullMQ's shape, so that `const [json, id] = await job.moveToCompleted(…)` works. */
export type NextJob = [json: JobJson, id: string] | [];

export async function complete(
  snapshot: JobSnapshot,
  job: TriedJob,
  value: unknown,
  given: string | undefined,
  fetchNext: boolean,
): Promise<NextJob> {
  const outcome = completedOutcome(job, snapshot.tokenFor(given, 'moveToCompleted'), value, snapshot.context);
  return settle(snapshot, outcome, 'moveToCompleted', fetchNext);
}

export interface CompleteOptions {
  /** A transaction of yours: the job completes when it commits, or not at all. */
  transaction: object;
}

const COMPLETE_NAMES = new OptionNames<CompleteOptions>({ of: 'complete', known: { transaction: true } });

export async function completeWithin(
  snapshot: JobSnapshot,
  job: TriedJob,
  value: unknown,
  options: CompleteOptions,
): Promise<void> {
  const { transaction } = COMPLETE_NAMES.checked(options);
  const { context, record } = snapshot;
  const facts = { jobId: record.id, queue: context.name };
  if (transaction === undefined || transaction === null) {
    const hint = 'Without one, return the result from the handler.';
    throw new HoldfastError('INVALID_OPTION', `complete of job ${record.id} needs a transaction of yours. ${hint}`, {
      ...facts,
      option: 'transaction',
    });
  }
  if (snapshot.isCompleting) {
    throw new HoldfastError('JOB_STATE', `complete was called before in this run of job ${record.id}.`, facts);
  }
  const token = snapshot.tokenFor(undefined, 'complete');
  const outcome: Outcome = completion(job, token, value, context);
  snapshot.isCompleting = true;
  const store = await context.ready();
  const { results } = await store.settle(context.stored, [outcome], undefined, undefined, transaction);
  snapshot.accept(results[0] ?? 'missing', 'complete');
  context.completing?.(token, { outcome, value });
}

/** Throws if the value cannot be stored: the transaction of the user rolls back. */
function completion(job: TriedJob, token: string, value: unknown, rules: VerdictRules): Outcome {
  encodeResult(job.name, value);
  return completedOutcome(job, token, value, rules);
}

export async function fail(
  snapshot: JobSnapshot,
  job: TriedJob,
  thrown: unknown,
  given: string | undefined,
  fetchNext: boolean,
): Promise<NextJob> {
  const outcome = await failedOutcome(job, snapshot.tokenFor(given, 'moveToFailed'), toError(thrown), snapshot.context);
  return settle(snapshot, outcome, 'moveToFailed', fetchNext);
}

/** `timestamp` is on this host's clock; the store gets the duration from now. */
export async function delayUntil(snapshot: JobSnapshot, timestamp: number, given: string | undefined): Promise<void> {
  checkInteger('timestamp', timestamp);
  const delayMs = checkInteger('timestamp', Math.max(0, timestamp - Date.now()), { max: MAX_DELAY_MS });
  await settle(
    snapshot,
    { kind: 'delay', jobId: snapshot.record.id, token: snapshot.tokenFor(given, 'moveToDelayed'), delayMs },
    'moveToDelayed',
    false,
  );
}

export async function handBack(snapshot: JobSnapshot, given: string | undefined): Promise<void> {
  await settle(
    snapshot,
    { kind: 'release', jobId: snapshot.record.id, token: snapshot.tokenFor(given, 'moveToWait') },
    'moveToWait',
    false,
  );
}

/** Returns the token of the lock; false if the lock is held, or another job with the same key runs. */
export async function takeLock(snapshot: JobSnapshot): Promise<string | false> {
  const { context, record } = snapshot;
  const facts = { jobId: record.id, queue: context.name };
  if (context.take === undefined) {
    throw new HoldfastError('NO_TOKEN', `takeLock of job ${record.id}: get the job from a Queue or a Worker first.`, facts);
  }
  const taken = await context.take(record.id);
  if (taken !== undefined) {
    snapshot.taken(taken.job, taken.lock);
    return taken.lock.token;
  }
  const [found] = (await (await context.ready()).jobs(context.stored, [record.id])).jobs;
  if (found === undefined) throw snapshot.missing('takeLock');
  const hint = WHY_NOT_TAKEN[found.state];
  if (hint === undefined) return false;
  throw new HoldfastError('JOB_STATE', `takeLock: job ${record.id} of queue "${context.name}" is ${found.state}. ${hint}`, facts);
}

const WHY_NOT_TAKEN: Partial<Record<StoredState, string>> = {
  delayed: 'Promote it first, or wait until it falls due.',
  completed: 'There is nothing left to do; retry it to have it done again.',
  failed: 'Retry it first.',
};

/** Moves the job back to the front of waiting. If this handle has already ended the run, there is nothing to release. */
export async function releaseLock(snapshot: JobSnapshot): Promise<void> {
  if (snapshot.ended) return;
  const { context, record } = snapshot;
  const facts = { jobId: record.id, queue: context.name };
  const subject = `Could not release lock for job ${record.id}`;
  const { token } = snapshot;
  if (token === undefined) {
    throw new HoldfastError('NO_TOKEN', `${subject}: this handle has none. Take it with takeLock() first.`, facts);
  }
  const outcome: Outcome = { kind: 'release', jobId: record.id, token };
  const { status } = await (await snapshot.holder()).settle(outcome, false);
  if (status !== 'done') {
    throw new HoldfastError('LOCK_LOST', `${subject}: it was lost meanwhile, and another session may have it.`, facts);
  }
  snapshot.settled(outcome);
}

/** Returns 1 if the lock lasts at least that long from now, 0 if it is no longer ours. */
export async function extendLock(snapshot: JobSnapshot, given: string | undefined, durationMs: number): Promise<number> {
  checkInteger('duration', durationMs, { min: 1, max: MAX_DELAY_MS });
  const token = snapshot.tokenFor(given, 'extendLock');
  const { context, record } = snapshot;
  const holder = await snapshot.holder();
  if (holder.extend !== undefined) return (await holder.extend(record.id, token, durationMs)) ? 1 : 0;
  const store = await context.ready();
  const [status] = await store.extend(context.stored, [{ jobId: record.id, token, durationMs }]);
  return status === 'done' ? 1 : 0;
}

export interface RetryOptions {
  resetAttemptsMade?: boolean;
  resetAttemptsStarted?: boolean;
  /** The run repeats this step and all that were recorded after it. Default: it passes all recorded steps. */
  fromStep?: string;
}

const RETRY_NAMES = new OptionNames<RetryOptions>({
  of: 'retry',
  known: { resetAttemptsMade: true, resetAttemptsStarted: true, fromStep: true },
});

export async function retry(snapshot: JobSnapshot, from: 'completed' | 'failed', options: RetryOptions): Promise<void> {
  if (from !== 'completed' && from !== 'failed') throw invalidOption('state', from, "'failed' or 'completed'");
  const { resetAttemptsMade = false, resetAttemptsStarted = false, fromStep } = RETRY_NAMES.checked(options);
  const reset = {
    resetAttemptsMade: checkBoolean('resetAttemptsMade', resetAttemptsMade),
    resetAttemptsStarted: checkBoolean('resetAttemptsStarted', resetAttemptsStarted),
  };
  const step = fromStep === undefined ? {} : { fromStep: await storedStep(snapshot, fromStep) };
  await change(snapshot, 'retry', { kind: 'retry', from, ...reset, ...step }, from);
  snapshot.retried(reset);
}

export async function promote(snapshot: JobSnapshot): Promise<void> {
  await change(snapshot, 'promote', { kind: 'promote' }, 'delayed');
  snapshot.record.delay = 0;
  snapshot.refresh();
}

export async function changeDelay(snapshot: JobSnapshot, delayMs: number): Promise<void> {
  checkInteger('delay', delayMs, { max: MAX_DELAY_MS });
  await change(snapshot, 'changeDelay', { kind: 'delay', delayMs }, 'delayed');
  snapshot.record.delay = delayMs;
  snapshot.refresh();
}

export interface PriorityOptions {
  /** Default 0, which comes before all others. */
  priority?: number;
  /** true: the job goes to the front of its priority. Default false. */
  lifo?: boolean;
}

const PRIORITY_NAMES = new OptionNames<PriorityOptions>({ of: 'changePriority', known: { priority: true, lifo: true } });

export async function changePriority(snapshot: JobSnapshot, options: PriorityOptions): Promise<void> {
  const { priority = 0, lifo = false } = PRIORITY_NAMES.checked(options);
  checkInteger('priority', priority, { max: MAX_PRIORITY });
  checkBoolean('lifo', lifo);
  await change(snapshot, 'changePriority', { kind: 'priority', priority, lifo }, 'waiting or delayed');
  snapshot.record.priority = priority;
  snapshot.refresh();
}

export async function remove(snapshot: JobSnapshot, options: RemoveOptions): Promise<void> {
  checkRemoveOptions(options);
  const { context, record } = snapshot;
  const store = await context.ready();
  const status = await removeJob(store, context.stored, record.id, options);
  if (status === 'locked') throw locked(snapshot, 'remove');
  if (status === 'scheduled') throw scheduled(snapshot);
  if (status === 'done') context.removed?.(record.id);
}

async function settle(snapshot: JobSnapshot, outcome: Outcome, action: string, fetchNext: boolean): Promise<NextJob> {
  const { status, next } = await (await snapshot.holder()).settle(outcome, fetchNext);
  snapshot.accept(status, action);
  if (outcome.kind === 'delay' || outcome.kind === 'release') snapshot.moved(outcome);
  else snapshot.settled(outcome);
  return next === undefined ? [] : [jsonOfClaimed(next, snapshot.alias), next.id];
}

async function change(snapshot: JobSnapshot, action: string, change: Change, wanted: string): Promise<void> {
  const { context, record } = snapshot;
  const store = await context.ready();
  const { changed, others } = await store.change(context.stored, [record.id], change);
  if (changed.length > 0) return;
  if (others[0]?.status === 'missing') throw snapshot.missing(action);
  if (others[0]?.status === 'noStep') throw noStep(snapshot, action);
  const [found] = (await store.jobs(context.stored, [record.id])).jobs;
  if (found?.state === 'active') throw locked(snapshot, action);
  throw new HoldfastError(
    'JOB_STATE',
    `${action}: job ${record.id} of queue "${context.name}" is not ${wanted}, so nothing changed.`,
    {
      jobId: record.id,
      queue: context.name,
    },
  );
}

function noStep({ record: { id: jobId }, context: { name: queue } }: JobSnapshot, action: string): HoldfastError {
  const message = `${action}: job ${jobId} of queue "${queue}" has recorded no such step, so nothing changed. job.steps() lists them.`;
  return new HoldfastError('INVALID_STEP', message, { jobId, queue });
}

/** Programs written for BullMQ match this text. */
function scheduled({ record: { id: jobId }, context: { name: queue } }: JobSnapshot): HoldfastError {
  const message = `Job ${jobId} belongs to a job scheduler and cannot be removed directly. Remove or pause its job scheduler.`;
  return new HoldfastError('JOB_STATE', message, { jobId, queue });
}

function locked({ record: { id: jobId }, context: { name: queue } }: JobSnapshot, action: string): HoldfastError {
  const hint = 'Wait for its run to end, or take its lock away first.';
  const message = `${action}: job ${jobId} of queue "${queue}" is being worked on, so it stays as it is. ${hint}`;
  return new HoldfastError('JOB_LOCKED', message, { jobId, queue });
}
