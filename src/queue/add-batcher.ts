// The way in: collects what is added during one turn of the loop into one call of the store, acknowledges each job by itself,
// and repeats a call whose reply was lost. One call is in flight at a time, because the store knows a repetition by its number; the
// next one collects meanwhile, so that the batches grow with the load. It must never acknowledge what the store did not.
import { randomUUID } from 'node:crypto';
import { type ErrorCode, HoldfastError, isRetryable, toError } from '../errors.js';
import type { NewJob } from '../job/record.js';
import { isRefusal } from '../store/client/refusal.js';
import { OutageReport } from '../runtime/outage-report.js';
import { ReplyTimeout } from '../runtime/reply-timeout.js';
import { inTime, within } from '../runtime/within.js';
import { batchOf, MAX_BATCH, refuseTransaction } from '../store/capabilities.js';
import type { AddReply, Store } from '../store/contract/index.js';
import { performance, setImmediate, sleep } from '../runtime/timers.js';

/** What one call may carry: more would block the store for others. */
export const MAX_JOBS = MAX_BATCH;
export const MAX_BYTES = 8 * 1024 * 1024;

const FIRST_PAUSE_MS = 50;
const LAST_PAUSE_MS = 2000;
/** How long closing waits for the store to forget a caller. */
const FORGET_MS = 1000;

export interface AddBatcherOptions {
  queue: string;
  open(): Promise<Store>;
  /** How long a job may take from add to its acknowledgement. */
  timeoutMs: number;
  onError(error: Error): void;
  /** The store answers again, after an outage of which `onError` was told. */
  onRecovered?(outageMs: number): void;
}

/** The calls of one caller, one after the other. */
class Line {
  readonly patience = new ReplyTimeout();
  caller = randomUUID();
  seq = 0;
  /** A call was not answered at its first try, and may still arrive. */
  isDoubtful = false;

  /** The fate of the last number is open, so it must not be the one before the next: later calls come from a new caller. */
  renew(): void {
    this.caller = randomUUID();
    this.seq = 0;
    this.isDoubtful = false;
  }
}

/** Some job of a call waits for somebody's transaction. */
class HeldUp extends Error {}

/** With these the store says that nothing of the call was written. */
const NOTHING_WRITTEN: ReadonlySet<ErrorCode> = new Set<ErrorCode>(['STORE_FULL', 'STORE_BUSY', 'STORE_READONLY']);

const saysNothingWritten = (thrown: unknown): thrown is HoldfastError =>
  thrown instanceof HoldfastError && NOTHING_WRITTEN.has(thrown.code);
const isBusy = (thrown: unknown): boolean => thrown instanceof HoldfastError && thrown.code === 'STORE_BUSY';
const isNamed = ({ jobs }: Parcel): boolean => jobs.some(({ id }) => id !== undefined);

/** Jobs that are added together, in one call. */
interface Parcel {
  jobs: NewJob[];
  size: number;
  since: number;
  resolve(replies: AddReply[]): void;
  reject(error: Error): void;
}

export class AddBatcher {
  readonly #options: AddBatcherOptions;
  readonly #line = new Line();
  #waiting: Parcel[] = [];
  #pump: Promise<void> | undefined;
  /** SessionCalls that go their own way: to a store that runs handlers inside `add`, in transactions of the user's, and those that wait for one. */
  readonly #apart = new Set<Promise<void>>();
  readonly #outage: OutageReport;
  /** The store was open once. */
  #reached = false;
  readonly #closing = new AbortController();
  /** Jobs that are put together into one call. A bulk is not cut to it, so that it is added as a whole. */
  #batch = MAX_JOBS;

  constructor(options: AddBatcherOptions) {
    this.#options = options;
    this.#outage = new OutageReport(options.onError, options.onRecovered);
  }

