// Reads that continue where a reply was cut at REPLY_BYTES, until the caller has everything that it requested.
import type { JobRecord } from '../../job/record.js';
import type { ListName, ListQuery, Store } from '../contract/index.js';

interface Range {
  start: number;
  end: number;
  asc: boolean;
}

export async function readJobs(store: Store, queue: string, jobIds: string[]): Promise<(JobRecord | undefined)[]> {
  const found = await store.jobs(queue, jobIds);
  while (found.length < jobIds.length) found.push(...(await store.jobs(queue, jobIds.slice(found.length))));
  return found;
}

export async function readList(store: Store, queue: string, query: ListQuery): Promise<JobRecord[]> {
  const { jobs, more } = await store.list(queue, query);
  if (!more) return jobs;
  // A cut reply does not say in which list it ended, so several lists are read again, one at a time.
  const [first] = query.lists;
  if (query.lists.length === 1 && first !== undefined) return readOn(store, queue, first, query, jobs);
  const whole: JobRecord[] = [];
  for (const list of query.lists) whole.push(...(await readOn(store, queue, list, query, [])));
  return whole;
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

async function readOn(store: Store, queue: string, list: ListName, query: Range, read: JobRecord[]): Promise<JobRecord[]> {
  const { counts } = await store.status(queue);
  const [from, to] = positions(counts[list], query.start, query.end);
  for (;;) {
    const start = from + read.length;
    if (start > to) return read;
    const { jobs, more } = await store.list(queue, { lists: [list], start, end: to, asc: query.asc });
    read.push(...jobs);
    if (!more) return read;
  }
}

/** Returns the first and last position of a range. Negative positions count from the end. */
function positions(count: number, start: number, end: number): [from: number, to: number] {
  return [Math.max(0, start < 0 ? count + start : start), end < 0 ? count + end : Math.min(end, count - 1)];
}
