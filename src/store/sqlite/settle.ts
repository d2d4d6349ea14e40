// The verb `settle` of the SQLite store: carries out the outcomes of runs, and then the claim that came with them.
import type { Keep, Outcome, SettleStatus } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import { isLargeValue } from '../budget.js';
import { MARK } from '../marks.js';
import type { Call, ClaimRequest, SettleReply } from '../contract/index.js';
import type { Callers } from './state/callers.js';
import type { Claiming } from './claim.js';
import { type Completed, CompletedRuns, runFrom } from './state/completed-run.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, type FoundRow, type LeftRow, splitToken } from './record.js';
import type { Leaving } from './leave.js';
import { type EventFields, LARGE_VALUE, NO_VALUE } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';
import type { Retention } from './retention.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

type Of<Kind extends Outcome['kind']> = Extract<Outcome, { kind: Kind }>;
/** A job and its attempts before this one. */
type Ended = [...LeftRow, attemptsMade: number];
/** The row of a job that a fast path has completed: shared/plain.sql. */
const PLAIN_ROW: Ended = [0, '', 0, 0, null, 0, null, 0];
type Finished = Record<FinishedState, Keep[]>;

const LETTERS: Record<SettleStatus, string> = { done: 'd', lost: 'l', missing: 'm', pending: 'p', unsuccessful: 'u', ready: 'r' };
const STATUSES = new Map(Object.entries(LETTERS).map(([status, letter]) => [letter, status as SettleStatus]));

export class Settling {
  readonly #callers: Callers;
  readonly #claiming: Claiming;
  readonly #leaving: Leaving;
  readonly #retention: Retention;
  readonly #runs: CompletedRuns;
  /**
   * The queues in which the last job that completed by a statement of its own was of a group. The next one probably is too, and the fast
   * paths of plain jobs would not find it.
   */
  readonly #grouped = new Set<number>();
  readonly #completePlain: Statement;
  readonly #complete: Statement<Ended>;
  readonly #fail: Statement<Ended>;
  readonly #remove: Statement<Ended>;
  readonly #retryNow: Statement<LeftRow>;
  readonly #retryLater: Statement<LeftRow>;
  readonly #delay: Statement<LeftRow>;
  readonly #release: Statement<LeftRow>;
  readonly #find: Statement<FoundRow>;

  constructor(db: Database, callers: Callers, claiming: Claiming, leaving: Leaving, retention: Retention) {
    this.#callers = callers;
    this.#claiming = claiming;
    this.#leaving = leaving;
    this.#retention = retention;
    this.#runs = new CompletedRuns(db);
    this.#completePlain = sql(db, 'complete-plain', 'ord now value queue id session fence');
    this.#complete = sql(db, 'complete', 'ord now value queue id session fence');
    this.#fail = sql(db, 'fail', 'ord now reason stacktrace queue id session fence');
    this.#remove = sql(db, 'finish-and-remove', 'queue id session fence');
    this.#retryNow = sql(db, 'retry-now', 'ord reason stacktrace queue id session fence');
    this.#retryLater = sql(db, 'retry-later', 'ord delay dueAt reason stacktrace queue id session fence');
    this.#delay = sql(db, 'delay', 'ord delay dueAt queue id session fence');
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
      if (finished[state].length > 0) this.#retention.trim(queue, state, finished[state], transaction.now);
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
      queue.tell('drained');
    return reply;
  }

