// The read verbs of the memory store: jobs, lists, counts, logs, locks and sessions. They return copies and change nothing.
import { withinReply } from '../budget.js';
import type {
  GroupJobsQuery,
  JobsReply,
  ListName,
  ListQuery,
  LockInfo,
  LockQuery,
  LockReply,
  NamedLockInfo,
  OwnedLock,
  QueueStatus,
  SessionInfo,
  StatusQuery,
} from '../contract/index.js';
import { countingEntry } from './state/deduplication.js';
import { kept } from './named-lock.js';
import { recordOf } from './record.js';
import { find } from './schedule.js';
import type { QueueState, StoredJob, StoredLock } from './state/queue-state.js';

/** Returns the names of the queues in use, in the order of their bytes. */
export function queues(all: Map<string, QueueState>, limit: number, after = ''): string[] {
  const used = [...all].filter(([, queue]) => queue.isUsed).map(([name]) => Buffer.from(name));
  const start = Buffer.from(after);
  const later = used.filter((name) => Buffer.compare(name, start) > 0).sort(Buffer.compare);
  return later.slice(0, limit).map(String);
}

export function jobs(queue: QueueState, query: string[] | ListQuery | GroupJobsQuery): JobsReply {
  const found = Array.isArray(query)
    ? query.map((id) => queue.jobs.get(id))
    : 'group' in query
      ? listGroup(queue, query)
      : list(queue, query);
  const sent = withinReply(found, sizeOf);
  return { jobs: sent.map((job) => job && recordOf(job)), more: sent.length < found.length };
}

function list(queue: QueueState, { lists, start, end, asc }: ListQuery): StoredJob[] {
  return lists.flatMap((name) => {
    const range = positions(countOf(queue, name), start, end);
    return slice(inOrder(queue, name, asc), range);
  });
}

function listGroup(queue: QueueState, { group, start, end, asc }: GroupJobsQuery): StoredJob[] {
  const jobs = [...queue.waiting.groups.jobsOf(group)];
  return slice(asc ? jobs : jobs.reverse(), positions(jobs.length, start, end));
}

function sizeOf(job: StoredJob | undefined): number {
  return job === undefined ? 0 : job.data.length + (job.returnvalue?.length ?? 0);
}

function countOf(queue: QueueState, name: ListName): number {
  switch (name) {
    case 'waiting':
      return queue.waiting.plainSize;
    case 'prioritized':
      return queue.waiting.size - queue.waiting.plainSize;
    case 'delayed':
      return queue.delayed.size;
    case 'active':
      return queue.active.size;
    case 'waiting-children':
      return queue.parents.size;
    case 'completed':
    case 'failed':
      return queue.finished[name].size;
  }
}

function inOrder(queue: QueueState, name: ListName, asc: boolean): Iterable<StoredJob> {
  if (name === 'waiting' || name === 'prioritized') return queue.waiting.inOrder(name === 'prioritized', asc);
  if (name === 'delayed') return asc ? queue.delayed.sorted() : queue.delayed.sorted().reverse();
  const list = name === 'active' ? queue.active : name === 'waiting-children' ? queue.parents : queue.finished[name];
  return asc ? list.forward() : list.backward();
}

interface Positions {
  from: number;
  /** Exclusive. */
  to: number;
}

/** Converts a range to positions. Negative positions count from the end. */
function positions(size: number, start: number, end: number): Positions {
  return { from: Math.max(0, start < 0 ? size + start : start), to: (end < 0 ? size + end : Math.min(end, size - 1)) + 1 };
}

function slice<T>(items: Iterable<T>, { from, to }: Positions): T[] {
  const picked: T[] = [];
  let position = 0;
  if (from >= to) return picked;
  for (const item of items) {
    if (position >= from) picked.push(item);
    if (++position >= to) break;
  }
  return picked;
}

