// The locks of jobs in the SQLite store: the verb `extend`, the change `revoke`, and the moves of jobs whose lock ends without an
// outcome from its owner: handed back or revoked (no stall is counted), or stalled (a stall is counted).
import { type LossFound, lostByText } from '../../job/lost-by.js';
import { keepOnFail } from '../../job/options.js';
import { isFinished } from '../../job/state.js';
import type { ChangeStatus } from '../change-reply.js';
import { type Extension, type ExtendStatus, STALLED_REASON } from '../contract/index.js';
import { MARK } from '../marks.js';
import type { Swept } from '../swept.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { AT, type FoundRow, type HeldRow, splitToken, stateOf } from './record.js';
import type { Leaving } from './leave.js';
import type { EventFields } from './state/event-rows.js';
import type { QueueState } from './state/queue-state.js';
import type { Retention } from './retention.js';
import { STATE } from './state/schema.js';
import type { Transaction } from './state/transaction.js';

/** The session that lost the jobs. `lostBy` is null if the row of the session is missing. */
export interface Loss {
  maxStalls: number;
  lostBy: string | null;
}

/** shared/owner-columns.sql */
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
  readonly #retention: Retention;
  readonly #toFront: Statement;
  readonly #stall: Statement;
  readonly #fail: Statement<[opts: string]>;
  readonly #extend: Statement;
  readonly #owner: Statement<FoundRow>;
  readonly #number: Statement<[revoked: number]>;
  readonly #revoke: Statement;

  constructor(db: Database, leaving: Leaving, retention: Retention) {
    this.#leaving = leaving;
    this.#retention = retention;
    this.#toFront = sql(db, 'hand-back', 'ord job');
    this.#stall = sql(db, 'stall', 'ord lostBy job');
    this.#fail = sql(db, 'fail-stalled', 'ord lostBy now reason job');
    this.#extend = sql(db, 'extend-lock', 'endsAt queue id session fence');
    this.#owner = sql(db, 'find-job', 'queue id');
    this.#number = sql(db, 'number-revocation', 'queue session');
    this.#revoke = sql(db, 'revoke', 'queue session number id fence reason');
  }

  extend(transaction: Transaction, name: string, { jobId, token, durationMs }: Extension): ExtendStatus {
    const queue = transaction.find(name);
    if (queue === undefined) return 'missing';
    const { session, fence } = splitToken(token);
    if (this.#extend.run(transaction.after(durationMs), queue.queue, jobId, session, fence) === 1) return 'done';
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
      const { [AT.state]: state, [AT.session]: session, [AT.fence]: fence } = row;
      if (state !== STATE.active || held.has(id)) return 'state';
      held.set(id, row);
      const number = this.#number.get(queue.queue, session)?.[0];
      if (number !== undefined) this.#revoke.run(queue.queue, session, number, id, fence, reason);
      return 'done';
    });
    this.giveBack(queue, [...held.values()]);
    return statuses;
  }

  /** Hands back jobs to the front of waiting, in the given order. This does not count as a stall. */
  giveBack(queue: QueueState, held: Held[]): void {
    let ord = queue.toFront(held.length);
    for (const row of held) {
      this.#toFront.run(ord++, row[0]);
      this.#leaving.wait(queue, row, 'active');
    }
  }

  stall(transaction: Transaction, queue: QueueState, held: Held[], { maxStalls, lostBy }: Loss): Swept {
    const { now } = transaction;
    const fields: EventFields | undefined = lostBy === null ? undefined : { lostBy };
    const swept: Swept = { stalled: [], failed: [] };
    let ord = queue.toFront(held.length);
    for (const row of held) {
      const { [AT.job]: job, [AT.id]: id, [AT.stalledCounter]: before } = row;
      queue.tell('stalled', id, fields);
      if (before < maxStalls) {
        this.#stall.run(ord++, lostBy, job);
        this.#leaving.wait(queue, row, 'active');
        swept.stalled.push({ id, lostBy });
      } else {
        // The failed row does not have the fence.
        const fence = (row[AT.marks] & MARK.letter) === 0 ? 0 : (this.#owner.get(queue.queue, id)?.[AT.fence] ?? 0);
        const opts = this.#fail.get(queue.toBack(), lostBy, now, STALLED_REASON, job)?.[0] ?? '{}';
        queue.tell('failed', id, { failedReason: STALLED_REASON, ...fields });
        this.#leaving.finish(transaction, queue, row, 'failed', { text: STALLED_REASON, fence, isKept: true });
        this.#retain(transaction, queue, row, opts);
        swept.failed.push({ id, lostBy });
      }
    }
    return swept;
  }

  #retain(transaction: Transaction, queue: QueueState, row: Held, opts: string): void {
    const keep = keepOnFail(opts);
    if (keep.count === 0) this.#leaving.drop(transaction, queue, row, 'failed', 'trimmed');
    else this.#retention.trim(transaction, queue, 'failed', [keep]);
  }
}
