// Clears what is undone in a queue: relays messages to other queues, and makes the next job of each schedule that is owing. The process
// that claimed a job of a schedule does so before the job begins; if it cannot, any worker of the queue does that reads `undone`.
import { toError } from '../../errors.js';
import type { ClaimedJob } from '../../job/record.js';
import type { RepeatStrategy } from '../../job/schedule.js';
import type { ScheduleRecord } from '../../job/schedule-record.js';
import { systemClock } from '../../runtime/clock.js';
import { clearTimeout, setTimeout } from '../../runtime/timers.js';
import { within } from '../../runtime/within.js';
import type { ClaimReply, Store } from '../contract/index.js';
import { advance, doubtful, isMissed } from './schedule-plan.js';
import { readSpec } from './schedule-slots.js';

export interface DebtsOptions {
  queue: string;
  strategy?: RepeatStrategy | undefined;
  ready(): Promise<Store>;
  onError(error: Error): void;
}

/** A job waits at most this long for the next job of its schedule, in ms. */
const CLEAR_MS = 1000;
/** A search that takes longer, in ms, is given up, and begins again. */
const SEARCH_MS = 1000;
/** Between two searches for schedules that are owing, in ms: after a search that left debts, and after one that left none. */
const PAUSE_MS = 500;
const SHORT_PAUSE_MS = 50;
/** Messages that are relayed at once. */
const RELAYED_AT_ONCE = 100;
/** Schedules that are read at once. */
const READ_AT_ONCE = 100;

export class Debts {
  readonly #options: DebtsOptions;
  #timer: NodeJS.Timeout | undefined;
  #searchedAt = Number.NEGATIVE_INFINITY;
  #pauseMs = SHORT_PAUSE_MS;
  /** Schedules that the last search could not advance. The next search reads past them. */
  #stuck = 0;
  #searching = false;
  #stopped = false;
  #reported = false;

  constructor(options: DebtsOptions) {
    this.#options = options;
  }

  /**
   * Called with each reply to a claim. Undefined if the jobs may begin at once. Resolves when they may begin, with those that are not to
   * run: their slot was missed (`catchUp: 'none'`).
   */
  claimed({ jobs, undone }: ClaimReply): Promise<ClaimedJob[]> | undefined {
    if (undone === true) this.search();
    for (const { scheduleId } of jobs) if (scheduleId !== undefined) return this.#prepare(jobs);
    return undefined;
  }

  /** Looks for schedules that are owing, soon. */
  search(): void {
    if (this.#timer !== undefined || this.#searching || this.#stopped) return;
    const ms = Math.max(0, this.#searchedAt + this.#pauseMs - systemClock.monotonic());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#search();
    }, ms).unref();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  start(): void {
    this.#stopped = false;
  }

  async #prepare(jobs: ClaimedJob[]): Promise<ClaimedJob[]> {
    const scheduled = jobs.filter(({ scheduleId }) => scheduleId !== undefined);
    const [missed] = await Promise.all([within(CLEAR_MS, this.#missed(scheduled)), this.#clear(scheduled)]);
    return missed ?? [];
  }

  /** A job that cannot be judged runs. */
  async #missed(jobs: ClaimedJob[]): Promise<ClaimedJob[]> {
    const isGone = await Promise.all(jobs.map((job) => this.#isMissed(job).catch(() => false)));
    return jobs.filter((_, index) => isGone[index]);
  }

  async #isMissed(job: ClaimedJob): Promise<boolean> {
    const slot = doubtful(job);
    if (slot === undefined) return false;
    const { queue, strategy, ready } = this.#options;
    if (job.debt !== undefined) return isMissed(readSpec(job.debt.spec), slot, job.debt.now, strategy);
    // The job of a serial schedule carries no debt.
    const { schedules } = await (await ready()).status(queue, { schedules: { ids: [job.scheduleId ?? ''] } });
    const { records: [record] = [], now = 0 } = schedules ?? {};
    return record !== undefined && isMissed(readSpec(record.spec), slot, now, strategy);
  }

  async #clear(jobs: ClaimedJob[]): Promise<void> {
    const debts = jobs.flatMap(({ debt }) => debt ?? []);
    if (debts.length === 0) return;
    const cleared = Promise.all(debts.map((debt) => this.#advance(debt, debt.now)));
    if ((await within(CLEAR_MS, cleared))?.every(Boolean) !== true) this.search();
  }

  async #search(): Promise<void> {
    this.#searching = true;
    this.#searchedAt = systemClock.monotonic();
    const isDone = await within(SEARCH_MS, this.#clearAll());
    this.#searching = false;
    this.#pauseMs = isDone === true ? SHORT_PAUSE_MS : PAUSE_MS;
    if (isDone !== true) this.search();
  }

  /** Returns false if debts may be left. */
  async #clearAll(): Promise<boolean> {
    try {
      const store = await this.#options.ready();
      const isRelayed = await this.#relay(store);
      const limit = READ_AT_ONCE + this.#stuck;
      const { schedules } = await store.status(this.#options.queue, { schedules: { owing: true, limit } });
      const { records = [], now = 0 } = schedules ?? {};
      const results = await Promise.all(records.map((record) => this.#advance(record, now)));
      this.#stuck = results.filter((isCleared) => !isCleared).length;
      return isRelayed && this.#stuck === 0 && records.length < limit;
    } catch (thrown) {
      this.#report(thrown);
      return false;
    }
  }

  /** Delivers messages to other queues that a process has left behind. Returns false if some may be left. */
  async #relay(store: Store): Promise<boolean> {
    if (store.capabilities.families !== true) return true;
    return !(await store.relay(this.#options.queue, RELAYED_AT_ONCE)).more;
  }

  /** Returns false if the debt may still be there. */
  async #advance(record: ScheduleRecord, now: number): Promise<boolean> {
    const { queue, strategy, ready } = this.#options;
    try {
      const status = await advance({ store: await ready(), queue, strategy }, record, now);
      if (status === 'done') this.#reported = false;
      return status !== 'taken';
    } catch (thrown) {
      this.#report(thrown);
      return false;
    }
  }

  /** Reports once until a debt is cleared again, because the search goes on. */
  #report(thrown: unknown): void {
    if (!this.#reported && !this.#stopped) this.#options.onError(toError(thrown));
    this.#reported = true;
  }
}
