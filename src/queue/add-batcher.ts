// Collects the jobs that are added during one turn of the event loop into one call to the store. It acknowledges each job by itself, and
// repeats a call whose reply was lost. One call is in flight at a time, because the store recognises a repetition by its number. The next
// batch collects meanwhile, so that batches grow with the load. It must never acknowledge a job that the store did not acknowledge.
import { randomUUID } from 'node:crypto';
import { type ErrorCode, HoldfastError, isRetryable, toError } from '../errors.js';
import type { NewJob } from '../job/record.js';
import { isRefusal } from '../store/client/refusal.js';
import { systemClock } from '../runtime/clock.js';
import { OutageReport } from '../runtime/outage-report.js';
import { ReplyTimeout } from '../runtime/reply-timeout.js';
import { retryPauseMs } from '../runtime/retry-pause.js';
import { untilDone } from '../runtime/until-done.js';
import { inTime, within } from '../runtime/within.js';
import { bareBatchOf, batchOf, MAX_BATCH, refuseFamilies, refuseTransaction } from '../store/capabilities.js';
import type { AddReply, Store } from '../store/contract/index.js';
import { isBare } from '../store/marks.js';
import { performance, setImmediate, sleep } from '../runtime/timers.js';
import { addWithParents } from './family-adds.js';

export const MAX_BYTES = 8 * 1024 * 1024;
/** Any store adds this many jobs at once. */
const FEW = 100;

/** How long closing waits for the store to forget a caller, in ms. */
const FORGET_MS = 1000;

export interface AddBatcherOptions {
  queue: string;
  open(): Promise<Store>;
  /** How long a job may take from `add` to its acknowledgement, in ms. */
  timeoutMs: number;
  onError(error: Error): void;
  /** The store replies again, after an outage that was reported to `onError`. */
  onRecovered?(outageMs: number): void;
}

/** A caller id and its calls, one after the other. */
class Caller {
  readonly timeout = new ReplyTimeout();
  id = randomUUID();
  seq = 0;
  /** A call got no reply at its first try, and may still arrive at the store. */
  isDoubtful = false;

  /** We don't know whether the last call was applied. Use a new caller id, so that the next call is not taken for its successor. */
  renew(): void {
    this.id = randomUUID();
    this.seq = 0;
    this.isDoubtful = false;
  }
}

/** Thrown if a job of the call waits for an open transaction of another client. */
class HeldUp extends Error {}

/** With these codes the store says that it has written nothing of the call. */
const NOTHING_WRITTEN: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['STORE_FULL', 'STORE_BUSY', 'STORE_READONLY']);

const saysNothingWritten = (thrown: unknown): thrown is HoldfastError =>
  thrown instanceof HoldfastError && NOTHING_WRITTEN.has(thrown.code);
const isBusy = (thrown: unknown): boolean => thrown instanceof HoldfastError && thrown.code === 'STORE_BUSY';
const isNamed = ({ jobs }: Parcel): boolean => jobs.some(({ id }) => id !== undefined);

/** Jobs that are added together, in one call. */
interface Parcel {
  jobs: NewJob[];
  /** The queue of the call. Default: that of the batcher. */
  queue?: string;
  size: number;
  since: number;
  resolve(replies: AddReply[]): void;
  reject(error: Error): void;
}

export class AddBatcher {
  readonly #options: AddBatcherOptions;
  readonly #caller = new Caller();
  #waiting: Parcel[] = [];
  #pump: Promise<void> | undefined;
  /** Calls of other callers: to a store that runs handlers inside `add`, in a user's transaction, or waiting for the end of one. */
  readonly #apart = new Set<Promise<void>>();
  readonly #outage: OutageReport;
  /** The store was opened at least once. */
  #reached = false;
  readonly #closing = new AbortController();
  /** The most jobs in one call: more would block the store for others. Known when the store is open. */
  #batch = MAX_BATCH;
  /** The same if all jobs are bare. */
  #bareBatch = MAX_BATCH;

  constructor(options: AddBatcherOptions) {
    this.#options = options;
    this.#outage = new OutageReport(options.onError, options.onRecovered);
  }

