// The read methods of a Bull queue. Waiting jobs with a priority count as waiting: Bull has no other name for them.
import type { Job as CoreJob } from '../../handle/job.js';
import type { Metrics } from '../../queue/metrics.js';
import type { Queue as CoreQueue } from '../../queue/queue.js';
import { ClosingEmitter } from '../../runtime/emitter.js';
import type { BullEvents } from './events.js';
import type { JobStatus } from './job.js';
import { informationOf, type JobInformation } from './repeat.js';

export type JobId = number | string;

export interface JobCounts {
  waiting: number;
  active: number;
  completed: number;
  failed: number;
  delayed: number;
  paused: number;
}

const STARTABLE = ['wait', 'prioritized'] as const;

export abstract class BullGetters<J> extends ClosingEmitter<BullEvents<J>> {
  /** The core queue behind this one: named locks, instances and everything else that Bull has no name for. */
  abstract readonly core: CoreQueue;
  protected abstract wrap(job: CoreJob): J;

  async getJob(jobId: JobId): Promise<J | null> {
    const job = await this.core.getJob(String(jobId));
    return job === undefined ? null : this.wrap(job);
  }

  async getJobs(types: JobStatus[] | JobStatus, start = 0, end = -1, asc = false): Promise<J[]> {
    const named = typeof types === 'string' ? [types] : types;
    // In Bull a waiting job is either 'waiting' or 'paused', never both.
    const paused = named.includes('paused') && (await this.core.isPaused());
    const asked = named.flatMap((type) => {
      if (type === 'paused') return paused ? STARTABLE : [];
      return type === 'waiting' ? STARTABLE : [type];
    });
    if (asked.length === 0) return [];
    return (await this.core.getJobs([...asked], start, end, asc)).map((job) => this.wrap(job));
  }
  getWaiting(start?: number, end?: number): Promise<J[]> {
    return this.getJobs('waiting', start, end, true);
  }
  getActive(start?: number, end?: number): Promise<J[]> {
    return this.getJobs('active', start, end, true);
  }
  getDelayed(start?: number, end?: number): Promise<J[]> {
    return this.getJobs('delayed', start, end, true);
  }
  getCompleted(start?: number, end?: number): Promise<J[]> {
    return this.getJobs('completed', start, end);
  }
  getFailed(start?: number, end?: number): Promise<J[]> {
    return this.getJobs('failed', start, end);
  }

  async getJobCounts(): Promise<JobCounts> {
    const [counts, isPaused] = await Promise.all([this.core.getJobCounts(), this.core.isPaused()]);
    const { waiting = 0, prioritized = 0, active = 0, completed = 0, failed = 0, delayed = 0 } = counts;
    const startable = waiting + prioritized;
    return { waiting: isPaused ? 0 : startable, active, completed, failed, delayed, paused: isPaused ? startable : 0 };
  }
  async getJobCountByTypes(types: JobStatus[] | JobStatus): Promise<number> {
    const counts = await this.getJobCounts();
    return [types].flat().reduce((sum, type) => sum + counts[type], 0);
  }
  getWaitingCount(): Promise<number> {
    return this.getJobCountByTypes('waiting');
  }
  getPausedCount(): Promise<number> {
    return this.getJobCountByTypes('paused');
  }
  getActiveCount(): Promise<number> {
    return this.getJobCountByTypes('active');
  }
  getDelayedCount(): Promise<number> {
    return this.getJobCountByTypes('delayed');
  }
  getCompletedCount(): Promise<number> {
    return this.getJobCountByTypes('completed');
  }
  getFailedCount(): Promise<number> {
    return this.getJobCountByTypes('failed');
  }
  getCountsPerPriority(priorities: number[]): Promise<Record<string, number>> {
    return this.core.getCountsPerPriority(priorities);
  }
  /** Returns the number of jobs that have not started yet. */
  count(): Promise<number> {
    return this.core.count();
  }
  getJobLogs(jobId: JobId, start = 0, end = -1, asc = true): Promise<{ logs: string[]; count: number }> {
    return this.core.getJobLogs(String(jobId), start, end, asc);
  }

  /** Returns finished jobs per minute, the newest first. */
  getMetrics(type: 'completed' | 'failed', start = 0, end = -1): Promise<Metrics> {
    return this.core.getMetrics(type, start, end);
  }

  /** Returns the schedules by their next slot, the latest first unless `asc`. */
  async getRepeatableJobs(start = 0, end = -1, asc = false): Promise<JobInformation[]> {
    return (await this.core.getRepeatableJobs(start, end, asc)).map(informationOf);
  }
  getRepeatableCount(): Promise<number> {
    return this.core.getJobSchedulersCount();
  }
}
