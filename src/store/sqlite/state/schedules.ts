// The schedules of all queues (table `schedules`), and how they become owing. All rules are those of `schedule` in the contract.
import type { ClaimedJob } from '../../../job/record.js';
import type { ScheduleQuery, ScheduleRecord, SchedulesFound } from '../../contract/index.js';
import { MARK, readExtras } from '../../marks.js';
import type { Database, Statement } from '../driver/load.js';
import { sql } from '../driver/sql.js';
import type { LeftRow } from '../record.js';
import type { QueueState } from './queue-state.js';

/** `schedule-columns` in sql/schedules.sql */
type ScheduleRow = [
  id: string,
  version: number,
  spec: string,
  serial: number,
  state: ScheduleRecord['state'],
  at: number,
  count: number,
  nextJob: string | null,
];

/** The slot of a schedule passed this long ago before a sweep looks for its next job. */
const LOST_AFTER_MS = 60_000;

export class Schedules {
  readonly #wall: () => number;
  readonly #find: Statement<ScheduleRow>;
  readonly #set: Statement;
  readonly #delete: Statement;
  readonly #owe: Statement<ScheduleRow>;
  readonly #giveUp: Statement;
  readonly #anyOwing: Statement<[number]>;
  readonly #owing: Statement<ScheduleRow>;
  readonly #forwards: Statement<ScheduleRow>;
  readonly #backwards: Statement<ScheduleRow>;
  readonly #count: Statement<[number]>;
  readonly #lost: Statement<[id: string, nextJob: string | null]>;

  /** `wall` returns the wall clock of the store, in whole epoch ms. */
  constructor(db: Database, wall: () => number) {
    this.#wall = wall;
    this.#find = sql(db, 'find-schedule', 'queue id');
    this.#set = sql(db, 'set-schedule', 'queue id version spec serial state at count nextJob');
    this.#delete = sql(db, 'delete-schedule', 'queue id');
    this.#owe = sql(db, 'owe-schedule', 'queue id job ended');
    this.#giveUp = sql(db, 'give-up-next', 'queue id');
    this.#anyOwing = sql(db, 'any-owing', 'queue carried');
    this.#owing = sql(db, 'list-owing-schedules', 'queue count');
    this.#forwards = sql(db, 'list-schedules', 'queue count skipped');
    this.#backwards = sql(db, 'list-schedules', 'queue count skipped', true);
    this.#count = sql(db, 'count-schedules', 'queue');
    this.#lost = sql(db, 'lost-schedules', 'queue latest count');
  }

  get({ queue }: QueueState, id: string): ScheduleRecord | undefined {
    const row = this.#find.get(queue, id);
    return row === undefined ? undefined : toSchedule(row);
  }

  set(queue: QueueState, { id, version, spec, serial, state, at, count, nextJobId }: ScheduleRecord): void {
    this.#set.run(queue.queue, id, version, spec, serial ? 1 : 0, state, at, count, nextJobId ?? null);
    if (queue.scheduled === 0) queue.quietlyChanged = true;
    queue.scheduled = 1;
  }

  delete({ queue }: QueueState, id: string): void {
    this.#delete.run(queue, id);
  }

  some({ queue }: QueueState, count: number): ScheduleRecord[] {
    return this.#forwards.all(queue, count, 0).map(toSchedule);
  }

  find(queue: QueueState, query: ScheduleQuery): SchedulesFound {
    const now = this.#wall();
    if ('count' in query) return { records: [], count: this.#count.get(queue.queue)?.[0] ?? 0, now };
    return { records: this.#found(queue, query), now };
  }

  #found(queue: QueueState, query: Exclude<ScheduleQuery, { count: true }>): ScheduleRecord[] {
    if ('ids' in query) return query.ids.map((id) => this.get(queue, id)).filter((one) => one !== undefined);
    if ('owing' in query) return this.#owing.all(queue.queue, query.limit).map(toSchedule);
    const { start, end, asc } = query;
    const count = end === -1 ? -1 : Math.max(0, end + 1 - start);
    return (asc ? this.#forwards : this.#backwards).all(queue.queue, count, start).map(toSchedule);
  }

  /** Returns whether a schedule is owing, apart from as many as the caller knows. */
  anyOwing({ queue, scheduled }: QueueState, carried = 0): boolean {
    return scheduled === 1 && this.#anyOwing.get(queue, carried) !== undefined;
  }

  /** Call it when a job of a schedule has been claimed. If it was the next job, it carries the debt, unless the schedule is serial. */
  started(queue: QueueState, job: ClaimedJob, scheduleId: string): void {
    const row = this.#oweFor(queue, scheduleId, job.id, false);
    if (row !== undefined) job.debt = { ...toSchedule(row), now: this.#wall() };
  }

  /** Call it when a job with marks has ended. */
  ended(queue: QueueState, [, id, , , , marks, extras]: readonly [...LeftRow, ...unknown[]]): void {
    const scheduleId = (marks & MARK.next) === 0 ? undefined : readExtras(extras ?? '{}').scheduleId;
    if (scheduleId !== undefined) this.#oweFor(queue, scheduleId, id, true);
  }

  /** Lets a next job be an ordinary job. The caller changes the schedule. */
  giveUp({ queue }: QueueState, jobId: string): void {
    this.#giveUp.run(queue, jobId);
  }

  anyLost(queue: QueueState): boolean {
    return this.#lostOf(queue, 1).length > 0;
  }

  /** Makes schedules owing whose slot has passed long ago and whose next job is gone or has ended. Returns how many. */
  oweLost(queue: QueueState, limit: number): number {
    const lost = this.#lostOf(queue, limit);
    for (const [id, nextJob] of lost) this.#oweFor(queue, id, nextJob, true);
    // Workers learn of the debts when they wake.
    if (lost.length > 0) queue.changed = true;
    return lost.length;
  }

  #lostOf({ queue }: QueueState, limit: number): [id: string, nextJob: string | null][] {
    return this.#lost.all(queue, this.#wall() - LOST_AFTER_MS, limit);
  }

  #oweFor(queue: QueueState, id: string, jobId: string | null, ended: boolean): ScheduleRow | undefined {
    const row = this.#owe.get(queue.queue, id, jobId, ended ? 1 : 0);
    if (row !== undefined && jobId !== null) this.giveUp(queue, jobId);
    return row;
  }
}

function toSchedule([id, version, spec, serial, state, at, count, nextJobId]: ScheduleRow): ScheduleRecord {
  const record: ScheduleRecord = { id, version, spec, serial: serial === 1, state, at, count };
  if (nextJobId !== null) record.nextJobId = nextJobId;
  return record;
}
