// Read-only views: jobs, lists, counts, logs, locks, sessions. Queues, workers and dashboards call it through the store.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type {
  GroupJobsQuery,
  GroupQuery,
  GroupsFound,
  JobsReply,
  ListQuery,
  LockInfo,
  LockQuery,
  LockReply,
  NamedLockInfo,
  OwnedLock,
  QueueStatus,
  SessionInfo,
  StatusQuery,
  Step,
} from '../contract/index.js';
import { type JobArrays, toRecords } from './record.js';
import { fillRecords, INLINE_BYTES } from './state/large-values.js';
import { readMetrics } from './state/minute-counts.js';
import { findSchedules } from './schedule.js';
import type { Server } from './driver/server.js';
import type { Engine } from './driver/engine.js';

export function queues({ server }: Engine, limit: number, after = ''): Promise<string[]> {
  return server.call<string[]>('queue_names', { after, limit });
}

export function jobs({ server }: Engine, queue: string, query: string[] | ListQuery | GroupJobsQuery): Promise<JobsReply> {
  return Array.isArray(query) ? byId(server, queue, query) : list(server, queue, query);
}

async function byId(server: Server, queue: string, jobIds: string[]): Promise<JobsReply> {
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

export async function steps({ server }: Engine, queue: string, jobId: string): Promise<Step[]> {
  const rows = await server.call<[name: string, value: string][]>('steps_of', { name: queue, job: jobId });
  return rows.map(([name, value]) => ({ name, value }));
}

async function list(server: Server, queue: string, query: ListQuery | GroupJobsQuery): Promise<JobsReply> {
  const { start, end, asc } = query;
  const [lists, group] = 'group' in query ? [['group'], query.group] : [query.lists, undefined];
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
      group,
    });
    const records = await fillRecords(server, queue, toRecords(arrays));
    found.push(...records);
    if (arrays.at(-1) === true) return { jobs: found, more: true };
    for (const { data, returnvalue } of records) used += data.length + (returnvalue?.length ?? 0);
  }
  return { jobs: found, more: false };
}

interface StatusRow {
  paused: boolean;
  counts: QueueStatus['counts'];
  blocked: number;
  window: QueueStatus['window'] | null;
  rate: QueueStatus['rate'] | null;
  cap: number | null;
}

export async function status({ server }: Engine, queue: string, ask: StatusQuery = {}): Promise<QueueStatus> {
  const { deduplication, schedules, priorities, metrics, groups } = ask;
  const row = await server.call<StatusRow | null>('status', { name: queue });
  const counted = metrics && (await readMetrics(server, queue, metrics));
  const found = {
    ...(deduplication && { deduplication: await ownersOf(server, queue, deduplication) }),
    ...(schedules && { schedules: await findSchedules(server, queue, schedules) }),
    ...(priorities && { priorities: await priorityCounts(server, queue, priorities) }),
    ...(counted && { metrics: counted }),
    ...(groups && { groups: await findGroups(server, queue, groups) }),
  };
  if (row === null) {
    return {
      paused: false,
      counts: { waiting: 0, prioritized: 0, delayed: 0, active: 0, completed: 0, failed: 0, 'waiting-children': 0 },
      ...found,
    };
  }
  const { paused, counts, blocked, window, rate, cap } = row;
  return {
    paused,
    counts,
    ...(blocked > 0 && { blockedMs: blocked }),
    ...(window && { window }),
    ...(rate && { rate }),
    ...(cap !== null && { cap: { maxActive: cap } }),
    ...found,
  };
}

async function priorityCounts(server: Server, queue: string, priorities: number[]): Promise<number[]> {
  return (await server.call<number[] | null>('priority_counts', { name: queue, priorities })) ?? [];
}

async function findGroups(server: Server, queue: string, query: GroupQuery): Promise<GroupsFound> {
  const [keys, limit, after] = 'keys' in query ? [query.keys, undefined, undefined] : [undefined, query.limit, query.after];
  const { rules, groups } = await server.call<GroupsFound & { rules: GroupsFound['rules'] | null }>('groups_of', {
    name: queue,
    keys,
    limit,
    after,
  });
  return rules && Object.keys(rules).length > 0 ? { rules, groups } : { groups };
}

async function ownersOf(server: Server, queue: string, ids: string[]): Promise<(string | undefined)[]> {
  const owners = await server.call<(string | null)[] | null>('entry_owners', { name: queue, ids });
  return ids.map((_, index) => owners?.[index] ?? undefined);
}

export function logs(
  { server }: Engine,
  queue: string,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): Promise<{ logs: string[]; count: number }> {
  return server.call('logs_of', { name: queue, job: jobId, start, end, asc, budget: REPLY_BYTES });
}

export async function locks({ server }: Engine, queue: string, query: LockQuery): Promise<LockReply> {
  if ('session' in query) return owned(server, queue, query.session);
  if ('names' in query) return namedLocks(server, queue, query.names);
  return jobLocks(server, queue, query.jobIds);
}

async function jobLocks(server: Server, queue: string, jobIds: string[]): Promise<(LockInfo | undefined)[]> {
  const found = await server.call<(Omit<LockInfo, 'jobId' | 'token'> | null)[]>('locks_of', { name: queue, ids: jobIds });
  return jobIds.map((jobId, index) => {
    const lock = found[index] ?? undefined;
    return lock && { jobId, token: tokenOf(lock.session, lock.fence), ...lock };
  });
}

async function namedLocks(server: Server, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  const found = await server.call<(NamedLockInfo | null)[]>('named_locks', { name: queue, names });
  return found.map((lock) => lock ?? undefined);
}

export async function sessions({ server }: Engine, queue: string): Promise<SessionInfo[]> {
  return (await server.call<SessionInfo[] | null>('sessions_of', { name: queue })) ?? [];
}

async function owned(server: Server, queue: string, session: string): Promise<OwnedLock[]> {
  const rows = (await server.call<[jobId: string, fence: number, seq: number][] | null>('owned', { name: queue, session })) ?? [];
  return rows.map(([jobId, fence, seq]) => ({ jobId, token: tokenOf(session, fence), fence, seq }));
}
