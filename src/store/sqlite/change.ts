// The verb `change` of the SQLite store: it moves jobs from outside a run, by their ids or by a selection. remove.ts removes them, and
// lock.ts takes their locks away.
import type { StoredState } from '../../job/state.js';
import { type ChangeStatus, movedList } from '../change-reply.js';
import type { Change, Selection } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { stateOf } from './job-row.js';
import type { Locks } from './lock.js';
import type { QueueState } from './queue-state.js';
import type { Removing } from './remove.js';
import { TO_WAITING } from './schema.js';
import type { Selected, Selecting } from './select.js';
import type { Transaction } from './transaction.js';

export interface ChangingParts {
  selecting: Selecting;
  removing: Removing;
  locks: Locks;
}

export class Changing {
  readonly #parts: ChangingParts;
  readonly #find: Statement<[job: number, state: number, priority: number, lockKey: string | null]>;
  readonly #moveToWaiting: Statement;
  readonly #resetMade: Statement;
  readonly #resetStarted: Statement;
  readonly #delay: Statement;
  readonly #priority: Statement;
  readonly #place: Statement;

  constructor(db: Database, parts: ChangingParts) {
    this.#parts = parts;
    this.#find = db.prepare('SELECT job, state, priority, lockKey FROM jobs WHERE queue = ? AND id = ?');
    // Resets a finished job to one that has not run: its attempts, stack trace and logs stay. `CASE`: a delayed job keeps
    // `processedOn` and `failedReason` of its last attempt.
    this.#moveToWaiting = db.prepare(
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

  byId(transaction: Transaction, name: string, jobIds: string[], change: Change): ChangeStatus[] {
    const { removing, locks } = this.#parts;
    if (change.kind === 'revoke') return locks.revoke(transaction, name, jobIds, change.reason);
    return jobIds.map((id) =>
      change.kind === 'remove' ? removing.remove(transaction, name, id) : this.#one(transaction, name, id, change),
    );
  }

  /** Moves the selected jobs of the list that the change starts from. Returns their ids. */
  bySelection(transaction: Transaction, name: string, selection: Selection, change: Change): string[] {
    const queue = transaction.find(name);
    const from = movedList(change, selection);
    if (queue === undefined || from === undefined) return [];
    const found = this.#parts.selecting.select(queue, { ...selection, lists: [from] }, transaction.now);
    return found.flatMap(([, jobs]) => {
      for (const job of jobs) this.#toWaiting(queue, from, job, change);
      return jobs.map(({ id }) => id);
    });
  }

  #one(transaction: Transaction, name: string, id: string, change: Exclude<Change, { kind: 'remove' | 'revoke' }>): ChangeStatus {
    const queue = transaction.find(name);
    const row = queue === undefined ? undefined : this.#find.get(queue.queue, id);
    if (queue === undefined || row === undefined) return 'missing';
    const [job, code, priority, lockKey] = row;
    const state = stateOf(code);
    switch (change.kind) {
      case 'retry':
        if (state !== change.from) return 'state';
        this.#toWaiting(queue, state, { job, id, priority, lockKey }, change);
        return 'done';
      case 'promote':
        if (state !== 'delayed') return 'state';
        this.#toWaiting(queue, state, { job, id, priority, lockKey }, change);
        return 'done';
      case 'delay': {
        if (state !== 'delayed') return 'state';
        const dueAt = transaction.after(change.delayMs);
        this.#delay.run(change.delayMs, dueAt, queue.toBack(), job);
        queue.tell('delayed', id, { delay: dueAt });
        return 'done';
      }
      case 'priority':
        this.#setPriority(queue, job, state, priority, change);
        queue.touch(lockKey);
        return 'done';
    }
  }

  #toWaiting(
    queue: QueueState,
    from: 'delayed' | 'completed' | 'failed',
    { job, id, priority, lockKey }: Omit<Selected, 'logNext'>,
    change: Change,
  ): void {
    this.#moveToWaiting.run(queue.toBack(), job);
    if (change.kind === 'retry' && change.resetAttemptsMade) this.#resetMade.run(job);
    if (change.kind === 'retry' && change.resetAttemptsStarted) this.#resetStarted.run(job);
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
