// The read methods of a Queue: jobs and counts by state. Nothing here changes anything.
import { JOB_CONTEXT, type JobContext } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import type { JobOf } from '../handle/typed-job.js';
import type { JobState, JobType } from '../job/state.js';
import { checkInteger, invalidOption } from '../runtime/check.js';
import { Emitter } from '../runtime/emitter.js';
import { VERSION } from '../runtime/version.js';
import { EVENTS_KEPT, type Store } from '../store/contract/index.js';
import { readList, readLogs } from '../store/client/read-on.js';
import { checkTypes, countOf, listsOf } from './lists.js';
import type { PlainQueueListeners, QueueEventMap } from './queue-options.js';

const NO_LIMIT = -2;
/** Programs read the part before the colon. */
const NAMED_VERSION = `holdfast:${VERSION}`;

export interface QueueMeta {
  /** The limit of running jobs for all workers together, if there is one. */
  concurrency?: number;
  maxLenEvents: number;
  paused: boolean;
  version: string;
}

export abstract class QueueGetters<T, R, N extends string> extends Emitter<
  QueueEventMap<JobOf<T, R, N>>,
  PlainQueueListeners<T, R, N>
> {
  abstract readonly name: string;
  /** Through this context the jobs of the queue reach the store. */
  abstract readonly [JOB_CONTEXT]: JobContext;

  protected get store(): Promise<Store> {
    return this[JOB_CONTEXT].ready();
  }

  async getJob(jobId: string): Promise<JobOf<T, R, N> | undefined> {
    return (await Job.fromId(this, jobId)) as JobOf<T, R, N> | undefined;
  }

  /** Returns the jobs from `start` to `end`, inclusive, of each type. -1 is the last. */
  async getJobs(types?: JobType[] | JobType, start = 0, end = -1, asc = false): Promise<JobOf<T, R, N>[]> {
    const checked = checkTypes(types);
    checkPosition('start', start);
    checkPosition('end', end);
    const store = await this.store;
    const records = await readList(store, this[JOB_CONTEXT].stored, { lists: listsOf(checked), start, end, asc });
    return records.map((record) => new Job(this[JOB_CONTEXT], record) as JobOf<T, R, N>);
  }

  getWaiting(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['waiting'], start, end, true);
  }
  getActive(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['active'], start, end, true);
  }
  getDelayed(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['delayed'], start, end, true);
  }
  getPrioritized(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['prioritized'], start, end, true);
  }
  /** Newest first. */
  getCompleted(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['completed'], start, end, false);
  }
  getFailed(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['failed'], start, end, false);
  }

  async getJobCounts(...types: JobType[]): Promise<Record<string, number>> {
    const checked = checkTypes(types);
    const status = await (await this.store).status(this[JOB_CONTEXT].stored);
    return Object.fromEntries(checked.map((type) => [type, countOf(type, status)]));
  }

  /** Returns the sum of `getJobCounts`. */
  async getJobCountByTypes(...types: JobType[]): Promise<number> {
    const { wait, ...counts } = await this.getJobCounts(...types);
    // 'wait' and 'waiting' are the same jobs.
    if (wait !== undefined) counts['waiting'] ??= wait;
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  /** Returns the number of jobs that have not started yet. */
  count(): Promise<number> {
    return this.getJobCountByTypes('waiting', 'delayed', 'prioritized', 'waiting-children');
  }
  /** Includes the jobs of a paused queue. */
  getWaitingCount(): Promise<number> {
    return this.getJobCountByTypes('waiting');
  }
  getActiveCount(): Promise<number> {
    return this.getJobCountByTypes('active');
  }
  getDelayedCount(): Promise<number> {
    return this.getJobCountByTypes('delayed');
  }
  getPrioritizedCount(): Promise<number> {
    return this.getJobCountByTypes('prioritized');
  }
  getCompletedCount(): Promise<number> {
    return this.getJobCountByTypes('completed');
  }
  getFailedCount(): Promise<number> {
    return this.getJobCountByTypes('failed');
  }

  async getCountsPerPriority(priorities: number[]): Promise<Record<string, number>> {
    if (!Array.isArray(priorities)) throw invalidOption('priorities', priorities, 'a list of priorities');
    for (const priority of priorities) checkInteger('priorities', priority);
    const store = await this.store;
    const { counts } = await store.status(this[JOB_CONTEXT].stored);
    const result: Record<string, number> = {};
    for (const priority of priorities) {
      result[priority] =
        priority === 0
          ? counts.waiting
          : (await this.#firstFrom(priority + 1, counts.prioritized)) - (await this.#firstFrom(priority, counts.prioritized));
    }
    return result;
  }

  async getJobState(jobId: string): Promise<JobState> {
    return Job.fromJSON(this[JOB_CONTEXT], {}, jobId).getState();
  }

  async getJobLogs(jobId: string, start = 0, end = -1, asc = true): Promise<{ logs: string[]; count: number }> {
    checkPosition('start', start);
    checkPosition('end', end);
    return readLogs(await this.store, this[JOB_CONTEXT].stored, jobId, { start, end, asc });
  }

  async isPaused(): Promise<boolean> {
    return (await (await this.store).status(this[JOB_CONTEXT].stored)).paused;
  }

  async getMeta(): Promise<QueueMeta> {
    const { paused, cap } = await (await this.store).status(this[JOB_CONTEXT].stored);
    return {
      paused,
      maxLenEvents: EVENTS_KEPT,
      version: NAMED_VERSION,
      ...(cap === undefined ? {} : { concurrency: cap.maxActive }),
    };
  }

  /** Returns the milliseconds for which the queue is rate limited; -2 if it is not, as in BullMQ. */
  async getRateLimitTtl(): Promise<number> {
    return (await (await this.store).status(this[JOB_CONTEXT].stored)).limitedMs ?? NO_LIMIT;
  }

  /** Returns the position of the first job with at least this priority. The list is ordered, so a binary search needs few reads. */
  async #firstFrom(priority: number, size: number): Promise<number> {
    const store = await this.store;
    let low = 0;
    let high = size;
    while (low < high) {
      const middle = (low + high) >> 1;
      const [job] = (
        await store.jobs(this[JOB_CONTEXT].stored, { lists: ['prioritized'], start: middle, end: middle, asc: true })
      ).jobs;
      if (job !== undefined && job.priority < priority) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function checkPosition(option: string, value: number): void {
  checkInteger(option, value, { min: Number.MIN_SAFE_INTEGER });
}
