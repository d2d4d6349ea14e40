import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
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
  if (isDigit(reply)) {
    const comma = reply.indexOf(',');
    const first = Number(reply.slice(0, comma));
    const count = Number(reply.slice(comma + 1));
    const replies: AddReply[] = [];
    for (let n = 0; n < count; n += 1) replies.push({ id: String(first + n), duplicate: false });
    return replies;
  }
  return reply.split('\0').map((item) => ({ id: item.slice(1), duplicate: item.startsWith('d') }));
}

function isDigit(text: string): boolean {
  const code = text.charCodeAt(0);
  return code >= 48 && code <= 57;
}
