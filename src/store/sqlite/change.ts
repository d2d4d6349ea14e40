// The verb `change` of the SQLite store: retry, promote, delay and priority of one job. `requeue` uses `toWaiting` too.
import type { StoredState } from '../../job/state.js';
import type { Change, ChangeStatus } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { stateOf } from './job-row.js';
import type { QueueState } from './queue-state.js';
import { TO_WAITING } from './schema.js';
import type { Selected } from './select.js';
import type { Transaction } from './transaction.js';

export class Changing {
  readonly #find: Statement<[job: number, state: number, priority: number, lockKey: string | null]>;
  readonly #toWaiting: Statement;
  readonly #resetMade: Statement;
  readonly #resetStarted: Statement;
  readonly #delay: Statement;
  readonly #priority: Statement;
  readonly #place: Statement;

  constructor(db: Database) {
    this.#find = db.prepare('SELECT job, state, priority, lockKey FROM jobs WHERE queue = ? AND id = ?');
    // Resets a finished job to one that has not run: its attempts, stack trace and logs stay. `CASE`: a delayed job keeps
    // `processedOn` and `failedReason` of its last attempt.
    this.#toWaiting = db.prepare(
      `UPDATE jobs SET ${TO_WAITING}, ord = ?, delay = 0, dueAt = NULL, session = NULL, fence = NULL, finishedOn = NULL, returnvalue = NULL,
         processedOn = CASE WHEN state >= 4 THEN NULL ELSE processedOn END,
         failedReason = CASE WHEN state >= 4 THEN NULL ELSE failedReason END
       WHERE job = ?`,
    );
    this.#resetMade = db.prepare('UPDATE jobs SET attemptsMade = 0 WHERE job = ?');
    this.#resetStarted = db.prepare('UPDATE jobs SET attemptsStarted = 0 WHERE job = ?');
    this.#delay = db.prepare('UPDATE jobs SET delay = ?, dueAt = ?, ord = ? WHERE job = ?');
    this.#priority = db.prepare('UPDATE jobs SET priority = ? WHERE job = ?');
    this.#place = db.prepare('UPDATE jobs SET priority = ?, ord = ? WHERE job = ?');
  }

  change(transaction: Transaction, name: string, change: Change): ChangeStatus {
    const queue = transaction.find(name);
    const row = queue === undefined ? undefined : this.#find.get(queue.queue, change.jobId);
    if (queue === undefined || row === undefined) return 'missing';
    const [job, code, priority, lockKey] = row;
    const state = stateOf(code);
    switch (change.kind) {
      case 'retry':
        if (state !== change.from) return 'state';
        this.toWaiting(queue, state, { job, id: change.jobId, priority, lockKey });
        if (change.resetAttemptsMade) this.#resetMade.run(job);
        if (change.resetAttemptsStarted) this.#resetStarted.run(job);
        return 'done';
      case 'promote':
        if (state !== 'delayed') return 'state';
        this.toWaiting(queue, state, { job, id: change.jobId, priority, lockKey });
        return 'done';
      case 'delay': {
        if (state !== 'delayed') return 'state';
        const dueAt = transaction.after(change.delayMs);
        this.#delay.run(change.delayMs, dueAt, queue.toBack(), job);
        queue.tell('delayed', change.jobId, { delay: dueAt });
        return 'done';
      }
      case 'priority':
        this.#setPriority(queue, job, state, priority, change);
        queue.touch(lockKey);
        return 'done';
    }
  }

  toWaiting(
    queue: QueueState,
    from: Exclude<StoredState, 'waiting'>,
    { job, id, priority, lockKey }: Omit<Selected, 'logNext'>,
  ): void {
    this.#toWaiting.run(queue.toBack(), job);
    queue[from] -= 1;
    queue.countWaiting(priority, 1);
    queue.touch(lockKey);
    queue.tell('waiting', id, { prev: from });
  }

  /** A job that is not waiting stores the priority until it waits. */
  #setPriority(
    queue: QueueState,
    job: number,
    state: StoredState,
    before: number,
    { priority, lifo }: { priority: number; lifo: boolean },
  ): void {
    if (state !== 'waiting') {
      this.#priority.run(priority, job);
      return;
    }
    this.#place.run(priority, lifo ? queue.toFront() : queue.toBack(), job);
    queue.countWaiting(before, -1);
    queue.countWaiting(priority, 1);
    queue.changed = true;
  }
}
