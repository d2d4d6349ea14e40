// The read verbs of the SQLite store: jobs, lists, counts, logs, locks and sessions. They run outside of write transactions and
// change nothing.
import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import { REPLY_BYTES, withinReply } from '../budget.js';
import type { JobsReply, ListName, ListQuery, LockInfo, OwnedLock, QueueStatus, SessionInfo } from '../contract/index.js';
import type { Database, Statement } from './driver.js';
import { JOB_BYTES, JOB_COLUMNS, type JobRow, toRecord } from './job-row.js';
import type { QueueState } from './queue-state.js';
import { limitedMs } from './rate-limit.js';
import { STATE } from './schema.js';

type Range = { start: number; end: number; asc: boolean };

/** Waiting jobs behind another job of their key come last in the waiting lists. */
const BEHIND = { waiting: 'behind', prioritized: 'prioritizedBehind' } as const;
type Part = ListName | (typeof BEHIND)[keyof typeof BEHIND];

/** The rows of each list and their order. Active jobs are ordered by fence, which is the order of the claims. */
const LISTS: Record<Part, { rows: string; order: string[] }> = {
  waiting: { rows: `state = ${STATE.waiting} AND priority = 0`, order: ['ord'] },
  prioritized: { rows: `state = ${STATE.waiting} AND priority > 0`, order: ['priority', 'ord'] },
  behind: { rows: `state = ${STATE.behind} AND priority = 0`, order: ['ord'] },
  prioritizedBehind: { rows: `state = ${STATE.behind} AND priority > 0`, order: ['priority', 'ord'] },
  delayed: { rows: `state = ${STATE.delayed}`, order: ['dueAt', 'ord'] },
  active: { rows: `state = ${STATE.active}`, order: ['fence'] },
  completed: { rows: `state >= 4 AND state = ${STATE.completed}`, order: ['ord'] },
  failed: { rows: `state >= 4 AND state = ${STATE.failed}`, order: ['ord'] },
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

export class Inspecting {
  readonly #queues: Statement<[name: string]>;
  readonly #job: Statement<JobRow>;
  readonly #bytes: Statement<[number]>;
  readonly #lists = new Map<string, Statement<JobRow>>();
  readonly #listBytes = new Map<string, Statement<[number]>>();
  readonly #sizes = new Map<Part, Statement<[size: number]>>();
  readonly #logged: Statement<[job: number, logFirst: number, logNext: number]>;
  readonly #logs: Statement<[row: string]>;
  readonly #logBytes: Statement<[number]>;
  readonly #lock: Statement<LockRow>;
  readonly #sessions: Statement<SessionRow>;
  readonly #owned: Statement<[jobId: string, fence: number, seq: number]>;

  constructor(db: Database) {
    this.#queues = db.prepare('SELECT name FROM queues WHERE name > ? ORDER BY name LIMIT ?');
    this.#job = db.prepare(`SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND id = ?`);
    this.#bytes = db.prepare(`SELECT ${JOB_BYTES} FROM jobs WHERE queue = ? AND id = ?`);
    for (const [name, { rows, order }] of Object.entries(LISTS) as [Part, (typeof LISTS)[Part]][]) {
      for (const direction of ['ASC', 'DESC']) {
        const by = order.map((column) => `${column} ${direction}`).join(', ');
        const list = `FROM jobs WHERE queue = ? AND ${rows} ORDER BY ${by} LIMIT ? OFFSET ?`;
        this.#lists.set(`${name} ${direction}`, db.prepare(`SELECT ${JOB_COLUMNS} ${list}`));
        this.#listBytes.set(`${name} ${direction}`, db.prepare(`SELECT ${JOB_BYTES} ${list}`));
      }
      this.#sizes.set(name, db.prepare(`SELECT count(*) FROM (SELECT 1 FROM jobs WHERE queue = ? AND ${rows} LIMIT ?)`));
    }
    this.#logged = db.prepare('SELECT job, logFirst, logNext FROM jobs WHERE queue = ? AND id = ?');
    this.#logs = db.prepare('SELECT row FROM logs WHERE job = ? AND number BETWEEN ? AND ? ORDER BY number');
    this.#logBytes = db.prepare('SELECT octet_length(row) FROM logs WHERE job = ? AND number BETWEEN ? AND ? ORDER BY number');
    this.#lock = db.prepare(
      `SELECT session, fence, processedOn, endsAt, timed, host, pid, sessions.name, instance, expiresAt, reaped
       FROM jobs JOIN sessions ON sessions.queue = jobs.queue AND sessions.id = jobs.session
       WHERE jobs.queue = ? AND jobs.id = ? AND state = ${STATE.active}`,
    );
    this.#sessions = db.prepare(
      `SELECT id, host, pid, name, instance, slots, durationMs, since, renewals, expiresAt, suspected,
         (SELECT count(*) FROM jobs WHERE jobs.queue = sessions.queue AND state = ${STATE.active} AND session = sessions.id)
       FROM sessions WHERE queue = ? AND reaped = 0 ORDER BY since, id`,
    );
    this.#owned = db.prepare(
      `SELECT id, fence, claimSeq FROM jobs WHERE queue = ? AND state = ${STATE.active} AND session = ? ORDER BY fence`,
    );
  }

  queues(limit: number, after = ''): string[] {
    return this.#queues.all(after, limit).map(([name]) => name);
  }

  jobs(queue: QueueState, ids: string[]): JobsReply {
    const fitting = ids.length === 1 ? ids : withinReply(ids, (id) => this.#bytes.get(queue.queue, id)?.[0] ?? 0);
    const jobs = fitting.map((id) => {
      const row = this.#job.get(queue.queue, id);
      return row === undefined ? undefined : toRecord(row);
    });
    return { jobs, more: fitting.length < ids.length };
  }

  list(queue: QueueState, { lists, start, end, asc }: ListQuery): JobsReply {
    const spans = lists.flatMap((name) => {
      const range = positions(queue[name], start, end);
      if (name !== 'waiting' && name !== 'prioritized') return [{ part: name, ...range }];
      return this.#waiting(queue, asc ? [name, BEHIND[name]] : [BEHIND[name], name], range);
    });
    const jobs: JobRecord[] = [];
    const budget = { left: REPLY_BYTES, isEmpty: true, isOver: false };
    for (const span of spans) {
      if (budget.isOver) break;
      for (const row of this.#rows(queue, span, asc, budget)) jobs.push(toRecord(row));
    }
    return { jobs, more: budget.isOver };
  }

  /**
   * Splits a range over two lists, one after the other. Counts only as many rows of the first list as the range needs, because a
   * million jobs may wait for one key.
   */
  #waiting(queue: QueueState, [first, second]: [Part, Part], { from, count }: Positions): Span[] {
    if (count <= 0) return [];
    const size = this.#sizes.get(first)?.get(queue.queue, from + count)?.[0] ?? 0;
    const skipped = Math.min(from, size);
    const wanted = Math.min(count, size - skipped);
    return [
      { part: first, from: skipped, count: wanted },
      { part: second, from: from - skipped, count: count - wanted },
    ];
  }

  /** Reads as many rows as the budget allows. It asks for the bytes first, which SQLite knows without reading the payloads. */
  #rows(queue: QueueState, { part, from, count }: Span, asc: boolean, budget: Budget): JobRow[] {
    if (count <= 0) return [];
    const list = `${part} ${asc ? 'ASC' : 'DESC'}`;
    let fitting = 0;
    for (const [bytes] of this.#listBytes.get(list)?.all(queue.queue, count, from) ?? []) {
      budget.left -= bytes;
      budget.isOver = budget.left < 0 && !budget.isEmpty;
      if (budget.isOver) break;
      budget.isEmpty = false;
      fitting += 1;
    }
    return fitting === 0 ? [] : (this.#lists.get(list)?.all(queue.queue, fitting, from) ?? []);
  }

  status(queue: QueueState, now: number): QueueStatus {
    const limited = limitedMs(queue, now, queue.windowMax);
    const { paused, counts, maxActive } = queue;
    const cap = maxActive < 0 ? undefined : { maxActive };
    return { paused: paused === 1, counts, ...(limited > 0 && { limitedMs: limited }), ...(cap !== undefined && { cap }) };
  }

  logs(queue: QueueState, jobId: string, { start, end, asc }: Range): { logs: string[]; count: number } {
    const [job, logFirst, logNext] = this.#logged.get(queue.queue, jobId) ?? [0, 0, 0];
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
}

interface Budget {
  left: number;
  /** True while the reply is empty, so the next job fits, whatever its size. */
  isEmpty: boolean;
  /** True once a job was left out. */
  isOver: boolean;
}

/** Converts a range to positions. Negative positions count from the end. */
function positions(size: number, start: number, end: number): Positions {
  const from = Math.max(0, start < 0 ? size + start : start);
  const to = end < 0 ? size + end : Math.min(end, size - 1);
  return { from, count: to - from + 1 };
}
