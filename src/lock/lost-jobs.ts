// Converts a sweep's reply to the jobs that were found without a living owner, and emits the warning that names the owner.
import { type LossFound, type LostBy, readLostBy } from '../job/lost-by.js';
import type { SweepReply } from '../store/contract/index.js';

export interface LostJob {
  jobId: string;
  /** Undefined if the store no longer knows the owner. */
  lostBy: LostBy | undefined;
  /** True if the job stalled too often and failed. */
  failed: boolean;
}

/** A sweeper's report. */
export type Swept = Omit<SweepReply, 'more'>;

export function lostJobs({ stalled, failed, lostBy = [] }: Swept): LostJob[] {
  return [...stalled, ...failed].map((jobId, index) => ({
    jobId,
    lostBy: readLostBy(lostBy[index]),
    failed: index >= stalled.length,
  }));
}

const FOUND: Record<LossFound, string> = {
  exit: 'It handed them back as it ended.',
  'process-gone': 'Its process or its connection to the store was gone.',
  'session-expired': 'It did not renew its session in time.',
  'lock-expired': 'Their locks were not renewed, and their time was over.',
};

/** Owners that this process has already warned about. */
const warned = new Set<string>();
/** The set is cleared at this size: it must not grow in a process that runs for months. */
const MOST_WARNED = 1000;

/** Warns once per owner, because the owner's jobs may come in many sweeps. */
export function warnOfLosses(queue: string, lost: LostJob[]): void {
  for (const { jobId, lostBy } of lost) {
    if (lostBy === undefined) continue;
    const { host, pid, worker, found } = lostBy;
    const owner = JSON.stringify([queue, host, pid, worker]);
    if (warned.has(owner)) continue;
    if (warned.size >= MOST_WARNED) warned.clear();
    warned.add(owner);
    const message = `Process ${pid} on ${host} lost running jobs of queue "${queue}" (worker "${worker}", job ${jobId} and perhaps more). ${FOUND[found]} They run again, or fail if they stalled too often. This warning comes once for each worker; job.lostBy says it of each job.`;
    process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_JOBS_LOST' });
  }
}
