// The session verbs of the SQLite store: open, renew, close and sweep. close-session.ts hands back most jobs of a large session
// before `close`.
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
  type SweepReply,
} from '../contract/index.js';
import { type Swept, sweepReply } from '../swept.js';
import type { Callers } from './callers.js';
import { roundedUp } from './clock.js';
import type { Database, Statement } from './driver.js';
import { type HandBack, HELD_COLUMNS, type HeldRow, type Loss, lossOf, OWNER_COLUMNS, type OwnerRow } from './hand-back.js';
import type { NamedLocks } from './named-lock.js';
import type { QueueState } from './queue-state.js';
import { STATE } from './schema.js';
import type { Transaction } from './transaction.js';

// `sessions.reaped`: 0: open. 1: reaped, and locks that ended with the session, or places in line, are still to be released. 2:
// kept only for locks with their own end, which need its owner and its maxStalls. A session that holds nothing any more is deleted.

/** The loss of a lock whose session has no row. */
const UNKNOWN: Loss = { maxStalls: 0, lostBy: null };

/** How often a store deletes old callers and empty sessions. */
const PRUNE_EVERY_MS = 60_000;

export class Sessions {
  readonly #callers: Callers;
  readonly #handBack: HandBack;
  readonly #namedLocks: NamedLocks;
  readonly #open: Statement;
  readonly #setSlots: Statement;
  readonly #renew: Statement<[revoked: number]>;
  readonly #revocations: Statement<[number: number, job: string, fence: number, reason: string]>;
  readonly #acknowledge: Statement;
  readonly #find: Statement<[...OwnerRow, reaped: number]>;
  readonly #delete: Statement;
  readonly #held: Statement<HeldRow>;
  readonly #bound: Statement<HeldRow>;
  readonly #expired: Statement<[...OwnerRow, id: string]>;
  readonly #reap: Statement;
  readonly #ended: Statement<[...HeldRow, session: string, timed: number]>;
  readonly #clearEnd: Statement;
  readonly #anyDead: Statement<[number]>;
  readonly #empty: Statement<[queue: number, id: string]>;
  #prunedAt = 0;

