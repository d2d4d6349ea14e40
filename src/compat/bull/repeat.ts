// Bull's option `repeat` and its list of repeatable jobs, on top of the core's schedules. Bull calls a pattern `cron`.
import type { JobsOptions } from '../../job/options.js';
import type { RepeatOptions as CoreRepeat } from '../../job/schedule.js';
import type { RepeatableJob } from '../../queue/scheduler-json.js';

interface CommonRepeatOptions extends Omit<CoreRepeat, 'pattern' | 'every' | 'jobId' | 'prevMillis'> {
  jobId?: number | string;
}

export interface CronRepeatOptions extends CommonRepeatOptions {
  cron: string;
  every?: undefined;
}

export interface EveryRepeatOptions extends CommonRepeatOptions {
  /** In ms. Slots lie on its multiples since the epoch. */
  every: number;
  cron?: undefined;
}

export type RepeatOptions = CronRepeatOptions | EveryRepeatOptions;

export interface JobInformation {
  key: string;
  name: string;
  id: string | null;
  endDate: number | null;
  tz: string | null;
  cron: string | null;
  every: number | null;
  /** The next slot, in epoch ms. */
  next: number;
}

/** Values that the core refuses pass as they are, so that the core says what is wrong with them. */
export function coreRepeatOf(repeat: RepeatOptions): CoreRepeat {
  if (typeof repeat !== 'object' || repeat === null || Array.isArray(repeat)) return repeat as never;
  const { cron, jobId, ...rest } = repeat;
  return {
    ...(rest as CoreRepeat),
    ...(cron === undefined ? {} : { pattern: cron }),
    ...(jobId === undefined ? {} : { jobId: String(jobId) }),
  };
}

/** Shows the options of a job with Bull's names. */
export function bullRepeatOf(opts: JobsOptions): { repeat?: RepeatOptions } {
  if (opts.repeat === undefined) return {};
  const { pattern, ...repeat } = opts.repeat;
  return { repeat: { ...repeat, ...(pattern === undefined ? {} : { cron: pattern }) } as never };
}

export function informationOf({ key, name, id, endDate, tz, pattern, every, next }: RepeatableJob): JobInformation {
  return { key, name, id, endDate, tz, cron: pattern, every: every === null ? null : Number(every), next };
}
