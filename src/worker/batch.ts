// A batch: the jobs that one call of a batch processor gets. Each job keeps its own lock, token and outcome. BatchRunner makes it.
import { HoldfastError } from '../errors.js';
import type { Job } from '../handle/job.js';
import type { JobOf, ResultOf } from '../handle/typed-job.js';
import type { Any } from '../job/typing.js';
import { invalidOption } from '../runtime/check.js';
import type { HeldLock } from '../session/held-lock.js';
import type { RunListener } from './runner.js';

/** The jobs of one call of the processor. A job that is neither completed nor failed ends as the call of the processor does. */
export interface Batch<Data = Any, Result = Any, Name extends string = string> {
  /** All jobs of the batch. The list never changes. */
  readonly jobs: readonly JobOf<Data, Result, Name>[];
  /** The jobs that are neither completed nor failed, and whose locks are held. A job whose lock is lost drops out. */
  readonly pending: readonly JobOf<Data, Result, Name>[];
  /** Aborted when the signals of all pending jobs are: their locks are lost, or the worker is closed by force. */
  readonly signal: AbortSignal;
  /** The signal of one job: aborted when its lock is lost, or when it is cancelled. */
  signalOf(job: JobOf<Data, Result, Name>): AbortSignal;
  /** Completes one job at once, with its result. The others go on. */
  complete(job: JobOf<Data, Result, Name>, result?: ResultOf<Data, Result, Name>): void;
  /** Fails one job at once: it is retried if it has attempts left. The others go on. */
  fail(job: JobOf<Data, Result, Name>, error: Error): void;
}

/** Returns nothing, or a list with one result for each of `batch.jobs`, in their order. */
export type BatchProcessor<Data = Any, Result = Any, Name extends string = string> = (
  batch: Batch<Data, Result, Name>,
) => Promise<readonly ResultOf<Data, Result, Name>[] | void> | readonly ResultOf<Data, Result, Name>[] | void;

export interface BatchEntry {
  readonly job: Job;
  readonly lock: HeldLock;
  readonly listener: RunListener;
}

/** Ends the run of one job. */
export interface Decisions {
  completed(entry: BatchEntry, value: unknown): void;
  failed(entry: BatchEntry, error: unknown): void;
}

export class RunningBatch implements Batch {
  readonly jobs: readonly Job[];
  readonly #entries: ReadonlyMap<Job, BatchEntry>;
  readonly #undecided: Set<BatchEntry>;
  readonly #decisions: Decisions;
  /** Ends the last job. While the processor runs, one job stays in hand, so that `close()` waits for the processor. */
  #last: (() => void) | undefined;
  #over = false;
  #controller: AbortController | undefined;

  constructor(entries: BatchEntry[], decisions: Decisions) {
    this.jobs = Object.freeze(entries.map(({ job }) => job));
    this.#entries = new Map(entries.map((entry) => [entry.job, entry]));
    this.#undecided = new Set(entries);
    this.#decisions = decisions;
  }

  get pending(): readonly Job[] {
    return [...this.#undecided].filter(({ lock }) => lock.held).map(({ job }) => job);
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      for (const { lock } of this.#undecided) lock.signal.addEventListener('abort', () => this.#checkAbort(lock));
      this.#checkAbort([...this.#undecided].at(-1)?.lock);
    }
    return this.#controller.signal;
  }

  signalOf(job: Job): AbortSignal {
    return this.#entryOf(job).lock.signal;
  }

  complete(job: Job, value?: unknown): void {
    const entry = this.#decide(job);
    this.#carryOut(entry, () => this.#decisions.completed(entry, value));
  }

  fail(job: Job, error: Error): void {
    const entry = this.#decide(job);
    this.#carryOut(entry, () => this.#decisions.failed(entry, error));
  }

  /** The processor has returned. */
  returned(value: unknown): void {
    if (value !== undefined && !(Array.isArray(value) && value.length === this.jobs.length)) {
      const what = Array.isArray(value) ? `${value.length} results for ${this.jobs.length} jobs` : 'something that is no list';
      this.threw(new Error(`The batch processor returned ${what}: return nothing, or one result for each of batch.jobs.`));
      return;
    }
    const results = new Map(this.jobs.map((job, index) => [job, (value as unknown[] | undefined)?.[index]]));
    this.#end((entry) => this.#decisions.completed(entry, results.get(entry.job)));
  }

  /** The processor has thrown: the jobs that are not decided fail. */
  threw(error: unknown): void {
    this.#end((entry) => this.#decisions.failed(entry, error));
  }

  #end(decide: (entry: BatchEntry) => void): void {
    this.#over = true;
    const rest = [...this.#undecided];
    this.#undecided.clear();
    this.#endLast();
    for (const entry of rest) decide(entry);
  }

  #decide(job: Job): BatchEntry {
    const entry = this.#entryOf(job);
    if (this.#undecided.delete(entry)) return entry;
    const why = this.#over ? 'the processor of its batch has ended' : 'it was completed or failed before';
    throw new HoldfastError('JOB_STATE', `Job ${job.id} cannot be completed or failed: ${why}.`, { jobId: job.id });
  }

  #carryOut({ lock }: BatchEntry, decision: () => void): void {
    if (this.#undecided.size > 0) {
      decision();
      return;
    }
    this.#last = decision;
    // A worker that shuts down does not wait for the processor, and must not hand back a job that is decided.
    if (lock.signal.aborted) this.#endLast();
    else lock.signal.addEventListener('abort', () => this.#endLast());
  }

  #endLast(): void {
    const last = this.#last;
    this.#last = undefined;
    last?.();
  }

  #entryOf(job: Job): BatchEntry {
    const entry = this.#entries.get(job);
    if (entry === undefined) throw invalidOption('job', job, 'one of batch.jobs');
    return entry;
  }

  #checkAbort(lock: HeldLock | undefined): void {
    const open = [...this.#undecided];
    if (open.length > 0 && open.every((entry) => entry.lock.signal.aborted)) this.#controller?.abort(lock?.signal.reason);
  }
}
