import { tokenOf } from '../../job/lock.js';
import type { JobRecord } from '../../job/record.js';
import type { ListName, ListQuery, LockInfo, OwnedLock, QueueStatus, SessionInfo } from '../contract.js';
import type { Database, Statement } from './driver.js';
import { JOB_COLUMNS, type JobRow, toRecord } from './job-row.js';
import type { QueueState } from './queue-state.js';
import { limitedMs } from './rate-limit.js';
import { STATE } from './schema.js';

type Range = { start: number; end: number; asc: boolean };

/** Which rows a list has, and its order. A claim's place among the active ones is its fence. */
const LISTS: Record<ListName, { rows: string; order: string[] }> = {
  waiting: { rows: `state = ${STATE.waiting} AND priority = 0`, order: ['ord'] },
  prioritized: { rows: `state = ${STATE.waiting} AND priority > 0`, order: ['priority', 'ord'] },
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
  expiresAt: number,
  reaped: number,
];
type SessionRow = [
  id: string,
  host: string,
  pid: number,
  name: string,
  durationMs: number,
  since: number,
  renewals: number,
  expiresAt: number,
  suspected: number,
  locks: number,
];

export class Inspecting {
  readonly #job: Statement<JobRow>;
  readonly #lists = new Map<string, Statement<JobRow>>();
  readonly #logged: Statement<[job: number, logFirst: number, logNext: number]>;
  readonly #logs: Statement<[row: string]>;
  readonly #lock: Statement<LockRow>;
  readonly #sessions: Statement<SessionRow>;
  readonly #owned: Statement<[jobId: string, fence: number, seq: number]>;

  constructor(db: Database) {
    this.#job = db.prepare(`SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND id = ?`);
    for (const [name, { rows, order }] of Object.entries(LISTS)) {
      for (const direction of ['ASC', 'DESC']) {
        const by = order.map((column) => `${column} ${direction}`).join(', ');
        const sql = `SELECT ${JOB_COLUMNS} FROM jobs WHERE queue = ? AND ${rows} ORDER BY ${by} LIMIT ? OFFSET ?`;
        this.#lists.set(`${name} ${direction}`, db.prepare(sql));
      }
    }
    this.#logged = db.prepare('SELECT job, logFirst, logNext FROM jobs WHERE queue = ? AND id = ?');
    this.#logs = db.prepare('SELECT row FROM logs WHERE job = ? AND number BETWEEN ? AND ? ORDER BY number');
    this.#lock = db.prepare(
      `SELECT session, fence, processedOn, endsAt, timed, host, pid, sessions.name, expiresAt, reaped
       FROM jobs JOIN sessions ON sessions.queue = jobs.queue AND sessions.id = jobs.session
       WHERE jobs.queue = ? AND jobs.id = ? AND state = ${STATE.active}`,
    );
    this.#sessions = db.prepare(
      `SELECT id, host, pid, name, durationMs, since, renewals, expiresAt, suspected,
         (SELECT count(*) FROM jobs WHERE jobs.queue = sessions.queue AND state = ${STATE.active} AND session = sessions.id)
       FROM sessions WHERE queue = ? AND reaped = 0 ORDER BY since, id`,
    );
    this.#owned = db.prepare(
      `SELECT id, fence, claimSeq FROM jobs WHERE queue = ? AND state = ${STATE.active} AND session = ? ORDER BY fence`,
    );
  }

  job(queue: QueueState, id: string): JobRecord | undefined {
    const row = this.#job.get(queue.queue, id);
    return row === undefined ? undefined : toRecord(row);
  }

  list(queue: QueueState, { lists, start, end, asc }: ListQuery): JobRecord[] {
    return lists.flatMap((name) => {
      const { from, count } = positions(queue[name], start, end);
      const statement = this.#lists.get(`${name} ${asc ? 'ASC' : 'DESC'}`);
      return count <= 0 || statement === undefined ? [] : statement.all(queue.queue, count, from).map(toRecord);
    });
  }

  status(queue: QueueState, now: number): QueueStatus {
    const limited = limitedMs(queue, now, queue.windowMax);
    return { paused: queue.paused === 1, counts: queue.counts, ...(limited > 0 && { limitedMs: limited }) };
  }

  logs(queue: QueueState, jobId: string, { start, end, asc }: Range): { logs: string[]; count: number } {
    const [job, logFirst, logNext] = this.#logged.get(queue.queue, jobId) ?? [0, 0, 0];
    const size = logNext - logFirst;
    const { from, count } = positions(size, start, end);
    if (count <= 0) return { logs: [], count: size };
    const first = asc ? logFirst + from : logNext - from - count;
    const rows = this.#logs.all(job, first, first + count - 1).map(([row]) => row);
    return { logs: asc ? rows : rows.reverse(), count: size };
  }

  lockOf(queue: QueueState, jobId: string, now: number): LockInfo | undefined {
    const row = this.#lock.get(queue.queue, jobId);
    if (row === undefined) return undefined;
    const [session, fence, since, endsAt, timed, host, pid, name, expiresAt, reaped] = row;
    // A lock that was extended lives as long as its session, and at least until its own end.
    const end = timed === 1 || reaped > 0 ? (endsAt ?? expiresAt) : Math.max(endsAt ?? 0, expiresAt);
    return { jobId, token: tokenOf(session, fence), fence, session, owner: { host, pid, name }, since, endsInMs: end - now };
  }

  sessions(queue: QueueState, now: number): SessionInfo[] {
    return this.#sessions
      .all(queue.queue)
      .map(([id, host, pid, name, durationMs, since, renewals, expiresAt, suspected, locks]) => ({
        queue: queue.name,
        id,
        owner: { host, pid, name },
        durationMs,
        since,
        renewals,
        expiresInMs: expiresAt - now,
        suspected: suspected === 1,
        locks,
      }));
  }

  owned(queue: QueueState, session: string): OwnedLock[] {
    return this.#owned
      .all(queue.queue, session)
      .map(([jobId, fence, seq]) => ({ jobId, token: tokenOf(session, fence), fence, seq }));
  }
}

/** Negative positions count from the end. */
function positions(size: number, start: number, end: number): { from: number; count: number } {
  const from = Math.max(0, start < 0 ? size + start : start);
  const to = end < 0 ? size + end : Math.min(end, size - 1);
  return { from, count: to - from + 1 };
}
