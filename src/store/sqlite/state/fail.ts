// Fails a job for a reason that is not an outcome of its run: it stalled too often, or it was cancelled.
import type { Keep } from '../../../job/outcome.js';
import { keepOnFail } from '../../../job/options.js';
import type { StoredState } from '../../../job/state.js';
import { STALLED_REASON } from '../../contract/index.js';
import { MARK } from '../../marks.js';
import type { Database, Statement, Value } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Leaving } from '../leave.js';
import { AT, fieldsOf, type FoundRow, type LeftRow } from '../record.js';
import type { Retention } from '../retention.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

/** A row of any statement that begins with these columns. */
type Left = readonly [...LeftRow, ...Value[]];

interface Failure {
  reason: string;
  from: StoredState;
  fence: number;
  /** The session that lost the job. Null: the row of the session is missing. Absent: no session has lost it. */
  lostBy?: string | null;
}

export class Failing {
  readonly #leaving: Leaving;
  readonly #retention: Retention;
  readonly #failStalled: Statement<[opts: string]>;
  readonly #failCancelled: Statement<[opts: string]>;
  readonly #find: Statement<FoundRow>;

  constructor(db: Database, leaving: Leaving, retention: Retention) {
    this.#leaving = leaving;
    this.#retention = retention;
    this.#failStalled = sql(db, 'fail-stalled', 'ord lostBy now reason job');
    this.#failCancelled = sql(db, 'fail-cancelled', 'ord now reason job');
    this.#find = sql(db, 'find-job', 'queue id');
  }

  /** Fails a cancelled job that would wait again, or one that is cancelled in this step. Returns how many failed jobs stay. */
  cancelled(transaction: Transaction, queue: QueueState, row: Left, from: StoredState, reason = reasonOf(row)): Keep {
    const [opts] = this.#failCancelled.get(queue.toBack(), transaction.now, reason, row[AT.job]) ?? ['{}'];
    return this.#end(transaction, queue, withoutLetter(row), opts, { reason, from, fence: 0 });
  }

  /** Fails a job whose owner lost it, because it stalled too often or was cancelled. */
  stalled(transaction: Transaction, queue: QueueState, row: Left, lostBy: string | null): void {
    // The failed row does not have the fence.
    const fence = (row[AT.marks] & MARK.letter) === 0 ? 0 : (this.#find.get(queue.queue, row[AT.id])?.[AT.fence] ?? 0);
    const reason = isCancelled(row) ? reasonOf(row) : STALLED_REASON;
    const [opts] = this.#failStalled.get(queue.toBack(), lostBy, transaction.now, reason, row[AT.job]) ?? ['{}'];
    this.#end(transaction, queue, row, opts, { reason, from: 'active', fence, lostBy });
  }

  #end(transaction: Transaction, queue: QueueState, row: Left, opts: string, failure: Failure): Keep {
    const { reason, from, fence, lostBy } = failure;
    const lost = lostBy === undefined || lostBy === null ? {} : { lostBy };
    queue.record('failed', row[AT.id], { failedReason: reason, ...(from !== 'active' && { prev: from }), ...lost });
    this.#leaving.finish(transaction, queue, row, 'failed', { text: reason, fence, isKept: true, from });
    const keep = keepOnFail(opts);
    if (keep.count === 0) this.#leaving.drop(transaction, queue, row, 'failed', 'trimmed');
    else this.#retention.trim(transaction, queue, 'failed', [keep]);
    return keep;
  }
}

export function isCancelled({ [AT.marks]: marks }: Left): boolean {
  return (marks & MARK.cancelled) !== 0;
}

/** Returns why a cancelled job was cancelled. */
function reasonOf(row: Left): string {
  return fieldsOf(row).cancelled ?? '';
}

/** Returns the row of a cancelled job, which sends no letter. */
function withoutLetter(row: Left): Left {
  if ((row[AT.marks] & MARK.letter) === 0) return row;
  const marked: [...LeftRow, ...Value[]] = [...row];
  marked[AT.marks] |= MARK.cancelled;
  return marked;
}
