// Dead letters of the SQLite store. All queues are in one file, so a letter arrives in the transaction that sends it.
import { jobOfLetter, letterId } from '../../job/dead-letter.js';
import type { Origin } from '../../job/origin.js';
import type { JobRecord } from '../../job/record.js';
import { MARK } from '../marks.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, type JobRow, keyFieldOf, type LeftRow, toRecord } from './record.js';
import type { Entering } from './state/enter.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

/** A letter that goes back. */
export type Letter = JobRecord & { origin: Origin };

export class Letters {
  readonly #entering: Entering;
  readonly #read: Statement<JobRow>;
  readonly #exists: Statement<[number]>;

  constructor(db: Database, entering: Entering) {
    this.#entering = entering;
    this.#read = sql(db, 'read-job', 'job');
    this.#exists = sql(db, 'job-number', 'queue id');
  }

  /** Call it when a job has failed for good, while its row is there. `fence`: that of its run. */
  send(transaction: Transaction, queue: QueueState, row: readonly [...LeftRow, ...Value[]], fence: number): void {
    const job = (row[AT.marks] & MARK.letter) === 0 ? undefined : this.#jobIn(row[AT.job]);
    if (job?.deadLetter === undefined) return;
    const { id, name, data, opts, timestamp, priority, group, attemptsMade, deadLetter } = job;
    const { failedReason = '', finishedOn: failedOn = 0 } = job;
    const cause = { failedReason, attemptsMade, failedOn };
    const origin: Origin = { queue: queue.name, id, ...cause, priority, deadLetter, ...keyFieldOf(row) };
    if (group !== undefined) origin.group = group;
    const letter = { name, data, opts, timestamp, priority: 0, delayMs: 0, lifo: false, origin };
    this.#entering.enter(transaction, transaction.queue(deadLetter), letterId(origin, fence), letter);
  }

  /** Returns the letter in a row; undefined if the job is no letter. */
  find(row: readonly [...LeftRow, ...Value[]]): Letter | undefined {
    const job = row[AT.extras] === null ? undefined : this.#jobIn(row[AT.job]);
    return job?.origin === undefined ? undefined : { ...job, origin: job.origin };
  }

  /** Adds the job of a letter to the queue `to`. The caller has removed the letter in the same transaction. */
  sendBack(transaction: Transaction, letter: Letter, to: string): void {
    const { origin } = letter;
    const target = transaction.queue(to);
    const id = this.#exists.get(target.queue, origin.id) === undefined ? origin.id : letter.id;
    this.#entering.enter(transaction, target, id, jobOfLetter(letter, id, origin));
  }

  #jobIn(job: number): JobRecord | undefined {
    const row = this.#read.get(job);
    return row === undefined ? undefined : toRecord(row);
  }
}
