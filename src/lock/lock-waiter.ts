// One wish for a named lock: a place in line, and when it is to ask again.
import { randomUUID } from 'node:crypto';
import type { LockGrant, LockRequest } from '../store/contract/index.js';
import type { Session } from '../session/session.js';
import type { SessionOwner } from '../session/session-owner.js';

export interface LockWaiterOptions {
  name: string;
  owner: SessionOwner;
  /** The longest time between two asks; 0: it asks once and does not wait. */
  askMs: number;
  granted(session: Session, token: string, fence: number): void;
  /** Somebody else holds it, or comes first. */
  taken(): void;
  /** The wish cannot be carried out. */
  failed(error: Error): void;
}

/** A place is kept for as many asks as may get lost. */
const ASKS_PER_PLACE = 3;
const FIRST_GAP_MS = 2;
/** So many fruitless answers mean nothing: an ask may be quicker than that of the one before it in line. */
const FRUITLESS = 3;
/** By then another step would have come, if the line goes on. */
const STEP_MS = 20;
/** The first in line should have taken a lock that is free by then, if it lives. */
const FREE_MS = 50;
/** However many wake-ups come for nothing, the first in line asks no more often than so. */
const GAPS_PER_ASK = 8;
const JOIN_SHARE = 4;
/** The store's clock may round. */
const AFTER_END_MS = 5;

export class LockWaiter {
  readonly options: LockWaiterOptions;
  /** Whoever wished no longer waits; a grant that comes all the same goes back. */
  ended = false;
  dueAt = 0;
  /** An ask is under way. */
  asking = false;
  /** Why the last ask failed, if it did. */
  failure: Error | undefined;
  token = randomUUID() as string;
  #askedAt = 0;
  #ahead = Number.POSITIVE_INFINITY;
  /** Wake-ups since it asked: at best, each was a step of the line. */
  #woken = 0;
  /** When it asks if nobody wakes it. */
  #latest = 0;
  /** Answers in a row that brought it no nearer. */
  #fruitless = 0;

  constructor(options: LockWaiterOptions) {
    this.options = options;
  }

  get waits(): boolean {
    return this.options.askMs > 0;
  }

  /** Something has been asked under the current token. */
  get asked(): boolean {
    return this.#askedAt > 0;
  }

  /** Those that would ask soon anyway join a call that is made: they stay in step from here on. */
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

  /** Its session died, and its place with it; or what it got cannot be used. */
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
    // Nobody is told when a holder dies, or the first in line. Whoever comes next is there when their time is over.
    const soon = endsInMs === undefined || endsInMs <= 0 ? FREE_MS * 2 ** this.#fruitless : endsInMs + AFTER_END_MS;
    this.#latest = now + Math.min(this.options.askMs, soon * (1 + ahead));
    this.dueAt = this.#latest;
    if (this.#woken === 0) return;
    // Woken while the ask was under way: the answer may be older than what it was woken for.
    this.#woken -= 1;
    this.wake(now);
  }

  /**
   * Something of the queue has changed, perhaps this lock. The first in line asks at once, those behind it when as many wake-ups
   * have come as stand before them, or none comes any more: several steps may come as one. (All of eight waiters asking at
   * each wake-up: 60 handovers a second on SQLite. So: 104.) Whoever is woken again and again for nothing, by the jobs of a busy queue, asks
   * less and less often.
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
