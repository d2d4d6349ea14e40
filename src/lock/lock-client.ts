// Locks that user code takes itself: named locks, and jobs taken one by one. A LockClient opens sessions for them when they are needed;
// the same renewers as a worker's renew them. Queues and leaders use it. It never runs jobs and never renews a job's lock: the caller
// that took a job by hand decides how long its lock lasts.
import { HoldfastError, toError } from '../errors.js';
import { renewers } from '../background/renewers.js';
import { within } from '../runtime/within.js';
import type { StoreLease } from '../store/open.js';
import { Debts } from '../store/client/debts.js';
import type { RepeatStrategy } from '../job/schedule.js';
import { SessionCalls } from '../store/client/session-calls.js';
import type { RenewerListener } from '../session/renewer.js';
import type { CheckedSessionOptions } from '../session/session-options.js';
import { JobLocks } from './job-locks.js';
import { type LostJob, lostJobs, warnOfLosses } from './lost-jobs.js';
import { LockTable } from '../session/lock-table.js';
import { NamedLocks } from './named-locks.js';
import type { Session } from '../session/session.js';
import { SessionOwner } from '../session/session-owner.js';
import { SessionOwners } from './session-owners.js';

export interface LockClientOptions {
  queue: string;
  /** Shown as the owner's name wherever the holder of a lock is listed: 'queue', 'leader'. */
  name: string;
  lease: StoreLease;
  sessionOptions: CheckedSessionOptions;
  /** Computes the slots of schedules whose jobs are taken here. */
  strategy?: RepeatStrategy | undefined;
  /** Called with the jobs that a sweep found without a living owner. */
  onStalled?(lost: LostJob[]): void;
  onError(error: Error): void;
}

/** A store may take this long to reply, in ms, however short the locks are. */
const MIN_HANG_MS = 1000;
const RETRY_DELAY_MS = 5000;

export class LockClient {
  readonly locks: NamedLocks;
  readonly #options: LockClientOptions;
  readonly #owners: SessionOwners;
  readonly #table: LockTable;
  #jobs: { locks: JobLocks; calls: SessionCalls; debts: Debts } | undefined;

  constructor(options: LockClientOptions) {
    this.#options = options;
    const { queue, lease, onError } = options;
    this.#owners = new SessionOwners(
      (durationMs, renewMs) => this.#makeOwner(durationMs, renewMs),
      (error) => onError(toError(error)),
    );
    this.#table = new LockTable({
      // Only the caller that took the job has to know that its lock expired: its signal is aborted, and no event is emitted.
      onLost: (locks) => {
        for (const lock of locks) this.#jobs?.locks.forget(lock);
      },
    });
    const sessionGone = (session: Session): void => this.#sessionGone(session);
    this.locks = new NamedLocks({ queue, owners: this.#owners, ready: () => lease.ready(), sessionGone, onError });
  }

  /** Jobs that user code takes one by one. Created on first use. */
  get jobs(): JobLocks {
    this.#jobs ??= this.#makeJobs();
    return this.#jobs.locks;
  }

  /** True if the token's lock is ours, or was until a moment ago. */
  holdsJob(token: string): boolean {
    return this.#table.get(token) !== undefined;
  }

  async close(): Promise<void> {
    const timeoutMs = this.#options.sessionOptions.lockDuration;
    await this.locks.close(timeoutMs);
    if (this.#jobs !== undefined) {
      const { locks, calls, debts } = this.#jobs;
      locks.stop();
      debts.stop();
      calls.close(timeoutMs);
      await calls.idle();
      await locks.handBack();
      calls.end();
    }
    this.#table.stop();
    try {
      // If the store does not reply, the sessions expire by themselves.
      await within(timeoutMs, this.#owners.close());
    } catch (error) {
      this.#options.onError(toError(error));
    }
  }

  #makeOwner(durationMs: number, renewMs: number): SessionOwner {
    const listenerFor = (session: Session): RenewerListener => this.#listenerFor(session);
    return new SessionOwner({ ...this.#options, renewers, durationMs, renewMs, slots: 0, listenerFor });
  }

  #makeJobs(): { locks: JobLocks; calls: SessionCalls; debts: Debts } {
    const { queue, name: by, lease, sessionOptions, strategy, onError } = this.#options;
    const { lockDuration, lockRenewTime } = sessionOptions;
    // Never marked as done: a job that was taken by hand may be settled at any time.
    const { owner } = this.#owners.use(lockDuration, lockRenewTime);
    const ready = () => lease.ready();
    const hangMs = Math.max(MIN_HANG_MS, lockDuration);
    const calls = new SessionCalls({ queue, who: by, owner, ready, hangMs, retryDelayMs: RETRY_DELAY_MS, onError });
    const debts = new Debts({ queue, strategy, ready, onError });
    return { calls, debts, locks: new JobLocks({ queue, calls, owner, table: this.#table, debts, ready, lockDuration, by }) };
  }

  #listenerFor(session: Session): RenewerListener {
    const { queue, onStalled, onError } = this.#options;
    return {
      renewed: () => undefined,
      noticed: (notices) => this.#table.notice(notices),
      lost: () => this.#sessionGone(session),
      swept: (reply) => {
        const lost = lostJobs(reply);
        warnOfLosses(queue, lost);
        onStalled?.(lost);
      },
      // Workers clear the debts of other processes.
      undone: () => undefined,
      failed: (error) => onError(error),
      threaded: () => undefined,
      blocked: (blockedMs, ceiling) => {
        if (ceiling) onError(this.#overCeiling(blockedMs));
      },
    };
  }

  #sessionGone(session: Session): void {
    session.memory.markLost();
    const reason = 'the store has ended the session that held it';
    this.#table.loseSession(session, reason);
    this.locks.loseSession(session, reason);
    this.#owners.drop(session);
  }

  #overCeiling(blockedMs: number): HoldfastError {
    const { queue, sessionOptions } = this.#options;
    const message = `The event loop was blocked for ${blockedMs} ms, longer than maxBlockedMs (${sessionOptions.maxBlockedMs}): its locks were given up.`;
    return new HoldfastError('LOOP_BLOCKED', message, { queue });
  }
}