  /** At most MAX_JOBS and MAX_BYTES; one job may be larger. */
  add(jobs: NewJob[]): Promise<AddReply[]> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ jobs, size: sizeOf(jobs), since: performance.now(), resolve, reject });
      this.#pump ??= this.#run();
    });
  }

  /** In a transaction of the user's: not together with others' jobs, and never repeated, because a failure ends the transaction. */
  addWithin(transaction: object, jobs: NewJob[]): Promise<AddReply[]> {
    const adding = this.#addWithin(transaction, jobs);
    this.#track(
      adding.then(
        () => undefined,
        () => undefined,
      ),
    );
    return adding;
  }

  /** Resolves when everything that was added has its answer. A store that was never reached is not waited for any longer. */
  async close(): Promise<void> {
    this.#closing.abort();
    while (this.#pump !== undefined || this.#apart.size > 0) await Promise.all([this.#pump, ...this.#apart]);
    await this.#forget();
    this.#line.patience.end();
  }

  /** The store need not remember a caller of which nothing is open. It forgets others by their age. */
  async #forget(): Promise<void> {
    const { caller, seq, isDoubtful } = this.#line;
    if (seq === 0 || isDoubtful || this.#outage.inOutage) return;
    const { queue, open } = this.#options;
    const forgetting = open().then((store) => store.forgetCaller(queue, caller));
    await within(
      FORGET_MS,
      forgetting.catch(() => undefined),
    );
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const parcels = this.#take();
      if (parcels.length > 0) await this.#deliver(parcels);
    }
    this.#pump = undefined;
  }

  /** What fits into one call. Parcels whose time ran out behind a call that hung are sent back: they surely did not happen. */
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

  async #deliver(parcels: Parcel[]): Promise<void> {
    try {
      const store = await this.#open(parcels[0]?.since ?? 0);
      this.#batch = batchOf(store.capabilities);
      if (!store.capabilities.inline) return await this.#send(store, parcels);
      // A handler may add to this very queue before its own job is acknowledged, so nothing may wait for anything here.
      for (const parcel of parcels) this.#track(this.#addInline(store, parcel));
    } catch (thrown) {
      for (const parcel of parcels) parcel.reject(toError(thrown));
    }
  }

  /** Opens the store, and tries again until the job that was added at `since` has used up its time. */
  async #open(since: number): Promise<Store> {
    const { open, timeoutMs } = this.#options;
    if (this.#reached) return open();
    const deadline = since + timeoutMs;
    let failure: Error | undefined;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LAST_PAUSE_MS)) {
      try {
        const store = await inTime(Math.max(0, deadline - performance.now()), open(), () => failure ?? this.#notSent());
        this.#reached = true;
        return store;
      } catch (thrown) {
        failure = toError(thrown);
        const left = deadline - performance.now();
        const { signal } = this.#closing;
        if (!isRetryable(thrown) || left <= 0 || signal.aborted) throw thrown;
        await sleep(Math.min(pause, left), signal);
      }
    }
  }

  /**
   * A transaction that somebody leaves open may hold an id: whoever adds the same one has to wait for its end. Such parcels wait apart,
   * so that nobody else waits behind them.
   */
  async #send(store: Store, parcels: Parcel[]): Promise<void> {
    try {
      return answer(parcels, await this.#call(store, parcels, this.#line));
    } catch (thrown) {
      if (parcels.length > 1 && isRefusal(thrown)) return this.#sendHalves(store, parcels);
      if (!(thrown instanceof HeldUp)) throw thrown;
    }
    for (const parcel of parcels.filter(isNamed)) this.#track(this.#sendApart(store, parcel));
    const others = parcels.filter((parcel) => !isNamed(parcel));
    if (others.length > 0) await this.#deliver(others);
  }

  /** The store refused a call for what it carries, such as one job that is too large: the other jobs are innocent. */
  async #sendHalves(store: Store, parcels: Parcel[]): Promise<void> {
    const middle = parcels.length >> 1;
    for (const half of [parcels.slice(0, middle), parcels.slice(middle)]) {
      try {
        await this.#send(store, half);
      } catch (thrown) {
        for (const parcel of half) parcel.reject(toError(thrown));
      }
    }
  }

  async #sendApart(store: Store, parcel: Parcel): Promise<void> {
    try {
      parcel.resolve(await this.#call(store, [parcel], new Line()));
    } catch (thrown) {
      parcel.reject(toError(thrown));
    }
  }

  /** The same call until the store answers, refuses, or the time is up. */
  async #call(store: Store, parcels: Parcel[], line: Line): Promise<AddReply[]> {
    const { queue, timeoutMs } = this.#options;
    const [first] = parcels;
    const jobs = first !== undefined && parcels.length === 1 ? first.jobs : parcels.flatMap((parcel) => parcel.jobs);
    const call = { caller: line.caller, seq: ++line.seq };
    const oldest = first?.since ?? 0;
    // A tenth at least, for jobs that waited behind a call that hung.
    const deadline = Math.max(oldest + timeoutMs, performance.now() + timeoutMs / 10);
    let isUnknown = false;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LAST_PAUSE_MS)) {
      let failure: Error;
      try {
        const left = Math.max(0, deadline - performance.now());
        const replies = await line.patience.wait(left, store.add(queue, jobs, call), () => this.#giveUp(line, undefined));
        this.#outage.answered();
        return replies;
      } catch (thrown) {
        if (!isRetryable(thrown)) throw thrown;
        if (!saysNothingWritten(thrown)) isUnknown = line.isDoubtful = true;
        failure = toError(thrown);
        // Of the first try it is sure that nothing was added; a later one may wait for the one before.
        if (pause === FIRST_PAUSE_MS && line === this.#line && isBusy(thrown) && parcels.some(isNamed)) throw new HeldUp();
      }
      this.#outage.failed(failure);
      const left = deadline - performance.now();
      if (left <= 0) throw !isUnknown && saysNothingWritten(failure) ? this.#refused(failure) : this.#giveUp(line, failure);
      await sleep(Math.min(pause, left));
    }
  }

  async #addWithin(transaction: object, jobs: NewJob[]): Promise<AddReply[]> {
    const { queue, timeoutMs } = this.#options;
    const store = await this.#open(performance.now());
    // A store that does not know of transactions would add outside of them.
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

  #giveUp(line: Line, cause: unknown): HoldfastError {
    line.renew();
    const { queue, timeoutMs } = this.#options;
    return new HoldfastError(
      'OUTCOME_UNKNOWN',
      `The store did not answer within ${timeoutMs} ms, so the job may or may not have been added to queue "${queue}". Adding it again is safe if it has a jobId.`,
      { queue, cause },
    );
  }

  /** Every try of the call was refused, and the store says that it has written nothing. */
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

  async #addInline(store: Store, parcel: Parcel): Promise<void> {
    try {
      parcel.resolve(await store.add(this.#options.queue, parcel.jobs, { caller: randomUUID(), seq: 1 }));
    } catch (thrown) {
      parcel.reject(toError(thrown));
    }
  }

  #track(work: Promise<void>): void {
    this.#apart.add(work);
    void work.then(() => this.#apart.delete(work));
  }
}

export function sizeOf(jobs: NewJob[]): number {
  let size = 0;
  for (const job of jobs) size += job.data.length + job.opts.length + job.name.length;
  return size;
}

function answer(parcels: Parcel[], replies: AddReply[]): void {
  let from = 0;
  for (const { jobs, resolve } of parcels) resolve(replies.slice(from, (from += jobs.length)));
}
