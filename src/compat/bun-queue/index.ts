// `holdfast/bun-queue`: for programs written for bun-queue, with the import changed.
export { Job } from '../../handle/job.js';
export { type BunQueueEvents, type Handler, Queue } from './queue.js';
export type { CronJobOptions } from './cron.js';
export type { HorizontalScaling, JobOptions, LeaderElection, QueueOptions, RepeatOptions } from './options.js';
