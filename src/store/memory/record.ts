// Builds the job records that the store returns: always a copy, without keys that have no value.
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import type { StoredJob, StoredLock } from './state/queue-state.js';

export function recordOf(job: StoredJob): JobRecord {
  const record: JobRecord = {
    id: job.id,
    name: job.name,
    data: job.data,
    opts: job.opts,
    state: job.state,
    priority: job.priority,
    delay: job.delay,
    timestamp: job.timestamp,
    attemptsMade: job.attemptsMade,
    attemptsStarted: job.attemptsStarted,
    stalledCounter: job.stalledCounter,
  };
  if (job.processedOn !== undefined) record.processedOn = job.processedOn;
  if (job.finishedOn !== undefined) record.finishedOn = job.finishedOn;
  if (job.processedBy !== undefined) record.processedBy = job.processedBy;
  if (job.returnvalue !== undefined) record.returnvalue = job.returnvalue;
  if (job.failedReason !== undefined) record.failedReason = job.failedReason;
  if (job.stacktrace !== undefined) record.stacktrace = job.stacktrace;
  if (job.progress !== undefined) record.progress = job.progress;
  if (job.lostBy !== undefined) record.lostBy = job.lostBy;
  if (job.extras !== null) Object.assign(record, job.extras);
  return record;
}

export function claimedOf(lock: StoredLock): ClaimedJob {
  const claimed = recordOf(lock.job) as ClaimedJob;
  claimed.token = lock.token;
  claimed.fence = lock.order;
  return claimed;
}