  /**
   * Returns how many of these jobs one `add` may take. Waits for the store to open only if there may be more: later adds could overtake
   * this one during the wait.
   */
  mostAtOnce(jobs: NewJob[]): number | Promise<number> {
    const most = (): number => (jobs.every(isBare) ? this.#bareBatch : this.#batch);
    return this.#reached || jobs.length <= FEW ? most() : this.#open(performance.now()).then(most);
  }

  /** Adds at most `mostAtOnce` jobs and MAX_BYTES; a single job may be larger. In a `transaction` of the user, in a call of its own. */
  add(jobs: NewJob[], transaction?: object): Promise<AddReply[]> {
    if (jobs.some(({ parents }) => parents !== undefined)) return addWithParents(this, this.#options.queue, jobs, transaction);
    if (transaction !== undefined) return this.addFamily(jobs, this.#options.queue, transaction);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, size: sizeOfAll(jobs), since: performance.now(), resolve, reject });
      this.#pump ??= this.#run();
    });
  }

  /**
   * Adds jobs in a call of their own, which names `queue`: the store adds them as a whole or not at all. In a `transaction` the call is never
   * repeated, because a failure ends the transaction.
   */
  addFamily(jobs: NewJob[], queue: string, transaction?: object): Promise<AddReply[]> {
    return new Promise((resolve, reject) => {
      const parcel: Parcel = { jobs, queue, size: 0, since: performance.now(), resolve, reject };
      this.#addApart(parcel, transaction);
    });
  }

  #addApart(parcel: Parcel, transaction?: object): void {
    const work = this.#callApart(parcel, transaction).then(parcel.resolve, parcel.reject);
    this.#apart.add(work);
    void work.then(() => this.#apart.delete(work));
  }

  async #callApart(parcel: Parcel, transaction: object | undefined): Promise<AddReply[]> {
    const { jobs, since, queue = this.#options.queue } = parcel;
    const store = await this.#open(since);
    if (transaction !== undefined) return this.#addWithin(store, transaction, jobs, queue);
    refuseFamilies(store.capabilities, jobs);
    return store.capabilities.inline
      ? store.add(queue, jobs, { caller: randomUUID(), seq: 1 })
      : this.#call(store, [parcel], new Caller());
  }

  /** Resolves when every added job has its reply. A store that was never reached is not awaited any longer. */
  async close(): Promise<void> {
    this.#closing.abort();
    while (this.#pump !== undefined || this.#apart.size > 0) await Promise.all([this.#pump, ...this.#apart]);
    await this.#forget();
    this.#caller.timeout.end();
  }

  /** Lets the store forget this caller id, if all its calls got a reply. The store forgets other callers by their age. */
  async #forget(): Promise<void> {
    const { id: caller, seq, isDoubtful } = this.#caller;
    if (seq === 0 || isDoubtful || this.#outage.inOutage) return;
    const { queue, open } = this.#options;
    const forgetting = open().then((store) => store.forget(queue, { caller }));
    await within(
      FORGET_MS,
      forgetting.catch(() => undefined),
    );
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const parcels = this.#take();
      if (parcels.length > 0) await this.#send(parcels);
    }
    this.#pump = undefined;
  }

  /** Takes the parcels for the next call. Parcels whose time ran out behind a hung call are rejected: they were certainly not added. */
  #take(): Parcel[] {
    const expired = performance.now() - this.#options.timeoutMs;
    let count = 0;
    let jobs = 0;
    let size = 0;
    for (const parcel of this.#waiting) {
      jobs += parcel.jobs.length;
      size += parcel.size;
      if (count > 0 && (jobs > this.#batch || size > MAX_BYTES)) break;
      count += 1;
    }
    return this.#waiting.splice(0, count).filter((parcel) => {
      if (parcel.since > expired) return true;
      parcel.reject(this.#notSent());
      return false;
    });
  }

  /**
   * Sends a batch. If the store refuses it for its content, such as a job that is too large, each half goes alone: other jobs are not at
   * fault. If another client's open transaction holds a job id, an add of the same id must wait for the end of that transaction: such
   * parcels go apart, so that others do not wait behind them.
   */
  async #send(parcels: Parcel[]): Promise<void> {
    let fitting = parcels;
    let store: Store | undefined;
    try {
      store = await this.#open(parcels[0]?.since ?? 0);
      if (store.capabilities.families !== true) fitting = fittingOf(store, parcels);
      // A handler may add to this queue before its own job is acknowledged, so no parcel may wait for another here.
      if (store.capabilities.inline) for (const parcel of fitting) this.#addApart(parcel);
      else if (fitting.length > 0) answer(fitting, await this.#call(store, fitting, this.#caller));
    } catch (thrown) {
      if (thrown instanceof HeldUp) {
        for (const parcel of fitting.filter(isNamed)) this.#addApart(parcel);
        const others = fitting.filter((parcel) => !isNamed(parcel));
        if (others.length > 0) await this.#send(others);
      } else if (store !== undefined && fitting.length > 1 && isRefusal(thrown)) {
        const middle = fitting.length >> 1;
        for (const half of [fitting.slice(0, middle), fitting.slice(middle)]) await this.#send(half);
      } else for (const parcel of fitting) parcel.reject(toError(thrown));
    }
  }

  /** Opens the store. Retries until the job that was added at `since` has used up its time. */
  async #open(since: number): Promise<Store> {
    const { open, timeoutMs } = this.#options;
    if (this.#reached) return open();
    const deadline = since + timeoutMs;
    let failure: Error | undefined;
    const reach = async (): Promise<Store> => {
      const store = await inTime(Math.max(0, deadline - performance.now()), open(), () => failure ?? this.#notSent());
      this.#reached = true;
      this.#batch = batchOf(store.capabilities);
      this.#bareBatch = bareBatchOf(store.capabilities);
      return store;
    };
    return untilDone(reach, async (thrown, failures) => {
      failure = toError(thrown);
      const left = deadline - performance.now();
      const { signal } = this.#closing;
      if (!isRetryable(thrown) || left <= 0 || signal.aborted) throw thrown;
      await sleep(Math.min(retryPauseMs(failures), left), signal);
    });
  }

  /** Repeats the same call until the store replies or refuses, or the time is up. */
  async #call(store: Store, parcels: Parcel[], caller: Caller): Promise<AddReply[]> {
    const { timeoutMs } = this.#options;
    const [first] = parcels;
    const queue = first?.queue ?? this.#options.queue;
    const jobs = first !== undefined && parcels.length === 1 ? first.jobs : parcels.flatMap((parcel) => parcel.jobs);
    const call = { caller: caller.id, seq: ++caller.seq };
    const oldest = first?.since ?? 0;
    // At least a tenth of the timeout, for jobs that waited behind a hung call.
    const deadline = Math.max(oldest + timeoutMs, performance.now() + timeoutMs / 10);
    let isUnknown = false;
    let askedAt = 0;
    const send = async (): Promise<AddReply[]> => {
      askedAt = systemClock.monotonic();
      const left = Math.max(0, deadline - performance.now());
      const replies = await caller.timeout.wait(left, store.add(queue, jobs, call), () => this.#giveUp(caller, undefined));
      this.#outage.answered();
      return replies;
    };
    return untilDone(send, async (thrown, failures) => {
      if (!isRetryable(thrown)) throw thrown;
      const wroteNothing = saysNothingWritten(thrown);
      if (!wroteNothing) isUnknown = caller.isDoubtful = true;
      // After the first try it is certain that nothing was added. A later try may itself wait for the try before it.
      if (failures === 1 && caller === this.#caller && isBusy(thrown) && parcels.some(isNamed)) throw new HeldUp();
      const failure = toError(thrown);
      this.#outage.failed(failure, askedAt);
      const left = deadline - performance.now();
      const pause = retryPauseMs(failures);
      // Another try that gets no reply in time would make the outcome unknown, so it needs enough time.
      if (!isUnknown && wroteNothing && left <= 2 * pause) throw this.#refused(thrown);
      if (left <= 0) throw this.#giveUp(caller, failure);
      await sleep(Math.min(pause, left));
    });
  }

  async #addWithin(store: Store, transaction: object, jobs: NewJob[], queue: string): Promise<AddReply[]> {
    const { timeoutMs } = this.#options;
    // A store without transactions would add outside of them.
    if (!store.capabilities.transactions) refuseTransaction(store.capabilities.engine, transaction);
    const call = { caller: randomUUID(), seq: 1 };
    const replies = await within(timeoutMs, store.add(queue, jobs, call, transaction));
    if (replies !== undefined) return replies;
    throw new HoldfastError(
      'OUTCOME_UNKNOWN',
      `The transaction did not answer within ${timeoutMs} ms, so it may or may not hold the job of queue "${queue}". Roll it back, and repeat all of it.`,
      { queue, option: 'transaction' },
    );
  }

  #giveUp(caller: Caller, cause: unknown): HoldfastError {
    caller.renew();
    const { queue, timeoutMs } = this.#options;
    return new HoldfastError(
      'OUTCOME_UNKNOWN',
      `The store did not answer within ${timeoutMs} ms, so the job may or may not have been added to queue "${queue}". Adding it again is safe if it has a jobId.`,
      { queue, cause },
    );
  }

  /** The error when every try was refused and the store has written nothing. */
  #refused(cause: HoldfastError): HoldfastError {
    const { queue } = this.#options;
    const { code, message, store } = cause;
    return new HoldfastError(code, `The job was not added to queue "${queue}". ${message}`, {
      queue,
      cause,
      retryable: true,
      ...(store !== undefined && { store }),
    });
  }

  #notSent(): HoldfastError {
    const { queue, timeoutMs } = this.#options;
    return new HoldfastError(
      'TIMEOUT',
      `The job was not added to queue "${queue}": the store did not answer for ${timeoutMs} ms. Add it again.`,
      {
        queue,
        retryable: true,
      },
    );
  }
}

export function sizeOf({ data, opts, name }: NewJob): number {
  return data.length + opts.length + name.length;
}

function sizeOfAll(jobs: NewJob[]): number {
  let size = 0;
  for (const job of jobs) size += sizeOf(job);
  return size;
}

/** Rejects parcels with jobs that the store has no families for, and returns the others: they are not at fault. */
function fittingOf({ capabilities }: Store, parcels: Parcel[]): Parcel[] {
  return parcels.filter(({ jobs, reject }) => {
    try {
      refuseFamilies(capabilities, jobs);
      return true;
    } catch (thrown) {
      reject(toError(thrown));
      return false;
    }
  });
}

function answer(parcels: Parcel[], replies: AddReply[]): void {
  let from = 0;
  for (const { jobs, resolve } of parcels) resolve(replies.slice(from, (from += jobs.length)));
}
