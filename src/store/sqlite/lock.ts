// The locks of jobs in the SQLite store: the verb `extend`, the changes `revoke` and `cancel` of active jobs, and the moves of jobs whose lock ends without an
// outcome from its owner: handed back or revoked (no stall is counted), or stalled (a stall is counted).
import { type LossFound, lostByText } from '../../job/lost-by.js';
import { isFinished } from '../../job/state.js';
import type { ChangeStatus } from '../change-reply.js';
import type { Extension, ExtendStatus, Notice } from '../contract/index.js';
import { extrasText, MARK } from '../marks.js';
import type { Swept } from '../swept.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, fieldsOf, type FoundRow, type HeldRow, splitToken, stateOf } from './record.js';
import type { Leaving } from './leave.js';
import type { EventFields } from './state/event-rows.js';
import { type Failing, isCancelled } from './state/fail.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

/** The session that lost the jobs. `lostBy` is null if the row of the session is missing. */
export interface Loss {
  maxStalls: number;
  lostBy: string | null;
}

/** `owner-columns` in sql/sessions.sql */
export type OwnerRow = [maxStalls: number, host: string, pid: number, name: string, suspected: number];

/** `found` says how the loss was found. Default: the session's `suspected` flag decides. */
export function lossOf([maxStalls, host, pid, name, suspected]: [...OwnerRow, ...unknown[]], found?: LossFound): Loss {
  const how = found ?? (suspected === 1 ? 'process-gone' : 'session-expired');
  return { maxStalls, lostBy: lostByText({ host, pid, name }, how) };
}

/** A row of any statement that begins with these columns. */
type Held = readonly [...HeldRow, ...Value[]];

export class Locks {
  readonly #leaving: Leaving;
  readonly #failing: Failing;
  readonly #toFront: Statement;
  readonly #stall: Statement;
  readonly #extend: Statement;
  readonly #owner: Statement<FoundRow>;
  readonly #number: Statement<[revoked: number]>;
  readonly #insertNotice: Statement;
  readonly #setExtras: Statement;

  constructor(db: Database, leaving: Leaving, failing: Failing) {
    this.#leaving = leaving;
    this.#failing = failing;
    this.#toFront = sql(db, 'hand-back', 'ord job');
    this.#stall = sql(db, 'stall', 'ord lostBy job');
    this.#extend = sql(db, 'extend-lock', 'endsAt alone queue id session fence');
    this.#owner = sql(db, 'find-job', 'queue id');
    this.#number = sql(db, 'number-notice', 'queue session');
    this.#insertNotice = sql(db, 'record-notice', 'queue session number id fence reason kind');
    this.#setExtras = sql(db, 'set-extras', 'cleared added extras job');
  }

  extend(transaction: Transaction, name: string, { jobId, token, durationMs, alone }: Extension): ExtendStatus {
    const queue = transaction.find(name);
    if (queue === undefined) return 'missing';
    const { session, fence } = splitToken(token);
    const endsAt = transaction.after(durationMs);
    if (this.#extend.run(endsAt, alone ? 1 : 0, queue.queue, jobId, session, fence) === 1) return 'done';
    const row = this.#owner.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    return isFinished(stateOf(row[AT.state])) && row[AT.session] === session && row[AT.fence] === fence ? 'finished' : 'lost';
  }

  /** Hands back all jobs together, so they wait in the order in which the caller named them. */
  revoke(transaction: Transaction, name: string, jobIds: string[], reason: string): ChangeStatus[] {
    const queue = transaction.find(name);
    if (queue === undefined) return [];
    const held = new Map<string, FoundRow>();
    const statuses = jobIds.map((id): ChangeStatus => {
      const row = this.#owner.get(queue.queue, id);
      if (row === undefined) return 'missing';
      if (row[AT.state] !== STATE.active || held.has(id)) return 'state';
      held.set(id, row);
      this.#recordNotice(queue, row, 'revoked', reason);
      return 'done';
    });
    this.giveBack(transaction, queue, [...held.values()]);
    return statuses;
  }

  /** Cancels an active job, which keeps its lock until its run ends. */
  cancel(queue: QueueState, row: FoundRow, reason: string): void {
    if (isCancelled(row)) return;
    this.#setExtras.run(0, MARK.cancelled, extrasText({ ...fieldsOf(row), cancelled: reason }), row[AT.job]);
    this.#recordNotice(queue, row, 'cancelled', reason);
  }

  #recordNotice({ queue }: QueueState, row: FoundRow, kind: Notice['kind'], reason: string): void {
    const { [AT.id]: id, [AT.session]: session, [AT.fence]: fence } = row;
    const number = this.#number.get(queue, session)?.[0];
    if (number === undefined) return;
    this.#insertNotice.run(queue, session, number, id, fence, reason, kind === 'revoked' ? null : kind);
  }

  /** Hands back jobs to the front of waiting, in the given order. This does not count as a stall. Cancelled jobs fail instead. */
  giveBack(transaction: Transaction, queue: QueueState, held: Held[]): void {
    let ord = queue.toFront(held.length);
    for (const row of held) {
      if (isCancelled(row)) {
        this.#failing.cancelled(transaction, queue, row, 'active');
        continue;
      }
      this.#toFront.run(ord++, row[0]);
      this.#leaving.wait(queue, row, 'active');
    }
  }

  /** Puts back the jobs of a dead owner. A job over `maxStalls` fails, and so does a cancelled one. */
  stall(transaction: Transaction, queue: QueueState, held: Held[], { maxStalls, lostBy }: Loss): Swept {
    const fields: EventFields | undefined = lostBy === null ? undefined : { lostBy };
    const swept: Swept = { stalled: [], failed: [] };
    let ord = queue.toFront(held.length);
    for (const row of held) {
      const { [AT.job]: job, [AT.id]: id, [AT.stalledCounter]: before } = row;
      queue.record('stalled', id, fields);
      if (before < maxStalls && !isCancelled(row)) {
        this.#stall.run(ord++, lostBy, job);
        this.#leaving.wait(queue, row, 'active');
        swept.stalled.push({ id, lostBy });
      } else {
        this.#failing.stalled(transaction, queue, row, lostBy);
        swept.failed.push({ id, lostBy });
      }
    }
    return swept;
  }
}
