// Puts a new job into the queue: for `add`, and for a draft whose owner has ended.
import type { NewJob } from '../../../job/record.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import { columnsOf, keyOf, MARKED_COLUMNS, markedColumnsOf, NEW_COLUMNS } from '../record.js';
import type { Groups } from './groups.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

const PARENT = STATE['waiting-children'];

export class Entering {
  readonly #groups: Groups;
  readonly #insert: Statement;
  readonly #insertMarked: Statement;
  readonly #exists: Statement<[number]>;

  constructor(db: Database, groups: Groups) {
    this.#groups = groups;
    const values = `queue id state ord dueAt now ${NEW_COLUMNS}`;
    // The further values made an add 9 % slower.
    this.#insert = sql(db, 'insert-plain-job', values);
    this.#insertMarked = sql(db, 'insert-marked-job', `${values} ${MARKED_COLUMNS}`);
    this.#exists = sql(db, 'job-number', 'queue id');
  }

  /** Returns false and changes nothing if the id exists. */
  enter(transaction: Transaction, queue: QueueState, id: string, job: NewJob): boolean {
    const isParent = job.waitsForChildren === true;
    const dueAt = job.delayMs > 0 && !isParent ? transaction.after(job.delayMs) : null;
    if (!this.#insertOne(transaction, queue, id, job, dueAt)) return false;
    const key = keyOf(job);
    if (key !== undefined) {
      queue.keyed = 1;
      queue.touch(key);
    }
    const state = isParent ? 'waiting-children' : dueAt === null ? 'waiting' : 'delayed';
    if (job.group !== undefined) this.#enterGroup(queue, job.group, state === 'waiting');
    queue.record('added', id, { jobName: job.name });
    queue.count(state, job.priority, 1);
    if (dueAt === null) queue.record(state, id);
    else queue.record('delayed', id, { delay: dueAt });
    return true;
  }

  /** Returns the id of a new job; undefined if its given id exists, which is recorded. */
  idOf(queue: QueueState, job: NewJob): string | undefined {
    if (job.id === undefined) return this.nextId(queue);
    if (this.#exists.get(queue.queue, job.id) === undefined) return job.id;
    queue.record('duplicated', job.id);
    return undefined;
  }

  /** Returns the next generated id. Skips ids that a user has chosen. */
  nextId(queue: QueueState): string {
    do queue.lastId += 1;
    while (this.#exists.get(queue.queue, String(queue.lastId)) !== undefined);
    return String(queue.lastId);
  }

  #enterGroup(queue: QueueState, group: string, waits: boolean): void {
    this.#groups.begin(queue);
    // Claims then check for claimable jobs before they take the write lock.
    queue.keyed = 1;
    if (waits) queue.touchGroup(group, true);
  }

  #insertOne(transaction: Transaction, queue: QueueState, id: string, job: NewJob, dueAt: number | null): boolean {
    const delayed = dueAt !== null || job.waitsForChildren === true;
    const isFree = keyOf(job) === undefined && job.group === undefined;
    const state = delayed ? (dueAt === null ? PARENT : STATE.delayed) : isFree ? STATE.waiting : STATE.behind;
    const ord = job.lifo && !delayed ? queue.toFront() : queue.toBack();
    const row = [queue.queue, id, state, ord, dueAt, transaction.now, ...columnsOf(job)];
    const marked = markedColumnsOf(job);
    return (marked === undefined ? this.#insert.run(...row) : this.#insertMarked.run(...row, ...marked)) === 1;
  }
}
