// One request for a named lock that waits its turn. It computes when to ask the store again; LockWaiters makes the calls.
import { randomUUID } from 'node:crypto';
import type { LockGrant, LockRequest } from '../store/contract/index.js';
import type { Session } from '../session/session.js';
import type { SessionOwner } from '../session/session-owner.js';

export interface LockWaiterOptions {
  name: string;
  owner: SessionOwner;
  /** The longest time between two asks, in ms. 0: the waiter asks once and does not wait. */
  askMs: number;
  granted(session: Session, token: string, fence: number): void;
  /** Another session holds the lock, or comes first. */
  taken(): void;
  /** The request failed for good. */
  failed(error: Error): void;
}

/** The store keeps a place in line for this many asks, because some of them may get lost. */
const ASKS_PER_PLACE = 3;
const FIRST_GAP_MS = 2;
/** This many replies without progress mean nothing: an ask may be faster than that of the waiter before it in line. */
const FRUITLESS = 3;
/** Time, in ms, after which another step of the line would have come if the line still moves. */
const STEP_MS = 20;
/** Time, in ms, after which the first in line should have taken a free lock if it is alive. */
const FREE_MS = 50;
/** However many wake-ups come for nothing, the first in line asks at most this many times per `askMs`. */
const GAPS_PER_ASK = 8;
const JOIN_SHARE = 4;
/** Added to the end of the holder's session, in ms, because the store's clock may round. */
const AFTER_END_MS = 5;

export class LockWaiter {
  readonly options: LockWaiterOptions;
  /** The caller no longer waits. If the store grants the lock all the same, it is given back. */
  ended = false;
  dueAt = 0;
  /** An ask is under way. */
  asking = false;
  /** The error of the last ask, if it failed. */
  failure: Error | undefined;
  token = randomUUID() as string;
  #askedAt = 0;
  #ahead = Number.POSITIVE_INFINITY;
  /** Wake-ups since the last ask. At best, each one was a step of the line. */
  #woken = 0;
  /** When the waiter asks at the latest, without a wake-up. */
  #latest = 0;
  /** Number of replies in a row that brought the waiter no further. */
  #fruitless = 0;

  constructor(options: LockWaiterOptions) {
    this.options = options;
  }

  get waits(): boolean {
    return this.options.askMs > 0;
  }

  /** True if the store was asked under the current token. */
  get asked(): boolean {
    return this.#askedAt > 0;
  }

  /** True if the waiter should ask now. Waiters that would ask soon join the call that is made, and stay in step from here on. */
  isDue(now: number): boolean {
    return this.dueAt <= now || this.#latest <= now + this.options.askMs / JOIN_SHARE;
  }

  ask(session: Session, now: number): LockRequest {
    const { name, askMs } = this.options;
    this.#askedAt = now;
    this.#woken = 0;
    this.asking = true;
    return { name, token: this.token, session: session.id, keepPlaceMs: ASKS_PER_PLACE * askMs };
  }

  /** Starts over with a new token, because the session and its place in line are gone, or because the granted lock cannot be used. */
  lineUpAgain(dueAt: number): void {
    this.ended = false;
    this.token = randomUUID();
    this.#askedAt = 0;
    this.#ahead = Number.POSITIVE_INFINITY;
    this.dueAt = dueAt;
    this.#latest = dueAt;
  }

  stepUp({ ahead = 0, endsInMs }: LockGrant, now: number): void {
    this.#fruitless = ahead < this.#ahead ? 0 : this.#fruitless + 1;
    this.#ahead = ahead;
    // The store sends no wake-up when the holder or the first in line dies. So the waiter asks again when their time is over.
    const soon = endsInMs === undefined || endsInMs <= 0 ? FREE_MS * 2 ** this.#fruitless : endsInMs + AFTER_END_MS;
    this.#latest = now + Math.min(this.options.askMs, soon * (1 + ahead));
    this.dueAt = this.#latest;
    if (this.#woken === 0) return;
    // A wake-up came during the ask: the reply may be older than the change behind that wake-up.
    this.#woken -= 1;
    this.wake(now);
  }

  /**
   * Something in the queue has changed, perhaps this lock. The first in line asks at once. A waiter behind it asks after as many wake-ups
   * as there are waiters before it. It also asks when no more wake-ups come, because one wake-up may stand for several steps. (If all of
   * eight waiters ask at each wake-up, SQLite does 60 handovers a second; with this rule 104.) A waiter that is woken repeatedly for
   * nothing, by the jobs of a busy queue, asks less and less often.
   */
  wake(now: number): void {
    this.#woken += 1;
    const steps = Math.max(1, this.#ahead);
    const rising = FIRST_GAP_MS * 2 ** Math.max(0, this.#fruitless - FRUITLESS);
    const earliest = this.#askedAt + Math.min(this.options.askMs / GAPS_PER_ASK, rising) * steps;
    const turn = this.#woken < steps ? now + STEP_MS * steps : now;
    this.dueAt = Math.min(this.#latest, Math.max(turn, earliest));
  }
}
