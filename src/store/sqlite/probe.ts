// The verbs `probe` and `checkSessions` of the SQLite store. A probe marks the sessions of dead processes as suspected, by their presence files.
import type { ProbeReply, SessionCheck } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Peers } from './liveness/presence.js';
import type { QueueState } from './state/queue-state.js';
import type { Schedules } from './state/schedules.js';
import type { Transaction } from './state/transaction.js';

export class Probing {
  readonly #peers: Peers;
  readonly #schedules: Schedules;
  readonly #nextPresence: Statement<[presence: string | null]>;
  readonly #suspect: Statement;
  readonly #count: Statement<[sessions: number]>;
  readonly #firstEnd: Statement<[expiresAt: number | null]>;
  readonly #named: Statement<[number]>;
  readonly #check: Statement<[unsuspected: number, noticed: number]>;

  constructor(db: Database, peers: Peers, schedules: Schedules) {
    this.#peers = peers;
    this.#schedules = schedules;
    this.#nextPresence = sql(db, 'next-presence', 'queue presence');
    this.#suspect = sql(db, 'suspect', 'now queue presence');
    this.#count = sql(db, 'count-sessions', 'queue');
    this.#firstEnd = sql(db, 'first-suspected-end', 'queue');
    this.#named = sql(db, 'presence-named', 'presence');
    this.#check = sql(db, 'check-session', 'now queue session');
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

  check({ queue }: QueueState, id: string, now: number): SessionCheck {
    const [unsuspected, noticed] = this.#check.get(now, queue, id) ?? [0, 0];
    return { unsuspected: unsuspected === 1, noticed: noticed === 1 };
  }

  cleanOrphans(): void {
    this.#peers.cleanOrphans(this.#isNamed);
  }

  #reply(queue: QueueState, now: number): ProbeReply {
    const [sessions] = this.#count.get(queue.queue) ?? [0];
    const [expiresAt] = this.#firstEnd.get(queue.queue) ?? [null];
    const reply: ProbeReply = expiresAt === null ? { sessions } : { sessions, dueInMs: Math.max(0, expiresAt - now) };
    if (this.#schedules.anyOwing(queue)) reply.undone = true;
    return reply;
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
