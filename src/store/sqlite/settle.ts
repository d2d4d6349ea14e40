// The verb `settle` of the SQLite store: carries out the outcomes of runs, and then the claim that came with them.
import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import { isLargeValue } from '../budget.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import type { Callers } from './state/callers.js';
import type { Claiming } from './claim.js';
import { CompletedMarked, type Unsent } from './state/completed-marked.js';
import { type Completed, CompletedRuns, isRemoved, type Run, runFrom } from './state/completed-run.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, type FoundRow, type LeftRow, splitToken } from './record.js';
import type { Ending, Leaving } from './leave.js';
import { type EventFields, LARGE_VALUE, NO_VALUE } from './state/event-rows.js';
import { type Failing, isCancelled } from './state/fail.js';
import type { QueueState } from './state/queue-state.js';
import type { Retention } from './retention.js';
import { STATE } from './state/schema.js';
import type { Steps } from './state/steps.js';
import type { Transaction } from './state/transaction.js';

type Of<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>;
/** Outcomes after which the job runs again. */
type Waiting = Exclude<Outcome['kind'], 'completed' | 'failed'>;
/** A job and its attempts before this one. */
type Ended = [...LeftRow, attemptsMade: number];
/** The row of a job that a fast path has completed: `plain` in sql/jobs.sql. */
const PLAIN_ROW: Ended = [0, '', 0, 0, null, 0, null, 0];
const PLAIN_KEPT: Ending = { text: '', fence: 0, isKept: true };
const PLAIN_REMOVED: Ending = { text: '', fence: 0, isKept: false };
/** `under-token` in sql/jobs.sql */
type Owned = readonly [queue: number, id: string, session: string, fence: number];
type Finished = Record<FinishedState, Keep[]>;

const LETTERS: Record<SettleStatus, string> = {
  done: 'd',
  lost: 'l',
  missing: 'm',
  pending: 'p',
  unsuccessful: 'u',
  ready: 'r',
  full: 'f',
  ended: 'e',
};
const STATUSES = new Map(Object.entries(LETTERS).map(([status, letter]) => [letter, status as SettleStatus]));

export interface SettlingParts {
  leaving: Leaving;
  retention: Retention;
  steps: Steps;
  failing: Failing;
}

export class Settling {
  readonly #callers: Callers;
  readonly #claiming: Claiming;
  readonly #leaving: Leaving;
  readonly #retention: Retention;
  readonly #steps: Steps;
  readonly #failing: Failing;
  readonly #runs: CompletedRuns;
  readonly #marked: CompletedMarked;
  readonly #completePlain: Statement;
  readonly #complete: Statement<Ended>;
  readonly #fail: Statement<Ended>;
  readonly #completeParent: Statement<Ended>;
  readonly #remove: Record<FinishedState, Statement<Ended>>;
  readonly #park: Statement<LeftRow>;
  readonly #retryNow: Statement<LeftRow>;
  readonly #retryLater: Statement<LeftRow>;
  readonly #retryMarkedLater: Statement<LeftRow>;
  readonly #delay: Statement<LeftRow>;
  readonly #delayMarked: Statement<LeftRow>;
  readonly #release: Statement<LeftRow>;
  readonly #find: Statement<FoundRow>;

