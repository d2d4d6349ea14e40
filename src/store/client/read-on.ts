// Reads that continue where a reply was cut at REPLY_BYTES, until the caller has everything that it requested.
import type { JobRecord } from '../../job/record.js';
import type { GroupJobsQuery, JobsReply, ListQuery, Store } from '../contract/index.js';

interface Range {
  start: number;
  end: number;
  asc: boolean;
}

export function readJobs(store: Store, queue: string, jobIds: string[]): Promise<(JobRecord | undefined)[]> {
  return readOn([], (after) => store.jobs(queue, jobIds.slice(after)));
}

export async function readList(store: Store, queue: string, query: ListQuery): Promise<JobRecord[]> {
  const { jobs, more } = await store.jobs(queue, query);
  if (!more) return jobs;
  const whole: JobRecord[] = [];
  for (const list of query.lists) {
    const { counts } = await store.status(queue);
    const [from, to] = positions(counts[list], query.start, query.end);
    if (from > to) continue;
    // A cut reply does not say in which list it ended, so several lists are read again, one at a time.
    const read = query.lists.length === 1 ? jobs : [];
    const range = { lists: [list], end: to, asc: query.asc };
    whole.push(...(await readOn(read, (after) => store.jobs(queue, { ...range, start: from + after }))));
  }
  return whole;
}

export async function readGroup(store: Store, queue: string, query: GroupJobsQuery): Promise<JobRecord[]> {
  const { jobs, more } = await store.jobs(queue, query);
  if (!more) return jobs;
  const { group, start, end } = query;
  const { groups } = await store.status(queue, { groups: { keys: [group] } });
  const [from, to] = positions(groups?.groups[0]?.waiting ?? 0, start, end);
  return readOn(jobs, (after) => store.jobs(queue, { ...query, start: from + after, end: to }));
}

/** Calls `next` with the number of jobs that were read so far, until a reply is not cut. */
async function readOn<J extends JobRecord | undefined>(read: J[], next: (after: number) => Promise<JobsReply<J>>): Promise<J[]> {
  for (;;) {
    const { jobs, more } = await next(read.length);
    read.push(...jobs);
    if (!more) return read;
  }
}

export async function readLogs(
  store: Store,
  queue: string,
  jobId: string,
  { start, end, asc }: Range,
): Promise<{ logs: string[]; count: number }> {
  const { logs, count } = await store.logs(queue, jobId, { start, end, asc });
  const [from, to] = positions(count, start, end);
  while (from + logs.length <= to) {
    const next = await store.logs(queue, jobId, { start: from + logs.length, end: to, asc });
    if (next.logs.length === 0) break;
    logs.push(...next.logs);
  }
  return { logs, count };
}

/** Returns the first and last position of a range. Negative positions count from the end. */
function positions(count: number, start: number, end: number): [from: number, to: number] {
  return [Math.max(0, start < 0 ? count + start : start), end < 0 ? count + end : Math.min(end, count - 1)];
}
