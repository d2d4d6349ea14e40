// The verb `schedule` of the SQLite store: it makes, advances, pauses and removes schedules, with their next jobs.
import type { ScheduleChange, ScheduleRecord, ScheduleReply, Slot } from '../contract/index.js';
import type { Database, Statement } from './driver/load.js';
import { sql } from './driver/sql.js';
import type { Leaving } from './leave.js';
import { AT, type FoundRow, stateOf } from './record.js';
import type { Entering } from './state/enter.js';
import type { QueueState } from './state/queue-state.js';
import { STATE } from './state/schema.js';
import type { Schedules } from './state/schedules.js';
import type { Transaction } from './state/transaction.js';

type Put = Extract<ScheduleChange, { kind: 'put' }>;

/** Schedules that one step of `forget` deletes. */
const FORGOTTEN_AT_ONCE = 100;

export class Scheduling {
  readonly #schedules: Schedules;
  readonly #entering: Entering;
  readonly #leaving: Leaving;
  readonly #job: Statement<FoundRow>;

  constructor(db: Database, schedules: Schedules, entering: Entering, leaving: Leaving) {
    this.#schedules = schedules;
    this.#entering = entering;
    this.#leaving = leaving;
    this.#job = sql(db, 'find-job', 'queue id');
  }

  schedule(transaction: Transaction, name: string, change: ScheduleChange): ScheduleReply {
    const { id, version, kind } = change;
    const queue = kind === 'put' ? transaction.queue(name) : transaction.find(name);
    const known = queue === undefined ? undefined : this.#schedules.get(queue, id);
    if (queue === undefined || known === undefined) {
      if (queue === undefined || kind !== 'put' || version !== 0) return { status: 'missing' };
      const fresh = { id, version: transaction.now, at: 0, count: 0, spec: '', serial: false, state: 'running' } as const;
      return this.#isTaken(queue, change.next) ? { status: 'taken' } : this.#put(transaction, queue, fresh, change);
    }
    if (known.version !== version || (kind === 'advance' && known.state !== 'owing')) return { status: 'stale', record: known };
    if ('next' in change && !this.#keepsRun(queue, known, change) && this.#isTaken(queue, change.next, known.nextJobId))
      return { status: 'taken', record: known };
    const next: ScheduleRecord = { ...known, version: version + 1 };
    if (kind === 'remove') return this.#remove(transaction, queue, next);
    if (kind === 'pause') return this.#pause(transaction, queue, next);
    if (kind === 'put') return this.#put(transaction, queue, next, change);
    return this.#make(transaction, queue, next, change.next);
  }

  #put(transaction: Transaction, queue: QueueState, known: ScheduleRecord, change: Put): ScheduleReply {
    const staysNext = this.#keepsRun(queue, known, change);
    const { spec, serial } = change;
    const schedule: ScheduleRecord = { ...known, spec, serial, state: 'running' };
    if (staysNext) return this.#save(queue, schedule);
    const next = this.#nextOf(queue, schedule);
    this.#dismiss(transaction, queue, schedule, next, next !== undefined && !isStarted(next));
    return this.#make(transaction, queue, schedule, change.next);
  }

  #make(transaction: Transaction, queue: QueueState, schedule: ScheduleRecord, slot: Slot | undefined): ScheduleReply {
    if (slot === undefined) return this.#save(queue, { ...schedule, state: 'ended' });
    const { at, count, dueInMs, job } = slot;
    const delayMs = Math.max(0, dueInMs);
    this.#entering.enter(transaction, queue, job.id, { ...job, scheduleId: schedule.id, delayMs });
    return this.#save(queue, { ...schedule, state: 'running', at, count, nextJobId: job.id });
  }

  #pause(transaction: Transaction, queue: QueueState, schedule: ScheduleRecord): ScheduleReply {
    const next = this.#nextOf(queue, schedule);
    if (next === undefined || isStarted(next)) return this.#save(queue, { ...schedule, state: 'paused' });
    this.#dismiss(transaction, queue, schedule, next, true);
    return this.#save(queue, { ...schedule, state: 'paused', count: schedule.count - 1 });
  }

  #remove(transaction: Transaction, queue: QueueState, schedule: ScheduleRecord): ScheduleReply {
    const next = this.#nextOf(queue, schedule);
    this.#dismiss(transaction, queue, schedule, next, next?.[AT.state] === STATE.delayed && !isStarted(next));
    this.#schedules.delete(queue, schedule.id);
    return { status: 'done' };
  }

  /** Deletes some schedules of a queue, with the next jobs that have not started. Returns whether there may be more. */
  forgetSome(transaction: Transaction, queue: QueueState): boolean {
    if (queue.scheduled === 0) return false;
    const schedules = this.#schedules.some(queue, FORGOTTEN_AT_ONCE);
    for (const schedule of schedules) {
      this.#schedules.delete(queue, schedule.id);
      const next = this.#nextOf(queue, schedule);
      if (next === undefined) continue;
      if (isStarted(next)) this.#schedules.giveUp(queue, next[1]);
      else this.#leaving.drop(transaction, queue, next, stateOf(next[AT.state]), 'removed');
    }
    if (schedules.length === FORGOTTEN_AT_ONCE) return true;
    queue.scheduled = 0;
    return false;
  }

  #save(queue: QueueState, record: ScheduleRecord): ScheduleReply {
    this.#schedules.set(queue, record);
    return { status: 'done', record };
  }

  /** The next job loses its place in the schedule. It is removed, or stays as an ordinary job. */
  #dismiss(
    transaction: Transaction,
    queue: QueueState,
    schedule: ScheduleRecord,
    next: FoundRow | undefined,
    isRemoved: boolean,
  ): void {
    delete schedule.nextJobId;
    if (next === undefined) return;
    const [, id] = next;
    this.#schedules.giveUp(queue, id);
    if (!isRemoved) return;
    const state = stateOf(next[AT.state]);
    queue.record('removed', id, { prev: state });
    this.#leaving.drop(transaction, queue, next, state, 'removed');
  }

  /** True if the job of a serial schedule has started and stays its next job. */
  #keepsRun(queue: QueueState, known: ScheduleRecord, change: ScheduleChange): boolean {
    if (change.kind !== 'put' || change.next === undefined || !change.serial || !known.serial) return false;
    const next = this.#nextOf(queue, known);
    return next !== undefined && isStarted(next);
  }

  /** True if a job has the id of the slot, other than the next job that the slot replaces. */
  #isTaken(queue: QueueState, slot: Slot | undefined, nextJobId?: string): boolean {
    const job = slot === undefined ? undefined : this.#job.get(queue.queue, slot.job.id);
    if (job === undefined || (job[1] === nextJobId && !isStarted(job))) return false;
    queue.record('duplicated', job[1]);
    return true;
  }

  #nextOf({ queue }: QueueState, { nextJobId }: ScheduleRecord): FoundRow | undefined {
    return nextJobId === undefined ? undefined : this.#job.get(queue, nextJobId);
  }
}

function isStarted(row: FoundRow): boolean {
  return row[AT.state] === STATE.active || row[AT.attemptsStarted] > 0;
}
