// The change `remove` of the SQLite store: it deletes unlocked jobs with their logs, by their ids or by a selection.
import { REPLY_BYTES } from '../budget.js';
import type { ChangeStatus } from '../change-reply.js';
import type { ListName, Selection } from '../contract/index.js';
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

  remove(transaction: Transaction, name: string, id: string): ChangeStatus {
    const queue = transaction.find(name);
    if (queue === undefined) return 'missing';
    const row = this.#remove.get(queue.queue, id);
    if (row === undefined) return this.#exists.get(queue.queue, id) === undefined ? 'missing' : 'locked';
    const [job, code, priority, logNext, lockKey] = row;
    const state = stateOf(code);
    this.#gone(queue, state === 'waiting' && priority > 0 ? 'prioritized' : state, { job, logNext, lockKey });
    queue.tell('removed', id, { prev: state });
    return 'done';
  }

  /**
   * Deletes the selected jobs. `cut` is true if jobs are left because their payloads are too many bytes for one transaction: SQLite
   * reads what it deletes. `first`: the first step of the call, which records its event even if no job matches.
   */
  removeSelected(transaction: Transaction, name: string, selection: Selection, first: boolean): { ids: string[]; cut: boolean } {
    const queue = transaction.find(name);
    if (queue === undefined) return { ids: [], cut: false };
    const ids: string[] = [];
    let left = REPLY_BYTES;
    let cut = false;
    for (const [list, jobs] of this.#selecting.select(queue, selection, transaction.now)) {
      for (const selected of jobs) {
        left -= this.#bytes.get(selected.job)?.[0] ?? 0;
        cut = left < 0 && ids.length > 0;
        if (cut) break;
        this.#delete.run(selected.job);
        this.#gone(queue, list, selected);
        ids.push(selected.id);
      }
    }
    if (ids.length > 0 || first) queue.tell('cleaned', undefined, { count: ids.length });
    return { ids, cut };
  }

  #gone(queue: QueueState, list: ListName, { job, logNext, lockKey }: Pick<Selected, 'job' | 'logNext' | 'lockKey'>): void {
    queue.touch(lockKey);
    queue[list] -= 1;
    if (logNext > 0) this.#retention.deleteLogs(job);
  }
}
