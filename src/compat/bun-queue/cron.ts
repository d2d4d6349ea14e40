// bun-queue's cron jobs on top of the core's schedules.
import { createHash } from 'node:crypto';
import type { Queue as CoreQueue } from '../../queue/queue.js';
import { type JobOptions, jobOptionsOf, type RepeatOptions } from './options.js';

export interface CronJobOptions<T> extends Omit<JobOptions, 'repeat' | 'delay' | 'deduplication'> {
  cronExpression: string;
  /** Default: the zone of this process. */
  timezone?: string;
  limit?: number;
  startDate?: RepeatOptions['startDate'];
  endDate?: RepeatOptions['endDate'];
  data?: T;
}

/** Returns the id of the schedule: `jobId`, else one made of the expression, the zone and the data, so that a restart makes no second one. */
export async function scheduleCron<T>(core: CoreQueue, name: string, options: CronJobOptions<T>): Promise<string> {
  const { cronExpression: pattern, timezone: tz, limit, startDate, endDate, data, jobId, ...given } = options;
  const { jobId: _, repeat: _repeat, ...opts } = jobOptionsOf(given);
  const set = Object.entries({ pattern, tz, limit, startDate, endDate }).filter(([, value]) => value !== undefined);
  const id = jobId === undefined ? idOf(pattern, tz, data) : String(jobId);
  await core.upsertJobScheduler(id, Object.fromEntries(set), { name, data, opts });
  return id;
}

function idOf(pattern: string, tz = '', data?: unknown): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(data) ?? '')
    .digest('hex');
  return `cron:${pattern}:${tz}:${digest.slice(0, 16)}`;
}
