// The read verbs of the SQLite store: jobs, lists, counts, logs, locks and sessions. They run outside of write transactions and
// change nothing.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES, withinReply } from '../budget.js';
import type {
  GroupJobsQuery,
  JobsReply,
  ListQuery,
  LockInfo,
  OwnedLock,
  QueueStatus,
  SessionInfo,
  StatusQuery,
  Step,
} from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Entries } from './state/entries.js';
import type { Groups } from './state/groups.js';
import type { MinuteCounts } from './state/minute-counts.js';
import type { Schedules } from './state/schedules.js';
import type { Steps } from './state/steps.js';
import { AT, type FoundRow, type JobRow, toRecord } from './record.js';
import { PRIORITIES } from './select.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';

type Range = { start: number; end: number; asc: boolean };

/** The statements of the lists. Waiting jobs behind another job of their key come last in the waiting lists. */
type Part = 'waiting' | 'behind' | 'grouped' | 'delayed' | 'active' | 'finished';
const PARTS: Record<Part, string> = {
  waiting: 'queue least most count skipped',
  behind: 'queue least most count skipped',
  grouped: 'queue group state count skipped',
  delayed: 'queue count skipped',
  active: 'queue count skipped',
  finished: 'queue state count skipped',
};

type LockRow = [
  session: string,
  fence: number,
  since: number,
  endsAt: number | null,
  timed: number,
  host: string,
  pid: number,
  name: string,
  instance: string,
  expiresAt: number,
  reaped: number,
];
type SessionRow = [
  id: string,
  host: string,
  pid: number,
  name: string,
  instance: string,
  slots: number,
  durationMs: number,
  since: number,
  renewals: number,
  expiresAt: number,
  suspected: number,
  locks: number,
];

export interface InspectingParts {
  entries: Entries;
  schedules: Schedules;
  minutes: MinuteCounts;
  groups: Groups;
  steps: Steps;
}

export class Inspecting {
  readonly #entries: Entries;
  readonly #schedules: Schedules;
  readonly #minutes: MinuteCounts;
  readonly #groups: Groups;
  readonly #steps: Steps;
  readonly #queues: Statement<[name: string]>;
  readonly #number: Statement<[job: number]>;
  readonly #bytes: Statement<[number]>;
  readonly #row: Statement<JobRow>;
  readonly #forwards = new Map<Part, Statement<[job: number, bytes: number]>>();
  readonly #backwards = new Map<Part, Statement<[job: number, bytes: number]>>();
  readonly #sizes: Record<'waiting' | 'behind', Statement<[size: number]>>;
  readonly #found: Statement<FoundRow>;
  readonly #logs: Statement<[row: string]>;
  readonly #logBytes: Statement<[number]>;
  readonly #lock: Statement<LockRow>;
  readonly #sessions: Statement<SessionRow>;
  readonly #owned: Statement<[jobId: string, fence: number, seq: number]>;

