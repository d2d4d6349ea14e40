// The verb `extend` of the memory store: it moves the end of a job's lock, and takes the lock out of its session if asked to.
import type { Extension, ExtendStatus } from '../contract/index.js';
import { setEnd } from './state/moves.js';
import type { QueueState } from './state/queue-state.js';

export function extend(queue: QueueState, { jobId, token, durationMs, alone }: Extension, now: number): ExtendStatus {
  const job = queue.jobs.get(jobId);
  if (job === undefined) return 'missing';
  if (job.lock?.token !== token) return job.finishedBy === token ? 'finished' : 'lost';
  if (alone) job.lock.timed = true;
  setEnd(queue, job.lock, now + durationMs);
  return 'done';
}
