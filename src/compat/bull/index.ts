// `holdfast/bull`: for programs written for Bull, with the import changed. `import Queue from 'holdfast/bull'`, `import { Queue } …` and
// `const Queue = require('holdfast/bull')` all give the same class. It also works without `new`, as Bull's does.
import type { Any } from '../../job/typing.js';
import { MetricsTime } from '../../queue/metrics.js';
import type * as events from './events.js';
import type * as getters from './getters.js';
import type * as handlers from './handlers.js';
import { Job as BullJob, type JobStatus as BullJobStatus } from './job.js';
import type * as options from './options.js';
import type * as repeats from './repeat.js';
import { type BulkJob as BullBulkJob, Queue as BullQueue } from './queue.js';

interface QueueFactory {
  <T = Any>(...args: ConstructorParameters<typeof BullQueue<T>>): BullQueue<T>;
  new <T = Any>(...args: ConstructorParameters<typeof BullQueue<T>>): BullQueue<T>;
  readonly prototype: BullQueue;
}

const callable = new Proxy(BullQueue, {
  apply: (target, _this, args: [string]) => new target(...args),
}) as unknown as QueueFactory;

// `require` returns the class itself, with the names that an import would have: the build makes it `module.exports`.
export const utils = { MetricsTime };

interface Exported {
  Queue: QueueFactory;
  Job: typeof BullJob;
  default: QueueFactory;
  readonly utils: typeof utils;
}
export const Queue: QueueFactory & Exported = Object.assign(callable, {
  Queue: callable,
  Job: BullJob,
  default: callable,
  utils,
});
export type Queue<T = Any> = BullQueue<T>;
/** Types for programs that write Bull.Queue and Bull.Job, and for the value that `require` returns. */
export declare namespace Queue {
  export type Queue<T = Any> = BullQueue<T>;
  export type Job<T = Any> = BullJob<T, BullQueue<T>>;
  export type JobId = getters.JobId;
  export type JobCounts = getters.JobCounts;
  export type DoneCallback = handlers.DoneCallback;
  export type JobOptions = options.JobOptions;
  export type QueueOptions = options.QueueOptions;
  export type AdvancedSettings = options.AdvancedSettings;
  export type RateLimiter = options.RateLimiter;
  export type BullBackoffStrategy = options.BullBackoffStrategy;
  export type CronRepeatOptions = repeats.CronRepeatOptions;
  export type EveryRepeatOptions = repeats.EveryRepeatOptions;
  export type JobInformation = repeats.JobInformation;
  export type BullEvents<J> = events.BullEvents<J>;
  export type JobPromise = events.JobPromise;
  export type JobStatus = BullJobStatus;
  export type BulkJob<T = Any> = BullBulkJob<T>;
}
export { Queue as default };
export type Job<T = Any> = BullJob<T, BullQueue<T>>;
export const Job = BullJob;
export type { BullEvents, JobPromise } from './events.js';
export type { JobCounts, JobId } from './getters.js';
export type { DoneCallback } from './handlers.js';
export type { JobStatus } from './job.js';
export type { AdvancedSettings, BullBackoffStrategy, JobOptions, QueueOptions, RateLimiter } from './options.js';
export type { BulkJob } from './queue.js';
export type { CronRepeatOptions, EveryRepeatOptions, JobInformation } from './repeat.js';
