// The locks of jobs that user code takes one by one (worker.getNextJob, job.takeLock), and the moves that a processor makes itself. The
// locks are timed: only the caller that took the job extends them, so that a forgotten job comes back. Lock clients and workers use it.
import { HoldfastError } from '../errors.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { systemClock } from '../runtime/clock.js';
import type { Extension, ExtendStatus, Store } from '../store/contract/index.js';
import type { Debts } from '../store/client/debts.js';
import { isRefusal } from '../store/client/refusal.js';
import { skipped } from '../store/client/schedule-plan.js';
import type { CallReply, SessionCalls, ClaimTerms } from '../store/client/session-calls.js';
import { HeldLock } from '../session/held-lock.js';
import type { LockTable } from '../session/lock-table.js';
import type { SessionOwner } from '../session/session-owner.js';
import { now } from '../session/trust.js';

export interface JobLocksOptions {
  queue: string;
  calls: SessionCalls;
  owner: SessionOwner;
  table: LockTable;
  /** Makes the next jobs of the schedules whose jobs are taken here. */
  debts: Debts;
  ready(): Promise<Store>;
  /** How long the locks last, in ms. */
  lockDuration: number;
  /** Stored as `processedBy`. */
  by: string;
  /** The lock of a job that was taken by hand ends here. */
  onEnded?(lock: HeldLock): void;
}

export interface TakenJob {
  job: ClaimedJob;
  lock: HeldLock;
}

/** Replies to a move after which the mover still owns the job. */
const KEEP_THE_LOCK = new Set<SettleStatus | undefined>(['pending', 'unsuccessful', 'ready', 'full']);
/** Every store takes at least this many outcomes in one call. */
const HAND_BACK_BATCH = 100;

export class JobLocks {
  readonly #options: JobLocksOptions;
  readonly #locks = new Set<HeldLock>();
  #stopped = false;

