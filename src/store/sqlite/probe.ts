import type { Database, Statement } from './driver.js';
import type { Peers } from './presence.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

export class Probing {
  readonly #peers: Peers;
  readonly #unsuspected: Statement<[presence: string]>;
  readonly #suspect: Statement;
  readonly #tighten: Statement;
  readonly #suspected: Statement<[count: number, expiresAt: number]>;
  readonly #named: Statement<[number]>;

  constructor(db: Database, peers: Peers) {
    this.#peers = peers;
    this.#unsuspected = db.prepare(
      'SELECT DISTINCT presence FROM sessions WHERE queue = ? AND reaped = 0 AND suspected = 0 AND presence IS NOT NULL',
    );
    this.#suspect = db.prepare(
      `UPDATE sessions SET suspected = 1, expiresAt = min(expiresAt, ?)
       WHERE queue = ? AND presence = ? AND reaped = 0 AND suspected = 0`,
    );
    this.#tighten = db.prepare(
      'UPDATE sessions SET expiresAt = ? WHERE queue = ? AND reaped = 0 AND suspected = 1 AND expiresAt > ?',
    );
    this.#suspected = db.prepare(
      'SELECT count(*), ifnull(max(expiresAt), 0) FROM sessions WHERE queue = ? AND reaped = 0 AND suspected = 1',
    );
    this.#named = db.prepare('SELECT 1 FROM sessions WHERE presence = ? LIMIT 1');
  }

  /** Answers without writing as long as nobody died and nobody has more left than the grace. */
  look(queue: QueueState, until: number): number | undefined {
    this.#peers.clean(this.#isNamed);
    const [count, expiresAt] = this.#suspected.get(queue.queue) ?? [0, 0];
    return expiresAt > until || this.#newlyDead(queue).length > 0 ? undefined : count;
  }

  probe(transaction: Transaction, name: string, graceMs: number): number {
    const queue = transaction.find(name);
    if (queue === undefined) return 0;
    const until = transaction.after(graceMs);
    for (const presence of this.#newlyDead(queue)) this.#suspect.run(until, queue.queue, presence);
    this.#tighten.run(until, queue.queue, until);
    return this.#suspected.get(queue.queue)?.[0] ?? 0;
  }

  cleanOrphans(): void {
    this.#peers.cleanOrphans(this.#isNamed);
  }

  #newlyDead(queue: QueueState): string[] {
    return this.#peers.dead(this.#unsuspected.all(queue.queue).map(([presence]) => presence));
  }

  readonly #isNamed = (presence: string): boolean => this.#named.get(presence) !== undefined;
}