  constructor(db: Database, callers: Callers, claiming: Claiming, { leaving, retention, steps, failing }: SettlingParts) {
    this.#callers = callers;
    this.#claiming = claiming;
    this.#leaving = leaving;
    this.#retention = retention;
    this.#steps = steps;
    this.#failing = failing;
    this.#runs = new CompletedRuns(db);
    this.#marked = new CompletedMarked(db, leaving.families);
    this.#completePlain = sql(db, 'complete-plain', 'ord now value queue id session fence');
    this.#complete = sql(db, 'complete', 'ord now value queue id session fence');
    this.#fail = sql(db, 'fail', 'ord now reason stacktrace queue id session fence');
    this.#completeParent = sql(db, 'complete-parent', 'ord now value queue id session fence');
    this.#remove = {
      completed: sql(db, 'finish-and-remove', 'queue id session fence'),
      failed: sql(db, 'fail-and-remove', 'queue id session fence'),
    };
    this.#park = sql(db, 'park', 'ord queue id session fence');
    this.#retryNow = sql(db, 'retry-now', 'ord reason stacktrace queue id session fence');
    const failed = 'ord delay dueAt reason stacktrace queue id session fence';
    this.#retryLater = sql(db, 'retry-later', failed);
    this.#retryMarkedLater = sql(db, 'retry-marked-later', failed);
    const delayed = 'ord delay dueAt queue id session fence';
    this.#delay = sql(db, 'delay', delayed);
    this.#delayMarked = sql(db, 'delay-marked', delayed);
    this.#release = sql(db, 'release', 'ord unstarted queue id session fence');
    this.#find = sql(db, 'find-job', 'queue id');
  }

  settle(transaction: Transaction, name: string, outcomes: Outcome[], call?: Call, claim?: ClaimRequest): SettleReply {
    const queue = transaction.queue(name);
    const recalled = call === undefined ? undefined : this.#callers.recall(queue.queue, call);
    const remembered = recalled?.reply;
    const finished: Finished = { completed: [], failed: [] };
    const results = remembered === undefined ? this.#settleAll(transaction, queue, outcomes, finished) : decode(remembered);
    for (const state of ['completed', 'failed'] as const) {
      if (finished[state].length > 0) this.#retention.trim(transaction, queue, state, finished[state]);
    }
    const reply: SettleReply = { results };
    if (claim !== undefined) {
      const sameCaller = call?.caller === claim.session;
      const remember = !(sameCaller && call?.seq === claim.seq);
      const lastSeq = sameCaller ? recalled?.lastSeq : undefined;
      reply.claimed = this.#claiming.claim(transaction, queue, claim, { remember, lastSeq, isSettle: true });
    }
    // Store the number after the claim. Otherwise the claim in the same call would take its number for that of an earlier call.
    if (call !== undefined && remembered === undefined)
      this.#callers.remember(queue.queue, call, encode(results), transaction.now);
    const anyFinished = finished.completed.length + finished.failed.length > 0;
    if (anyFinished && queue.active === 0 && queue.allWaiting === 0 && !this.#claiming.anyDue(queue, transaction.now))
      queue.record('drained');
    return reply;
  }

  #settleAll(transaction: Transaction, queue: QueueState, outcomes: Outcome[], finished: Finished): SettleStatus[] {
    const results: SettleStatus[] = [];
    const unsent: Unsent = new Map();
    while (results.length < outcomes.length) {
      const outcome = outcomes[results.length] as Outcome;
      if (this.#completeMarked(transaction, queue, outcome, finished, unsent)) {
        results.push('done');
        continue;
      }
      this.#marked.send(transaction, queue, unsent);
      const run = runFrom(outcomes, results.length);
      if (run === undefined) results.push(this.#settleOne(transaction, queue, outcome, finished));
      else results.push(...this.#settleRun(transaction, queue, run, finished));
    }
    this.#marked.send(transaction, queue, unsent);
    return results;
  }

  #completeMarked(transaction: Transaction, queue: QueueState, outcome: Outcome, finished: Finished, unsent: Unsent): boolean {
    const extras = this.#claiming.extrasOf.take(outcome.token);
    if (extras === undefined || outcome.kind !== 'completed' || outcome.keep.count === 0) return false;
    if (!this.#marked.complete(queue, outcome, extras, transaction.now, unsent)) return false;
    this.#endCompleted(transaction, queue, outcome, finished);
    return true;
  }

  #settleRun(transaction: Transaction, queue: QueueState, run: Run, finished: Finished): SettleStatus[] {
    const completed = this.#runs.complete(queue, run, transaction.now);
    return run.outcomes.map((outcome, index) => {
      if (completed[index] !== true) return this.#settleOne(transaction, queue, outcome, finished);
      this.#endCompleted(transaction, queue, outcome, finished);
      return 'done';
    });
  }

  /** Ends the run of a job that a fast path has completed. */
  #endCompleted(transaction: Transaction, queue: QueueState, outcome: Completed, finished: Finished): void {
    recordCompleted(queue, outcome);
    this.#leaving.finish(transaction, queue, PLAIN_ROW, 'completed', isRemoved(outcome) ? PLAIN_REMOVED : PLAIN_KEPT);
    finished.completed.push(outcome.keep);
  }

  #settleOne(transaction: Transaction, queue: QueueState, outcome: Outcome, finished: Finished): SettleStatus {
    const { session, fence } = splitToken(outcome.token);
    const owned: Owned = [queue.queue, outcome.jobId, session, fence];
    switch (outcome.kind) {
      case 'completed':
      case 'failed':
        if (!this.#finish(transaction, queue, outcome, owned)) break;
        finished[outcome.kind].push(outcome.keep);
        return 'done';
      case 'retry':
        if (!this.#retry(transaction, queue, outcome, owned)) break;
        return 'done';
      case 'delay':
        if (outcome.step !== undefined || !this.#delayJob(transaction, queue, outcome, owned)) break;
        return 'done';
      case 'release':
      case 'return': {
        const row = this.#release.get(queue.toFront(), outcome.kind === 'return' ? 1 : 0, ...owned);
        if (row === undefined) break;
        this.#leaving.wait(queue, row, 'active');
        return 'done';
      }
      case 'children':
        break;
    }
    return this.#settleFound(transaction, queue, outcome, owned, finished);
  }

  /** Settles a job that the statements of #settleOne have not found: a parent, one with a letter or with steps, a cancelled one, or one that the token does not hold. */
  #settleFound(transaction: Transaction, queue: QueueState, outcome: Outcome, owned: Owned, finished: Finished): SettleStatus {
    const { kind, jobId } = outcome;
    const row = this.#find.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    const [, , session, fence] = owned;
    const isOwn = row[AT.session] === session && row[AT.fence] === fence;
    if (!isOwn || row[AT.state] !== STATE.active)
      return isOwn && (kind === 'completed' || kind === 'failed') && row[AT.state] === STATE[kind] ? 'done' : 'lost';
    if (kind === 'completed' || kind === 'children') {
      const refusal = this.#leaving.families.refusal(queue, outcome);
      if (refusal !== undefined) return refusal;
    }
    if (kind !== 'completed' && kind !== 'failed') return this.#waitFound(transaction, queue, row, outcome, owned, finished);
    if (!this.#finish(transaction, queue, outcome, owned, true)) return 'lost';
    finished[kind].push(outcome.keep);
    return 'done';
  }

  /** Lets a parent wait for its children, or a job with steps be delayed. A cancelled job fails instead. */
  #waitFound(
    transaction: Transaction,
    queue: QueueState,
    row: FoundRow,
    outcome: Of<Waiting>,
    owned: Owned,
    finished: Finished,
  ): SettleStatus {
    const refusal = outcome.kind === 'delay' ? this.#recordWith(row, outcome) : undefined;
    if (refusal !== undefined) return refusal;
    // The step may have changed the row.
    const current = this.#find.get(queue.queue, outcome.jobId) ?? row;
    if (isCancelled(current)) {
      finished.failed.push(this.#failing.cancelled(transaction, queue, current, 'active'));
      return 'done';
    }
    if (outcome.kind === 'children') return this.#parkParent(queue, owned);
    if (outcome.kind !== 'delay' && outcome.kind !== 'retry') return 'lost';
    this.#steps.setAwaited(current, outcome.kind === 'delay' ? outcome.awaits : undefined);
    const isDone =
      outcome.kind === 'delay'
        ? this.#delayJob(transaction, queue, outcome, owned, true)
        : this.#retry(transaction, queue, outcome, owned, true);
    return isDone ? 'done' : 'lost';
  }

  /** Records the step of a delay. Returns why the steps of the job refuse the delay; undefined if they do not. */
  #recordWith(row: FoundRow, { step, awaits }: Of<'delay'>): SettleStatus | undefined {
    if (awaits !== undefined && this.#steps.has(row, awaits)) return 'ready';
    if (step === undefined) return undefined;
    if (this.#steps.record(row, step) === undefined) return 'full';
    this.#steps.clearStalls(row);
    return undefined;
  }

  /** `isChecked`: the steps of the job allow it, and it was not cancelled. */
  #delayJob(transaction: Transaction, queue: QueueState, { delayMs }: Of<'delay'>, owned: Owned, isChecked = false): boolean {
    const dueAt = transaction.after(delayMs);
    const row = (isChecked ? this.#delayMarked : this.#delay).get(queue.toBack(), delayMs, dueAt, ...owned);
    if (row === undefined) return false;
    this.#toDelayed(queue, row, { delay: dueAt });
    return true;
  }

  #parkParent(queue: QueueState, owned: Owned): SettleStatus {
    const row = this.#park.get(queue.toBack(), ...owned);
    if (row === undefined) return 'lost';
    queue.record('waiting-children', row[AT.id], { prev: 'active' });
    this.#leaving.leave(queue, row, 'active', 'waiting-children');
    return 'done';
  }

  /** `isChecked`: the links of the job allow it, and its row is deleted only after all that follows from its end. */
  #finish(
    transaction: Transaction,
    queue: QueueState,
    outcome: Of<'completed'> | Of<'failed'>,
    owned: Owned,
    isChecked = false,
  ): boolean {
    const { jobId, kind, keep } = outcome;
    const isKept = keep.count !== 0 || isChecked;
    const row = isKept
      ? this.#finishAndKeep(queue, outcome, owned, transaction.now, isChecked)
      : this.#remove[kind].get(...owned);
    if (row === undefined) return false;
    if (outcome.kind === 'completed') {
      recordCompleted(queue, outcome);
    } else {
      queue.record('failed', jobId, { failedReason: outcome.reason });
      if (outcome.early !== true) queue.record('retries-exhausted', jobId, { attemptsMade: (row.at(-1) as number) + 1 });
    }
    const text = outcome.kind === 'completed' ? outcome.value : outcome.reason;
    this.#leaving.finish(transaction, queue, row, kind, { text, fence: owned[3], isKept });
    if (isChecked && keep.count === 0) this.#leaving.drop(transaction, queue, row, kind, 'trimmed');
    return true;
  }

  #finishAndKeep(
    queue: QueueState,
    outcome: Of<'completed'> | Of<'failed'>,
    owned: Owned,
    now: number,
    isChecked: boolean,
  ): Ended | undefined {
    const ord = queue.toBack();
    if (outcome.kind === 'failed') return this.#fail.get(ord, now, outcome.reason, outcome.stacktrace, ...owned);
    if (isChecked) return this.#completeParent.get(ord, now, outcome.value, ...owned);
    if (this.#completePlain.run(ord, now, outcome.value, ...owned) === 1) return PLAIN_ROW;
    return this.#complete.get(ord, now, outcome.value, ...owned);
  }

  #retry(transaction: Transaction, queue: QueueState, outcome: Of<'retry'>, owned: Owned, isChecked = false): boolean {
    const { delayMs, lifo, reason, stacktrace } = outcome;
    if (delayMs > 0) {
      const dueAt = transaction.after(delayMs);
      const later = isChecked ? this.#retryMarkedLater : this.#retryLater;
      const row = later.get(queue.toBack(), delayMs, dueAt, reason, stacktrace, ...owned);
      if (row === undefined) return false;
      this.#toDelayed(queue, row, { delay: dueAt, failedReason: reason });
      return true;
    }
    const row = this.#retryNow.get(lifo ? queue.toFront() : queue.toBack(), reason, stacktrace, ...owned);
    if (row === undefined) return false;
    this.#leaving.wait(queue, row, 'active', { failedReason: reason });
    return true;
  }

  #toDelayed(queue: QueueState, row: LeftRow, fields: EventFields): void {
    queue.record('delayed', row[1], fields);
    this.#leaving.leave(queue, row, 'active', 'delayed');
  }
}

function recordCompleted(queue: QueueState, { jobId, value, keep }: Completed): void {
  if (value === NO_VALUE) queue.record('completed', jobId);
  // A job that is removed now leaves only this event, so the event carries even a large value.
  else queue.record('completed', jobId, keep.count !== 0 && isLargeValue(value) ? LARGE_VALUE : { returnvalue: value });
}

function encode(results: SettleStatus[]): string {
  return results.map((status) => LETTERS[status]).join('');
}

function decode(text: string): SettleStatus[] {
  return Array.from(text, (letter) => STATUSES.get(letter) as SettleStatus);
}
