// The last call of every caller: one whose reply was lost is answered again and not carried out again.
import { HoldfastError } from '../../errors.js';
import type { Call } from '../contract.js';
import type { Database, Statement } from './driver.js';

/** Producers may repeat a call for ten minutes. */
const REMEMBERED_MS = 10 * 60_000;
const PRUNED_AT_ONCE = 500;

export class Callers {
  readonly #last: Statement<[seq: number, reply: string | null]>;
  readonly #remember: Statement;
  readonly #forget: Statement;
  readonly #anyOld: Statement<[number]>;
  readonly #prune: Statement;

  constructor(db: Database) {
    // A worker may repeat its last call for as long as its session is open.
    const old =
      'usedAt < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.queue = callers.queue AND sessions.id = callers.id)';
    this.#last = db.prepare('SELECT seq, reply FROM callers WHERE queue = ? AND id = ?');
    this.#remember = db.prepare('INSERT OR REPLACE INTO callers (queue, id, seq, usedAt, reply) VALUES (?, ?, ?, ?, ?)');
    this.#forget = db.prepare('DELETE FROM callers WHERE queue = ? AND id = ?');
    this.#anyOld = db.prepare(`SELECT 1 FROM callers WHERE ${old} LIMIT 1`);
    this.#prune = db.prepare(
      `DELETE FROM callers WHERE (queue, id) IN (SELECT queue, id FROM callers WHERE ${old} LIMIT ${PRUNED_AT_ONCE})`,
    );
  }

  /** The number of the caller's last call; 0 for one that is not known. */
  lastSeq(queue: number, caller: string): number {
    return this.#last.get(queue, caller)?.[0] ?? 0;
  }

  /** The number of the caller's last call, and the reply that it got if it was this one. */
  recall(queue: number, { caller, seq }: Call): { lastSeq: number; reply: string | undefined } {
    const [lastSeq, reply] = this.#last.get(queue, caller) ?? [0, null];
    if (seq >= lastSeq) return { lastSeq, reply: (seq === lastSeq ? reply : null) ?? undefined };
    // A straggler: its caller gave up on it and went on, so carrying it out now would surprise everybody.
    throw new HoldfastError('STORE_FAILED', `Call ${seq} of ${caller} came after its call ${lastSeq}: number calls upwards.`, {
      store: 'sqlite',
    });
  }

  remember(queue: number, { caller, seq }: Call, reply: string | null, now: number): void {
    this.#remember.run(queue, caller, seq, now, reply);
  }

  forget(queue: number, caller: string): void {
    this.#forget.run(queue, caller);
  }

  /** There is no index on the age, which every call would pay for: ask rarely. */
  anyOld(now: number): boolean {
    return this.#anyOld.get(now - REMEMBERED_MS) !== undefined;
  }

  prune(now: number): void {
    this.#prune.run(now - REMEMBERED_MS);
  }
}
