// The entries of deduplication (table `dedup`). An entry ties a deduplication id to the job that owns it. All rules are those of `add`
// in the contract.
import { type Deduplication, entryMs } from '../../../job/deduplication.js';
import type { NewJob } from '../../../job/record.js';
import { MARK, readExtras } from '../../marks.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { LeftRow } from '../record.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

export interface Entry {
  owner: string;
  /** The end of the entry; null if it ends with its owner. */
  until: number | null;
  /** JSON text of the job that is added when the owner ends. An entry with a draft has no end of its own. */
  draft: string | null;
}

/** A row that begins with the columns of a job that leaves a state. */
type Left = readonly [...LeftRow, ...unknown[]];

/** Entries that one step of `forget` deletes. */
const CLEARED_AT_ONCE = 500;

export class Entries {
  readonly #find: Statement<[owner: string, until: number | null, draft: string | null]>;
  readonly #open: Statement<[number]>;
  readonly #set: Statement;
  readonly #delete: Statement;
  readonly #deleteOwned: Statement;
  readonly #clear: Statement;
  readonly #deleteEnded: Statement;

  constructor(db: Database) {
    this.#find = sql(db, 'find-entry', 'queue id');
    this.#open = sql(db, 'job-open', 'queue id');
    this.#set = sql(db, 'set-entry', 'queue id owner until draft');
    this.#delete = sql(db, 'delete-entry', 'queue id');
    this.#deleteOwned = sql(db, 'delete-owned-entry', 'queue id owner');
    this.#clear = sql(db, 'delete-entries', 'queue count');
    this.#deleteEnded = sql(db, 'delete-ended-entries', 'queue now count');
  }

  /**
   * Returns the entry of a deduplication id if it counts. An entry without an end does not count when its owner is gone or has
   * finished.
   */
  counting(queue: QueueState, id: string, now: number): Entry | undefined {
    const row = this.#find.get(queue.queue, id);
    if (row === undefined) return undefined;
    const [owner, until, draft] = row;
    const counts = until === null ? this.#open.get(queue.queue, owner) !== undefined : until > now;
    return counts ? { owner, until, draft } : undefined;
  }

  /** Makes a job the owner of a new entry. */
  own(transaction: Transaction, queue: QueueState, mode: Deduplication, owner: string): void {
    const ms = entryMs(mode);
    this.#set.run(queue.queue, mode.id, owner, ms === undefined ? null : transaction.after(ms), null);
  }

  /** Gives an entry that counts to its owner or to another job. With `extend`, its time starts again, unless there is a draft. */
  extend(transaction: Transaction, queue: QueueState, mode: Deduplication, { owner, until, draft }: Entry): void {
    const ms = mode.extend === true && draft === null ? entryMs(mode) : undefined;
    this.#set.run(queue.queue, mode.id, owner, ms === undefined ? until : transaction.after(ms), draft);
  }

  /** The draft must not be lost before the owner ends, so the entry loses its own end. */
  keepDraft(queue: QueueState, { id }: Deduplication, { owner }: Entry, job: NewJob): void {
    this.#set.run(queue.queue, id, owner, null, JSON.stringify(job));
  }

  /** Deletes the entry of a job that is removed, with its draft. */
  remove(queue: QueueState, [, owner, , , , marks, extras]: Left): void {
    const id = idOf(marks, extras);
    if (id !== undefined) this.#deleteOwned.run(queue.queue, id, owner);
  }

  /** Deletes the entry of a job that has ended, unless the entry has an end of its own. Returns its draft. */
  release(queue: QueueState, [, owner, , , , marks, extras]: Left): NewJob | undefined {
    const id = idOf(marks, extras);
    const entry = id === undefined ? undefined : this.#find.get(queue.queue, id);
    if (id === undefined || entry === undefined || entry[0] !== owner || entry[1] !== null) return undefined;
    this.#delete.run(queue.queue, id);
    return entry[2] === null ? undefined : (JSON.parse(entry[2]) as NewJob);
  }

  /** Makes a job that is retried the owner of its entry again, unless an entry counts. */
  ownAgain(transaction: Transaction, queue: QueueState, [, owner, , , , marks, extras]: Left): void {
    const id = idOf(marks, extras);
    if (id !== undefined && this.counting(queue, id, transaction.now) === undefined) this.own(transaction, queue, { id }, owner);
  }

  /** Returns how many of the deleted entries counted. `owner`: only entries of this job. */
  forget(queue: QueueState, ids: string[], owner: string | undefined, now: number): number {
    let count = 0;
    for (const id of ids) {
      const entry = this.counting(queue, id, now);
      if (entry !== undefined && (owner === undefined || entry.owner === owner)) count += 1;
      if (owner === undefined) this.#delete.run(queue.queue, id);
      else this.#deleteOwned.run(queue.queue, id, owner);
    }
    return count;
  }

  /** Deletes some entries. Returns whether there may be more. */
  clearSome({ queue }: QueueState): boolean {
    return this.#clear.run(queue, CLEARED_AT_ONCE) === CLEARED_AT_ONCE;
  }

  deleteEnded({ queue }: QueueState, limit: number, now: number): void {
    this.#deleteEnded.run(queue, now, limit);
  }
}

/** Returns the deduplication id of a job that may own an entry. */
function idOf(marks: number, extras: string | null): string | undefined {
  return (marks & MARK.unique) === 0 || extras === null ? undefined : readExtras(extras).deduplicationId;
}
