// The session verbs of the SQLite store: open, renew and close. sweep.ts ends sessions that have expired.
import { HoldfastError } from '../../errors.js';
import { tokenOf } from '../../job/lock.js';
import {
  CRASH_GRACE_MS,
  type NewSession,
  type Notice,
  type Renewal,
  type RenewReply,
  type SessionEnd,
  type SessionRef,
} from '../contract/index.js';
import type { Callers } from './state/callers.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { type Locks, lossOf, type OwnerRow } from './lock.js';
import type { HeldRow } from './record.js';
import type { NamedLocks } from './named-lock.js';
import type { QueueState } from './state/queue-state.js';
import type { Transaction } from './state/transaction.js';

// `sessions.reaped`: 0: open. 1: reaped, and locks that ended with the session, or places in line, are still to be released. 2:
// kept only for locks with their own end, which need its owner and its maxStalls. A session that holds nothing any more is deleted.

/**
 * Jobs that one step of closing a session hands back: about 3 ms. One transaction with 100,000 jobs kept all other writers out for
 * 0.6 s.
 */
const HANDED_BACK_AT_ONCE = 500;

export interface SessionParts {
  callers: Callers;
  locks: Locks;
  namedLocks: NamedLocks;
}

export class Sessions {
  readonly #callers: Callers;
  readonly #locks: Locks;
  readonly #namedLocks: NamedLocks;
  readonly #open: Statement;
  readonly #setSlots: Statement;
  readonly #renew: Statement<[revoked: number]>;
  readonly #notices: Statement<[number: number, job: string, fence: number, reason: string, kind: Notice['kind'] | null]>;
  readonly #acknowledge: Statement;
  readonly #find: Statement<[...OwnerRow, reaped: number]>;
  readonly #delete: Statement;
  readonly #count: Statement<[number]>;
  readonly #held: Statement<HeldRow>;

  constructor(db: Database, { callers, locks, namedLocks }: SessionParts) {
    this.#callers = callers;
    this.#locks = locks;
    this.#namedLocks = namedLocks;
    this.#open = sql(
      db,
      'open-session',
      'queue id host pid name instance presence slots graceMs durationMs maxStalls now expiresAt',
    );
    this.#setSlots = sql(db, 'set-slots', 'slots queue session');
    this.#renew = sql(db, 'renew-session', 'now queue session');
    this.#notices = sql(db, 'read-notices', 'queue session number');
    this.#acknowledge = sql(db, 'delete-notices', 'queue session number');
    this.#find = sql(db, 'find-session', 'queue session');
    this.#delete = sql(db, 'delete-session', 'queue session');
    this.#count = sql(db, 'count-held', 'queue session');
    this.#held = sql(db, 'held-jobs', 'queue session count');
  }

  open(transaction: Transaction, session: NewSession, presence: string | undefined): void {
    const { queue, id, owner, durationMs, maxStalls, slots, graceMs = CRASH_GRACE_MS } = session;
    const { host, pid, name, instance } = owner;
    const row = [transaction.queue(queue).queue, id, host, pid, name, instance, presence ?? null, slots, graceMs];
    if (this.#open.run(...row, durationMs, maxStalls, transaction.now, transaction.after(durationMs)) === 1) return;
    throw new HoldfastError('STORE_FAILED', `Session ${id} was opened before: give every session an id of its own.`, {
      queue,
      store: 'sqlite',
    });
  }

  renew(transaction: Transaction, { queue, id, acked, slots }: Renewal): RenewReply {
    const state = transaction.find(queue);
    const row = state === undefined ? undefined : this.#renew.get(transaction.after(0), state.queue, id);
    if (state === undefined || row === undefined) return { alive: false, notices: [] };
    const [revoked] = row;
    // The sessions' shares of the cap have changed, so wake the watchers.
    if (slots !== undefined && this.#setSlots.run(slots, state.queue, id) === 1) state.changed = true;
    if (revoked > 0 && acked > 0) this.#acknowledge.run(state.queue, id, acked);
    const rows = revoked > acked ? this.#notices.all(state.queue, id, acked) : [];
    const notices = rows.map(([number, jobId, fence, reason, kind]): Notice => {
      return { number, kind: kind ?? 'revoked', jobId, token: tokenOf(id, fence), fence, reason };
    });
    return { alive: true, notices };
  }

  /** Returns how many steps of `handBackSome` come before `close`, which ends the session. */
  stepsToClose({ queue }: QueueState, id: string): number {
    return Math.floor(Math.max(0, (this.#count.get(queue, id)?.[0] ?? 0) - 1) / HANDED_BACK_AT_ONCE);
  }

  /**
   * Hands back the newest jobs of a session that is about to be closed. Each step goes to the front of waiting, so in the end all
   * jobs wait in the order of their claims. If the process crashes in between, the remaining locks end when the session expires.
   */
  handBackSome(transaction: Transaction, { queue: name, id }: SessionRef, how: SessionEnd): void {
    const queue = transaction.find(name);
    if (queue !== undefined) this.#handBack(transaction, queue, id, how, HANDED_BACK_AT_ONCE);
  }

  close(transaction: Transaction, { queue: name, id }: SessionRef, how: SessionEnd): void {
    const queue = transaction.find(name);
    if (queue === undefined || !this.#handBack(transaction, queue, id, how, Number.MAX_SAFE_INTEGER)) return;
    this.#namedLocks.free(queue, id, Number.MAX_SAFE_INTEGER);
    this.shareAnew(queue);
    this.forget(queue.queue, id);
    this.#callers.forget(queue.queue, id);
  }

  /** Returns false if there is no such session. */
  #handBack(transaction: Transaction, queue: QueueState, id: string, how: SessionEnd, limit: number): boolean {
    const session = this.ownerOf(queue, id);
    if (session === undefined) return false;
    const held = this.#held.all(queue.queue, id, limit).reverse();
    if (how === 'crashed') this.#locks.stall(transaction, queue, held, lossOf(session, 'exit'));
    else this.#locks.giveBack(transaction, queue, held);
    return true;
  }

  ownerOf({ queue }: QueueState, id: string): [...OwnerRow, reaped: number] | undefined {
    return this.#find.get(queue, id);
  }

  holdsJobs({ queue }: QueueState, id: string): boolean {
    return this.#held.get(queue, id, 1) !== undefined;
  }

  /** Wakes the watchers after the end of a session, because other sessions may use its share of the cap. */
  shareAnew(queue: QueueState): void {
    if (queue.maxActive >= 0) queue.changed = true;
  }

  forget(queue: number, id: string): void {
    this.#acknowledge.run(queue, id, Number.MAX_SAFE_INTEGER);
    this.#delete.run(queue, id);
  }
}
