// BullMQ's JobScheduler: the schedules of a queue, for programs that use them without a Queue. Names and arguments only.
import type { Job } from '../handle/job.js';
import type { JobsOptions } from '../job/options.js';
import type { RepeatOptions } from '../job/schedule.js';
import { checkBoolean, invalidOption } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { Queue } from './queue.js';
import type { QueueOptions } from './queue-options.js';
import type { JobSchedulerJson, JobSchedulerTemplateOptions } from './scheduler-json.js';

export interface JobSchedulerOpts {
  /** Only true, which is the default, has a meaning here: workers make the next jobs themselves. */
  override?: boolean;
  /** Option of BullMQ. Accepted without effect. */
  producerId?: string;
}

const NAMES = new OptionNames<JobSchedulerOpts>({ of: 'upsertJobScheduler', known: { override: true, producerId: true } });

export class JobScheduler {
  readonly name: string;
  readonly #queue: Queue;

  constructor(name: string, opts?: QueueOptions) {
    this.#queue = new Queue(name, opts);
    this.name = name;
  }

  get opts(): Queue['opts'] {
    return this.#queue.opts;
  }

  async upsertJobScheduler(
    jobSchedulerId: string,
    repeatOpts: Omit<RepeatOptions, 'key' | 'jobId' | 'count' | 'prevMillis'>,
    jobName: string = jobSchedulerId,
    jobData?: unknown,
    opts: JobSchedulerTemplateOptions | JobsOptions = {},
    options: JobSchedulerOpts = {},
  ): Promise<Job | undefined> {
    if (!checkBoolean('override', NAMES.checked(options).override ?? true))
      throw invalidOption('override', false, 'true, or left out: workers make the next job of a schedule themselves');
    return this.#queue.upsertJobScheduler(jobSchedulerId, repeatOpts, { name: jobName, data: jobData, opts });
  }

  /** Returns whether the schedule existed. */
  removeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this.#queue.removeJobScheduler(jobSchedulerId);
  }

  async isJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return (await this.getScheduler(jobSchedulerId)) !== undefined;
  }

  getScheduler(jobSchedulerId: string): Promise<JobSchedulerJson | undefined> {
    return this.#queue.getJobScheduler(jobSchedulerId);
  }

  getJobSchedulers(start = 0, end = -1, asc = false): Promise<JobSchedulerJson[]> {
    return this.#queue.getJobSchedulers(start, end, asc);
  }

  getSchedulersCount(): Promise<number> {
    return this.#queue.getJobSchedulersCount();
  }

  waitUntilReady(): Promise<void> {
    return this.#queue.waitUntilReady();
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  /** For `await using`: closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Events of the queue behind it: `error` alone is of use here. */
  on(event: 'error', listener: (error: Error) => void): this {
    this.#queue.on(event, listener);
    return this;
  }
}