export function status(queue: QueueState, ask: StatusQuery, now: number): QueueStatus {
  const { deduplication, schedules, priorities, metrics, groups } = ask;
  const names = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed', 'waiting-children'] as const;
  const counts = Object.fromEntries(names.map((name) => [name, countOf(queue, name)])) as QueueStatus['counts'];
  const [blockedMs, window] = [queue.limits.blockedMs(now), queue.limits.window(now)];
  const { paused, cap, rate } = queue;
  const found: QueueStatus = {
    paused,
    counts,
    ...(blockedMs > 0 && { blockedMs }),
    ...(window !== undefined && { window }),
    ...(rate !== undefined && { rate: { ...rate } }),
    ...(cap !== undefined && { cap: { ...cap } }),
  };
  if (deduplication !== undefined) found.deduplication = deduplication.map((id) => countingEntry(queue, id, now)?.owner);
  if (schedules !== undefined) found.schedules = find(queue, schedules);
  if (priorities !== undefined) found.priorities = priorities.map((priority) => queue.waiting.sizeOf(priority));
  if (metrics !== undefined && queue.metrics !== undefined) {
    const { kind, start, end } = metrics;
    found.metrics = queue.metrics[kind].read((points) => slice(points, positions(points.length, start, end)));
  }
  if (groups !== undefined) found.groups = queue.waiting.groups.find(groups, now);
  return found;
}

export function logs(
  queue: QueueState,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): { logs: string[]; count: number } {
  const rows = queue.jobs.get(jobId)?.logs ?? [];
  const ordered = asc ? rows : rows.toReversed();
  const range = slice(ordered, positions(rows.length, start, end));
  return { logs: withinReply(range, (row) => row.length), count: rows.length };
}

export function locks(queue: QueueState, query: LockQuery, now: number): LockReply {
  if ('names' in query) return query.names.map((name) => namedLock(queue, name, now));
  if ('session' in query) return owned(queue, query.session);
  return query.jobIds.map((id) => lockOf(queue, id, now));
}

function lockOf(queue: QueueState, jobId: string, now: number): LockInfo | undefined {
  const lock = queue.jobs.get(jobId)?.lock;
  if (lock === undefined) return undefined;
  const { session, token, order: fence, since } = lock;
  const owner = { ...session.owner };
  return { jobId, token, fence, session: session.id, owner, since, endsInMs: Math.floor(endOf(lock) - now) };
}

function endOf({ at, timed, session }: StoredLock): number {
  if (timed) return at;
  return at === Number.POSITIVE_INFINITY ? session.expiresAt : Math.max(at, session.expiresAt);
}

/**
 * Returns the current hold of a named lock. If its session has ended, the lock is dead, whatever time was left: `endsInMs` is 0 or
 * less.
 */
function namedLock(queue: QueueState, name: string, now: number): NamedLockInfo | undefined {
  const known = queue.names.get(name);
  if (known?.hold === undefined) return undefined;
  const { session, token, fence, since } = known.hold;
  const endsInMs = Math.floor((session.open ? session.expiresAt : Math.min(session.expiresAt, now)) - now);
  const waiting = kept(known, now).length;
  return { name, token, fence, session: session.id, owner: { ...session.owner }, since, endsInMs, waiting };
}

export function sessions(queue: QueueState, name: string, now: number): SessionInfo[] {
  const open = [...queue.sessions.values()].filter((session) => session.open);
  return open.map(({ id, owner, durationMs, since, renewals, expiresAt, slots, locks }) => ({
    queue: name,
    id,
    owner: { ...owner },
    durationMs,
    since,
    renewals,
    expiresInMs: Math.floor(expiresAt - now),
    suspected: false,
    slots,
    locks,
  }));
}

function owned(queue: QueueState, session: string): OwnedLock[] {
  const held = queue.sessions.get(session)?.held() ?? [];
  return held.map(({ job, token, order: fence, seq }) => ({ jobId: job.id, token, fence, seq }));
}
