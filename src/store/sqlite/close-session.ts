// Hands back the jobs of a session that is about to be closed, in steps. One transaction with 100,000 jobs kept all other writers
// out for 0.6 s. The session itself ends with the last step. If the process crashes in between, the remaining locks end when the
// session expires.
import type { SessionEnd, SessionRef } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { type HandBack, HELD_COLUMNS, type HeldRow, lossOf, OWNER_COLUMNS, type OwnerRow } from './hand-back.js';
import { STATE } from './schema.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

/** Jobs per step: about 3 ms. */
const AT_ONCE = 500;

export class Closing {
  readonly #handBack: HandBack;
  readonly #count: Statement<[number]>;
  readonly #last: Statement<HeldRow>;
  readonly #owner: Statement<OwnerRow>;

  constructor(db: Database, handBack: HandBack) {
    this.#handBack = handBack;
    const held = `FROM jobs WHERE queue = ? AND state = ${STATE.active} AND session = ?`;
    this.#count = db.prepare(`SELECT count(*) ${held}`);
    this.#last = db.prepare(`SELECT ${HELD_COLUMNS} ${held} ORDER BY claimSeq DESC, fence DESC LIMIT ${AT_ONCE}`);
    this.#owner = db.prepare(`SELECT ${OWNER_COLUMNS} FROM sessions WHERE queue = ? AND id = ?`);
  }

  /** Returns how many steps come before the last step, which ends the session. */
  stepsOf({ queue }: QueueState, id: string): number {
    return Math.floor(Math.max(0, (this.#count.get(queue, id)?.[0] ?? 0) - 1) / AT_ONCE);
  }

  /**
   * Hands back the newest jobs first. Each step goes to the front of waiting, so in the end all jobs wait in the order of their
   * claims.
   */
  handBackSome(transaction: Transaction, { queue: name, id }: SessionRef, how: SessionEnd): void {
    const queue = transaction.find(name);
    const owner = queue === undefined ? undefined : this.#owner.get(queue.queue, id);
    if (queue === undefined || owner === undefined) return;
    const held = this.#last.all(queue.queue, id).reverse();
    if (how === 'crashed') this.#handBack.stall(queue, held, lossOf(owner, 'exit'), transaction.now);
    else this.#handBack.giveBack(queue, held);
  }
}
