// Completes jobs of groups and children without reading their rows, and reports to each parent once for all its children of a call.
// Siblings have the same extras, so their parents are read once.
// Gain: without it, at concurrency 100, a job of a group takes 1.16 × the processor time, and a child 1.25 × (node bench/fast-paths.mjs
// complete-marked --concurrency 100).
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Families } from '../family.js';
import { splitToken } from '../record.js';
import type { ClaimedExtras } from './claimed-extras.js';
import type { Completed } from './completed-run.js';
import type { Result } from './links.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

/** The jobs of one call whose ends were not applied to their parents yet, by their extras. */
export type Unsent = Map<string, Result[]>;

export class CompletedMarked {
  readonly #families: Families;
  readonly #complete: Statement;

  constructor(db: Database, families: Families) {
    this.#families = families;
    this.#complete = sql(db, 'complete-marked', 'ord now value queue id session fence extras');
  }

  /** Returns false and changes nothing if the job has other marks or extras, or its token does not hold it. */
  complete(queue: QueueState, outcome: Completed, { text, group }: ClaimedExtras, now: number, unsent: Unsent): boolean {
    const { jobId: id, token, value } = outcome;
    const { session, fence } = splitToken(token);
    if (this.#complete.run(queue.toBack(), now, value, queue.queue, id, session, fence, text) === 0) return false;
    if (group !== undefined) queue.touchGroup(group, false);
    const others = unsent.get(text);
    if (others === undefined) unsent.set(text, [{ id, text: value }]);
    else others.push({ id, text: value });
    return true;
  }

  /** Call it before anything else is done to a family, and at the end. */
  send(transaction: Transaction, { name }: QueueState, unsent: Unsent): void {
    for (const [extras, results] of unsent) this.#families.completed(transaction, name, extras, results);
    unsent.clear();
  }
}
