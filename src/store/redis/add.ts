// Adds jobs: writes the arguments of lua/add.lua and reads its reply. The store calls it for every add.
import type { NewJob } from '../../job/record.js';
import type { AddReply, Call } from '../contract/index.js';
import type { Argument } from './driver.js';
import { jobText } from './job-text.js';
import type { Runner } from './runner.js';

export async function add(run: Runner, queue: string, jobs: NewJob[], { caller, seq }: Call): Promise<AddReply[]> {
  const args: Argument[] = [caller, seq, jobs.length];
  // Most calls need only the texts. Two arguments less for each job save measurable time in the client and in Redis.
  if (jobs.every((job) => job.id === undefined && flagsOf(job) === '')) for (const job of jobs) args.push(jobText(job));
  else for (const job of jobs) args.push(job.id ?? '', flagsOf(job), jobText(job));
  return decode(String(await run('add', queue, args)));
}

/** Returns the flags of lua/add.lua; '' for a job without priority, delay, lifo and lock key. */
function flagsOf({ priority, delayMs, lifo, lockKey }: NewJob): string {
  if (priority === 0 && delayMs === 0 && !lifo && lockKey === undefined) return '';
  const key = lockKey === undefined ? '' : `,${lockKey}`;
  return `${priority},${delayMs},${lifo ? 1 : 0}${key}`;
}

/** Reads a reply: first,count if all ids were counted up, as in most calls; else a letter and the id of each job. */
function decode(reply: string): AddReply[] {
  if (isDigit(reply)) {
    const comma = reply.indexOf(',');
    const first = Number(reply.slice(0, comma));
    const count = Number(reply.slice(comma + 1));
    const replies: AddReply[] = [];
    for (let n = 0; n < count; n += 1) replies.push({ id: String(first + n), status: 'added' });
    return replies;
  }
  return reply.split('\0').map((item) => ({ id: item.slice(1), status: item.startsWith('d') ? 'duplicate' : 'added' }));
}

function isDigit(text: string): boolean {
  const code = text.charCodeAt(0);
  return code >= 48 && code <= 57;
}
