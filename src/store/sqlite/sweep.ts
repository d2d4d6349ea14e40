// The verb `sweep` of the SQLite store: ends sessions and locks whose time has passed, and deletes what nothing needs any more.
import type { SweepReply } from '../contract/index.js';
import { type Swept, sweepReply } from '../swept.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import { type Locks, type Loss, lossOf, type OwnerRow } from './lock.js';
import type { HeldRow } from './record.js';
import type { NamedLocks } from './named-lock.js';
import type { Sessions } from './session.js';
import type { Callers } from './state/callers.js';
import type { Entries } from './state/entries.js';
import type { QueueState } from './state/queue-state.js';
import type { IdleGroups } from './state/idle-groups.js';
import type { Schedules } from './state/schedules.js';
import type { Transaction } from './state/transaction.js';

/** The loss of a lock whose session has no row. */
const UNKNOWN: Loss = { maxStalls: 0, lostBy: null };

/** How often a store deletes old callers and empty sessions. */
const PRUNE_EVERY_MS = 60_000;

/** How often a store looks for lost next jobs in a queue. The query reads all schedules whose slots have passed. */
const LOOK_EVERY_MS = 10_000;

export interface SweepingParts {
  callers: Callers;
  sessions: Sessions;
  locks: Locks;
  namedLocks: NamedLocks;
  entries: Entries;
  schedules: Schedules;
  idleGroups: IdleGroups;
}

export class Sweeping {
  readonly #parts: SweepingParts;
  readonly #bound: Statement<HeldRow>;
  readonly #expired: Statement<[...OwnerRow, id: string]>;
  readonly #reap: Statement;
  readonly #ended: Statement<[...HeldRow, session: string, timed: number]>;
  readonly #clearEnd: Statement;
  readonly #anyDead: Statement<[number]>;
  readonly #empty: Statement<[queue: number, id: string]>;
  #prunedAt = 0;
  /** By queue: when this store last found no lost next job. */
  readonly #lookedAt = new Map<number, number>();

  constructor(db: Database, parts: SweepingParts) {
    this.#parts = parts;
    this.#bound = sql(db, 'bound-jobs', 'queue session count');
    this.#expired = sql(db, 'expired-session', 'queue now');
    this.#reap = sql(db, 'reap-session', 'reaped queue session');
    this.#ended = sql(db, 'ended-locks', 'queue now count');
    this.#clearEnd = sql(db, 'clear-end', 'job');
    this.#anyDead = sql(db, 'any-dead', 'queue now');
    this.#empty = sql(db, 'empty-sessions');
  }

  /** Returns whether a sweep would find anything. */
  anyDead(queue: QueueState, now: number): boolean {
    if (this.#isAnyDead(queue, now) || this.#isAnyLost(queue, now)) return true;
    if (this.#parts.idleGroups.any(queue, now)) return true;
    if (!this.#mayPrune(now)) return false;
    const anyOld = this.#parts.callers.anyOld(now) || this.#empty.get() !== undefined;
    if (!anyOld && this.#parts.callers.isThrough) this.#prunedAt = now;
    return anyOld;
  }

  sweep(transaction: Transaction, name: string, limit: number): SweepReply {
    const queue = transaction.find(name);
    const swept: Swept = { stalled: [], failed: [] };
    if (queue === undefined) return sweepReply(swept, false);
    this.#parts.entries.deleteEnded(queue, limit, transaction.now);
    if (this.#isAnyLost(queue, transaction.now)) this.#parts.schedules.oweLost(queue, limit);
    this.#parts.idleGroups.delete(queue, limit, transaction.now);
    const left = this.#sweepEnded(transaction, queue, limit, swept);
    this.#sweepSessions(transaction, queue, left, limit, swept);
    const pruned = this.#mayPrune(transaction.now) ? this.#prune(transaction.now) : 0;
    return sweepReply(swept, pruned > 0 || this.#isAnyDead(queue, transaction.now));
  }

  #prune(now: number): number {
    const pruned = this.#parts.callers.prune(now);
    for (const [number, id] of this.#empty.all()) this.#parts.sessions.forget(number, id);
    if (this.#parts.callers.isThrough) this.#prunedAt = now;
    return pruned;
  }

  /** Sweeps locks whose own end has passed. Returns how many further locks this sweep may still take. */
  #sweepEnded(transaction: Transaction, queue: QueueState, limit: number, swept: Swept): number {
    const rows = this.#ended.all(queue.queue, transaction.now, limit);
    // Each job goes to the front, so start with the lock that ended last: the one that ended first ends up in front.
    for (const row of rows.reverse()) {
      const job = row[0];
      const [session, timed] = row.slice(-2) as [string, number];
      const owner = this.#parts.sessions.ownerOf(queue, session);
      const reaped = owner?.[5] ?? 1;
      const loss = owner === undefined ? UNKNOWN : lossOf(owner, timed === 1 ? 'lock-expired' : undefined);
      // An extended lock whose session outlived the extension lives as long as the session again.
      if (timed === 0 && reaped === 0) this.#clearEnd.run(job);
      else this.#stall(transaction, queue, [row], loss, swept);
      if (reaped === 2 && !this.#parts.sessions.holdsJobs(queue, session)) this.#parts.sessions.forget(queue.queue, session);
    }
    return limit - rows.length;
  }

  #sweepSessions(transaction: Transaction, queue: QueueState, locks: number, sessions: number, swept: Swept): void {
    let left = locks;
    for (let n = 0; n < sessions && left > 0; n += 1) {
      const expired = this.#expired.get(queue.queue, transaction.now);
      if (expired === undefined) return;
      const id = expired[5];
      // Take the newest locks first. The rest follows in later calls, which go to the front, so the oldest job ends up first.
      const held = this.#bound.all(queue.queue, id, left + 1);
      this.#stall(transaction, queue, held.slice(0, left).reverse(), lossOf(expired), swept);
      const allHeld = held.length <= left;
      left -= Math.min(left, held.length);
      left -= this.#parts.namedLocks.free(queue, id, left);
      this.#parts.sessions.shareAnew(queue);
      if (!allHeld || this.#parts.namedLocks.anyOf(queue, id)) this.#reap.run(1, queue.queue, id);
      else if (!this.#parts.sessions.holdsJobs(queue, id)) this.#parts.sessions.forget(queue.queue, id);
      else this.#reap.run(2, queue.queue, id);
    }
  }

  #isAnyDead({ queue }: QueueState, now: number): boolean {
    return this.#anyDead.get(queue, now) !== undefined;
  }

  #isAnyLost(queue: QueueState, now: number): boolean {
    const isLate = now >= (this.#lookedAt.get(queue.queue) ?? 0) + LOOK_EVERY_MS;
    if (queue.scheduled === 0 || !isLate) return false;
    const isLost = this.#parts.schedules.anyLost(queue);
    if (!isLost) this.#lookedAt.set(queue.queue, now);
    return isLost;
  }

  #mayPrune(now: number): boolean {
    return now >= this.#prunedAt + PRUNE_EVERY_MS;
  }

  #stall(transaction: Transaction, queue: QueueState, held: Parameters<Locks['stall']>[2], loss: Loss, swept: Swept): void {
    const { stalled, failed } = this.#parts.locks.stall(transaction, queue, held, loss);
    swept.stalled.push(...stalled);
    swept.failed.push(...failed);
  }
}
