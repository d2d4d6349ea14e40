// The last call of every caller: one whose reply was lost is answered again and not carried out again.
import { HoldfastError } from '../../errors.js';
import type { Call } from '../contract/index.js';
import type { Database, Statement } from './driver.js';

/** Producers may repeat a call for ten minutes. */
const REMEMBERED_MS = 10 * 60_000;
/** Callers that are looked at in one go: about a millisecond, and as much again to forget them. */
const LOOKED_AT_ONCE = 1000;

type Place = [queue: number, id: string];
const START: Place = [0, ''];
/** Behind all of them: queues are numbers, and numbers come before texts. */
const END = ['end', ''] as const;

export class Callers {
  readonly #last: Statement<[seq: number, reply: string | null]>;
  readonly #remember: Statement;
  readonly #forget: Statement;
  readonly #endOfChunk: Statement<Place>;
  readonly #anyOld: Statement<[number]>;
  readonly #prune: Statement;
  /** Looking for old ones goes on behind this one. */
  #place: Place = START;

  constructor(db: Database) {
    // In the order of the table, a chunk at a time. An index on the age would find them at once, but every call would have to write it.
    const chunk = '(queue, id) > (?, ?) AND (queue, id) <= (?, ?)';
    // A worker may repeat its last call for as long as its session is open.
    const old = `${chunk} AND usedAt < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.queue = callers.queue AND sessions.id = callers.id)`;
    this.#last = db.prepare('SELECT seq, reply FROM callers WHERE queue = ? AND id = ?');
    this.#remember = db.prepare('INSERT OR REPLACE INTO callers (queue, id, seq, usedAt, reply) VALUES (?, ?, ?, ?, ?)');
    this.#forget = db.prepare('DELETE FROM callers WHERE queue = ? AND id = ?');
    this.#endOfChunk = db.prepare(
      `SELECT queue, id FROM callers WHERE (queue, id) > (?, ?) ORDER BY queue, id LIMIT 1 OFFSET ${LOOKED_AT_ONCE - 1}`,
    );
    this.#anyOld = db.prepare(`SELECT 1 FROM callers WHERE ${old} LIMIT 1`);
    this.#prune = db.prepare(`DELETE FROM callers WHERE ${old}`);
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

  /** Whether a prune would find any in the next chunk; if not, the one behind it is next. */
  anyOld(now: number): boolean {
    const end = this.#endOfChunk.get(...this.#place);
    if (this.#anyOld.get(...this.#place, ...(end ?? END), now - REMEMBERED_MS) !== undefined) return true;
    this.#place = end ?? START;
    return false;
  }

  /** Forgets the old ones of the next chunk; returns how many. */
  prune(now: number): number {
    const end = this.#endOfChunk.get(...this.#place);
    const pruned = this.#prune.run(...this.#place, ...(end ?? END), now - REMEMBERED_MS);
    this.#place = end ?? START;
    return pruned;
  }

  /** All of them were looked at, and the next look begins anew. */
  get isThrough(): boolean {
    return this.#place === START;
  }
}