  constructor(db: Database, { entries, schedules, minutes, groups, steps }: InspectingParts) {
    this.#entries = entries;
    this.#schedules = schedules;
    this.#minutes = minutes;
    this.#groups = groups;
    this.#steps = steps;
    this.#queues = sql(db, 'list-queues', 'after count');
    this.#number = sql(db, 'job-number', 'queue id');
    this.#bytes = sql(db, 'bytes-of-job', 'job');
    this.#row = sql(db, 'read-job', 'job');
    for (const [part, parameters] of Object.entries(PARTS) as [Part, string][]) {
      this.#forwards.set(part, sql(db, `list-${part}`, parameters));
      this.#backwards.set(part, sql(db, `list-${part}`, parameters, true));
    }
    this.#sizes = {
      waiting: sql(db, 'count-waiting', 'queue least most count'),
      behind: sql(db, 'count-behind', 'queue least most count'),
    };
    this.#found = sql(db, 'find-job', 'queue id');
    this.#logs = sql(db, 'read-logs', 'job first last');
    this.#logBytes = sql(db, 'bytes-of-logs', 'job first last');
    this.#lock = sql(db, 'find-lock', 'queue id');
    this.#sessions = sql(db, 'list-sessions', 'queue');
    this.#owned = sql(db, 'owned-locks', 'queue session');
  }

  queues(limit: number, after = ''): string[] {
    return this.#queues.all(after, limit).map(([name]) => name);
  }

  jobs(queue: QueueState, ids: string[]): JobsReply {
    const numbers = ids.map((id) => this.#number.get(queue.queue, id)?.[0] ?? 0);
    const fitting = ids.length === 1 ? numbers : withinReply(numbers, (job) => this.#bytes.get(job)?.[0] ?? 0);
    const jobs = fitting.map((job) => {
      const row = this.#row.get(job);
      return row === undefined ? undefined : toRecord(row);
    });
    return { jobs, more: fitting.length < ids.length };
  }

  list(queue: QueueState, { lists, start, end, asc }: ListQuery): JobsReply {
    const spans = lists.flatMap((name): Span[] => {
      const range = positions(queue.counts[name], start, end);
      if (name === 'waiting' || name === 'prioritized') return this.#waiting(queue, PRIORITIES[name], range, asc);
      const isOpen = name === 'delayed' || name === 'active';
      return [isOpen ? { part: name, of: [], ...range } : { part: 'finished', of: [STATE[name]], ...range }];
    });
    return this.#read(queue, spans, asc);
  }

  #read(queue: QueueState, spans: Span[], asc: boolean): JobsReply {
    const jobs: JobRecord[] = [];
    const budget = { left: REPLY_BYTES, isEmpty: true, isOver: false };
    for (const span of spans) {
      if (budget.isOver) break;
      for (const row of this.#rows(queue, span, asc, budget)) jobs.push(toRecord(row));
    }
    return { jobs, more: budget.isOver };
  }

  /** Lists the waiting jobs of a group. */
  listGroup(queue: QueueState, { group, start, end, asc }: GroupJobsQuery): JobsReply {
    const range = positions(this.#groups.waiting(queue, group), start, end);
    return this.#read(queue, [{ part: 'grouped', of: [group, STATE.behind], ...range }], asc);
  }

  /**
   * Splits a range over two lists, one after the other. Counts only as many rows of the first list as the range needs, because a
   * million jobs may wait for one key.
   */
  #waiting(queue: QueueState, of: readonly [number, number], { from, count }: Positions, asc: boolean): Span[] {
    if (count <= 0) return [];
    const [first, second] = asc ? (['waiting', 'behind'] as const) : (['behind', 'waiting'] as const);
    const size = this.#sizes[first].get(queue.queue, ...of, from + count)?.[0] ?? 0;
    const skipped = Math.min(from, size);
    const wanted = Math.min(count, size - skipped);
    return [
      { part: first, of, from: skipped, count: wanted },
      { part: second, of, from: from - skipped, count: count - wanted },
    ];
  }

  /** Reads as many rows as the budget allows. It asks for the bytes first, which SQLite knows without reading the payloads. */
  #rows(queue: QueueState, { part, of, from, count }: Span, asc: boolean, budget: Budget): JobRow[] {
    if (count <= 0) return [];
    const rows: JobRow[] = [];
    for (const [job, bytes] of (asc ? this.#forwards : this.#backwards).get(part)?.all(queue.queue, ...of, count, from) ?? []) {
      budget.left -= bytes;
      budget.isOver = budget.left < 0 && !budget.isEmpty;
      if (budget.isOver) break;
      budget.isEmpty = false;
      rows.push(this.#row.get(job) as JobRow);
    }
    return rows;
  }

  status(queue: QueueState, ask: StatusQuery, now: number): QueueStatus {
    const { deduplication, schedules, priorities, metrics, groups } = ask;
    const { paused, counts, maxActive, rules } = queue;
    const found: QueueStatus = {
      paused: paused === 1,
      counts,
      ...limitsOf(queue, now),
      ...(maxActive >= 0 && { cap: { maxActive } }),
    };
    if (deduplication !== undefined)
      found.deduplication = deduplication.map((id) => this.#entries.counting(queue, id, now)?.owner);
    if (schedules !== undefined) found.schedules = this.#schedules.find(queue, schedules);
    if (priorities !== undefined) found.priorities = priorities.map((priority) => this.#waitingWith(queue, priority));
    if (metrics !== undefined && rules.metrics !== undefined) {
      const { kind, start, end } = metrics;
      found.metrics = this.#minutes.read(queue, kind, (points) => positions(points, start, end));
    }
    if (groups !== undefined) found.groups = this.#groups.find(queue, groups, now);
    return found;
  }

  /** Counts the waiting jobs of a priority. */
  #waitingWith({ queue, waiting, prioritized }: QueueState, priority: number): number {
    if (priority === 0) return waiting;
    if (prioritized === 0) return 0;
    return Object.values(this.#sizes).reduce((sum, size) => sum + (size.get(queue, priority, priority, -1)?.[0] ?? 0), 0);
  }

  steps(queue: QueueState, jobId: string): Step[] {
    const row = this.#found.get(queue.queue, jobId);
    return row === undefined ? [] : this.#steps.of(row);
  }

  logs(queue: QueueState, jobId: string, { start, end, asc }: Range): { logs: string[]; count: number } {
    const row = this.#found.get(queue.queue, jobId);
    if (row === undefined) return { logs: [], count: 0 };
    const { [AT.job]: job, [AT.logNext]: logNext, [AT.logFirst]: logFirst } = row;
    const size = logNext - logFirst;
    const { from, count } = positions(size, start, end);
    if (count <= 0) return { logs: [], count: size };
    const first = asc ? logFirst + from : logNext - from - count;
    const sizes = this.#logBytes.all(job, first, first + count - 1).map(([bytes]) => bytes);
    const sent = withinReply(asc ? sizes : sizes.reverse(), (bytes) => bytes).length;
    const rows = this.#logs.all(job, asc ? first : first + count - sent, asc ? first + sent - 1 : first + count - 1);
    const logs = rows.map(([row]) => row);
    return { logs: asc ? logs : logs.reverse(), count: size };
  }

  lockOf(queue: QueueState, jobId: string, now: number): LockInfo | undefined {
    const row = this.#lock.get(queue.queue, jobId);
    if (row === undefined) return undefined;
    const [session, fence, since, endsAt, timed, host, pid, name, instance, expiresAt, reaped] = row;
    // An extended lock lives as long as its session, and at least until its own end.
    const end = timed === 1 || reaped > 0 ? (endsAt ?? expiresAt) : Math.max(endsAt ?? 0, expiresAt);
    return {
      jobId,
      token: tokenOf(session, fence),
      fence,
      session,
      owner: { host, pid, name, instance },
      since,
      endsInMs: end - now,
    };
  }

  sessions(queue: QueueState, now: number): SessionInfo[] {
    return this.#sessions
      .all(queue.queue)
      .map(([id, host, pid, name, instance, slots, durationMs, since, renewals, expiresAt, suspected, locks]) => ({
        queue: queue.name,
        id,
        owner: { host, pid, name, instance },
        durationMs,
        since,
        renewals,
        expiresInMs: expiresAt - now,
        suspected: suspected === 1,
        slots,
        locks,
      }));
  }

  owned(queue: QueueState, session: string): OwnedLock[] {
    return this.#owned
      .all(queue.queue, session)
      .map(([jobId, fence, seq]) => ({ jobId, token: tokenOf(session, fence), fence, seq }));
  }
}

interface Positions {
  from: number;
  count: number;
}

interface Span extends Positions {
  part: Part;
  /** Further values of the statement. */
  of: readonly (number | string)[];
}

interface Budget {
  left: number;
  /** True while the reply is empty, so the next job fits, whatever its size. */
  isEmpty: boolean;
  /** True once a job was left out. */
  isOver: boolean;
}

/** Returns the limits that a reader of the status sees. */
function limitsOf(queue: QueueState, now: number): Partial<QueueStatus> {
  const { rules, windowEnds, windowUsed, limitedUntil } = queue;
  return {
    ...(limitedUntil > now && { blockedMs: limitedUntil - now }),
    ...(windowEnds > now && { window: { used: windowUsed, endsInMs: windowEnds - now } }),
    ...(rules.rate !== undefined && { rate: rules.rate }),
  };
}

/** Converts a range to positions. Negative positions count from the end. */
function positions(size: number, start: number, end: number): Positions {
  const from = Math.max(0, start < 0 ? size + start : start);
  const to = end < 0 ? size + end : Math.min(end, size - 1);
  return { from, count: to - from + 1 };
}
