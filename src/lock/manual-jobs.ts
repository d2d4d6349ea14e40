// Jobs that are taken by hand (worker.getNextJob, job.takeLock), and moves that a processor makes itself. Locks of jobs taken by hand are
// timed: only the caller that took the job renews them, so that a forgotten job comes back.
import { HoldfastError } from '../errors.js';
import type { Outcome, SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { systemClock } from '../runtime/clock.js';
import { batchOf } from '../store/capabilities.js';
import type { Extension, ExtendStatus, Store } from '../store/contract/index.js';
import type { CallReply, SessionCalls, ClaimTerms } from '../store/client/session-calls.js';
import { HeldLock } from '../session/held-lock.js';
import type { LockTable } from '../session/lock-table.js';
import type { SessionOwner } from '../session/session-owner.js';
import { now } from '../session/trust.js';
import { WakeUps } from './wake-ups.js';

export interface ManualJobsOptions {
  queue: string;
  calls: SessionCalls;
  owner: SessionOwner;
  table: LockTable;
  ready(): Promise<Store>;
  /** How long the locks last, in ms. */
  lockDuration: number;
  /** Stored as `processedBy`. */
  by: string;
  limiter?: { max: number; duration: number } | undefined;
}

export interface TakenJob {
  job: ClaimedJob;
  lock: HeldLock;
}

/** Every store takes at least this many outcomes in one call. */
const HAND_BACK_BATCH = 100;

export class ManualJobs {
  readonly #options: ManualJobsOptions;
  readonly #locks = new Set<HeldLock>();
  /** Keyed by job id and alias. */
  readonly #aliases = new Map<string, HeldLock>();
  readonly #waiting = new Set<WakeUps>();
  #stopped = false;

  constructor(options: ManualJobsOptions) {
    this.#options = options;
  }

  /** Takes the next job of the queue. Waits up to `waitMs` for one. */
  async take(waitMs: number): Promise<TakenJob | undefined> {
    const { calls, owner, ready, queue } = this.#options;
    const waitUntil = systemClock.monotonic() + waitMs;
    let wakeUps: WakeUps | undefined;
    try {
      for (;;) {
        const reply = await calls.perform([], this.#wish());
        const taken = await this.#adopt(reply);
        if (taken !== undefined || this.#stopped) return taken;
        if (reply.claimed?.sessionAlive === false) {
          owner.drop(reply.session);
          continue;
        }
        const left = waitUntil - systemClock.monotonic();
        if (left <= 0) return undefined;
        if (wakeUps !== undefined) {
          await wakeUps.next(Math.min(left, reply.claimed?.nextInMs ?? left));
        } else {
          // Claim once more after this: a job that came before the watch began caused no wake-up.
          wakeUps = new WakeUps(await ready(), queue);
          this.#waiting.add(wakeUps);
        }
        if (this.#stopped) return undefined;
      }
    } finally {
      if (wakeUps !== undefined) this.#waiting.delete(wakeUps);
      wakeUps?.end();
    }
  }

  /** Takes this job, if it waits. */
  async takeById(jobId: string): Promise<TakenJob | undefined> {
    const { calls, owner, by, lockDuration: timedMs } = this.#options;
    for (;;) {
      const reply = await calls.perform([], { count: 1, jobIds: [jobId], by, timedMs });
      const taken = await this.#adopt(reply);
      if (taken !== undefined || this.#stopped || reply.claimed?.sessionAlive !== false) return taken;
      owner.drop(reply.session);
    }
  }

  /** Settles a lock that is held here. With an unknown token the call goes to the store, which refuses it. */
  async settle(outcome: Outcome, fetchNext: boolean): Promise<{ status: SettleStatus; next?: ClaimedJob }> {
    const lock = this.#options.table.get(outcome.token);
    // Set before the call: a deadline that passes meanwhile must not be reported, because the store's reply decides.
    if (lock !== undefined) lock.finishing = true;
    let reply: CallReply;
    try {
      // Only for a job that was taken by hand. A processor that moves its own job gets no other: it would not be run or settled.
      const fetches = fetchNext && !this.#stopped && lock !== undefined && this.#locks.has(lock);
      reply = await this.#options.calls.perform([outcome], fetches ? this.#wish() : undefined);
      if (lock !== undefined) lock.settled = reply.results[0] === 'done';
    } finally {
      if (lock !== undefined) lock.finishing = lock.settled;
    }
    const next = await this.#adopt(reply);
    if (lock !== undefined) {
      if (next !== undefined) this.alias(next.lock, this.#aliasOf(lock));
      if (lock.settled) this.#end(lock);
    }
    const status = reply.results[0] ?? 'missing';
    return next === undefined ? { status } : { status, next: next.job };
  }

  /** Lets the token that the caller gave to `getNextJob` stand for the real one in later calls. */
  alias(lock: HeldLock, alias: string | undefined): void {
    if (alias !== undefined) this.#aliases.set(`${lock.jobId} ${alias}`, lock);
  }

  /** Extends all locks, in batches. Returns the ids of the jobs whose locks are lost. */
  async extendAll(extensions: Extension[]): Promise<string[]> {
    const { capabilities } = await this.#options.ready();
    const batch = batchOf(capabilities);
    const statuses: ExtendStatus[] = [];
    for (let first = 0; first < extensions.length; first += batch) {
      statuses.push(...(await this.extend(extensions.slice(first, first + batch))));
    }
    return extensions.filter((_, index) => statuses[index] === 'lost' || statuses[index] === 'missing').map(({ jobId }) => jobId);
  }

  async extend(extensions: Extension[]): Promise<ExtendStatus[]> {
    const store = await this.#options.ready();
    const sentAt = now(systemClock);
    const real = extensions.map((extension) => ({ ...extension, token: this.#realToken(extension) }));
    const locks = real.map(({ token }) => this.#options.table.get(token));
    for (const { token, durationMs } of real) this.#options.table.shorten(token, sentAt, durationMs);
    const statuses = await store.extend(this.#options.queue, real);
    return statuses.map((status, index) => {
      const { token, durationMs } = real[index] as Extension;
      if (status === 'done') this.#options.table.extend(token, sentAt, durationMs);
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

  /** Ends all waiting for jobs. */
  stop(): void {
    this.#stopped = true;
    for (const wakeUps of this.#waiting) wakeUps.wake();
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

  #end(lock: HeldLock): void {
    this.#locks.delete(lock);
    for (const [key, aliased] of this.#aliases) if (aliased === lock) this.#aliases.delete(key);
    this.#options.table.untrack(lock);
  }

  #aliasOf(lock: HeldLock): string | undefined {
    for (const [key, aliased] of this.#aliases) if (aliased === lock) return key.slice(lock.jobId.length + 1);
    return undefined;
  }

  #realToken({ jobId, token }: Extension): string {
    return this.#aliases.get(`${jobId} ${token}`)?.token ?? token;
  }

  #wish(): ClaimTerms {
    const { by, lockDuration: timedMs, limiter } = this.#options;
    const limit = limiter === undefined ? {} : { limit: { max: limiter.max, durationMs: limiter.duration } };
    return { count: 1, by, timedMs, ...limit };
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
