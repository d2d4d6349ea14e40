// The verb `extend` and the change `revoke` of the SQLite store: they move the end of a job's lock, or take the lock away.
import type { ChangeStatus } from '../change-reply.js';
import type { Extension, ExtendStatus } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { type HandBack, HELD_COLUMNS, type HeldRow } from './hand-back.js';
import { splitToken } from './job-row.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

export class Locks {
  readonly #handBack: HandBack;
  readonly #extend: Statement;
  readonly #owner: Statement<[state: number, session: string | null, fence: number | null]>;
  readonly #active: Statement<[...HeldRow, session: string, fence: number]>;
  readonly #number: Statement<[revoked: number]>;
  readonly #revoke: Statement;

  constructor(db: Database, handBack: HandBack) {
    this.#handBack = handBack;
    this.#extend = db.prepare(
      `UPDATE jobs SET endsAt = ? WHERE queue = ? AND id = ? AND state = ${STATE.active} AND session = ? AND fence = ?`,
    );
    this.#owner = db.prepare('SELECT state, session, fence FROM jobs WHERE queue = ? AND id = ?');
    this.#active = db.prepare(
      `SELECT ${HELD_COLUMNS}, session, fence FROM jobs WHERE queue = ? AND id = ? AND state = ${STATE.active}`,
    );
    this.#number = db.prepare('UPDATE sessions SET revoked = revoked + 1 WHERE queue = ? AND id = ? RETURNING revoked');
    this.#revoke = db.prepare('INSERT INTO revocations (queue, session, number, job, fence, reason) VALUES (?, ?, ?, ?, ?, ?)');
  }

  extend(transaction: Transaction, name: string, { jobId, token, durationMs }: Extension): ExtendStatus {
    const queue = transaction.find(name);
    if (queue === undefined) return 'missing';
    const { session, fence } = splitToken(token);
    if (this.#extend.run(transaction.after(durationMs), queue.queue, jobId, session, fence) === 1) return 'done';
    const row = this.#owner.get(queue.queue, jobId);
    if (row === undefined) return 'missing';
    return row[0] >= STATE.completed && row[1] === session && row[2] === fence ? 'finished' : 'lost';
  }

  /** Hands back all jobs together, so they wait in the order in which the caller named them. */
  revoke(transaction: Transaction, name: string, jobIds: string[], reason: string): ChangeStatus[] {
    const queue = transaction.find(name);
    if (queue === undefined) return [];
    const held = new Map<string, HeldRow>();
    const statuses = jobIds.map((id): ChangeStatus => {
      const row = held.has(id) ? undefined : this.#active.get(queue.queue, id);
      if (row === undefined) return this.#owner.get(queue.queue, id) === undefined ? 'missing' : 'state';
      const [, , , , , session, fence] = row;
      held.set(id, row as unknown as HeldRow);
      const number = this.#number.get(queue.queue, session)?.[0];
      if (number !== undefined) this.#revoke.run(queue.queue, session, number, id, fence, reason);
      return 'done';
    });
    this.#handBack.giveBack(queue, [...held.values()]);
    return statuses;
  }
}
