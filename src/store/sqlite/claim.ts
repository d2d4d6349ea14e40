// The verb `claim` of the SQLite store: moves waiting jobs to active and grants their locks, all in the caller's transaction. The
// committer calls `look` first, which needs no write lock. `settle` calls `claim` inside its own transaction.
import { roomUnderCap } from '../../job/cap.js';
import { nextFence } from '../../job/lock.js';
import type { ClaimedJob, JobRecord } from '../../job/record.js';
import { REPLY_BYTES } from '../budget.js';
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import type { Callers } from './callers.js';
import type { Database, Statement, Value } from './driver.js';
import {
  JOB_BYTES,
  JOB_COLUMNS,
  type JobRow,
  toClaimed,
  toNewRecord,
  toRecord,
  WAITING_COLUMNS,
  type WaitingRow,
} from './job-row.js';
import type { Lanes } from './lanes.js';
import type { QueueState } from './queue-state.js';
import { limitedMs, roomOf, useRoom } from './rate-limit.js';
import { STATE, TO_WAITING } from './schema.js';
import type { Transaction } from './transaction.js';

/**
 * Delayed jobs that one claim moves to waiting at most. If many jobs fall due at once, moving all of them would hold the write lock
 * for too long.
 */
const PROMOTED_AT_ONCE = 500;
/** With more runs of consecutive rows than this, one statement for all jobs is faster, although it has a fixed cost of 10 µs. */
const RUNS = { atMost: 8, perJob: 1 / 4 };

type Due = [job: number, id: string, priority: number, lockKey: string | null];

/** A job that may be claimed, as it was before the claim. */
interface Candidate {
  job: number;
  record: JobRecord;
}

interface Candidates {
  list: Candidate[];
  /** True if the byte budget left out further jobs. */
  more: boolean;
}

export interface ClaimOptions {
  /** Whether the claim stores its call number. False when the call is a settle, which stores the number itself. */
  remember?: boolean | undefined;
  /** The number of the session's last call, if the caller of `claim` knows it. */
  lastSeq?: number | undefined;
  /**
   * True when the claim is part of a settle. A job beyond REPLY_BYTES is then left to its own transaction. SQLite rewrites the
   * whole row of a claimed job and of a settled job, so both in one commit would block the event loop for twice as long.
   */
  isSettle?: boolean | undefined;
}

interface Survey {
  sessionAlive: boolean;
  /** This seq was used before: return the jobs it got, and never claim more for it. */
  repeated: boolean;
  nextDue: number | undefined;
  /** The session is alive, the call is new, and it names no jobs: so due jobs move to waiting. */
  open: boolean;
  /** How many jobs may be claimed now. */
  room: number;
}

export class Claiming {
  readonly #callers: Callers;
  readonly #lanes: Lanes;
  readonly #session: Statement<[number]>;
  readonly #nextDue: Statement<[number | null]>;
  readonly #due: Statement<Due>;
  readonly #promote: Statement;
  readonly #waiting: Statement<WaitingRow>;
  readonly #anyFirst: Statement<[number]>;
  readonly #sharing: Statement<[id: string, slots: number, active: number]>;
  readonly #named: Statement<[...Due, state: number, dueAt: number | null]>;
  readonly #row: Statement<JobRow>;
  readonly #bytes: Statement<[number]>;
  readonly #takeRun: Statement;
  readonly #takeAll: Statement;
  readonly #claimed: Statement<[...JobRow, fence: number]>;

