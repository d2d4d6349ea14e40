// Gathers the jobs that Runs begins into batches, and calls the user's processor once for each batch. A batch begins when it is full, when
// it has `minSize` jobs and the store has no more for now, or when its first job has waited for `waitMs`. Jobs that wait for their batch
// have not begun: they go back unchanged when the worker stops taking jobs, or when their lock is lost.
import { toError } from '../errors.js';
import type { Job } from '../handle/job.js';
import type { HeldLock } from '../session/held-lock.js';
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import { type BatchEntry, type BatchProcessor, type Decisions, RunningBatch } from './batch.js';
import type { BatchOptions } from './batch-options.js';
import type { BatchSlots } from './batch-slots.js';
import type { AnyWorkerEmitter } from './events.js';
import { Runner, type RunListener, type RunnerOptions } from './runner.js';

export interface BatchRunnerOptions extends Omit<RunnerOptions, 'processor'> {
  processor: BatchProcessor;
  batch: Required<BatchOptions>;
  slots: BatchSlots;
  emitter: AnyWorkerEmitter;
  /** Hands jobs back that have not begun. */
  onUnbegun(locks: HeldLock[]): void;
}

/** A batch that could be larger waits this long for the next claim, in ms, in case that claim fails. */
const NEXT_CLAIM_MS = 100;

export class BatchRunner extends Runner implements Decisions {
  override readonly beginsAtOnce = false;
  readonly #options: BatchRunnerOptions;
  /** In the order of their claims. */
  readonly #waiting = new Map<HeldLock, BatchEntry>();
  #timer: NodeJS.Timeout | undefined;
  /** The timer waits for the next claim, because there are `minSize` jobs. */
  #isLast = false;
  /** The first job has waited for long enough. */
  #isDue = false;
  #more = false;

  constructor(options: BatchRunnerOptions) {
    // Runner only decides how runs end here.
    super({ ...options, processor: () => undefined });
    this.#options = options;
  }

  override get waiting(): number {
    return this.#waiting.size;
  }

  override isWaiting(lock: HeldLock): boolean {
    return this.#waiting.has(lock);
  }

  override run(job: Job, lock: HeldLock, listener: RunListener): void {
    try {
      this.checkStarts(job, lock);
    } catch (error) {
      listener.begun?.();
      this.#options.emitter.emit('active', job, 'waiting');
      this.failed({ job, lock, listener }, error);
      return;
    }
    this.#waiting.set(lock, { job, lock, listener });
    this.#options.slots.waiting = this.#waiting.size;
  }

  override gathered(more?: boolean): boolean {
    this.#more = more ?? this.#more;
    this.#beginReady();
    return this.#waiting.size === 0 || this.#options.slots.hasFree;
  }

  override takeWaiting(lock?: HeldLock): HeldLock[] {
    const taken = lock === undefined ? [...this.#waiting.keys()] : [lock];
    this.#take(taken);
    return taken;
  }

  completed({ job, lock, listener }: BatchEntry, value: unknown): void {
    this.endReturned(job, lock, value, listener);
  }

  failed({ job, lock, listener }: BatchEntry, error: unknown): void {
    this.endThrown(job, lock, error, listener);
  }

  #beginReady(): void {
    const { batch, slots } = this.#options;
    while (slots.hasFree && this.#isReady()) {
      const entries = [...this.#waiting.values()].slice(0, batch.size);
      this.#take(entries.map(({ lock }) => lock));
      this.#begin(entries);
    }
    if (this.#waiting.size === 0 || this.#isDue) return;
    // A batch that gets its `minSize` later waits from then on for the next claim alone.
    const isLast = this.#waiting.size >= batch.minSize && batch.waitMs > NEXT_CLAIM_MS;
    if (isLast && !this.#isLast) clearTimeout(this.#timer);
    else if (this.#timer !== undefined) return;
    this.#isLast = isLast;
    const ms = this.#waiting.size >= batch.minSize ? NEXT_CLAIM_MS : batch.waitMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#isDue = true;
      this.#beginReady();
    }, ms);
  }

  #isReady(): boolean {
    const { size, minSize } = this.#options.batch;
    const { size: count } = this.#waiting;
    return count > 0 && (count >= size || this.#isDue || (count >= minSize && !this.#more));
  }

  /** Takes jobs out. If the first one goes, the others wait anew. */
  #take(locks: HeldLock[]): void {
    const [first] = this.#waiting.keys();
    for (const lock of locks) this.#waiting.delete(lock);
    this.#options.slots.waiting = this.#waiting.size;
    const [next] = this.#waiting.keys();
    if (next === first) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
  }

  #begin(entries: BatchEntry[]): void {
    const { slots, emitter, processor, onUnbegun } = this.#options;
    const trusted = entries.filter(({ lock }) => lock.trusted);
    if (trusted.length < entries.length) onUnbegun(entries.filter(({ lock }) => !lock.trusted).map(({ lock }) => lock));
    if (trusted.length === 0) return;
    slots.open += 1;
    for (const { job, listener } of trusted) {
      listener.begun?.();
      emitter.emit('active', job, 'waiting');
    }
    const batch = new RunningBatch(trusted, this);
    let returned: unknown;
    try {
      returned = processor(batch);
    } catch (thrown) {
      returned = Promise.reject(toError(thrown));
    }
    void Promise.resolve(returned).then(
      (value) => this.#over(() => batch.returned(value)),
      (thrown: unknown) => this.#over(() => batch.threw(thrown)),
    );
  }

  #over(end: () => void): void {
    this.#options.slots.open -= 1;
    end();
    this.#beginReady();
  }
}
