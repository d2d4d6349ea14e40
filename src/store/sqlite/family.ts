// Families of the SQLite store: what the end of a child means for its parents, and what the removal of a parent means for its children.
// All queues are in one file, so a message takes effect in the transaction that sends it: there is no outbox.
import { type Instruction, isSameJob, type JobRef, ON_COMPLETION, ON_REMOVAL, type ParentLink } from '../../job/family.js';
import type { Outcome, SettleStatus } from '../../job/outcome.js';
import type { JobRecord } from '../../job/record.js';
import { type FinishedState, isFinished, type StoredState } from '../../job/state.js';
import { extrasText, MARK, readExtras } from '../marks.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, fieldsOf, type FoundRow, type JobRow, type LeftRow, stateOf, toRecord } from './record.js';
import { Links, type Result } from './state/links.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

/** A row of any statement that begins with these columns. */
type Left = readonly [...LeftRow, ...Value[]];

/** Counts a job that has moved to another state. The caller has changed the row. */
interface Mover {
  leave(queue: QueueState, row: Left, from: StoredState, to: StoredState): void;
  wait(queue: QueueState, row: Left, from: StoredState): void;
}

interface Ending {
  child: JobRef;
  instruction: Instruction;
  /** The result of the child, or the reason of its failure. */
  text: string | null;
}

/** Marks that end with the job. */
const ENDING = MARK.doomed | MARK.cancelled;

export class Families {
  readonly links: Links;
  readonly #mover: Mover;
  readonly #find: Statement<FoundRow>;
  readonly #record: Statement<JobRow>;
  readonly #delay: Statement<[delay: number]>;
  readonly #toWaiting: Statement;
  readonly #toDelayed: Statement;
  readonly #setExtras: Statement;
  readonly #addMark: Statement;

  constructor(db: Database, mover: Mover) {
    this.links = new Links(db);
    this.#mover = mover;
    this.#find = sql(db, 'find-job', 'queue id');
    this.#record = sql(db, 'read-job', 'job');
    this.#delay = sql(db, 'job-delay', 'job');
    this.#toWaiting = sql(db, 'promote', 'ord job');
    this.#toDelayed = sql(db, 'release-later', 'ord dueAt job');
    this.#setExtras = sql(db, 'set-extras', 'cleared added extras job');
    this.#addMark = sql(db, 'add-mark', 'mark job');
  }

  find(transaction: Transaction, { queue, id }: JobRef): FoundRow | undefined {
    const number = transaction.find(queue)?.queue;
    return number === undefined ? undefined : this.#find.get(number, id);
  }

  /** Reports to the parents of a job how it has ended. `text`: its result, or the reason of its failure. */
  ended(transaction: Transaction, queue: QueueState, row: Left, kind: FinishedState, text: string): void {
    for (const parent of parentsOf(row)) this.#applyEnd(transaction, { queue: queue.name, id: row[AT.id] }, parent, kind, text);
  }

  /** Reports to their parents that jobs of a queue have completed, all of which have these extras. */
  completed(transaction: Transaction, childQueue: string, extras: string, results: readonly Result[]): void {
    for (const { queue: name, id } of readExtras(extras).parents ?? []) {
      const queue = transaction.find(name);
      if (queue !== undefined && this.links.complete(queue, id, childQueue, results) === 0) this.release(transaction, queue, id);
    }
  }

  /** Reports to a new parent how a job has ended, if it has. Its other parents have it already. */
  applyToNewParent(transaction: Transaction, child: JobRef, parent: JobRef): void {
    const row = this.find(transaction, child);
    const known = row === undefined ? undefined : parentsOf(row).find((one) => isSameJob(one, parent));
    if (row === undefined || known === undefined) return;
    const state = stateOf(row[AT.state]);
    if (!isFinished(state)) return;
    const { returnvalue = '', failedReason = '' } = this.recordOf(row);
    this.#applyEnd(transaction, child, known, state, state === 'completed' ? returnvalue : failedReason);
  }

