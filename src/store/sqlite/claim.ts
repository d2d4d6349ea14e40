// The verb `claim` of the SQLite store: moves waiting jobs to active and grants their locks, all in the caller's transaction. The
// committer calls `look` first, which needs no write lock. `settle` calls `claim` inside its own transaction.
import { roomUnderCap } from '../../job/cap.js';
import { nextFence } from '../../job/lock.js';
import { limitOfClaim } from '../../job/rate.js';
import type { ClaimedJob } from '../../job/record.js';
import type { ClaimReply, ClaimRequest } from '../contract/index.js';
import type { Callers } from './state/callers.js';
import type { Database, Statement, Value } from './driver/load.js';
import { sql } from './driver/sql.js';
import { type JobRow, type LeftRow, toClaimed, toRecord } from './record.js';
import { type Candidate, Candidates } from './state/candidates.js';
import { ClaimedExtrasOf } from './state/claimed-extras.js';
import type { Groups } from './state/groups.js';
import type { KeyGroups } from './state/key-groups.js';
import type { Leaving } from './leave.js';
import type { QueueState } from './state/queue-state.js';
import { limitedMs, roomOf, useRoom } from './state/rate-limit.js';
import type { Schedules } from './state/schedules.js';
import type { Transaction } from './state/transaction.js';

/**
 * Delayed jobs that one claim moves to waiting at most. If many jobs fall due at once, moving all of them would hold the write lock
 * for too long.
 */
const PROMOTED_AT_ONCE = 500;
/** With more runs of consecutive rows than this, one statement for all jobs is faster, although it has a fixed cost of 10 µs. */
const RUNS = { atMost: 8, perJob: 1 / 4 };

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

export interface ClaimingParts {
  callers: Callers;
  keyGroups: KeyGroups;
  groups: Groups;
  leaving: Leaving;
  schedules: Schedules;
}

export class Claiming {
  readonly #callers: Callers;
  readonly #keyGroups: KeyGroups;
  readonly #groups: Groups;
  readonly extrasOf = new ClaimedExtrasOf();
  readonly #candidates: Candidates;
  readonly #leaving: Leaving;
  readonly #schedules: Schedules;
  readonly #session: Statement<[number]>;
  readonly #nextDue: Statement<[number | null]>;
  readonly #due: Statement<LeftRow>;
  readonly #promote: Statement;
  readonly #anyFirst: Statement<[number]>;
  readonly #sharing: Statement<[id: string, slots: number, active: number]>;
  readonly #takeRun: Statement;
  readonly #takeAll: Statement;
  readonly #claimed: Statement<[...JobRow, fence: number]>;

  constructor(db: Database, { callers, keyGroups, groups, leaving, schedules }: ClaimingParts) {
    this.#callers = callers;
    this.#keyGroups = keyGroups;
    this.#groups = groups;
    this.#candidates = new Candidates(db, keyGroups, groups);
    this.#leaving = leaving;
    this.#schedules = schedules;
    this.#session = sql(db, 'session-alive', 'queue session now');
    this.#nextDue = sql(db, 'next-due', 'queue');
    this.#due = sql(db, 'due-jobs', 'queue now count');
    this.#promote = sql(db, 'promote', 'ord job');
    this.#anyFirst = sql(db, 'any-claimable', 'queue');
    this.#sharing = sql(db, 'sessions-sharing', 'queue now');
    this.#takeRun = sql(db, 'take-run', 'session seq now by endsAt timed fence first last');
    this.#takeAll = sql(db, 'take-listed', 'session seq now by endsAt timed fence jobs');
    this.#claimed = sql(db, 'claimed-before', 'queue session seq');
  }

  /** Returns the reply if it needs no write: nothing can be claimed, or this call was carried out before. Otherwise undefined. */
  look(queue: QueueState, request: ClaimRequest, now: number): ClaimReply | undefined {
    const survey = this.#survey(queue, request, now);
    if (survey.room > 0 || (survey.open && isDue(survey, now))) return undefined;
    return this.#reply(queue, request, survey, this.#claimedBefore(queue, request, survey), now);
  }

  claim(transaction: Transaction, queue: QueueState, request: ClaimRequest, options: ClaimOptions = {}): ClaimReply {
    const { now } = transaction;
    const { remember = true, lastSeq, isSettle = false } = options;
    this.#arrange(queue, now);
    let survey = this.#survey(queue, request, now, lastSeq);
    // Move due jobs even if there is no room for a claim. A due job that stayed delayed would make `nextInMs` 0, although time
    // alone makes nothing claimable.
    if (survey.open && isDue(survey, now)) {
      this.#moveDue(queue, now);
      survey = this.#survey(queue, request, now, lastSeq);
    }
    if (survey.room === 0) return this.#reply(queue, request, survey, this.#claimedBefore(queue, request, survey), now);
    const isById = request.jobIds !== undefined;
    const candidates = isById
      ? this.#candidates.byId(transaction, queue, request, (row) => this.#promoteOne(queue, row))
      : this.#candidates.inOrder(transaction, queue, survey.room, isSettle);
    const jobs = this.#grant(transaction, queue, request, candidates.list);
    if (isById) this.#afterById(transaction, queue, jobs, survey);
    const limit = limitOfClaim(queue.rules.rate, request.limit);
    useRoom(queue, jobs.length, limit, transaction);
    if (remember && jobs.length > 0)
      this.#callers.remember(queue.queue, { caller: request.session, seq: request.seq }, null, now);
    const answer = this.#reply(queue, request, survey, jobs, now);
    if (candidates.more) answer.more = true;
    return answer;
  }

