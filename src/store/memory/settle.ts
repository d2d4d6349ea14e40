// The verb `settle` of the memory store: carries out the outcomes of runs, and then the claim that came with them.
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import { anyWaiting, claim } from './claim.js';
import { ended, leave } from './leave.js';
import { FROM, putDelayed, putFinished, putParent, putWaiting } from './state/moves.js';
import { retain } from './retention.js';
import { failCancelled, isCancelled } from './state/fail.js';
import { giveBack } from './state/stall.js';
import { recordStep, setAwaited } from './state/steps.js';
import type { QueueState, StoredJob, StoredLock, StoredSession } from './state/queue-state.js';

/** Event fields of a job whose processor returned nothing; all such events share this object. */
const NO_VALUE = { returnvalue: 'null', prev: 'active' } as const;
const LARGE_VALUE = { large: 1, prev: 'active' } as const;

export function settle(
  queue: QueueState,
  outcomes: Outcome[],
  call: Call | undefined,
  request: ClaimRequest | undefined,
  now: number,
): SettleReply {
  const finishesBefore = queue.finishes;
  const results = settleOnce(queue, outcomes, call, now);
  const reply: SettleReply = request === undefined ? { results } : { results, claimed: claim(queue, request, now) };
  const session = call === undefined ? undefined : queue.sessions.get(call.caller);
  // Record the number after the claim, because a claim in the same call has the same number.
  if (call !== undefined) session?.called(call.seq, call.lane);
  const drained = queue.finishes > finishesBefore && queue.active.size === 0 && !anyWaiting(queue, now);
  if (drained) queue.log.record('drained');
  return reply;
}

function settleOnce(queue: QueueState, outcomes: Outcome[], call: Call | undefined, now: number): SettleStatus[] {
  const remembered = call === undefined ? undefined : queue.settles.recall(call);
  if (remembered !== undefined) return [...remembered];
  const session = call === undefined ? undefined : queue.sessions.get(call.caller);
  const results = outcomes.map((outcome) => settleOne(queue, session, outcome, now));
  // A worker may repeat its last call for as long as its session is open.
  const lasting = (caller: string) => queue.sessions.get(caller)?.open === true;
  if (call !== undefined) queue.settles.remember(call, [...results], now, lasting);
  return results;
}

function settleOne(queue: QueueState, session: StoredSession | undefined, outcome: Outcome, now: number): SettleStatus {
  // Runs often end in the order of their claims. Finding a job by its id among a million takes 0.3 µs.
  const first = session?.bound.first;
  const job = first?.token === outcome.token && first.job.id === outcome.jobId ? first.job : queue.jobs.get(outcome.jobId);
  if (job === undefined) return 'missing';
  const { lock } = job;
  if (lock?.token === outcome.token) {
    const refusal = job.marks === 0 && !mayBeRefused(outcome) ? undefined : refusalOf(queue, job, outcome);
    if (refusal !== undefined) return refusal;
    if (isCancelled(job) && waitsAgain(outcome)) failCancelled(queue, job, job.extras?.cancelled ?? '', now);
    else carryOut(queue, job, lock, outcome, now);
    return 'done';
  }
  return job.finishedBy === outcome.token && job.state === outcome.kind ? 'done' : 'lost';
}

function carryOut(queue: QueueState, job: StoredJob, lock: StoredLock, outcome: Outcome, now: number): void {
  switch (outcome.kind) {
    case 'completed':
      leave(queue, job);
      job.attemptsMade++;
      job.returnvalue = outcome.value;
      job.setFinisher(lock);
      putFinished(queue, job, 'completed', now);
      recordCompleted(queue, job.id, outcome);
      ended(queue, job, lock.order, now);
      retain(queue, job, outcome.keep, now);
      break;
    case 'failed':
      leave(queue, job);
      chargeFailure(job, outcome);
      job.setFinisher(lock);
      putFinished(queue, job, 'failed', now);
      queue.log.record('failed', job.id, { failedReason: outcome.reason, prev: 'active' }, outcome.reason.length);
      if (outcome.early !== true) queue.log.record('retries-exhausted', job.id, { attemptsMade: job.attemptsMade });
      ended(queue, job, lock.order, now);
      retain(queue, job, outcome.keep, now);
      break;
    case 'retry':
      leave(queue, job);
      chargeFailure(job, outcome);
      if (outcome.delayMs > 0) {
        putDelayed(queue, job, outcome.delayMs, now);
        setAwaited(job, undefined);
        queue.log.record('delayed', job.id, { delay: Math.ceil(job.at), failedReason: outcome.reason }, outcome.reason.length);
      } else {
        putWaiting(queue, job, outcome.lifo);
        queue.log.record('waiting', job.id, { prev: 'active', failedReason: outcome.reason }, outcome.reason.length);
      }
      break;
    case 'delay':
      leave(queue, job);
      putDelayed(queue, job, outcome.delayMs, now);
      setAwaited(job, outcome.awaits);
      queue.log.record('delayed', job.id, { delay: Math.ceil(job.at) });
      break;
    case 'children':
      leave(queue, job);
      putParent(queue, job, 0);
      queue.log.record('waiting-children', job.id, FROM.active);
      break;
    case 'release':
      giveBack(queue, [job], now);
      break;
    case 'return':
      job.attemptsStarted--;
      giveBack(queue, [job], now);
      break;
  }
}

function mayBeRefused(outcome: Outcome): boolean {
  return outcome.kind === 'children' || (outcome.kind === 'delay' && outcome.step !== undefined);
}

/** True for an outcome after which the job runs again. */
function waitsAgain({ kind }: Outcome): boolean {
  return kind !== 'completed' && kind !== 'failed';
}

/** Returns why the children or the steps of a job refuse the outcome; undefined if they do not. Records the step of the outcome. */
function refusalOf(queue: QueueState, job: StoredJob, outcome: Outcome): SettleStatus | undefined {
  if (outcome.kind === 'delay') return recordWith(job, outcome);
  if (outcome.kind !== 'completed' && outcome.kind !== 'children') return undefined;
  const links = queue.links.get(job.id);
  const { pending = 0, failed = 0 } = links?.counts ?? {};
  if (failed > 0) return 'unsuccessful';
  if (outcome.kind === 'completed') return pending > 0 ? 'pending' : undefined;
  const waits = outcome.child === undefined ? pending > 0 : links?.get(outcome.child)?.state === 'pending';
  return waits ? undefined : 'ready';
}

function recordWith(job: StoredJob, { step, awaits }: Extract<Outcome, { kind: 'delay' }>): SettleStatus | undefined {
  if (awaits !== undefined && job.steps?.get(awaits) !== undefined) return 'ready';
  if (step === undefined) return undefined;
  if (recordStep(job, step) === undefined) return 'full';
  job.stalledCounter = 0;
  return undefined;
}

function recordCompleted(queue: QueueState, jobId: string, { value, keep }: Extract<Outcome, { kind: 'completed' }>): void {
  if (value === 'null') queue.log.record('completed', jobId, NO_VALUE);
  // A job that is removed now leaves only this event, so the event carries even a large value.
  else if (keep.count !== 0 && isLargeValue(value)) queue.log.record('completed', jobId, LARGE_VALUE);
  else queue.log.record('completed', jobId, { returnvalue: value, prev: 'active' }, value.length);
}

function chargeFailure(job: StoredJob, { reason, stacktrace }: { reason: string; stacktrace: string }): void {
  job.attemptsMade++;
  job.failedReason = reason;
  job.stacktrace = stacktrace;
}