  /** Reports to a parent again how a job has ended, or that the job is gone. */
  applyAgain(transaction: Transaction, child: JobRef, parent: JobRef): void {
    const row = this.find(transaction, child);
    const isChild = row !== undefined && parentsOf(row).some((known) => isSameJob(known, parent));
    if (isChild) this.applyToNewParent(transaction, child, parent);
    else this.#applyRemoval(transaction, child, parent);
  }

  /** Call it when the row of a job with marks is deleted. Links of its parents that have ended stay as they are. */
  dropped(transaction: Transaction, queue: QueueState, row: Left): void {
    const id = row[AT.id];
    if ((row[AT.marks] & MARK.parent) !== 0) this.links.clear(queue, id);
    for (const parent of parentsOf(row)) this.#applyRemoval(transaction, { queue: queue.name, id }, parent);
  }

  /** Call it when a finished job waits again: its links are pending again. */
  reopened(transaction: Transaction, queue: QueueState, row: Left): void {
    const child = { queue: queue.name, id: row[AT.id] };
    for (const parent of parentsOf(row)) {
      const family = transaction.find(parent.queue);
      if (family !== undefined) this.links.set(family, parent.id, child, 'pending', null);
    }
  }

  /** A job that has finished is neither doomed nor cancelled by what happened before, if it is retried. */
  undoom(row: Left): void {
    if ((row[AT.marks] & ENDING) === 0) return;
    const { doomedBy: _child, cancelled: _reason, ...others } = fieldsOf(row);
    this.#setExtras.run(ENDING, 0, textOf(others), row[AT.job]);
  }

  /** Lets a job be a parent. */
  begin(row: Left): void {
    if ((row[AT.marks] & MARK.parent) !== 0) return;
    this.#addMark.run(MARK.parent, row[AT.job]);
  }

  /** Makes `parent` a parent of a job that is in the store. */
  adopt(row: FoundRow, parent: ParentLink): void {
    const parents = parentsOf(row);
    if (!parents.some((known) => isSameJob(known, parent))) this.#save(withParents(row, [...parents, parent]));
  }

  /** Takes a parent from a job. Returns the row as it is then. */
  part(row: FoundRow, parent: JobRef): FoundRow {
    const parted = without(row, parent);
    this.#save(parted);
    return parted;
  }

  /** Deletes a pending link, and takes the parent from the child. Returns whether there was such a link. */
  unlink(transaction: Transaction, queue: QueueState, row: Left, child: JobRef): boolean {
    const id = row[AT.id];
    const pending = this.links.deletePending(queue, id, child);
    if (pending === undefined) return false;
    const childRow = this.find(transaction, child);
    if (childRow !== undefined) this.part(childRow, { queue: queue.name, id });
    if (pending === 0) this.release(transaction, queue, id);
    return true;
  }

  /** Returns the parents in the same queue that wait for this job alone. */
  waitingForThisAlone(queue: QueueState, row: Left): FoundRow[] {
    const child = { queue: queue.name, id: row[AT.id] };
    return parentsOf(row).flatMap(({ queue: name, id }): FoundRow[] => {
      const parent = name === queue.name ? this.#find.get(queue.queue, id) : undefined;
      if (parent === undefined || stateOf(parent[AT.state]) !== 'waiting-children') return [];
      return this.links.counts(queue, id)?.pending === 1 && this.links.isPending(queue, id, child) ? [parent] : [];
    });
  }

  /** Returns why the children of a job refuse an outcome; undefined if they do not. */
  refusal(queue: QueueState, outcome: Extract<Outcome, { kind: 'completed' | 'children' }>): SettleStatus | undefined {
    const { pending = 0, failed = 0 } = this.links.counts(queue, outcome.jobId) ?? {};
    if (failed > 0) return 'unsuccessful';
    if (outcome.kind === 'completed') return pending > 0 ? 'pending' : undefined;
    const waits = outcome.child === undefined ? pending > 0 : this.links.isPending(queue, outcome.jobId, outcome.child);
    return waits ? undefined : 'ready';
  }

