// The verb `probe` of the SQLite store: marks the sessions of dead processes as suspected, by their presence files.
import type { ProbeReply } from '../contract/index.js';
import { roundedUp } from './clock.js';
import type { Database, Statement } from './driver.js';
import type { Peers } from './presence.js';
import type { QueueState } from './queue-state.js';
import type { Transaction } from './transaction.js';

const UNSUSPECTED = 'FROM sessions WHERE queue = ? AND reaped = 0 AND suspected = 0';

export class Probing {
  readonly #peers: Peers;
  readonly #nextPresence: Statement<[presence: string | null]>;
  readonly #suspect: Statement;
  readonly #count: Statement<[sessions: number]>;
  readonly #firstEnd: Statement<[expiresAt: number | null]>;
  readonly #named: Statement<[number]>;
  readonly #living: Statement<[number]>;

  constructor(db: Database, peers: Peers) {
    this.#peers = peers;
    // Steps from one process to the next, because DISTINCT would scan all their sessions.
    this.#nextPresence = db.prepare(`SELECT min(presence) ${UNSUSPECTED} AND presence > ?`);
    this.#suspect = db.prepare(
      `UPDATE sessions SET suspected = 1, expiresAt = min(expiresAt, ? + ${roundedUp('graceMs')})
       WHERE queue = ? AND presence = ? AND reaped = 0 AND suspected = 0`,
    );
    this.#count = db.prepare('SELECT count(*) FROM sessions WHERE queue = ? AND reaped < 2');
    this.#firstEnd = db.prepare('SELECT min(expiresAt) FROM sessions WHERE queue = ? AND reaped = 0 AND suspected = 1');
    this.#named = db.prepare('SELECT 1 FROM sessions WHERE presence = ? LIMIT 1');
    this.#living = db.prepare(`SELECT 1 ${UNSUSPECTED} AND id = ? AND expiresAt > ?`);
  }

  /** Returns the reply without a write as long as no process died. */
  look(queue: QueueState, now: number): ProbeReply | undefined {
    this.#peers.clean(this.#isNamed);
    return this.#newlyDead(queue).length > 0 ? undefined : this.#reply(queue, now);
  }

  probe(transaction: Transaction, name: string): ProbeReply {
    const queue = transaction.find(name);
    if (queue === undefined) return { sessions: 0 };
    for (const presence of this.#newlyDead(queue)) this.#suspect.run(transaction.after(0), queue.queue, presence);
    return this.#reply(queue, transaction.now);
  }

  isUnsuspected({ queue }: QueueState, id: string, now: number): boolean {
    return this.#living.get(queue, id, now) !== undefined;
  }

  cleanOrphans(): void {
    this.#peers.cleanOrphans(this.#isNamed);
  }

  #reply({ queue }: QueueState, now: number): ProbeReply {
    const [sessions] = this.#count.get(queue) ?? [0];
    const [expiresAt] = this.#firstEnd.get(queue) ?? [null];
    return expiresAt === null ? { sessions } : { sessions, dueInMs: Math.max(0, expiresAt - now) };
  }

  #newlyDead({ queue }: QueueState): string[] {
    const presences: string[] = [];
    for (let presence: string | null = ''; presence !== null; ) {
      [presence] = this.#nextPresence.get(queue, presence) ?? [null];
      if (presence !== null) presences.push(presence);
    }
    return this.#peers.dead(presences);
  }

  readonly #isNamed = (presence: string): boolean => this.#named.get(presence) !== undefined;
}
