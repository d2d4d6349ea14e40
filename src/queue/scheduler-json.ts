// Schedules as users see them: the values that the getters of a queue return, in BullMQ's shapes.
import type { JobsOptions } from '../job/options.js';
import { type CatchUp, offsetOf } from '../job/schedule.js';
import type { ScheduleRecord } from '../job/schedule-record.js';
import type { Any } from '../job/typing.js';
import { readSpec } from '../store/client/schedule-slots.js';

/** The options that a schedule gives its jobs. The schedule itself decides the others. */
export type JobSchedulerTemplateOptions = Omit<JobsOptions, 'jobId' | 'delay' | 'deduplication' | 'repeat' | 'prevMillis'>;

export interface JobSchedulerTemplateJson<D = Any> {
  data?: D;
  opts?: JobSchedulerTemplateOptions;
}

export interface JobSchedulerJson<D = Any> {
  /** The id of the schedule. */
  key: string;
  /** Typed as in BullMQ, and never set. */
  id?: string | null;
  /** The name of its jobs. */
  name: string;
  /** The slot of the next job, in epoch ms; without a next job, of the last one. */
  next: number;
  /** How many jobs the schedule has made. */
  iterationCount: number;
  every?: number;
  pattern?: string;
  tz?: string;
  limit?: number;
  startDate?: number;
  endDate?: number;
  offset?: number;
  template?: JobSchedulerTemplateJson<D>;
  /** Set if it is not 'one'. */
  catchUp?: CatchUp;
  /** Set if it is not 'queue'. */
  overlap?: 'skip';
  /** True after `pauseJobScheduler`. */
  paused?: true;
}

/** A schedule in the shape of the older `repeat` option. */
export interface RepeatableJob {
  key: string;
  name: string;
  id: null;
  endDate: number | null;
  tz: string | null;
  pattern: string | null;
  every: string | null;
  next: number;
}

/** Returns the fields of the schedule that have a value. */
export function jsonOf({ id, spec, at, count, state }: ScheduleRecord): JobSchedulerJson {
  const { name, timing, template } = readSpec(spec);
  const { every, pattern, tz, limit, startDate, endDate, overlap } = timing;
  const catchUp = timing.catchUp === 'one' ? undefined : timing.catchUp;
  const offset = every === undefined ? undefined : offsetOf(timing, { at, count });
  const paused = state === 'paused' ? true : undefined;
  const all = { every, pattern, tz, limit, startDate, endDate, offset, template, catchUp, overlap, paused };
  const set = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  return { key: id, name, next: at, iterationCount: count, ...set };
}

export function repeatableOf({ id, spec, at }: ScheduleRecord): RepeatableJob {
  const { name, timing } = readSpec(spec);
  const { endDate = null, tz = null, pattern = null, every } = timing;
  return { key: id, name, id: null, endDate, tz, pattern, every: every === undefined ? null : String(every), next: at };
}
