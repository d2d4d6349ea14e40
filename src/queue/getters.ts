// The read methods of a Queue: jobs and counts by state. Nothing here changes anything.
import { JOB_CONTEXT, type JobContext } from '../handle/job-context.js';
import { Job } from '../handle/job.js';
import { batchOf } from '../store/capabilities.js';
import type { JobOf } from '../handle/typed-job.js';
import { checkDeduplicationId } from '../job/deduplication.js';
import { checkGivenId } from '../job/names.js';
import type { FinishedState, JobState, JobType } from '../job/state.js';
import { checkInteger, invalidOption } from '../runtime/check.js';
import { ClosingEmitter } from '../runtime/emitter.js';
import { MetricNames, TelemetryAttributes } from '../runtime/telemetry.js';
import { TelemetryGuard } from '../runtime/telemetry-guard.js';
import { VERSION } from '../runtime/version.js';
import type { QueueBaseOptions } from '../store/base-options.js';
import { EVENTS_KEPT, type Store } from '../store/contract/index.js';
import { readList, readLogs } from '../store/client/read-on.js';
import { type ClientInfo, listenersOf, type WorkerInfo, workersOf } from './clients.js';
import { type DependencyList, type DependencyType, listDependencies } from './dependencies.js';
import { checkTypes, countOf, listsOf } from './lists.js';
import { type Metrics, prometheusText, readMetrics } from './metrics.js';
import type { PlainQueueListeners, QueueEventMap } from './queue-options.js';

/** Programs read the part before the colon. */
const NAMED_VERSION = `holdfast:${VERSION}`;

export interface QueueMeta {
  /** The limit of running jobs for all workers together, if there is one. */
  concurrency?: number;
  /** The global rate limit, if there is one. */
  max?: number;
  duration?: number;
  maxLenEvents: number;
  paused: boolean;
  version: string;
}

export abstract class QueueGetters<T, R, N extends string> extends ClosingEmitter<
  QueueEventMap<JobOf<T, R, N>>,
  PlainQueueListeners<T, R, N>
> {
  abstract readonly name: string;
  abstract readonly opts: Readonly<QueueBaseOptions>;
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
  getWaitingChildren(start = 0, end = -1): Promise<JobOf<T, R, N>[]> {
    return this.getJobs(['waiting-children'], start, end, true);
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

  /** Returns the same, and records it with the gauge of the queue's `telemetry`, if that has a meter. */
  async recordJobCountsMetric(...types: JobType[]): Promise<Record<string, number>> {
    const counts = await this.getJobCounts(...types);
    const { meter } = this.opts.telemetry ?? {};
    const guard = new TelemetryGuard((error) => void this.emit('error', error));
    guard.guarded(() => {
      const options = { description: 'Number of jobs in the queue by state', unit: '{jobs}' };
      const gauge = guard.watched(meter?.createGauge(MetricNames.QueueJobsCount, options));
      for (const [state, count] of Object.entries(counts)) {
        const attributes = { [TelemetryAttributes.QueueName]: this.name, [TelemetryAttributes.QueueJobsState]: state };
        guard.watched(gauge?.record(count, attributes));
      }
    });
    return counts;
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
  getWaitingChildrenCount(): Promise<number> {
    return this.getJobCountByTypes('waiting-children');
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
    const most = batchOf(store.capabilities);
    const counts: Record<string, number> = {};
    for (let first = 0; first < priorities.length; first += most) {
      const part = priorities.slice(first, first + most);
      const found = (await store.status(this[JOB_CONTEXT].stored, { priorities: part })).priorities;
      part.forEach((priority, index) => (counts[priority] = found?.[index] ?? 0));
    }
    return counts;
  }

  async getJobState(jobId: string): Promise<JobState> {
    return Job.fromJSON(this[JOB_CONTEXT], {}, checkGivenId(jobId)).getState();
  }

  async getJobLogs(jobId: string, start = 0, end = -1, asc = true): Promise<{ logs: string[]; count: number }> {
    checkPosition('start', start);
    checkPosition('end', end);
    return readLogs(await this.store, this[JOB_CONTEXT].stored, checkGivenId(jobId), { start, end, asc });
  }

  /** Returns the children of a job whose link has this type, at positions `start` to `end` (inclusive, -1 = last), by their keys. */
  async getDependencies(parentId: string, type: DependencyType, start = 0, end = -1): Promise<DependencyList> {
    checkPosition('start', start);
    checkPosition('end', end);
    return listDependencies(await this.store, this[JOB_CONTEXT].stored, checkGivenId(parentId), type, start, end);
  }

  /** Returns the id of the job that has this deduplication id; null if the id is free. */
  async getDeduplicationJobId(id: string): Promise<string | null> {
    const ask = { deduplication: [checkDeduplicationId(id)] };
    return (await (await this.store).status(this[JOB_CONTEXT].stored, ask)).deduplication?.[0] ?? null;
  }

  async isPaused(): Promise<boolean> {
    return (await (await this.store).status(this[JOB_CONTEXT].stored)).paused;
  }

  async getMeta(): Promise<QueueMeta> {
    const { paused, cap, rate } = await (await this.store).status(this[JOB_CONTEXT].stored);
    return {
      paused,
      maxLenEvents: EVENTS_KEPT,
      version: NAMED_VERSION,
      ...(cap === undefined ? {} : { concurrency: cap.maxActive }),
      ...(rate === undefined ? {} : { max: rate.max, duration: rate.durationMs }),
    };
  }

  /** Returns the `version` of `getMeta`. */
  async getVersion(): Promise<string> {
    return NAMED_VERSION;
  }

  /** Returns the workers that take jobs of this queue, in all processes. A paused worker takes none. */
  async getWorkers(): Promise<WorkerInfo[]> {
    return workersOf(this[JOB_CONTEXT], await (await this.store).sessions(this[JOB_CONTEXT].stored));
  }

  /** Returns finished jobs per minute, from position `start` to `end`, the newest first. A worker with the option `metrics` starts the count. */
  async getMetrics(type: FinishedState, start = 0, end = -1): Promise<Metrics> {
    return readMetrics(await this.store, this[JOB_CONTEXT].stored, type, start, end);
  }

  /** Returns the counts of the queue as text for Prometheus. `globalVariables` become labels of every line. */
  async exportPrometheusMetrics(globalVariables: Record<string, string> = {}): Promise<string> {
    const [counts, completed, failed] = await Promise.all([
      this.getJobCounts(),
      this.getMetrics('completed', 0, 0),
      this.getMetrics('failed', 0, 0),
    ]);
    const finished = { completed: completed.meta.count, failed: failed.meta.count };
    return prometheusText(this.name, counts, finished, globalVariables);
  }

  async getWorkersCount(): Promise<number> {
    return (await this.getWorkers()).length;
  }

  /** Returns the QueueEvents of this queue that have the option `listed`, in all processes. */
  async getQueueEvents(): Promise<ClientInfo[]> {
    return listenersOf(this[JOB_CONTEXT], await (await this.store).sessions(this[JOB_CONTEXT].stored));
  }
}

function checkPosition(option: string, value: number): void {
  checkInteger(option, value, { min: Number.MIN_SAFE_INTEGER });
}
