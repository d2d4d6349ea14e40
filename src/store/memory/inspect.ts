import type { JobRecord } from '../../job/record.js';
import type { ListName, ListQuery, LockInfo, NamedLockInfo, OwnedLock, QueueStatus, SessionInfo } from '../contract.js';
import { kept } from './named-lock.js';
import { recordOf } from './record.js';
import type { QueueState, StoredJob, StoredLock } from './state.js';

export function list(queue: QueueState, { lists, start, end, asc }: ListQuery): JobRecord[] {
  return lists.flatMap((name) => {
    const range = positions(countOf(queue, name), start, end);
    return slice(inOrder(queue, name, asc), range).map(recordOf);
  });
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
    case 'completed':
    case 'failed':
      return queue.finished[name].size;
  }
}

function inOrder(queue: QueueState, name: ListName, asc: boolean): Iterable<StoredJob> {
  if (name === 'waiting' || name === 'prioritized') return queue.waiting.inOrder(name === 'prioritized', asc);
  if (name === 'delayed') return asc ? queue.delayed.sorted() : queue.delayed.sorted().reverse();
  if (name === 'active') return asc ? queue.active.values() : [...queue.active.values()].reverse();
  return asc ? queue.finished[name].forward() : queue.finished[name].backward();
}

interface Positions {
  from: number;
  /** Exclusive. */
  to: number;
}

/** Negative positions count from the end. */
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

export function status(queue: QueueState, now: number): QueueStatus {
  const names = ['waiting', 'prioritized', 'delayed', 'active', 'completed', 'failed'] as const;
  const counts = Object.fromEntries(names.map((name) => [name, countOf(queue, name)])) as QueueStatus['counts'];
  const limitedMs = Math.ceil(queue.rate.visibleMs(now));
  const { paused, cap } = queue;
  return { paused, counts, ...(limitedMs > 0 && { limitedMs }), ...(cap !== undefined && { cap: { ...cap } }) };
}

export function logs(
  queue: QueueState,
  jobId: string,
  { start, end, asc }: { start: number; end: number; asc: boolean },
): { logs: string[]; count: number } {
  const rows = queue.jobs.get(jobId)?.logs ?? [];
  const ordered = asc ? rows : rows.toReversed();
  return { logs: slice(ordered, positions(rows.length, start, end)), count: rows.length };
}

export function lockOf(queue: QueueState, jobId: string, now: number): LockInfo | undefined {
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

/** A lock whose session has ended is dead, whatever time was left to it. */
export function namedLock(queue: QueueState, name: string, now: number): NamedLockInfo | undefined {
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

export function owned(queue: QueueState, session: string): OwnedLock[] {
  const held = queue.sessions.get(session)?.held() ?? [];
  return held.map(({ job, token, order: fence, seq }) => ({ jobId: job.id, token, fence, seq }));
}
