// Emits the events of locks to the listeners of the worker and of its lock monitor: renewed, lost, stalled, blocked.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import type { JobContext } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import type { HeldLock } from '../session/held-lock.js';
import type { RenewerListener } from '../session/renewer.js';
import type { LockMonitor } from './lock-monitor.js';
import { type LostJob, lostJobs, warnOfLosses } from '../lock/lost-jobs.js';
import type { LockTable } from '../session/lock-table.js';
import type { Session } from '../session/session.js';
import { STALLED_REASON } from '../store/contract/index.js';
import { readJobs } from '../store/client/read-on.js';
import type { AnyWorkerEmitter } from './events.js';

export interface LockEventsOptions {
  context: JobContext;
  table: LockTable;
  monitor: LockMonitor | undefined;
  emitter: AnyWorkerEmitter;
  maxBlockedMs: number;
  /** The store no longer knows the session. */
  sessionLost(session: Session): void;
  /** Called when jobs may have become claimable. */
  wake(): void;
  /** Says where locks are renewed: in the lock thread (true) or on the event loop (false). */
  threaded(byThread: boolean): void;
  /** True if the worker has reported that the store does not reply. */
  inOutage(): boolean;
}

/** Warned once per process: all its workers see the same block. */
let warned = false;

export class LockEvents {
  readonly #options: LockEventsOptions;

  constructor(options: LockEventsOptions) {
    this.#options = options;
  }

  listenerFor(session: Session): RenewerListener {
    const { context, table, monitor, emitter, sessionLost, wake, threaded, inOutage } = this.#options;
    return {
      renewed: () => {
        const jobIds = table.renewedJobIds(session);
        if (jobIds.length === 0) return;
        monitor?.emit('lockExtended', jobIds);
        emitter.emit('locksRenewed', { count: jobIds.length, jobIds });
      },
      revoked: (revocations) => {
        for (const { token, reason } of revocations) table.loseTokens([token], reason);
      },
      lost: () => {
        sessionLost(session);
        wake();
      },
      swept: (reply) => {
        const lost = lostJobs(reply);
        warnOfLosses(context.name, lost);
        monitor?.emit(
          'stalledJobs',
          lost.map(({ jobId }) => jobId),
        );
        for (const { jobId } of lost) emitter.emit('stalled', jobId, 'active');
        const failed = lost.filter((job) => job.failed);
        if (failed.length > 0) void this.#stalledForGood(failed);
        wake();
      },
      failed: (error, renewing) => {
        if (renewing) emitter.emit('lockRenewalError', error);
        // An outage is reported once, although renewals and sweeps meet it on their own connection.
        if (!inOutage() || !isRetryable(error)) emitter.emit('error', error);
      },
      threaded: (byThread) => {
        monitor?.setRunning(byThread);
        threaded(byThread);
      },
      blocked: (blockedMs, ceiling) => {
        monitor?.emit('loopBlocked', blockedMs);
        if (ceiling) this.#overCeiling(blockedMs);
        else this.#blocked(blockedMs, 'Locks were renewed meanwhile, by the lock thread');
      },
    };
  }

  lost(locks: HeldLock[], reason: string): void {
    const { monitor, emitter, context } = this.#options;
    const jobIds = locks.map(({ jobId }) => jobId);
    monitor?.emit('lockRenewalFailed', jobIds);
    emitter.emit('lockRenewalFailed', jobIds);
    for (const jobId of jobIds) {
      const message = `could not renew lock for job ${jobId}: ${reason}`;
      emitter.emit('error', new HoldfastError('LOCK_UNTRUSTED', message, { jobId, queue: context.name }));
    }
  }

  /** Called if no lock thread renews. */
  blockedOnLoop(blockedMs: number): void {
    this.#blocked(blockedMs, 'No lock was renewed meanwhile');
  }

  #blocked(blockedMs: number, meanwhile: string): void {
    const { emitter, context } = this.#options;
    emitter.emit('loopBlocked', blockedMs);
    if (warned) return;
    warned = true;
    const message = `The event loop was blocked for ${blockedMs} ms while a worker of queue "${context.name}" ran. ${meanwhile}. Move long computations to a thread, or divide them. This is told once; the worker emits loopBlocked each time.`;
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_LOOP_BLOCKED' });
  }

  #overCeiling(blockedMs: number): void {
    const { emitter, context, maxBlockedMs } = this.#options;
    const message = `The event loop was blocked for ${blockedMs} ms, longer than maxBlockedMs (${maxBlockedMs}): its locks were given up.`;
    emitter.emit('error', new HoldfastError('LOOP_BLOCKED', message, { queue: context.name }));
  }

  async #stalledForGood(lost: LostJob[]): Promise<void> {
    const { emitter, context } = this.#options;
    try {
      const records = await readJobs(
        await context.ready(),
        context.stored,
        lost.map(({ jobId }) => jobId),
      );
      lost.forEach(({ jobId, lostBy }, index) => {
        const record = records[index];
        const job = record === undefined ? undefined : new Job(context, record);
        emitter.emit(
          'failed',
          job,
          new HoldfastError('JOB_STALLED', STALLED_REASON, { queue: context.name, jobId, lostBy }),
          'active',
        );
      });
    } catch (error) {
      emitter.emit('error', toError(error));
    }
  }
}
