// The one way out of a state. Every verb that ends a job's stay in a state calls `leave`, after it has moved the row and recorded the
// event: a settle, a stall, a hand-back, a change, a removal and the trim of retention.
import type { JobRef } from '../../job/family.js';
import { type FinishedState, isFinished, type StoredState } from '../../job/state.js';
import { MARK } from '../marks.js';
import { Letters } from './dead-letter.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { Families, parentsOf, without } from './family.js';
import type { Entering } from './state/enter.js';
import type { Entries } from './state/entries.js';
import { AT, groupOf, type LeftRow, stateOf } from './record.js';
import type { EventFields } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';
import type { Schedules } from './state/schedules.js';
import type { Steps } from './state/steps.js';
import type { Transaction } from './state/transaction.js';

/** A row of any statement that begins with these columns. */
type Left = readonly [...LeftRow, ...Value[]];

/** The new state. `removed`: a caller deletes the job. `trimmed`: retention deletes the job. */
export type Destination = StoredState | 'removed' | 'trimmed';

/** The end of a job. */
export interface Ending {
  /** The result of the job, or the reason of its failure. */
  text: string;
  /** The fence of the run; 0 if no letter needs it. */
  fence: number;
  /** False if the row is deleted already. */
  isKept: boolean;
  /** The state that the job leaves. Default 'active'. */
  from?: StoredState;
}

export interface LeavingParts {
  entries: Entries;
  entering: Entering;
  schedules: Schedules;
  steps: Steps;
}

export class Leaving {
  readonly families: Families;
  readonly letters: Letters;
  readonly #entries: Entries;
  readonly #entering: Entering;
  readonly #schedules: Schedules;
  readonly #steps: Steps;
  readonly #delete: Statement;
  readonly #deleteLogs: Statement;

  constructor(db: Database, { entries, entering, schedules, steps }: LeavingParts) {
    this.#entries = entries;
    this.#entering = entering;
    this.#schedules = schedules;
    this.#steps = steps;
    this.families = new Families(db, this);
    this.letters = new Letters(db, entering);
    this.#delete = sql(db, 'delete-job', 'job');
    this.#deleteLogs = sql(db, 'delete-logs', 'job');
  }

  leave(queue: QueueState, row: Left, from: StoredState, to: Destination): void {
    const [job, , priority, logNext, key, marks] = row;
    if (!isFinished(from) || to === 'waiting') queue.touch(key);
    queue.count(from, priority, -1);
    if (to !== 'removed' && to !== 'trimmed') queue.count(to, priority, 1);
    else if (logNext > 0) this.#deleteLogs.run(job);
    if (marks !== 0) this.#leaveMarked(queue, row, from, to);
  }

  #leaveMarked(queue: QueueState, row: Left, from: StoredState, to: Destination): void {
    if (to === 'removed') this.#entries.remove(queue, row);
    if ((to === 'removed' || to === 'trimmed') && (row[AT.marks] & MARK.steps) !== 0) this.#steps.clear(row[AT.job]);
    const group = groupOf(row);
    if (group !== undefined && (from === 'active' || to === 'waiting')) queue.touchGroup(group, to === 'waiting');
  }

  /**
   * Ends a job for good. If the job owns an entry with a draft, the draft is added; if it is the next job of a schedule, the schedule is
   * owing. A letter is sent unless the job was cancelled, and the parents learn of the end.
   */
  finish(transaction: Transaction, queue: QueueState, row: Left, kind: FinishedState, ending: Ending): void {
    queue.countFinish(kind);
    this.leave(queue, row, ending.from ?? 'active', ending.isKept ? kind : 'trimmed');
    if (row[AT.marks] !== 0) this.#finishMarked(transaction, queue, row, kind, ending);
  }

  #finishMarked(transaction: Transaction, queue: QueueState, row: Left, kind: FinishedState, ending: Ending): void {
    this.#release(transaction, queue, row);
    this.#schedules.ended(queue, row);
    if (ending.isKept) this.families.undoom(row);
    if (kind === 'failed' && (row[AT.marks] & MARK.cancelled) === 0) this.letters.send(transaction, queue, row, ending.fence);
    this.families.ended(transaction, queue, row, kind, ending.text);
    if (!ending.isKept) this.families.dropped(transaction, queue, row);
  }

  #release(transaction: Transaction, queue: QueueState, row: Left): void {
    const draft = this.#entries.release(queue, row);
    const id = draft === undefined ? undefined : this.#entering.idOf(queue, draft);
    if (draft?.deduplication === undefined || id === undefined) return;
    this.#entering.enter(transaction, queue, id, draft);
    this.#entries.own(transaction, queue, draft.deduplication, id);
  }

  /** Moves a job to waiting at the request of a caller. A finished job owns its entry again, and its parents wait for it again. */
  reopen(transaction: Transaction, queue: QueueState, row: Left, from: StoredState): void {
    if (row[AT.marks] !== 0 && isFinished(from)) {
      this.#entries.ownAgain(transaction, queue, row);
      this.families.reopened(transaction, queue, row);
    }
    this.wait(queue, row, from);
  }

  /** Moves a job to waiting. The caller has changed the row. */
  wait(queue: QueueState, row: Left, from: StoredState, fields?: EventFields): void {
    queue.record('waiting', row[1], { prev: from, ...fields });
    this.leave(queue, row, from, 'waiting');
  }

  /** Deletes the row of a job. */
  drop(transaction: Transaction, queue: QueueState, row: Left, from: StoredState, to: 'removed' | 'trimmed'): void {
    this.#delete.run(row[0]);
    this.leave(queue, row, from, to);
    if (row[AT.marks] !== 0) this.families.dropped(transaction, queue, row);
  }

  /** Removes a job with its children that have no other parent and are not locked, and with theirs. Returns how many jobs it visited. */
  removeTree(transaction: Transaction, queue: QueueState, row: Left, from: StoredState): number {
    let visited = 1;
    const left = this.#dropParent(transaction, queue, row, from);
    // A list and not a recursion: a chain of families may be longer than the stack is deep.
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { child, parent } = next;
      visited += 1;
      const family = transaction.find(child.queue);
      const found = this.families.find(transaction, child);
      if (family === undefined || found === undefined) continue;
      const state = stateOf(found[AT.state]);
      const orphan = without(found, parent);
      if (state === 'active' || parentsOf(orphan).length > 0) {
        this.families.part(found, parent);
        continue;
      }
      family.record('removed', child.id, { prev: state });
      left.push(...this.#dropParent(transaction, family, orphan, state));
    }
    return visited;
  }

  /** Returns the children of the removed job, the last one first. */
  #dropParent(transaction: Transaction, queue: QueueState, row: Left, from: StoredState): { child: JobRef; parent: JobRef }[] {
    const isParent = (row[AT.marks] & MARK.parent) !== 0;
    const children = isParent ? this.families.links.childrenOf(queue, row[AT.id]) : [];
    this.drop(transaction, queue, row, from, 'removed');
    const parent = { queue: queue.name, id: row[AT.id] };
    return children.reverse().map((child) => ({ child, parent }));
  }
}
