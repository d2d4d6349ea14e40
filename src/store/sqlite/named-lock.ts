// The verbs `acquire` and `letGo` of the SQLite store: named locks (table `named`) and the lines of lock waiters (table `places`).
import { nextFence } from '../../job/lock.js';
import type { LetGoStatus, LockGrant, LockRequest, NamedLockInfo, NamedLockRef } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

type HoldRow = [
  token: string,
  fence: number,
  since: number,
  session: string,
  host: string,
  pid: number,
  name: string,
  instance: string,
  expiresAt: number,
  reaped: number,
];

/** What one call has found of the lines, by name: a place, and the number of waiters before it. So the call counts each part of a line once. */
export type Lines = Map<string, { place: number; ahead: number }>;

/** The start of a line. */
const START = { place: 0, ahead: 0 };

export class NamedLocks {
  readonly #living: Statement<[number]>;
  readonly #end: Statement;
  readonly #hold: Statement<HoldRow>;
  readonly #take: Statement;
  readonly #drop: Statement;
  readonly #place: Statement<[place: number]>;
  readonly #line: Statement<[ahead: number]>;
  readonly #enter: Statement;
  readonly #keep: Statement;
  readonly #leave: Statement;
  readonly #lapse: Statement;
  readonly #freeHeld: Statement;
  readonly #deletePlaces: Statement;
  readonly #any: Statement<[number]>;

  constructor(db: Database) {
    this.#living = sql(db, 'session-alive', 'queue session now');
    this.#end = sql(db, 'end-session', 'queue session');
    this.#hold = sql(db, 'find-named-lock', 'queue name');
    this.#take = sql(db, 'take-named-lock', 'queue name token session fence now');
    this.#drop = sql(db, 'drop-named-lock', 'queue name token');
    this.#place = sql(db, 'find-place', 'queue name token now');
    this.#line = sql(db, 'count-ahead', 'queue name now from place');
    this.#enter = sql(db, 'enter-line', 'queue name token session keptUntil');
    this.#keep = sql(db, 'keep-place', 'keptUntil place');
    this.#leave = sql(db, 'leave-line', 'queue name token');
    this.#lapse = sql(db, 'lapse-places', 'queue name now');
    this.#freeHeld = sql(db, 'free-named-locks', 'queue session count');
    this.#deletePlaces = sql(db, 'delete-places', 'queue session count');
    this.#any = sql(db, 'any-named', 'queue session');
  }

  acquire(transaction: Transaction, queueName: string, wish: LockRequest, lines: Lines): LockGrant {
    const queue = transaction.queue(queueName);
    const { now } = transaction;
    const { name, token, session, keepPlaceMs } = wish;
    if (this.#living.get(queue.queue, session, now) === undefined) return { status: 'gone' };
    const hold = this.#hold.get(queue.queue, name);
    const holder = hold !== undefined && isLiving(hold, now) ? hold : undefined;
    if (holder?.[0] === token) return { status: 'held', fence: holder[1] };
    this.#forgetLapsed(queue, name, now, lines);
    let place = this.#place.get(queue.queue, name, token, now)?.[0];
    const ahead = this.#countAhead(queue, name, now, place, lines.get(name));
    if (holder === undefined && ahead === 0) {
      // End the expired session of the previous holder, because a late renewal would make that holder trust its lock again.
      if (hold !== undefined) this.#end.run(queue.queue, hold[3]);
      lines.clear();
      return this.#grant(queue, wish, now);
    }
    if (keepPlaceMs === 0) this.letGo(transaction, queueName, wish, lines);
    else {
      if (place === undefined) this.#enter.run(queue.queue, name, token, session, transaction.after(keepPlaceMs));
      else this.#keep.run(transaction.after(keepPlaceMs), place);
      place ??= this.#place.get(queue.queue, name, token, now)?.[0] as number;
      lines.set(name, { place, ahead });
    }
    return { status: 'taken', ahead, ...(holder !== undefined && { endsInMs: holder[8] - now }) };
  }

  letGo(transaction: Transaction, queueName: string, { name, token }: NamedLockRef, lines: Lines): LetGoStatus {
    const queue = transaction.find(queueName);
    if (queue === undefined) return 'missing';
    this.#forgetLapsed(queue, name, transaction.now, lines);
    const freed = this.#drop.run(queue.queue, name, token) + this.#leave.run(queue.queue, name, token);
    if (freed === 0) return 'missing';
    lines.set(name, START);
    // Wake the watchers: the first lock waiter may take the lock now.
    queue.changed = true;
    return 'done';
  }

  /** Releases up to `limit` named locks and places in line of a session. Returns how many it released. */
  free(queue: QueueState, session: string, limit: number): number {
    const held = this.#freeHeld.run(queue.queue, session, limit);
    const freed = held + (held < limit ? this.#deletePlaces.run(queue.queue, session, limit - held) : 0);
    if (freed > 0) queue.changed = true;
    return freed;
  }

  anyOf(queue: QueueState, session: string): boolean {
    return this.#any.get(queue.queue, session) !== undefined;
  }

  look(queue: QueueState, name: string, now: number): NamedLockInfo | undefined {
    const hold = this.#hold.get(queue.queue, name);
    if (hold === undefined) return undefined;
    const [token, fence, since, session, host, pid, ownerName, instance, expiresAt] = hold;
    const owner = { host, pid, name: ownerName, instance };
    const waiting = this.#countAhead(queue, name, now);
    return { name, token, fence, session, owner, since, endsInMs: expiresAt - now, waiting };
  }

  /** Once in a call. */
  #forgetLapsed(queue: QueueState, name: string, now: number, lines: Lines): void {
    if (lines.has(name)) return;
    this.#lapse.run(queue.queue, name, now);
    lines.set(name, START);
  }

  #countAhead(queue: QueueState, name: string, now: number, place = Number.MAX_SAFE_INTEGER, known = START): number {
    const from = known.place <= place ? known : START;
    return from.ahead + (this.#line.get(queue.queue, name, now, from.place, place)?.[0] ?? 0);
  }

  #grant(queue: QueueState, { name, token, session }: LockRequest, now: number): LockGrant {
    const fence = nextFence(queue.fence, now);
    queue.fence = fence;
    // The row must be written, but no watcher needs to wake, because no lock came free.
    queue.quietlyChanged = true;
    this.#leave.run(queue.queue, name, token);
    this.#take.run(queue.queue, name, token, session, fence, now);
    return { status: 'held', fence };
  }
}

function isLiving(hold: HoldRow, now: number): boolean {
  return hold[8] > now && hold[9] === 0;
}
