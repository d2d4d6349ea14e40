import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract.js';
import type { Argument } from './driver.js';
import { jobText } from './job-text.js';
import type { Runner } from './runner.js';

export async function add(run: Runner, queue: string, jobs: NewJob[], { caller, seq }: Call): Promise<AddReply[]> {
  const args: Argument[] = [caller, seq, jobs.length];
  // Most calls need no more, and two arguments less for each job are felt on both sides.
  if (jobs.every((job) => job.id === undefined && flagsOf(job) === '')) for (const job of jobs) args.push(jobText(job));
  else for (const job of jobs) args.push(job.id ?? '', flagsOf(job), jobText(job));
  return decode(String(await run('add', queue, args)));
}

/** Empty for a job with nothing special. */
function flagsOf({ priority, delayMs, lifo, lockKey }: NewJob): string {
  if (priority === 0 && delayMs === 0 && !lifo && lockKey === undefined) return '';
  const key = lockKey === undefined ? '' : `,${lockKey}`;
  return `${priority},${delayMs},${lifo ? 1 : 0}${key}`;
}

/** first,count for a run of counted ids, which is what most calls get, else a letter and the id of each. */
function decode(reply: string): AddReply[] {
  if (/^\d/.test(reply)) {
    const [first = 0, count = 0] = reply.split(',').map(Number);
    return Array.from({ length: count }, (_, index) => ({ id: String(first + index), duplicate: false }));
  }
  return reply.split('\0').map((item) => ({ id: item.slice(1), duplicate: item.startsWith('d') }));
}