  /** The named jobs may have been delayed and due, so the survey is out of date. */
  #afterById(transaction: Transaction, queue: QueueState, jobs: ClaimedJob[], survey: Survey): void {
    survey.nextDue = this.#firstDue(queue);
    for (const { group } of jobs) if (group !== undefined) this.#groups.use(transaction, queue, group);
    this.#groups.arrange(queue, transaction.now);
  }

  #arrange(queue: QueueState, now: number): void {
    this.#keyGroups.arrange(queue);
    this.#groups.arrange(queue, now);
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
    const allowed = byId
      ? request.count
      : queue.paused === 1
        ? 0
        : Math.min(request.count, this.#roomUnderLimits(queue, request, now));
    const open = sessionAlive && !repeated && request.count > 0;
    const room = !open || allowed <= 0 ? 0 : byId ? allowed : Math.min(allowed, this.#roomInOrder(queue, request.session, now));
    return { sessionAlive, repeated, nextDue, open: open && !byId, room };
  }

  #roomUnderLimits(queue: QueueState, { limit }: ClaimRequest, now: number): number {
    return roomOf(queue, limitOfClaim(queue.rules.rate, limit), now);
  }

  /**
   * Returns how many jobs a claim in order may take, rate limits aside: 0 if no job can be claimed, otherwise what the cap leaves
   * to this session.
   */
  #roomInOrder(queue: QueueState, session: string, now: number): number {
    const { maxActive, active } = queue;
    if (!this.#isAnyFirst(queue) && !this.#groups.anyReady(queue, now)) return 0;
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

  /** Returns whether a job without a group may be claimed. */
  #isAnyFirst(queue: QueueState): boolean {
    return queue.allWaiting > 0 && (queue.keyed === 0 || this.#anyFirst.get(queue.queue) !== undefined);
  }

  #firstDue(queue: QueueState): number | undefined {
    return queue.delayed === 0 ? undefined : (this.#nextDue.get(queue.queue)?.[0] ?? undefined);
  }

  #moveDue(queue: QueueState, now: number): void {
    for (const row of this.#due.all(queue.queue, now, PROMOTED_AT_ONCE)) this.#promoteOne(queue, row);
    this.#arrange(queue, now);
  }

  #promoteOne(queue: QueueState, row: [...LeftRow, ...Value[]]): void {
    this.#promote.run(queue.toBack(), row[0]);
    this.#leaving.wait(queue, row, 'delayed');
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
    return candidates.map(({ record, extras }, index) => {
      queue.count('waiting', record.priority, -1);
      queue.record('active', record.id);
      const job = toClaimed(record, session, first + index);
      if (extras !== null) this.extrasOf.remember(job.token, { text: extras, group: job.group });
      job.state = 'active';
      job.attemptsStarted += 1;
      job.processedOn = now;
      if (by === null) delete job.processedBy;
      else job.processedBy = by;
      if (job.scheduleId !== undefined) this.#schedules.started(queue, job, job.scheduleId);
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

  #reply(queue: QueueState, request: ClaimRequest, survey: Survey, jobs: ClaimedJob[], now: number): ClaimReply {
    const { sessionAlive, nextDue } = survey;
    const paused = queue.paused === 1;
    const restEnds = paused ? undefined : this.#groups.restEndsAt(queue, now);
    const drained = queue.allWaiting === 0 && (nextDue === undefined || nextDue > now);
    const answer: ClaimReply = { jobs, sessionAlive, paused, drained };
    const limited = limitedMs(queue, limitOfClaim(queue.rules.rate, request.limit), now);
    if (limited > 0) answer.limitedMs = limited;
    if (limited > 0 && !paused) answer.nextInMs = limited;
    const nextChange = Math.min(nextDue ?? Number.POSITIVE_INFINITY, restEnds ?? Number.POSITIVE_INFINITY);
    if (nextChange < Number.POSITIVE_INFINITY)
      answer.nextInMs = Math.min(answer.nextInMs ?? Number.POSITIVE_INFINITY, Math.max(0, nextChange - now));
    const isOwing =
      queue.scheduled === 1 && this.#schedules.anyOwing(queue, jobs.filter(({ debt }) => debt !== undefined).length);
    if (isOwing) answer.undone = true;
    return answer;
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
