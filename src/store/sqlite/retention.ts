// Trims finished jobs. Trimming takes the oldest jobs first, and a bounded number per call; the next call trims the rest.
import type { Keep } from '../../job/outcome.js';
import type { FinishedState } from '../../job/state.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Leaving } from './leave.js';
import type { LeftRow } from './record.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

const TRIMMED_AT_ONCE = 1000;

type OldRow = [...LeftRow, finishedOn: number];

export class Retention {
  readonly #leaving: Leaving;
  readonly #oldest: Statement<OldRow>;

  constructor(db: Database, leaving: Leaving) {
    this.#leaving = leaving;
    this.#oldest = sql(db, 'oldest-finished', 'queue state count');
  }

  /**
   * Applies the `keep` options of jobs that have just finished. `{ count: 0 }` concerns its own job alone, which is already
   * deleted.
   */
  trim(transaction: Transaction, queue: QueueState, state: FinishedState, keeps: readonly Keep[]): void {
    const wanted = keeps.filter(({ count }) => count !== 0);
    const most = Math.min(...wanted.map(({ count }) => count ?? Number.POSITIVE_INFINITY));
    const age = Math.min(...wanted.map(({ ageMs }) => ageMs ?? Number.POSITIVE_INFINITY));
    const excess = Math.min(queue[state] - most, TRIMMED_AT_ONCE);
    if (excess > 0) this.#drop(transaction, queue, state, this.#oldest.all(queue.queue, STATE[state], excess));
    if (age < Number.POSITIVE_INFINITY) this.#dropAged(transaction, queue, state, transaction.now - age);
  }

  /** Reads one row as long as no job is old enough. A condition in the query would read all kept jobs. */
  #dropAged(transaction: Transaction, queue: QueueState, state: FinishedState, latest: number): void {
    const [first] = this.#oldest.all(queue.queue, STATE[state], 1);
    if (first === undefined || finishedOnOf(first) > latest) return;
    const rows = this.#oldest.all(queue.queue, STATE[state], TRIMMED_AT_ONCE);
    this.#drop(
      transaction,
      queue,
      state,
      rows.filter((row) => finishedOnOf(row) <= latest),
    );
  }

  #drop(transaction: Transaction, queue: QueueState, state: FinishedState, rows: OldRow[]): void {
    for (const row of rows) this.#leaving.drop(transaction, queue, row, state, 'trimmed');
  }
}

function finishedOnOf(row: OldRow): number {
  return row.at(-1) as number;
}
