// The public door: re-exports only.
export { ERROR_CODES, type ErrorCode, HoldfastError } from './errors.js';
export { Job } from './handle/job.js';
export type { JobLock } from './job/lock.js';
export type { BackoffOptions, DefaultJobOptions, JobsOptions, KeepJobs } from './job/options.js';
export { DelayedError, RateLimitError, UnrecoverableError, WaitingError } from './job/signals.js';
export type { JobState, JobType } from './job/state.js';
export { LockManager, type LockManagerContext, type LockManagerOptions } from './lock/lock-manager.js';
export type { Connection } from './store/connection.js';
export type { Store } from './store/contract.js';
export { openStore } from './store/open.js';
export type { WorkerOptions } from './worker/options.js';
export type { Processor } from './handle/typed-job.js';
export { Worker } from './worker/worker.js';
