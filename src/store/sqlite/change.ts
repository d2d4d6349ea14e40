// The verb `change` of the SQLite store: it moves or removes jobs from outside a run, by their ids or by a selection. lock.ts takes
// their locks away.
import { REPLY_BYTES } from '../budget.js';
import { MARK } from '../marks.js';
import { isFinished, type StoredState } from '../../job/state.js';
import { type ChangeStatus, movedList } from '../change-reply.js';
import type { Change, ListName, Selection } from '../contract/index.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Leaving } from './leave.js';
import { AT, type FoundRow, type LeftRow, stateOf } from './record.js';
import type { Locks } from './lock.js';
import type { Failing } from './state/fail.js';
import type { QueueState } from './state/queue-state.js';
import type { Selecting } from './select.js';
import type { Steps } from './state/steps.js';
import type { Transaction } from './state/transaction.js';

/** Children after which a removal by selection goes on in another transaction. A single parent may have more. */
const CHILDREN_AT_ONCE = 500;

type Removal = Extract<Change, { kind: 'remove' }>;
/** A row of any statement that begins with these columns. */
type Left = [...LeftRow, ...Value[]];

export interface ChangingParts {
  selecting: Selecting;
  leaving: Leaving;
  locks: Locks;
  steps: Steps;
  failing: Failing;
}

export class Changing {
  readonly #parts: ChangingParts;
  readonly #find: Statement<FoundRow>;
  readonly #bytes: Statement<[number]>;
  readonly #moveToWaiting: Statement;
  readonly #delay: Statement;
  readonly #priority: Statement;

  constructor(db: Database, parts: ChangingParts) {
    this.#parts = parts;
    this.#find = sql(db, 'find-job', 'queue id');
    this.#bytes = sql(db, 'bytes-of-job', 'job');
    this.#moveToWaiting = sql(db, 'move-to-waiting', 'ord made started job');
    this.#delay = sql(db, 'change-delay', 'delay dueAt ord job');
    this.#priority = sql(db, 'change-priority', 'priority ord job');
  }

  byId(transaction: Transaction, name: string, jobIds: string[], change: Change): ChangeStatus[] {
    if (change.kind === 'revoke') return this.#parts.locks.revoke(transaction, name, jobIds, change.reason);
    return jobIds.map((id) => this.#one(transaction, name, id, change));
  }

  /** Makes a change other than a removal to the selected jobs. Returns their ids. */
  bySelection(transaction: Transaction, name: string, selection: Selection, change: Change): string[] {
    const queue = transaction.find(name);
    if (queue === undefined) return [];
    if (change.kind === 'send') return this.#sendSelected(transaction, queue, selection, change.to);
    if (change.kind === 'cancel') return this.#cancelSelected(transaction, queue, selection, change.reason);
    return this.#moveSelected(transaction, queue, selection, change);
  }

  /** Moves jobs of the list that the change starts from. */
  #moveSelected(transaction: Transaction, queue: QueueState, selection: Selection, change: Change): string[] {
    const from = movedList(change, selection);
    if (from === undefined) return [];
    const found = this.#parts.selecting.select(queue, { ...selection, lists: [from] }, {}, transaction.now);
    return found.flatMap(([, jobs]) => {
      for (const job of jobs) this.#toWaiting(transaction, queue, from, job, change);
      return jobs.map(([, id]) => id);
    });
  }

  /**
   * Deletes the selected jobs. `cut` is true if jobs are left because one transaction would delete too many bytes, which SQLite reads, or
   * too many children. `first`: the first step of the call, which records its event even if no job matches.
   */
  removeSelected(
    transaction: Transaction,
    name: string,
    selection: Selection,
    change: Removal,
    first: boolean,
  ): { ids: string[]; cut: boolean } {
    const queue = transaction.find(name);
    if (queue === undefined) return { ids: [], cut: false };
    const ids: string[] = [];
    let left = REPLY_BYTES;
    let children = 0;
    let cut = false;
    for (const [list, jobs] of this.#parts.selecting.select(queue, selection, { passed: MARK.next }, transaction.now)) {
      for (const row of jobs) {
        left -= this.#bytes.get(row[0])?.[0] ?? 0;
        cut = (left < 0 || children >= CHILDREN_AT_ONCE) && ids.length > 0;
        if (cut) break;
        children += this.#removeListed(transaction, queue, row, stateOfList(list), change);
        ids.push(row[1]);
      }
    }
    if (ids.length > 0 || first) queue.record('cleaned', undefined, { count: ids.length });
    return { ids, cut };
  }