  constructor(db: Database, callers: Callers, handBack: HandBack, namedLocks: NamedLocks) {
    this.#namedLocks = namedLocks;
    this.#callers = callers;
    this.#handBack = handBack;
    const active = `FROM jobs WHERE queue = ? AND state = ${STATE.active} AND session = ?`;
    this.#open = db.prepare(
      `INSERT INTO sessions (queue, id, host, pid, name, instance, presence, slots, graceMs, durationMs, maxStalls, since, expiresAt)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    );
    this.#setSlots = db.prepare('UPDATE sessions SET slots = ? WHERE queue = ? AND id = ? AND slots <> ?');
    // A renewal writes only this, whatever the session holds.
    this.#renew = db.prepare(
      `UPDATE sessions SET expiresAt = ? + ${roundedUp('durationMs')}, renewals = renewals + 1, suspected = 0
       WHERE queue = ? AND id = ? AND reaped = 0 RETURNING revoked`,
    );
    this.#revocations = db.prepare(
      'SELECT number, job, fence, reason FROM revocations WHERE queue = ? AND session = ? AND number > ? ORDER BY number',
    );
    this.#acknowledge = db.prepare('DELETE FROM revocations WHERE queue = ? AND session = ? AND number <= ?');
    this.#find = db.prepare(`SELECT ${OWNER_COLUMNS}, reaped FROM sessions WHERE queue = ? AND id = ?`);
    this.#delete = db.prepare('DELETE FROM sessions WHERE queue = ? AND id = ?');
    this.#held = db.prepare(`SELECT ${HELD_COLUMNS} ${active} ORDER BY claimSeq, fence`);
    this.#bound = db.prepare(`SELECT ${HELD_COLUMNS} ${active} AND endsAt IS NULL ORDER BY claimSeq DESC, fence DESC LIMIT ?`);
    this.#expired = db.prepare(
      `SELECT ${OWNER_COLUMNS}, id FROM sessions WHERE queue = ? AND reaped < 2 AND expiresAt <= ? ORDER BY expiresAt LIMIT 1`,
    );
    this.#reap = db.prepare('UPDATE sessions SET reaped = ? WHERE queue = ? AND id = ?');
    this.#ended = db.prepare(
      `SELECT ${HELD_COLUMNS}, session, timed FROM jobs WHERE queue = ? AND endsAt IS NOT NULL AND endsAt <= ? ORDER BY endsAt LIMIT ?`,
    );
    this.#clearEnd = db.prepare('UPDATE jobs SET endsAt = NULL WHERE job = ?');
    this.#anyDead = db.prepare(
      `SELECT 1 WHERE EXISTS (SELECT 1 FROM sessions WHERE queue = ? AND reaped < 2 AND expiresAt <= ?)
         OR EXISTS (SELECT 1 FROM jobs WHERE queue = ? AND endsAt IS NOT NULL AND endsAt <= ?)`,
    );
    this.#empty = db.prepare(
      `SELECT queue, id FROM sessions WHERE reaped = 2
         AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.queue = sessions.queue AND state = ${STATE.active} AND session = sessions.id)`,
    );
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
    if (slots !== undefined && this.#setSlots.run(slots, state.queue, id, slots) === 1) state.changed = true;
    if (revoked > 0 && acked > 0) this.#acknowledge.run(state.queue, id, acked);
    const rows = revoked > acked ? this.#revocations.all(state.queue, id, acked) : [];
    const notices = rows.map(([number, jobId, fence, reason]): Notice => {
      return { number, kind: 'revoked', jobId, token: tokenOf(id, fence), fence, reason };
    });
    return { alive: true, notices };
  }

  close(transaction: Transaction, { queue: name, id }: SessionRef, how: SessionEnd): void {
    const queue = transaction.find(name);
    const session = queue === undefined ? undefined : this.#find.get(queue.queue, id);
    if (queue === undefined || session === undefined) return;
    const held = this.#held.all(queue.queue, id);
    if (how === 'crashed') this.#handBack.stall(queue, held, lossOf(session, 'exit'), transaction.now);
    else this.#handBack.giveBack(queue, held);
    this.#namedLocks.free(queue, id, Number.MAX_SAFE_INTEGER);
    this.#shareAnew(queue);
    this.#forget(queue.queue, id);
    this.#callers.forget(queue.queue, id);
  }

  /** Returns whether a sweep would find anything. */
  anyDead(queue: QueueState, now: number): boolean {
    if (this.#isAnyDead(queue, now)) return true;
    if (!this.#mayPrune(now)) return false;
    const anyOld = this.#callers.anyOld(now) || this.#empty.get() !== undefined;
    if (!anyOld && this.#callers.isThrough) this.#prunedAt = now;
    return anyOld;
  }

  sweep(transaction: Transaction, name: string, limit: number): SweepReply {
    const queue = transaction.find(name);
    const swept: Swept = { stalled: [], failed: [] };
    if (queue === undefined) return sweepReply(swept, false);
    const left = this.#sweepEnded(queue, limit, swept, transaction.now);
    this.#sweepSessions(queue, left, limit, swept, transaction.now);
    const pruned = this.#mayPrune(transaction.now) ? this.#prune(transaction.now) : 0;
    return sweepReply(swept, pruned > 0 || this.#isAnyDead(queue, transaction.now));
  }

  #prune(now: number): number {
    const pruned = this.#callers.prune(now);
    for (const [number, id] of this.#empty.all()) this.#forget(number, id);
    if (this.#callers.isThrough) this.#prunedAt = now;
    return pruned;
  }

  /** Sweeps locks whose own end has passed. Returns how many further locks this sweep may still take. */
  #sweepEnded(queue: QueueState, limit: number, swept: Swept, now: number): number {
    const rows = this.#ended.all(queue.queue, now, limit);
    // Each job goes to the front, so start with the lock that ended last: the one that ended first ends up in front.
    for (const row of rows.reverse()) {
      const [job, , , , , session, timed] = row;
      const owner = this.#find.get(queue.queue, session);
      const reaped = owner?.[5] ?? 1;
      const loss = owner === undefined ? UNKNOWN : lossOf(owner, timed === 1 ? 'lock-expired' : undefined);
      // An extended lock whose session outlived the extension lives as long as the session again.
      if (timed === 0 && reaped === 0) this.#clearEnd.run(job);
      else this.#stall(queue, [row as unknown as HeldRow], loss, swept, now);
      if (reaped === 2 && this.#held.get(queue.queue, session) === undefined) this.#forget(queue.queue, session);
    }
    return limit - rows.length;
  }

  #sweepSessions(queue: QueueState, locks: number, sessions: number, swept: Swept, now: number): void {
    let left = locks;
    for (let n = 0; n < sessions && left > 0; n += 1) {
      const expired = this.#expired.get(queue.queue, now);
      if (expired === undefined) return;
      const id = expired[5];
      // Take the newest locks first. The rest follows in later calls, which go to the front, so the oldest job ends up first.
      const held = this.#bound.all(queue.queue, id, left + 1);
      this.#stall(queue, held.slice(0, left).reverse(), lossOf(expired), swept, now);
      const allHeld = held.length <= left;
      left -= Math.min(left, held.length);
      left -= this.#namedLocks.free(queue, id, left);
      this.#shareAnew(queue);
      if (!allHeld || this.#namedLocks.anyOf(queue, id)) this.#reap.run(1, queue.queue, id);
      else if (this.#held.get(queue.queue, id) === undefined) this.#forget(queue.queue, id);
      else this.#reap.run(2, queue.queue, id);
    }
  }

  /** Wakes the watchers after the end of a session, because other sessions may use its share of the cap. */
  #shareAnew(queue: QueueState): void {
    if (queue.maxActive >= 0) queue.changed = true;
  }

  #isAnyDead({ queue }: QueueState, now: number): boolean {
    return this.#anyDead.get(queue, now, queue, now) !== undefined;
  }

  #mayPrune(now: number): boolean {
    return now >= this.#prunedAt + PRUNE_EVERY_MS;
  }

  #stall(queue: QueueState, held: HeldRow[], loss: Loss, swept: Swept, now: number): void {
    const { stalled, failed } = this.#handBack.stall(queue, held, loss, now);
    swept.stalled.push(...stalled);
    swept.failed.push(...failed);
  }

  #forget(queue: number, id: string): void {
    this.#acknowledge.run(queue, id, Number.MAX_SAFE_INTEGER);
    this.#delete.run(queue, id);
  }
}
