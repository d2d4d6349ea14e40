// The jobs that this worker runs, from the claim to the store's acknowledgement: lock, slot, processor, outcome, and what the worker's
// listeners are told when the store has agreed.
import { HoldfastError } from '../errors.js';
import type { JobHome } from '../handle/home.js';
import { Job } from '../handle/job.js';
import type { SettleStatus } from '../job/outcome.js';
import type { ClaimedJob } from '../job/record.js';
import { HeldLock } from '../lock/held-lock.js';
import type { LockTable } from '../lock/lock-table.js';
import type { CallReply } from '../lock/calls.js';
import type { AnyWorkerEmitter } from './events.js';
import type { Exchange } from './exchange.js';
import type { RunEnd, Runner } from './runner.js';
import type { Slots } from './slots.js';
import type { Tenure } from '../lock/tenure.js';

export interface RunsOptions {
  home: JobHome;
  runner: Runner;
  slots: Slots;
  table: LockTable;
  tenure: Tenure;
  emitter: AnyWorkerEmitter;
  exchange(): Exchange;
  /** Set when locks are not renewed: their own duration. */
  timedMs: number | undefined;
}

export class Runs {
  readonly #options: RunsOptions;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Tracks the lock and occupies a slot; answers how to begin. Undefined, or false then: its lock cannot be trusted any more. */
  accept(claimed: ClaimedJob, { session, sentAt }: CallReply): (() => boolean) | undefined {
    const { slots, table, tenure, timedMs } = this.#options;
    const timed = timedMs === undefined ? {} : { timed: { durationMs: timedMs, sentAt } };
    const lock = new HeldLock({ session, job: claimed, ...timed, onGrown: (block) => tenure.grow(session, block) });
    if (!table.track(lock)) {
      lock.release();
      this.#tellTooLate(claimed);
      return undefined;
    }
    slots.running += 1;
    return () => this.#begin(claimed, lock);
  }

  #begin(claimed: ClaimedJob, lock: HeldLock): boolean {
    // Those that began before it may have blocked the loop for longer than the lock lasts.
    if (!lock.held) {
      this.#letGo(lock);
      this.#tellTooLate(claimed);
      return false;
    }
    const { home, runner, emitter } = this.#options;
    const job = new Job(home, claimed, { lock });
    emitter.emit('active', job, 'waiting');
    void runner.run(job, lock).then((end) => this.#ended(end, job, lock));
    return true;
  }

  /** A worker whose locks are too short for its store would otherwise take jobs and hand them back for ever in silence. */
  #tellTooLate({ id: jobId }: ClaimedJob): void {
    const { emitter, home } = this.#options;
    const why =
      'its lock was lost before its run could begin. It goes back. Was the process frozen, or is lockDuration too short?';
    emitter.emit(
      'error',
      new HoldfastError('LOCK_UNTRUSTED', `Job ${jobId} was not started: ${why}`, { jobId, queue: home.name }),
    );
  }

  #ended(end: RunEnd, job: Job, lock: HeldLock): void {
    lock.finishing = true;
    const exchange = this.#options.exchange();
    if (end.outcome === undefined) {
      this.#letGo(lock);
      exchange.slotFreed();
      return;
    }
    exchange.deliver({
      outcome: end.outcome,
      occupies: true,
      settled: (status, error) => {
        this.#letGo(lock);
        this.#tell(end, job, status, error);
      },
    });
  }

  #letGo(lock: HeldLock): void {
    this.#options.table.untrack(lock);
    this.#options.slots.running -= 1;
  }

  #tell(end: RunEnd, job: Job, status: SettleStatus | 'unknown', error: Error | undefined): void {
    const { emitter } = this.#options;
    if (status === 'unknown') {
      emitter.emit('error', error ?? new Error('the store did not answer'));
      return;
    }
    if (status !== 'done') {
      emitter.emit('error', this.#refused(end, job, status));
      return;
    }
    if (end.outcome !== undefined) job.settled(end.outcome);
    if (end.told === 'completed') emitter.emit('completed', job, end.value, 'active');
    if (end.told === 'failed') emitter.emit('failed', job, end.error, 'active');
  }

  #refused(end: RunEnd, { id: jobId }: Job, status: 'lost' | 'missing'): HoldfastError {
    const what = status === 'lost' ? 'its lock was lost, somebody else may be running it' : 'it does not exist any more';
    const message = `Could not settle job ${jobId} as ${end.outcome?.kind ?? 'moved'}: ${what}. Nothing was changed.`;
    return new HoldfastError(status === 'lost' ? 'LOCK_LOST' : 'JOB_MISSING', message, { jobId, queue: this.#options.home.name });
  }
}
