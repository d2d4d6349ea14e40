// The schedule methods of a Queue: job schedulers, and the older repeatable jobs. The schedules themselves live in schedulers.ts.
import type { Job } from '../handle/job.js';
import type { JobOf } from '../handle/typed-job.js';
import type { RepeatOptions } from '../job/schedule.js';
import type { DataIn, IfJobMap, IfNoJobMap, NameIn } from '../job/typing.js';
import { invalidOption } from '../runtime/check.js';
import { QueueLocks } from './locking.js';
import { repeatId } from './repeat-option.js';
import { type JobSchedulerJson, jsonOf, type RepeatableJob, repeatableOf } from './scheduler-json.js';
import type { JobTemplate, Schedulers } from './schedulers.js';

/** A queue with a map of job types needs the name of the jobs: by default it is the id of the schedule, which the map does not know. */
export type NamedTemplate<T, R, N extends string> = {
  [K in NameIn<T, R, N>]: Omit<JobTemplate, 'name' | 'data'> & { name: K } & (undefined extends DataIn<T, R, K>
      ? { data?: DataIn<T, R, K> }
      : { data: DataIn<T, R, K> });
}[NameIn<T, R, N>];

type SchedulerRepeatOptions = Omit<RepeatOptions, 'key' | 'jobId' | 'count' | 'prevMillis'>;

const DECIDED = {
  key: 'left out: the first argument is the id of the schedule',
  jobId: 'left out: the schedule makes the ids of its jobs',
  count: 'left out: the schedule counts its jobs itself, and limit bounds them',
  prevMillis: 'left out: the schedule knows its slots, and startDate sets the first',
};

/** The older `repeat` option has these names. Here they would have no effect. */
function checkDecided(given: unknown): void {
  if (typeof given !== 'object' || given === null) return;
  for (const [name, wanted] of Object.entries(DECIDED)) {
    const value: unknown = (given as Record<string, unknown>)[name] ?? undefined;
    if (value !== undefined) throw invalidOption(`repeatOpts.${name}`, value, wanted);
  }
}

export abstract class QueueSchedules<T, R, N extends string> extends QueueLocks<T, R, N> {
  protected abstract readonly schedulers: Schedulers;

  /**
   * Makes a schedule, or replaces the one of this id. Returns its next job; undefined if the schedule has no further slot. An interval
   * that stays the same keeps its slots. A next job that has not started is replaced.
   */
  upsertJobScheduler(
    jobSchedulerId: IfJobMap<T, R, string>,
    repeatOpts: SchedulerRepeatOptions,
    jobTemplate: NamedTemplate<T, R, N>,
  ): Promise<JobOf<T, R, N> | undefined>;
  upsertJobScheduler(
    jobSchedulerId: IfNoJobMap<T, R, string>,
    repeatOpts: SchedulerRepeatOptions,
    jobTemplate?: JobTemplate<DataIn<T, R, NameIn<T, R, N>>>,
  ): Promise<JobOf<T, R, N> | undefined>;
  async upsertJobScheduler(
    jobSchedulerId: string,
    repeatOpts: SchedulerRepeatOptions,
    jobTemplate?: JobTemplate,
  ): Promise<JobOf<T, R, N> | undefined> {
    checkDecided(repeatOpts);
    const upsert = { id: jobSchedulerId, repeat: repeatOpts, path: 'repeatOpts', template: jobTemplate };
    return (await this.schedulers.upsert(upsert)) as JobOf<T, R, N> | undefined;
  }

  async getJobScheduler(jobSchedulerId: string): Promise<JobSchedulerJson | undefined> {
    const record = await this.schedulers.get(jobSchedulerId);
    return record && jsonOf(record);
  }

  /** Returns the schedules from `start` to `end`, inclusive, by their next slot, the latest first unless `asc`. -1 is the last. */
  async getJobSchedulers(start = 0, end = -1, asc = false): Promise<JobSchedulerJson[]> {
    return (await this.schedulers.list(start, end, asc)).map(jsonOf);
  }

  getJobSchedulersCount(): Promise<number> {
    return this.schedulers.count();
  }

  /** Removes a schedule with its next job, if that is delayed. Returns whether the schedule existed. */
  removeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this.schedulers.remove(jobSchedulerId);
  }

  /** Removes the next job, and makes none until `resumeJobScheduler`. Returns whether the schedule exists. */
  pauseJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this.schedulers.pause(jobSchedulerId);
  }

  /** Continues a paused schedule from now on; slots in between are left out. Returns its next job. */
  async resumeJobScheduler(jobSchedulerId: string): Promise<JobOf<T, R, N> | undefined> {
    return (await this.schedulers.resume(jobSchedulerId)) as JobOf<T, R, N> | undefined;
  }

  /** Adds one job from the template of a schedule, now. The schedule itself does not change, and may be paused. */
  async triggerJobScheduler(jobSchedulerId: string): Promise<JobOf<T, R, N>> {
    return (await this.schedulers.trigger(jobSchedulerId)) as Job as JobOf<T, R, N>;
  }

  /** Returns the next slots of a schedule, in epoch ms: at most `count`, fewer if the schedule ends before. */
  nextTimes(jobSchedulerId: string, count = 10): Promise<number[]> {
    return this.schedulers.nextTimes(jobSchedulerId, count);
  }

  /** Returns the schedules in the shape of the older `repeat` option. */
  async getRepeatableJobs(start = 0, end = -1, asc = false): Promise<RepeatableJob[]> {
    return (await this.schedulers.list(start, end, asc)).map(repeatableOf);
  }

  /** Removes the schedule that `add` made with this name and these `repeat` options. Returns whether it existed. */
  async removeRepeatable(name: string, repeatOpts: RepeatOptions, jobId?: string): Promise<boolean> {
    return this.schedulers.remove(repeatId(name, repeatOpts, jobId));
  }

  /** `key`: of `getRepeatableJobs`. Returns whether the schedule existed. */
  removeRepeatableByKey(key: string): Promise<boolean> {
    return this.schedulers.remove(key);
  }
}
