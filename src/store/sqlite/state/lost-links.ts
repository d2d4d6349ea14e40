// Links that need a sweep. A process of an older version ends and removes children without their parents, so a parent would wait for
// ever. A walk through the open links finds pending ones whose child has ended or is gone.
import { isSameJob, type JobRef } from '../../../job/family.js';
import { readExtras } from '../../marks.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { Families } from '../family.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

/** Links that one look walks through. */
const LOOKED_AT_ONCE = 500;
/** How often a store walks through all open links of a queue. */
const LOOK_EVERY_MS = 10_000;
const PENDING = 0;

type Row = [parent: string, status: number, childQueue: string, child: string, state: number | null, extras: string | null];

interface Walk {
  /** The link after which it goes on: the first columns of its row. */
  after: [string, number, string, string];
  from: number;
}

const START: Walk['after'] = ['', PENDING, '', ''];

export class LostLinks {
  readonly #families: Families;
  readonly #open: Statement<Row>;
  /** By queue. */
  readonly #walks = new Map<number, Walk>();

  constructor(db: Database, families: Families) {
    this.#families = families;
    this.#open = sql(db, 'lost-links', 'queue parent status childQueue child count');
  }

  /** Returns whether a sweep has something to do. */
  any(queue: QueueState, now: number): boolean {
    return queue.parents > 0 && this.#walk(queue, now).length > 0;
  }

  /** Notifies parents of children that have ended or are gone. */
  mend(transaction: Transaction, queue: QueueState): void {
    if (queue.parents === 0) return;
    for (const [parent, , childQueue, child] of this.#walk(queue, transaction.now))
      this.#families.applyAgain(transaction, { queue: childQueue, id: child }, { queue: queue.name, id: parent });
  }

  /** Looks at the next links. Returns the lost ones. If there are any, the next call looks at the same links again. */
  #walk(queue: QueueState, now: number): Row[] {
    const { after, from } = this.#walks.get(queue.queue) ?? { after: START, from: 0 };
    if (now < from) return [];
    const found = this.#open.all(queue.queue, ...after, LOOKED_AT_ONCE);
    const lost = found.filter((row) => isLost(row, queue.name));
    const last = found.length < LOOKED_AT_ONCE ? undefined : found.at(-1);
    if (lost.length === 0)
      this.#walks.set(
        queue.queue,
        last === undefined
          ? { after: START, from: now + LOOK_EVERY_MS }
          : { after: [last[0], last[1], last[2], last[3]], from: 0 },
      );
    return lost;
  }
}

function isLost([id, status, , , state, extras]: Row, queue: string): boolean {
  if (status !== PENDING) return false;
  return state === null || state === STATE.completed || (state === STATE.failed && hasInstruction(extras, { queue, id }));
}

/** A failure without an instruction leaves the link pending. */
function hasInstruction(extras: string | null, parent: JobRef): boolean {
  const { parents = [] } = extras === null ? {} : readExtras(extras);
  const link = parents.find((one) => isSameJob(one, parent));
  return link === undefined || link.onFailure !== undefined;
}
