// The verb `schedule` of the memory store: it makes, advances, pauses and removes schedules, with their next jobs.
import type { ScheduleChange, ScheduleQuery, ScheduleReply, SchedulesFound, Slot } from '../contract/index.js';
import { enter } from './state/enter.js';
import { drop } from './leave.js';
import { FROM } from './state/moves.js';
import { giveUp } from './state/owing.js';
import { StoredSchedule } from './state/schedules.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

export function schedule(queue: QueueState, change: ScheduleChange, now: number): ScheduleReply {
  const known = queue.schedules.get(change.id);
  if (known === undefined) {
    if (change.kind !== 'put' || change.version !== 0) return { status: 'missing' };
    const { id, next } = change;
    return isTaken(queue, next, undefined)
      ? { status: 'taken' }
      : put(queue, new StoredSchedule(id, Math.floor(now)), change, now);
  }
  if (known.version !== change.version || (change.kind === 'advance' && known.state !== 'owing'))
    return { status: 'stale', record: known.record() };
  if ('next' in change && !keepsRun(queue, known, change) && isTaken(queue, change.next, known))
    return { status: 'taken', record: known.record() };
  known.version += 1;
  if (change.kind === 'remove') return removeSchedule(queue, known, now);
  if (change.kind === 'pause') return pause(queue, known, now);
  if (change.kind === 'put') return put(queue, known, change, now);
  return made(queue, known, change.next, now);
}

function put(
  queue: QueueState,
  schedule: StoredSchedule,
  change: Extract<ScheduleChange, { kind: 'put' }>,
  now: number,
): ScheduleReply {
  const staysNext = keepsRun(queue, schedule, change);
  schedule.spec = change.spec;
  schedule.serial = change.serial;
  queue.schedules.set(schedule, 'running');
  if (staysNext) return { status: 'done', record: schedule.record() };
  const next = nextOf(queue, schedule);
  if (next !== undefined) dismiss(queue, schedule, next, now, !isStarted(next));
  return made(queue, schedule, change.next, now);
}

function made(queue: QueueState, schedule: StoredSchedule, slot: Slot | undefined, now: number): ScheduleReply {
  if (slot !== undefined) {
    const { at, count, dueInMs, job } = slot;
    Object.assign(schedule, { at, count, nextJobId: job.id });
    enter(queue, job.id, { ...job, scheduleId: schedule.id, delayMs: dueInMs }, now);
  }
  queue.schedules.set(schedule, slot === undefined ? 'ended' : 'running');
  return { status: 'done', record: schedule.record() };
}

function pause(queue: QueueState, schedule: StoredSchedule, now: number): ScheduleReply {
  const next = nextOf(queue, schedule);
  if (next !== undefined && !isStarted(next)) {
    dismiss(queue, schedule, next, now, true);
    schedule.count -= 1;
  }
  queue.schedules.set(schedule, 'paused');
  return { status: 'done', record: schedule.record() };
}

function removeSchedule(queue: QueueState, schedule: StoredSchedule, now: number): ScheduleReply {
  const next = nextOf(queue, schedule);
  if (next !== undefined) dismiss(queue, schedule, next, now, next.state === 'delayed' && !isStarted(next));
  queue.schedules.delete(schedule);
  return { status: 'done' };
}

export function find({ schedules, wall }: QueueState, query: ScheduleQuery): SchedulesFound {
  if ('count' in query) return { records: [], count: schedules.size, now: wall() };
  return { records: schedules.find(query).map((one) => one.record()), now: wall() };
}

/** Deletes all schedules, with the next jobs that have not started. */
export function forgetSchedules(queue: QueueState, now: number): void {
  for (const schedule of queue.schedules.all()) {
    const next = nextOf(queue, schedule);
    if (next !== undefined && isStarted(next)) giveUp(schedule, next);
    else if (next !== undefined) drop(queue, next, now);
    queue.schedules.delete(schedule);
  }
}

/** The next job loses its place in the schedule. It is removed, or stays as an ordinary job. */
function dismiss(queue: QueueState, schedule: StoredSchedule, job: StoredJob, now: number, isRemoved: boolean): void {
  giveUp(schedule, job);
  if (!isRemoved) return;
  queue.log.record('removed', job.id, FROM[job.state]);
  drop(queue, job, now);
}

function isStarted({ state, attemptsStarted }: StoredJob): boolean {
  return state === 'active' || attemptsStarted > 0;
}

/** True if the job of a serial schedule has started and stays its next job. */
function keepsRun(queue: QueueState, schedule: StoredSchedule, change: ScheduleChange): boolean {
  if (change.kind !== 'put' || change.next === undefined || !change.serial || !schedule.serial) return false;
  const next = nextOf(queue, schedule);
  return next !== undefined && isStarted(next);
}

/** True if a job has the id of the slot, other than the next job that the slot replaces. */
function isTaken(queue: QueueState, slot: Slot | undefined, schedule: StoredSchedule | undefined): boolean {
  const job = slot === undefined ? undefined : queue.jobs.get(slot.job.id);
  if (job === undefined || (job.id === schedule?.nextJobId && !isStarted(job))) return false;
  queue.log.record('duplicated', job.id);
  return true;
}

function nextOf(queue: QueueState, { nextJobId }: StoredSchedule): StoredJob | undefined {
  return nextJobId === undefined ? undefined : queue.jobs.get(nextJobId);
}