  #settleAll(transaction: Transaction, queue: QueueState, outcomes: Outcome[], finished: Finished): SettleStatus[] {
    const results: SettleStatus[] = [];
    while (results.length < outcomes.length) {
      const run = this.#grouped.has(queue.queue) ? undefined : runFrom(outcomes, results.length);
      if (run === undefined) {
        results.push(this.#settleOne(transaction, queue, outcomes[results.length] as Outcome, finished));
        continue;
      }
      const completed = this.#runs.complete(queue, run, transaction.now);
      run.outcomes.forEach((outcome, index) => {
        if (completed[index] !== true) {
          results.push(this.#settleOne(transaction, queue, outcome, finished));
          return;
        }
        tellCompleted(queue, outcome);
        this.#leaving.finish(transaction, queue, PLAIN_ROW, 'completed');
        finished.completed.push(outcome.keep);
        results.push('done');
      });
    }
    return results;
  }

  #settleOne(transaction: Transaction, queue: QueueState, outcome: Outcome, finished: Finished): SettleStatus {
    const { session, fence } = splitToken(outcome.token);
    const owned = [queue.queue, outcome.jobId, session, fence] as const;
    switch (outcome.kind) {
      case 'completed':
        if (!this.#finish(transaction, queue, outcome, owned)) break;
        finished.completed.push(outcome.keep);
        return 'done';
      case 'failed':
        if (!this.#finish(transaction, queue, outcome, owned)) break;
        finished.failed.push(outcome.keep);
        return 'done';
      case 'retry':
        if (!this.#retry(transaction, queue, outcome, owned)) break;
        return 'done';
      case 'delay': {
        const dueAt = transaction.after(outcome.delayMs);
        const row = this.#delay.get(queue.toBack(), outcome.delayMs, dueAt, ...owned);
        if (row === undefined) break;
        this.#toDelayed(queue, row, { delay: dueAt });
        return 'done';
      }
      case 'release':
      case 'return': {
        const row = this.#release.get(queue.toFront(), outcome.kind === 'return' ? 1 : 0, ...owned);
        if (row === undefined) break;
        this.#leaving.wait(queue, row, 'active');
        return 'done';
      }
    }
    return this.#judge(queue, outcome, session, fence);
  }

  #finish(
    transaction: Transaction,
    queue: QueueState,
    outcome: Of<'completed'> | Of<'failed'>,
    owned: readonly [number, string, string, number],
  ): boolean {
    const { jobId, kind, keep } = outcome;
    const row = keep.count === 0 ? this.#remove.get(...owned) : this.#finishAndKeep(queue, outcome, owned, transaction.now);
    if (row === undefined) return false;
    if (outcome.kind === 'completed') {
      tellCompleted(queue, outcome);
    } else {
      queue.tell('failed', jobId, { failedReason: outcome.reason });
      if (outcome.early !== true) queue.tell('retries-exhausted', jobId, { attemptsMade: (row.at(-1) as number) + 1 });
    }
    this.#leaving.finish(transaction, queue, row, kind, keep.count !== 0);
    return true;
  }

  #finishAndKeep(
    queue: QueueState,
    outcome: Of<'completed'> | Of<'failed'>,
    owned: readonly [number, string, string, number],
    now: number,
  ): Ended | undefined {
    const ord = queue.toBack();
    if (outcome.kind === 'failed') return this.#fail.get(ord, now, outcome.reason, outcome.stacktrace, ...owned);
    const isGrouped = this.#grouped.has(queue.queue);
    if (!isGrouped && this.#completePlain.run(ord, now, outcome.value, ...owned) === 1) return PLAIN_ROW;
    const row = this.#complete.get(ord, now, outcome.value, ...owned);
    if (row !== undefined) this.#noteKind(queue, row);
    return row;
  }

  #noteKind({ queue }: QueueState, row: Ended): void {
    if ((row[AT.marks] & MARK.key) !== 0) this.#grouped.add(queue);
    else this.#grouped.delete(queue);
  }

  #retry(
    transaction: Transaction,
    queue: QueueState,
    outcome: Of<'retry'>,
    owned: readonly [number, string, string, number],
  ): boolean {
    const { delayMs, lifo, reason, stacktrace } = outcome;
    if (delayMs > 0) {
      const dueAt = transaction.after(delayMs);
      const row = this.#retryLater.get(queue.toBack(), delayMs, dueAt, reason, stacktrace, ...owned);
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
    queue.tell('delayed', row[1], fields);
    this.#leaving.leave(queue, row, 'active', 'delayed');
  }

  /** Returns why an outcome found no row to change. */
  #judge(queue: QueueState, { jobId, kind }: Outcome, session: string, fence: number): SettleStatus {
    const row = this.#find.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    const repeated =
      (kind === 'completed' || kind === 'failed') &&
      row[AT.state] === STATE[kind] &&
      row[AT.session] === session &&
      row[AT.fence] === fence;
    return repeated ? 'done' : 'lost';
  }
}

function tellCompleted(queue: QueueState, { jobId, value, keep }: Completed): void {
  if (value === NO_VALUE) queue.tell('completed', jobId);
  // A job that is removed now leaves only this event, so the event carries even a large value.
  else queue.tell('completed', jobId, keep.count !== 0 && isLargeValue(value) ? LARGE_VALUE : { returnvalue: value });
}

function encode(results: SettleStatus[]): string {
  return results.map((status) => LETTERS[status]).join('');
}

function decode(text: string): SettleStatus[] {
  return Array.from(text, (letter) => STATUSES.get(letter) as SettleStatus);
}