  /** Moves a parent on if it waits for children. The caller knows that it may. */
  release(transaction: Transaction, queue: QueueState, id: string): void {
    const row = this.#find.get(queue.queue, id);
    if (row === undefined || stateOf(row[AT.state]) !== 'waiting-children') return;
    const delay = this.#delay.get(row[AT.job])?.[0] ?? 0;
    if (delay <= 0) {
      this.#toFront(queue, row);
      return;
    }
    const dueAt = transaction.after(delay);
    this.#toDelayed.run(queue.toBack(), dueAt, row[AT.job]);
    queue.record('delayed', id, { delay: dueAt });
    this.#mover.leave(queue, row, 'waiting-children', 'delayed');
  }

  recordOf(row: Left): JobRecord {
    return toRecord(this.#record.get(row[AT.job]) as JobRow);
  }

  #applyEnd(transaction: Transaction, child: JobRef, parent: ParentLink, kind: FinishedState, text: string): void {
    const instruction = kind === 'completed' ? ON_COMPLETION : parent.onFailure;
    if (instruction !== undefined) this.#deliver(transaction, parent, { child, instruction, text });
  }

  #applyRemoval(transaction: Transaction, child: JobRef, parent: JobRef): void {
    this.#deliver(transaction, parent, { child, instruction: ON_REMOVAL, text: null });
  }

  /** Reads the row of the parent only if the parent moves. */
  #deliver(transaction: Transaction, parent: JobRef, { child, instruction, text }: Ending): void {
    const queue = transaction.find(parent.queue);
    if (queue === undefined) return;
    const { link, release, doom } = instruction;
    const pending =
      link === 'removed'
        ? this.links.deletePending(queue, parent.id, child)
        : this.links.set(queue, parent.id, child, link, text);
    if (pending === undefined) return;
    if (doom === true) this.#doom(queue, parent.id, child);
    else if (release === 'now' || pending === 0) this.release(transaction, queue, parent.id);
  }

  /** Lets a worker fail the job. An active job keeps its run: the failed link refuses its completion. */
  #doom(queue: QueueState, id: string, { queue: childQueue, id: childId }: JobRef): void {
    const row = this.#find.get(queue.queue, id);
    const state = row === undefined ? 'active' : stateOf(row[AT.state]);
    if (row === undefined || state === 'active' || isFinished(state)) return;
    const fields = { ...fieldsOf(row), doomedBy: { queue: childQueue, id: childId } };
    this.#setExtras.run(0, MARK.doomed, extrasText(fields), row[AT.job]);
    if (state !== 'waiting') this.#toFront(queue, row);
  }

  #toFront(queue: QueueState, row: FoundRow): void {
    this.#toWaiting.run(queue.toFront(), row[AT.job]);
    this.#mover.wait(queue, row, stateOf(row[AT.state]));
  }

  #save(row: Left): void {
    const isChild = (row[AT.marks] & MARK.child) !== 0;
    this.#setExtras.run(isChild ? 0 : MARK.child, isChild ? MARK.child : 0, row[AT.extras], row[AT.job]);
  }
}

/** Returns the parents that a job has now. */
export function parentsOf({ [AT.marks]: marks, [AT.extras]: extras }: Left): readonly ParentLink[] {
  return (marks & MARK.child) === 0 || extras === null ? [] : (readExtras(extras).parents ?? []);
}

/** Returns the row of a job as it is without a parent. */
export function without(row: FoundRow, parent: JobRef): FoundRow {
  return withParents(
    row,
    parentsOf(row).filter((known) => !isSameJob(known, parent)),
  );
}

function withParents(row: FoundRow, parents: readonly ParentLink[]): FoundRow {
  const { parents: _before, ...others } = fieldsOf(row);
  const isChild = parents.length > 0;
  const changed: FoundRow = [...row];
  changed[AT.marks] = isChild ? row[AT.marks] | MARK.child : row[AT.marks] & ~MARK.child;
  changed[AT.extras] = textOf(isChild ? { ...others, parents: [...parents] } : others);
  return changed;
}

function textOf(fields: Partial<JobRecord>): string | null {
  return Object.keys(fields).length === 0 ? null : extrasText(fields);
}