  constructor(db: Database, callers: Callers, lanes: Lanes) {
    this.#callers = callers;
    this.#lanes = lanes;
    this.#session = db.prepare('SELECT 1 FROM sessions WHERE queue = ? AND id = ? AND reaped = 0 AND expiresAt > ?');
    this.#nextDue = db.prepare(`SELECT min(dueAt) FROM jobs WHERE queue = ? AND state = ${STATE.delayed}`);
    this.#due = db.prepare(
      `SELECT job, id, priority, lockKey FROM jobs WHERE queue = ? AND state = ${STATE.delayed} AND dueAt <= ?
       ORDER BY dueAt, ord LIMIT ${PROMOTED_AT_ONCE}`,
    );
    this.#promote = db.prepare(`UPDATE jobs SET ${TO_WAITING}, ord = ?, delay = 0, dueAt = NULL WHERE job = ?`);
    this.#waiting = db.prepare(
      `SELECT ${WAITING_COLUMNS} FROM jobs WHERE queue = ? AND state = ${STATE.waiting} ORDER BY priority, ord LIMIT ? + 0`,
    );
    this.#anyFirst = db.prepare(`SELECT 1 FROM jobs WHERE queue = ? AND state = ${STATE.waiting} LIMIT 1`);
    this.#sharing = db.prepare(
      `SELECT id, slots, (SELECT count(*) FROM jobs WHERE jobs.queue = sessions.queue AND state = ${STATE.active} AND session = sessions.id)
       FROM sessions WHERE queue = ? AND reaped = 0 AND expiresAt > ?`,
    );
    this.#named = db.prepare('SELECT job, id, priority, lockKey, state, dueAt FROM jobs WHERE queue = ? AND id = ?');
    this.#row = db.prepare(`SELECT ${JOB_COLUMNS} FROM jobs WHERE job = ?`);
    this.#bytes = db.prepare(`SELECT ${JOB_BYTES} FROM jobs WHERE job = ?`);
    const take = `UPDATE jobs SET state = ${STATE.active}, session = ?, claimSeq = ?, processedOn = ?, processedBy = ?, endsAt = ?, timed = ?,
         attemptsStarted = attemptsStarted + 1`;
    // Jobs that were added in a row are neighbours in the table. One statement for a range of them takes 1.4 µs a job, one
    // statement that lists each of them 1.9 µs, and one statement per job 2.8 µs. Their fences are consecutive.
    this.#takeRun = db.prepare(`${take}, fence = job + CAST(? AS INTEGER) WHERE job BETWEEN ? AND ?`);
    // Selecting the jobs in the same statement (UPDATE … RETURNING) took 5.5 µs a job, two statements 3.9 µs.
    // No room is reserved in a new row for what a claim and a finish write into it. It would avoid page splits and make claim and
    // finish 6 to 9 % cheaper, but adding 10 % dearer.
    this.#takeAll = db.prepare(`${take}, fence = ? + taken.key FROM json_each(?) AS taken WHERE job = taken.value`);
    this.#claimed = db.prepare(
      `SELECT ${JOB_COLUMNS}, fence FROM jobs WHERE queue = ? AND state = ${STATE.active} AND session = ? AND claimSeq = ? ORDER BY fence`,
    );
  }

  /** Returns the reply if it needs no write: nothing can be claimed, or this call was carried out before. Otherwise undefined. */
  look(queue: QueueState, request: ClaimRequest, now: number): ClaimReply | undefined {
    const survey = this.#survey(queue, request, now);
    if (survey.room > 0 || (survey.open && isDue(survey, now))) return undefined;
    return reply(queue, request, survey, this.#claimedBefore(queue, request, survey), now);
  }

  claim(transaction: Transaction, queue: QueueState, request: ClaimRequest, options: ClaimOptions = {}): ClaimReply {
    const { now } = transaction;
    const { remember = true, lastSeq, isSettle = false } = options;
    this.#lanes.arrange(queue);
    let survey = this.#survey(queue, request, now, lastSeq);
    // Move due jobs even if there is no room for a claim. A due job that stayed delayed would make `nextInMs` 0, although time
    // alone makes nothing claimable.
    if (survey.open && isDue(survey, now)) {
      this.#moveDue(queue, now);
      survey = this.#survey(queue, request, now, lastSeq);
    }
    if (survey.room === 0) return reply(queue, request, survey, this.#claimedBefore(queue, request, survey), now);
    const candidates =
      request.jobIds === undefined
        ? this.#candidatesInOrder(queue, Math.min(survey.room, queue.allWaiting), isSettle)
        : this.#candidatesById(queue, request, now);
    // The named jobs may have been delayed and due, so find the next due job again.
    if (request.jobIds !== undefined) survey.nextDue = this.#firstDue(queue);
    const jobs = this.#grant(transaction, queue, request, candidates.list);
    useRoom(queue, jobs.length, request.limit, transaction);
    if (remember && jobs.length > 0)
      this.#callers.remember(queue.queue, { caller: request.session, seq: request.seq }, null, now);
    const answer = reply(queue, request, survey, jobs, now);
    if (candidates.more) answer.more = true;
    return answer;
  }

  /** Returns whether a delayed job is due. Due jobs count as waiting. */
  anyDue(queue: QueueState, now: number): boolean {
    return (this.#firstDue(queue) ?? Number.POSITIVE_INFINITY) <= now;
  }

  #survey(queue: QueueState, request: ClaimRequest, now: number, lastSeq?: number): Survey {
    const sessionAlive = this.#session.get(queue.queue, request.session, now) !== undefined;
    const repeated = sessionAlive && request.seq <= (lastSeq ?? this.#callers.lastSeq(queue.queue, request.session));
    const nextDue = this.#firstDue(queue);
    const byId = request.jobIds !== undefined;
    const allowed = byId ? request.count : queue.paused === 1 ? 0 : Math.min(request.count, roomOf(queue, request.limit, now));
    const open = sessionAlive && !repeated && request.count > 0;
    const room = !open || allowed <= 0 ? 0 : byId ? allowed : Math.min(allowed, this.#roomInOrder(queue, request.session, now));
    return { sessionAlive, repeated, nextDue, open: open && !byId, room };
  }

  /**
   * Returns how many jobs a claim in order may take, rate limits aside: 0 if no job can be claimed, otherwise what the cap leaves
   * to this session.
   */
  #roomInOrder(queue: QueueState, session: string, now: number): number {
    const { maxActive, active } = queue;
    if (queue.allWaiting === 0) return 0;
    if (queue.keyed === 1 && this.#anyFirst.get(queue.queue) === undefined) return 0;
    if (maxActive < 0) return Number.POSITIVE_INFINITY;
    if (active >= maxActive) return 0;
    const sharing = this.#sharing.all(queue.queue, now).map(([id, slots, running]) => ({ id, slots, active: running }));
    const own = sharing.find(({ id }) => id === session) ?? { slots: 0, active: 0 };
    return roomUnderCap(
      maxActive,
      active,
      own,
      sharing.filter((other) => other !== own),
    );
  }

  #firstDue(queue: QueueState): number | undefined {
    return queue.delayed === 0 ? undefined : (this.#nextDue.get(queue.queue)?.[0] ?? undefined);
  }

  #moveDue(queue: QueueState, now: number): void {
    for (const due of this.#due.all(queue.queue, now)) this.#promoteOne(queue, due);
    this.#lanes.arrange(queue);
  }

  #promoteOne(queue: QueueState, [job, id, priority, lockKey]: Due): void {
    this.#promote.run(queue.toBack(), job);
    queue.delayed -= 1;
    queue.countWaiting(priority, 1);
    queue.touch(lockKey);
    queue.tell('waiting', id, { prev: 'delayed' });
  }

  #candidatesInOrder(queue: QueueState, count: number, isSettle: boolean): Candidates {
    // The limit on the size of each `data` makes all rows of this query fit into one reply.
    const rows = this.#waiting.all(Math.floor(REPLY_BYTES / count), queue.queue, count);
    const list: Candidate[] = [];
    let left = REPLY_BYTES;
    for (const row of rows) {
      const [job, , , data, , , , worn] = row;
      const isPlain = data !== null && worn === 0;
      left -= isPlain ? data.length : this.#bytesOf(job);
      if (left < 0 && (list.length > 0 || isSettle)) return { list, more: true };
      list.push({ job, record: isPlain ? toNewRecord(row, data) : this.#recordOf(job) });
    }
    return { list, more: false };
  }

  /** Returns the named jobs that may be claimed. Their key groups are rearranged later, before the next claim or the commit. */
  #candidatesById(queue: QueueState, { jobIds = [], count }: ClaimRequest, now: number): Candidates {
    const keys = new Set<string>();
    const jobs = new Set<number>();
    let left = REPLY_BYTES;
    let more = false;
    for (const jobId of jobIds) {
      const row = jobs.size < count && !more ? this.#named.get(queue.queue, jobId) : undefined;
      if (row === undefined) continue;
      const [job, id, priority, lockKey, state, dueAt] = row;
      const due = state === STATE.delayed && dueAt !== null && dueAt <= now;
      if (due) this.#promoteOne(queue, [job, id, priority, lockKey]);
      else if (state !== STATE.waiting && state !== STATE.behind) continue;
      if (jobs.has(job)) continue;
      if (lockKey !== null && (keys.has(lockKey) || this.#lanes.isTaken(queue, lockKey))) continue;
      left -= this.#bytesOf(job);
      more = left < 0 && jobs.size > 0;
      if (more) continue;
      jobs.add(job);
      queue.touch(lockKey);
      if (lockKey !== null) keys.add(lockKey);
    }
    return { list: [...jobs].map((job) => ({ job, record: this.#recordOf(job) })), more };
  }

  #recordOf(job: number): JobRecord {
    return toRecord(this.#row.get(job) as JobRow);
  }

  #bytesOf(job: number): number {
    return this.#bytes.get(job)?.[0] ?? 0;
  }

  #grant(transaction: Transaction, queue: QueueState, request: ClaimRequest, candidates: Candidate[]): ClaimedJob[] {
    if (candidates.length === 0) return [];
    const { now } = transaction;
    const { session, seq, by = null, timedMs } = request;
    const first = nextFence(queue.fence, now);
    const endsAt = timedMs === undefined ? null : transaction.after(timedMs);
    this.#lock([session, seq, now, by, endsAt, timedMs === undefined ? 0 : 1], first, candidates);
    queue.fence = first + candidates.length - 1;
    queue.active += candidates.length;
    return candidates.map(({ record }, index) => {
      queue.countWaiting(record.priority, -1);
      queue.tell('active', record.id);
      const job = toClaimed(record, session, first + index);
      job.state = 'active';
      job.attemptsStarted += 1;
      job.processedOn = now;
      if (by === null) delete job.processedBy;
      else job.processedBy = by;
      return job;
    });
  }

  #lock(owner: Value[], firstFence: number, candidates: Candidate[]): void {
    const jobs = candidates.map(({ job }) => job);
    const starts = startsOfRuns(jobs);
    if (starts.length > RUNS.atMost + jobs.length * RUNS.perJob) {
      this.#takeAll.run(...owner, firstFence, JSON.stringify(jobs));
      return;
    }
    starts.forEach((start, index) => {
      const first = jobs[start] as number;
      const last = first + (starts[index + 1] ?? jobs.length) - start - 1;
      this.#takeRun.run(...owner, firstFence + start - first, first, last);
    });
  }

  #claimedBefore(queue: QueueState, { session, seq }: ClaimRequest, { repeated }: Survey): ClaimedJob[] {
    if (!repeated) return [];
    return this.#claimed
      .all(queue.queue, session, seq)
      .map((row) => toClaimed(toRecord(row as unknown as JobRow), session, row.at(-1) as number));
  }
}

/** Returns the indexes at which a new run of consecutive numbers starts. */
function startsOfRuns(numbers: number[]): number[] {
  const starts: number[] = [];
  numbers.forEach((number, index) => {
    if (index === 0 || number !== (numbers[index - 1] as number) + 1) starts.push(index);
  });
  return starts;
}

function isDue({ nextDue }: Survey, now: number): boolean {
  return nextDue !== undefined && nextDue <= now;
}

function reply(queue: QueueState, request: ClaimRequest, survey: Survey, jobs: ClaimedJob[], now: number): ClaimReply {
  const { sessionAlive, nextDue } = survey;
  const paused = queue.paused === 1;
  const drained = queue.allWaiting === 0 && (nextDue === undefined || nextDue > now);
  const answer: ClaimReply = { jobs, sessionAlive, paused, drained };
  const limited = limitedMs(queue, now, request.limit?.max);
  if (limited > 0) answer.limitedMs = limited;
  if (limited > 0 && !paused) answer.nextInMs = limited;
  if (nextDue !== undefined) answer.nextInMs = Math.min(answer.nextInMs ?? Number.POSITIVE_INFINITY, Math.max(0, nextDue - now));
  return answer;
}
