// Read-only views: jobs, lists, counts, logs, locks, sessions. Queues, workers and dashboards call it through the store.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type {
  JobsReply,
  ListQuery,
  LockInfo,
  LockQuery,
  LockReply,
  NamedLockInfo,
  OwnedLock,
  QueueStatus,
  SessionInfo,
} from '../contract/index.js';
import { type JobArrays, toRecords } from './job-row.js';
import { fillRecords, INLINE_BYTES } from './large-values.js';
import type { Server } from './server.js';

export function queues(server: Server, limit: number, after = ''): Promise<string[]> {
  return server.call<string[]>('queue_names', { after, limit });
}

export function jobs(server: Server, queue: string, query: string[] | ListQuery): Promise<JobsReply> {
  return Array.isArray(query) ? byId(server, queue, query) : list(server, queue, query);
}

async function byId(server: Server, queue: string, jobIds: string[]): Promise<JobsReply> {
  if (jobIds.length === 0) return { jobs: [], more: false };
  const arrays = await server.call<JobArrays>('jobs_by_id', {
    name: queue,
    ids: jobIds,
    budget: REPLY_BYTES,
    used: 0,
    inline: INLINE_BYTES,
  });
  const records = toRecords(arrays);
  const found = records.filter(({ id }) => (id as string | null) !== null);
  const filled = new Set(await fillRecords(server, queue, found));
  return { jobs: records.map((record) => (filled.has(record) ? record : undefined)), more: records.length < jobIds.length };
}

async function list(server: Server, queue: string, { lists, start, end, asc }: ListQuery): Promise<JobsReply> {
  const found: JobRecord[] = [];
  let used = 0;
  for (const name of lists) {
    const arrays = await server.call<JobArrays>('list_jobs', {
      name: queue,
      list: name,
      start,
      end,
      asc,
      budget: REPLY_BYTES,
      used,
      inline: INLINE_BYTES,
    });
    const records = await fillRecords(server, queue, toRecords(arrays));
    found.push(...records);
    if (arrays.at(-1) === true) return { jobs: found, more: true };
    for (const { data, returnvalue } of records) used += data.length + (returnvalue?.length ?? 0);
  }
  return { jobs: found, more: false };
}

export async function status(server: Server, queue: string): Promise<QueueStatus> {
  type Row = { paused: boolean; counts: QueueStatus['counts']; limited: number; cap: number | null };
  const row = await server.call<Row | null>('status', { name: queue });
  if (row === null)
    return { paused: false, counts: { waiting: 0, prioritized: 0, delayed: 0, active: 0, completed: 0, failed: 0 } };
  const { paused, counts, limited, cap } = row;
  return { paused, counts, ...(limited > 0 && { limitedMs: limited }), ...(cap !== null && { cap: { maxActive: cap } }) };
}

export function logs(
  server: Server,
  queue: string,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): Promise<{ logs: string[]; count: number }> {
  return server.call('logs_of', { name: queue, job: jobId, start, end, asc, budget: REPLY_BYTES });
}

export async function locks(server: Server, queue: string, query: LockQuery): Promise<LockReply> {
  if ('session' in query) return owned(server, queue, query.session);
  if ('names' in query) return namedLocks(server, queue, query.names);
  return jobLocks(server, queue, query.jobIds);
}

async function jobLocks(server: Server, queue: string, jobIds: string[]): Promise<(LockInfo | undefined)[]> {
  if (jobIds.length === 0) return [];
  const found = await server.callEach<Omit<LockInfo, 'jobId' | 'token'> | null>('lock_of', queue, jobIds);
  return jobIds.map((jobId, index) => {
    const lock = found[index] ?? undefined;
    return lock && { jobId, token: tokenOf(lock.session, lock.fence), ...lock };
  });
}

async function namedLocks(server: Server, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  if (names.length === 0) return [];
  const found = await server.call<(NamedLockInfo | null)[]>('named_locks', { name: queue, names });
  return found.map((lock) => lock ?? undefined);
}

export async function sessions(server: Server, queue: string): Promise<SessionInfo[]> {
  return (await server.call<SessionInfo[] | null>('sessions_of', { name: queue })) ?? [];
}

async function owned(server: Server, queue: string, session: string): Promise<OwnedLock[]> {
  const rows = (await server.call<[jobId: string, fence: number, seq: number][] | null>('owned', { name: queue, session })) ?? [];
  return rows.map(([jobId, fence, seq]) => ({ jobId, token: tokenOf(session, fence), fence, seq }));
}
