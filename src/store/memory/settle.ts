// The verb `settle` of the memory store: carries out the outcomes of runs, and then the claim that came with them.
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import { anyWaiting, claim } from './claim.js';
import { putDelayed, putFinished, putWaiting, take } from './moves.js';
import { retain } from './retention.js';
import { giveBack } from './stall.js';
import type { QueueState, StoredJob, StoredLock } from './state.js';

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
  if (drained) queue.log.tell('drained');
  return reply;
}

function settleOnce(queue: QueueState, outcomes: Outcome[], call: Call | undefined, now: number): SettleStatus[] {
  const remembered = call === undefined ? undefined : queue.settles.recall(call);
  if (remembered !== undefined) return [...remembered];
  const results = outcomes.map((outcome) => settleOne(queue, outcome, now));
  // A worker may repeat its last call for as long as its session is open.
  const lasting = (caller: string) => queue.sessions.get(caller)?.open === true;
  if (call !== undefined) queue.settles.remember(call, [...results], now, lasting);
  return results;
}

function settleOne(queue: QueueState, outcome: Outcome, now: number): SettleStatus {
  const job = queue.active.get(outcome.jobId) ?? queue.jobs.get(outcome.jobId);
  if (job === undefined) return 'missing';
  const { lock } = job;
  if (lock?.token === outcome.token) {
    carryOut(queue, job, lock, outcome, now);
    return 'done';
  }
  return job.finishedBy === outcome.token && job.state === outcome.kind ? 'done' : 'lost';
}

function carryOut(queue: QueueState, job: StoredJob, lock: StoredLock, outcome: Outcome, now: number): void {
  switch (outcome.kind) {
    case 'completed':
      take(queue, job);
      job.attemptsMade++;
      job.returnvalue = outcome.value;
      job.setFinisher(lock);
      putFinished(queue, job, 'completed', now);
      tellCompleted(queue, job.id, outcome);
      retain(queue, job, outcome.keep, now);
      break;
    case 'failed':
      take(queue, job);
      chargeFailure(job, outcome);
      job.setFinisher(lock);
      putFinished(queue, job, 'failed', now);
      queue.log.tell('failed', job.id, { failedReason: outcome.reason, prev: 'active' }, outcome.reason.length);
      if (outcome.early !== true) queue.log.tell('retries-exhausted', job.id, { attemptsMade: job.attemptsMade });
      retain(queue, job, outcome.keep, now);
      break;
    case 'retry':
      take(queue, job);
      chargeFailure(job, outcome);
      if (outcome.delayMs > 0) {
        putDelayed(queue, job, outcome.delayMs, now);
        queue.log.tell('delayed', job.id, { delay: Math.ceil(job.at), failedReason: outcome.reason }, outcome.reason.length);
      } else {
        putWaiting(queue, job, outcome.lifo);
        queue.log.tell('waiting', job.id, { prev: 'active', failedReason: outcome.reason }, outcome.reason.length);
      }
      break;
    case 'delay':
      take(queue, job);
      putDelayed(queue, job, outcome.delayMs, now);
      queue.log.tell('delayed', job.id, { delay: Math.ceil(job.at) });
      break;
    case 'release':
      giveBack(queue, [job]);
      break;
    case 'return':
      job.attemptsStarted--;
      giveBack(queue, [job]);
      break;
  }
}

function tellCompleted(queue: QueueState, jobId: string, { value, keep }: Extract<Outcome, { kind: 'completed' }>): void {
  if (value === 'null') queue.log.tell('completed', jobId, NO_VALUE);
  // A job that is removed now leaves only this event, so the event carries even a large value.
  else if (keep.count !== 0 && isLargeValue(value)) queue.log.tell('completed', jobId, LARGE_VALUE);
  else queue.log.tell('completed', jobId, { returnvalue: value, prev: 'active' }, value.length);
}

function chargeFailure(job: StoredJob, { reason, stacktrace }: { reason: string; stacktrace: string }): void {
  job.attemptsMade++;
  job.failedReason = reason;
  job.stacktrace = stacktrace;
}
