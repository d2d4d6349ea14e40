// `holdfast/bun-queue`: for programs written for bun-queue, with the import changed.
export { Job } from '../../handle/job.js';
export { type BunQueueEvents, type Handler, Queue } from './queue.js';
export type { HorizontalScaling, JobOptions, LeaderElection, QueueOptions } from './options.js';
