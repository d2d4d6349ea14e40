// The verbs `remove` and `clear` of the SQLite store: they delete unlocked jobs with their logs.
import { REPLY_BYTES } from '../budget.js';
import type { RemoveStatus, Selection } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { JOB_BYTES, stateOf } from './job-row.js';
import type { QueueState } from './queue-state.js';
import type { Retention } from './retention.js';
import { STATE } from './schema.js';
import type { Selected, Selecting } from './select.js';
import type { Transaction } from './transaction.js';

export class Removing {
  readonly #selecting: Selecting;
  readonly #retention: Retention;
  readonly #remove: Statement<[job: number, state: number, priority: number, logNext: number, lockKey: string | null]>;
  readonly #exists: Statement<[number]>;
  readonly #bytes: Statement<[number]>;
  readonly #delete: Statement;

  constructor(db: Database, selecting: Selecting, retention: Retention) {
    this.#selecting = selecting;
    this.#retention = retention;
    this.#remove = db.prepare(
      `DELETE FROM jobs WHERE queue = ? AND id = ? AND state <> ${STATE.active} RETURNING job, state, priority, logNext, lockKey`,
    );
    this.#exists = db.prepare('SELECT 1 FROM jobs WHERE queue = ? AND id = ?');
    this.#bytes = db.prepare(`SELECT ${JOB_BYTES} FROM jobs WHERE job = ?`);
    this.#delete = db.prepare('DELETE FROM jobs WHERE job = ?');
  }

  remove(transaction: Transaction, name: string, id: string): RemoveStatus {
    const queue = transaction.find(name);
    if (queue === undefined) return 'missing';
    const row = this.#remove.get(queue.queue, id);
    if (row === undefined) return this.#exists.get(queue.queue, id) === undefined ? 'missing' : 'locked';
    const [job, state, priority, logNext, lockKey] = row;
    this.#gone(queue, stateOf(state), { job, priority, logNext, lockKey });
    queue.tell('removed', id, { prev: stateOf(state) });
    return 'done';
  }

  /**
   * Deletes the selected jobs. `cut` is true if jobs are left because their payloads are too many bytes for one transaction: SQLite
   * reads what it deletes.
   */
  clear(transaction: Transaction, name: string, selection: Selection): { ids: string[]; cut: boolean } {
    const queue = transaction.find(name);
    if (queue === undefined) return { ids: [], cut: false };
    const ids: string[] = [];
    let left = REPLY_BYTES;
    let cut = false;
    for (const [state, jobs] of this.#selecting.select(queue, selection, transaction.now)) {
      for (const selected of jobs) {
        left -= this.#bytes.get(selected.job)?.[0] ?? 0;
        cut = left < 0 && ids.length > 0;
        if (cut) break;
        this.#delete.run(selected.job);
        this.#gone(queue, state, selected);
        ids.push(selected.id);
      }
    }
    const count = ids.length + (selection.removed ?? 0);
    if (ids.length > 0 || selection.limit === 0) queue.tell('cleaned', undefined, { count });
    return { ids, cut };
  }

  #gone(queue: QueueState, state: ReturnType<typeof stateOf>, { job, priority, logNext, lockKey }: Omit<Selected, 'id'>): void {
    queue.touch(lockKey);
    if (state === 'waiting') queue.countWaiting(priority, -1);
    else queue[state] -= 1;
    if (logNext > 0) this.#retention.deleteLogs(job);
  }
}
