// Emits the events of locks to the listeners of the worker and of its lock monitor: renewed, lost, stalled, blocked.
import { HoldfastError, isRetryable, toError } from '../errors.js';
import type { JobContext } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import type { HeldLock } from '../session/held-lock.js';
import type { RenewerListener } from '../session/renewer.js';
import { type LostJob, lostJobs, warnOfLosses } from '../lock/lost-jobs.js';
import type { Session } from '../session/session.js';
import { STALLED_REASON } from '../store/contract/index.js';
import { readJobs } from '../store/client/read-on.js';
import type { WorkerContext } from './context.js';
import type { BlockReport } from './events.js';
import { loseSession } from './session-loss.js';

/** Gets a wake-up when jobs may have become claimable. */
interface Wakeable {
  wake(): void;
}

/** Clears the debts of schedules. */
interface Searching {
  search(): void;
}

/** Knows the ids of jobs that run, or ran a moment ago. */
interface KnownRuns {
  runningIds(): string[];
  idsOf(fences: readonly number[]): string[];
}

const NOT_SEEN = '(not taken: no lock thread watches this event loop)';

/** Warned once per process: all its workers see the same block. */
let warned = false;

export class LockEvents {
  readonly #context: WorkerContext;
  /** The part of the worker that its jobs use. */
  readonly #jobContext: JobContext;
  readonly #storeLoop: Wakeable;
  readonly #debts: Searching;
  readonly #runs: KnownRuns | undefined;

  constructor(
    context: WorkerContext,
    jobContext: JobContext,
    storeLoop: Wakeable,
    debts: Searching,
    runs: KnownRuns | undefined,
  ) {
    this.#context = context;
    this.#jobContext = jobContext;
    this.#storeLoop = storeLoop;
    this.#debts = debts;
    this.#runs = runs;
  }

  listenerFor(session: Session): RenewerListener {
    const { name, table, monitor, emitter, calls, health, lifecycle } = this.#context;
    return {
      renewed: () => {
        const jobIds = table.renewedJobIds(session);
        if (jobIds.length === 0) return;
        monitor?.emit('lockExtended', jobIds);
        emitter.emit('locksRenewed', { count: jobIds.length, jobIds });
      },
      noticed: (notices) => table.notice(notices),
      lost: () => {
        loseSession(this.#context, session);
        this.#storeLoop.wake();
      },
      swept: (reply) => {
        const lost = lostJobs(reply);
        warnOfLosses(name, lost);
        monitor?.emit(
          'stalledJobs',
          lost.map(({ jobId }) => jobId),
        );
        for (const { jobId } of lost) emitter.emit('stalled', jobId, 'active');
        const failed = lost.filter((job) => job.failed);
        if (failed.length > 0) void this.#stalledForGood(failed);
        this.#storeLoop.wake();
      },
      undone: () => this.#debts.search(),
      failed: (error, renewing) => {
        if (renewing) emitter.emit('lockRenewalError', error);
        // An outage is reported once, although renewals and sweeps meet it on their own connection.
        if (!calls.inOutage || !isRetryable(error)) emitter.emit('error', error);
      },
      threaded: (byThread) => {
        monitor?.setRunning(byThread);
        health.threaded(byThread);
        lifecycle.foundRenewer();
      },
      blocked: (blockedMs, ceiling, seen = { fences: [], stack: NOT_SEEN }) => {
        monitor?.emit('loopBlocked', blockedMs);
        if (ceiling) {
          this.#overCeiling(blockedMs);
          return;
        }
        const jobIds = this.#runs?.idsOf(seen.fences) ?? [];
        this.#blocked({ ms: blockedMs, jobIds, stack: seen.stack }, 'Locks were renewed meanwhile, by the lock thread');
      },
    };
  }

  lost(locks: HeldLock[], reason: string): void {
    const { monitor, emitter, name: queue } = this.#context;
    const jobIds = locks.map(({ jobId }) => jobId);
    monitor?.emit('lockRenewalFailed', jobIds);
    emitter.emit('lockRenewalFailed', jobIds);
    for (const jobId of jobIds) {
      const message = `could not renew lock for job ${jobId}: ${reason}`;
      emitter.emit('error', new HoldfastError('LOCK_UNTRUSTED', message, { jobId, queue }));
    }
  }

  /** Called if no lock thread renews. */
  blockedOnLoop(blockedMs: number): void {
    const report = { ms: blockedMs, jobIds: this.#runs?.runningIds() ?? [], stack: NOT_SEEN };
    this.#blocked(report, 'No lock was renewed meanwhile');
  }

  #blocked(report: BlockReport, meanwhile: string): void {
    const { emitter, name } = this.#context;
    emitter.emit('loopBlocked', report.ms);
    emitter.emit('blocked', report);
    if (warned) return;
    warned = true;
    const frames = report.stack.startsWith('(') ? [] : report.stack.split('\n').map((frame) => frame.trim());
    // A function of Node.js says less than the one that called it.
    const frame = frames.find((text) => !/\bnode:/.test(text)) ?? frames[0];
    const where = frame === undefined ? '' : `, ${frame}`;
    const message = `The event loop was blocked for ${report.ms} ms while a worker of queue "${name}" ran${where}. ${meanwhile}. Move long computations to a thread, or divide them. This warning comes once; the worker emits loopBlocked and blocked each time.`;
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_LOOP_BLOCKED' });
  }

  #overCeiling(blockedMs: number): void {
    const { emitter, name: queue, opts } = this.#context;
    const message = `The event loop was blocked for ${blockedMs} ms, longer than maxBlockedMs (${opts.maxBlockedMs}): its locks were given up.`;
    emitter.emit('error', new HoldfastError('LOOP_BLOCKED', message, { queue }));
  }

  async #stalledForGood(lost: LostJob[]): Promise<void> {
    const { emitter, name, queue } = this.#context;
    try {
      const records = await readJobs(
        await this.#context.ready(),
        queue,
        lost.map(({ jobId }) => jobId),
      );
      lost.forEach(({ jobId, lostBy }, index) => {
        const record = records[index];
        const job = record === undefined ? undefined : new Job(this.#jobContext, record);
        emitter.emit('failed', job, new HoldfastError('JOB_STALLED', STALLED_REASON, { queue: name, jobId, lostBy }), 'active');
      });
    } catch (error) {
      emitter.emit('error', toError(error));
    }
  }
}
