// Completes children, one after the other, and reports to each parent once for all of them. Siblings have the same extras, so their
// parents are read once.
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Families } from '../family.js';
import { splitToken } from '../record.js';
import type { Completed } from './completed-run.js';
import type { Result } from './links.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

/** The children of one call whose parents do not know of their end yet, by their extras. */
export type Untold = Map<string, Result[]>;

export class CompletedChildren {
  readonly #families: Families;
  readonly #complete: Statement<[extras: string]>;

  constructor(db: Database, families: Families) {
    this.#families = families;
    this.#complete = sql(db, 'complete-child', 'ord now value queue id session fence');
  }

  /** Returns false and changes nothing if the job has further marks, or its token does not hold it. */
  complete(queue: QueueState, { jobId, token, value }: Completed, now: number, untold: Untold): boolean {
    const { session, fence } = splitToken(token);
    const extras = this.#complete.get(queue.toBack(), now, value, queue.queue, jobId, session, fence)?.[0];
    if (extras === undefined) return false;
    const siblings = untold.get(extras);
    if (siblings === undefined) untold.set(extras, [{ id: jobId, text: value }]);
    else siblings.push({ id: jobId, text: value });
    return true;
  }

  /** Call it before anything else is done to a family, and at the end. */
  tell(transaction: Transaction, { name }: QueueState, untold: Untold): void {
    for (const [extras, results] of untold) this.#families.completed(transaction, name, extras, results);
    untold.clear();
  }
}