  constructor(options: JobLocksOptions) {
    this.#options = options;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** Takes this job, if it waits. */
  async takeById(jobId: string): Promise<TakenJob | undefined> {
    const { by, lockDuration: timedMs } = this.#options;
    for (;;) {
      const { taken, claimed } = await this.claim({ count: 1, jobIds: [jobId], by, timedMs });
      if (taken !== undefined || this.#stopped || claimed?.sessionAlive !== false) return taken;
    }
  }

  /** Claims one job. If the store no longer knows the session, the next claim gets a new one. */
  async claim(terms: ClaimTerms): Promise<{ taken: TakenJob | undefined; claimed: CallReply['claimed'] }> {
    const { owner } = this.#options;
    const reply = await this.#perform([], terms);
    const taken = await this.#adopt(reply);
    if (reply.claimed?.sessionAlive === false && !this.#stopped) owner.drop(reply.session);
    return { taken, claimed: reply.claimed };
  }

  /**
   * Settles a lock that is held here. With an unknown token the call goes to the store, which refuses it. `next` are the terms of a claim
   * in the same call. They apply only to a job that was taken by hand: a processor that moves its own job gets no other, because that one
   * would not be run or settled.
   */
  async settle(outcome: Outcome, next?: ClaimTerms): Promise<{ status: SettleStatus; next?: TakenJob }> {
    const lock = this.#options.table.get(outcome.token);
    // Set before the call: a deadline that passes meanwhile must not be reported, because the store's reply decides.
    if (lock !== undefined) lock.finishing = lock.moved = true;
    let reply: CallReply;
    try {
      const fetches = !this.#stopped && lock !== undefined && this.#locks.has(lock);
      reply = await this.#perform([outcome], fetches ? next : undefined);
      if (lock !== undefined) lock.settled = reply.results[0] === 'done';
      if (lock !== undefined && KEEP_THE_LOCK.has(reply.results[0])) lock.moved = false;
    } catch (error) {
      // A refusal changed nothing. Without a reply it stays uncertain.
      if (lock !== undefined && isRefusal(error)) lock.moved = false;
      throw error;
    } finally {
      if (lock !== undefined) lock.finishing = lock.settled;
    }
    const taken = await this.#adopt(reply);
    if (lock?.settled === true) this.#end(lock);
    const status = reply.results[0] ?? 'missing';
    return taken === undefined ? { status } : { status, next: taken };
  }

  async extend(extensions: Extension[]): Promise<ExtendStatus[]> {
    const { queue, table, ready } = this.#options;
    const store = await ready();
    const sentAt = now(systemClock);
    const locks = extensions.map(({ token }) => table.get(token));
    for (const { token, durationMs } of extensions) table.shorten(token, sentAt, durationMs);
    const statuses = await store.extend(queue, extensions);
    return statuses.map((status, index) => {
      const { token, durationMs } = extensions[index] as Extension;
      if (status === 'done') table.extend(token, sentAt, durationMs);
      // The owner's own settle has overtaken the extension, and may have removed the job: nothing was lost.
      else if (locks[index]?.finishing) return 'finished';
      return status;
    });
  }

  /** Returns true if the job was taken by hand. Then only the caller that took it has to know that its lock expired. */
  forget(lock: HeldLock): boolean {
    if (!this.#locks.has(lock)) return false;
    this.#end(lock);
    return true;
  }

  /** Takes no more jobs. */
  stop(): void {
    this.#stopped = true;
  }

  /**
   * Hands back the jobs that are still taken, because their callers cannot finish them any more. Locks stop being held before the store
   * is asked, so no other owner is let in before that. Neither attempts nor stalls are counted. If a hand-back fails, the job goes back
   * with the end of its session.
   */
  async handBack(): Promise<void> {
    const { queue, calls } = this.#options;
    const outcomes: Outcome[] = [];
    for (const lock of this.#locks) {
      const { jobId, token } = lock;
      const message = `The ${calls.who} of ${queue} shuts down: stop, job ${jobId} goes back to waiting.`;
      this.#end(lock);
      lock.withdraw(new HoldfastError('SHUTDOWN', message, { queue, jobId }));
      outcomes.push({ kind: 'release', jobId, token });
    }
    for (let first = 0; first < outcomes.length; first += HAND_BACK_BATCH) {
      await calls.perform(outcomes.slice(first, first + HAND_BACK_BATCH)).catch(() => undefined);
    }
  }

  /** Makes a call whose claim brings no job that was missed. A job that the caller named is taken, however late it is. */
  async #perform(outcomes: Outcome[], terms?: ClaimTerms): Promise<CallReply> {
    const { calls, debts } = this.#options;
    const first = await calls.perform(outcomes, terms);
    let reply = first;
    while (reply.claimed !== undefined) {
      const missed = (await debts.claimed(reply.claimed)) ?? [];
      if (missed.length === 0 || terms?.jobIds !== undefined || this.#stopped) break;
      reply = await calls.perform(missed.map(skipped), terms);
    }
    return { ...reply, results: first.results };
  }

  #end(lock: HeldLock): void {
    this.#locks.delete(lock);
    this.#options.table.untrack(lock);
    this.#options.onEnded?.(lock);
  }

  async #adopt({ claimed, session, sentAt }: CallReply): Promise<TakenJob | undefined> {
    const job = claimed?.jobs[0];
    if (job === undefined) return undefined;
    const { lockDuration: durationMs, owner, table, calls } = this.#options;
    const timed = { durationMs, sentAt };
    const lock = new HeldLock({ session, job, timed, onGrown: (block) => owner.grow(session, block) });
    if (!this.#stopped && table.track(lock)) {
      this.#locks.add(lock);
      return { job, lock };
    }
    lock.release();
    // The job was not given to a caller, so it goes back unchanged. If the store does not reply, it goes back when its lock expires.
    await calls.perform([{ kind: 'return', jobId: job.id, token: job.token }]).catch(() => undefined);
    return undefined;
  }
}