  /** Returns how many children it visited. */
  #removeListed(transaction: Transaction, queue: QueueState, row: LeftRow, state: StoredState, change: Removal): number {
    if ((row[AT.marks] & (MARK.child | MARK.parent)) === 0) {
      this.#parts.leaving.drop(transaction, queue, row, state, 'removed');
      return 0;
    }
    // The removal of a relative may have removed or moved this job since it was selected.
    if (change.parentToo === true) this.#removeParents(transaction, queue, row[AT.id]);
    const found = this.#find.get(queue.queue, row[AT.id]);
    return found === undefined ? 0 : this.#remove(transaction, queue, found, stateOf(found[AT.state]), change);
  }

  /** Removes the parents in the queue that wait for this job alone. */
  #removeParents(transaction: Transaction, queue: QueueState, id: string): void {
    const { leaving } = this.#parts;
    const child = this.#find.get(queue.queue, id);
    const parents = child === undefined ? [] : leaving.families.waitingForThisAlone(queue, child);
    for (const parent of parents) leaving.drop(transaction, queue, parent, 'waiting-children', 'removed');
  }

  #remove(transaction: Transaction, queue: QueueState, row: FoundRow, state: StoredState, { children }: Removal): number {
    const { leaving } = this.#parts;
    if (children === true) return leaving.removeTree(transaction, queue, row, state) - 1;
    leaving.drop(transaction, queue, row, state, 'removed');
    return 0;
  }

  #cancelSelected(transaction: Transaction, queue: QueueState, selection: Selection, reason: string): string[] {
    const fitting = { passed: MARK.cancelled, unfinished: true };
    const found = this.#parts.selecting.select(queue, selection, fitting, transaction.now);
    const ids = found.flatMap(([, jobs]) => jobs.map(([, id]) => id));
    for (const id of ids) {
      // The end of a relative may have moved this job since it was selected.
      const row = this.#find.get(queue.queue, id);
      if (row !== undefined) this.#cancel(transaction, queue, row, reason);
    }
    return ids;
  }

  #cancel(transaction: Transaction, queue: QueueState, row: FoundRow, reason: string): void {
    const state = stateOf(row[AT.state]);
    if (state === 'active') this.#parts.locks.cancel(queue, row, reason);
    else this.#parts.failing.cancelled(transaction, queue, row, state, reason);
  }

  /** Sends letters back. */
  #sendSelected(transaction: Transaction, queue: QueueState, selection: Selection, to: string): string[] {
    const found = this.#parts.selecting.select(queue, selection, { letters: true }, transaction.now);
    return found.flatMap(([list, jobs]) => {
      const state = stateOfList(list);
      return jobs.filter((row) => this.#send(transaction, queue, row, state, to)).map(([, id]) => id);
    });
  }

  /** Returns false if the job is no letter. */
  #send(transaction: Transaction, queue: QueueState, row: Left, state: StoredState, to: string): boolean {
    const { leaving } = this.#parts;
    const letter = leaving.letters.find(row);
    if (letter === undefined) return false;
    queue.record('removed', letter.id, { prev: state });
    leaving.drop(transaction, queue, row, state, 'removed');
    leaving.letters.sendBack(transaction, letter, to);
    return true;
  }

  #one(transaction: Transaction, name: string, id: string, change: Exclude<Change, { kind: 'revoke' }>): ChangeStatus {
    const queue = transaction.find(name);
    const row = queue === undefined ? undefined : this.#find.get(queue.queue, id);
    if (queue === undefined || row === undefined) return 'missing';
    const [job, , priority, , key] = row;
    const state = stateOf(row[AT.state]);
    switch (change.kind) {
      case 'remove':
        if (state === 'active') return 'locked';
        if ((row[AT.marks] & MARK.next) !== 0) return 'scheduled';
        queue.record('removed', id, { prev: state });
        this.#remove(transaction, queue, row, state, change);
        return 'done';
      case 'send':
        if (state === 'active') return 'locked';
        return this.#send(transaction, queue, row, state, change.to) ? 'done' : 'state';
      case 'cancel':
        if (isFinished(state)) return 'state';
        this.#cancel(transaction, queue, row, change.reason);
        return 'done';
      case 'unlink':
        return this.#parts.leaving.families.unlink(transaction, queue, row, change.child) ? 'done' : 'state';
      case 'retry':
        if (state !== change.from) return 'state';
        if (change.fromStep !== undefined && !this.#parts.steps.dropFrom(row, change.fromStep)) return 'noStep';
        this.#toWaiting(transaction, queue, state, row, change);
        return 'done';
      case 'promote':
        if (state !== 'delayed') return 'state';
        this.#toWaiting(transaction, queue, state, row, change);
        return 'done';
      case 'delay': {
        if (state !== 'delayed') return 'state';
        const dueAt = transaction.after(change.delayMs);
        this.#delay.run(change.delayMs, dueAt, queue.toBack(), job);
        queue.record('delayed', id, { delay: dueAt });
        return 'done';
      }
      case 'priority':
        this.#setPriority(queue, job, state, priority, change);
        queue.touch(key);
        return 'done';
    }
  }

  #toWaiting(
    transaction: Transaction,
    queue: QueueState,
    from: 'delayed' | 'completed' | 'failed',
    row: Left,
    change: Change,
  ): void {
    const isRetry = change.kind === 'retry';
    const made = isRetry && change.resetAttemptsMade ? 0 : 1;
    const started = isRetry && change.resetAttemptsStarted ? 0 : 1;
    this.#moveToWaiting.run(queue.toBack(), made, started, row[0]);
    this.#parts.leaving.reopen(transaction, queue, row, from);
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
      this.#priority.run(priority, null, job);
      return;
    }
    this.#priority.run(priority, lifo ? queue.toFront() : queue.toBack(), job);
    queue.count('waiting', before, -1);
    queue.count('waiting', priority, 1);
    queue.changed = true;
  }
}

function stateOfList(list: ListName): StoredState {
  return list === 'prioritized' ? 'waiting' : list;
}
