// Stores the last call of every caller and its reply. If a caller repeats a call because the reply was lost, the store returns the
// stored reply and does not carry out the call again.
import { HoldfastError } from '../../../errors.js';
import type { Call } from '../../contract/index.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';

/** A producer may repeat a call for ten minutes. */
const REMEMBERED_MS = 10 * 60_000;
/** Callers that one prune checks: about 1 ms, and another 1 ms to delete them. */
const LOOKED_AT_ONCE = 1000;

type Place = [queue: number, id: string];
const START: Place = [0, ''];
/** Sorts after every caller, because queues are numbers and SQLite sorts numbers before texts. */
const END = ['end', ''] as const;

export class Callers {
  readonly #last: Statement<[seq: number, reply: string | null]>;
  readonly #remember: Statement;
  readonly #forget: Statement;
  readonly #endOfChunk: Statement<Place>;
  readonly #anyOld: Statement<[number]>;
  readonly #prune: Statement;
  /** The last caller that was checked; the next check for old callers continues after it. */
  #place: Place = START;

  constructor(db: Database) {
    this.#last = sql(db, 'last-call', 'queue caller');
    this.#remember = sql(db, 'remember-call', 'queue caller seq now reply');
    this.#forget = sql(db, 'forget-caller', 'queue caller');
    this.#endOfChunk = sql(db, 'end-of-callers-chunk', 'fromQueue fromId skipped');
    this.#anyOld = sql(db, 'any-old-caller', 'fromQueue fromId toQueue toId usedBefore');
    this.#prune = sql(db, 'prune-callers', 'fromQueue fromId toQueue toId usedBefore');
  }

  /** Returns the number of the caller's last call; 0 for an unknown caller. */
  lastSeq(queue: number, caller: string): number {
    return this.#last.get(queue, caller)?.[0] ?? 0;
  }

  /** Returns the number of the caller's last call, and its reply if `call` repeats it. */
  recall(queue: number, { caller, seq }: Call): { lastSeq: number; reply: string | undefined } {
    const [lastSeq, reply] = this.#last.get(queue, caller) ?? [0, null];
    if (seq >= lastSeq) return { lastSeq, reply: (seq === lastSeq ? reply : null) ?? undefined };
    // This call is late: its caller gave up on it and has sent a later call. Carrying it out now would make a change that its
    // caller no longer expects.
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

  /** Returns whether a prune would delete any caller of the next chunk. If not, moves on to the following chunk. */
  anyOld(now: number): boolean {
    const end = this.#endOfChunk.get(...this.#place, LOOKED_AT_ONCE - 1);
    if (this.#anyOld.get(...this.#place, ...(end ?? END), now - REMEMBERED_MS) !== undefined) return true;
    this.#place = end ?? START;
    return false;
  }

  /** Deletes the old callers of the next chunk. Returns how many it deleted. */
  prune(now: number): number {
    const end = this.#endOfChunk.get(...this.#place, LOOKED_AT_ONCE - 1);
    const pruned = this.#prune.run(...this.#place, ...(end ?? END), now - REMEMBERED_MS);
    this.#place = end ?? START;
    return pruned;
  }

  /** True when all callers were checked and the next check starts again at the first one. */
  get isThrough(): boolean {
    return this.#place === START;
  }
}
