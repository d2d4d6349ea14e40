// Hands back what a session holds that is about to be closed, in steps: in one transaction, 100,000 jobs kept every other writer out for
// 0.6 s. The session itself ends with the last step, so that a crash in between leaves the rest to its expiry.
import type { SessionRef } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { type HandBack, HELD_COLUMNS, type HeldRow, lossOf, OWNER_COLUMNS, type OwnerRow } from './hand-back.js';
import { STATE } from './schema.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

/** About 3 ms. */
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

  /** How many steps are to be made before the last one, in which the session ends. */
  stepsOf({ queue }: QueueState, id: string): number {
    return Math.floor(Math.max(0, (this.#count.get(queue, id)?.[0] ?? 0) - 1) / AT_ONCE);
  }

  /** From the end of what it holds: each step goes to the front of waiting, and so they all wait in the order in which they were claimed. */
  handBackSome(transaction: Transaction, { queue: name, id }: SessionRef, charged: boolean): void {
    const queue = transaction.find(name);
    const owner = queue === undefined ? undefined : this.#owner.get(queue.queue, id);
    if (queue === undefined || owner === undefined) return;
    const held = this.#last.all(queue.queue, id).reverse();
    if (charged) this.#handBack.stall(queue, held, lossOf(owner, 'exit'), transaction.now);
    else this.#handBack.giveBack(queue, held);
  }
}
