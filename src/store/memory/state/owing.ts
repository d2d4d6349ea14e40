// How claims and ends of next jobs make their schedules owing.
import type { ClaimedJob } from '../../../job/record.js';
import { MARK } from '../../marks.js';
import type { StoredSchedule } from './schedules.js';
import type { QueueState, StoredJob } from './queue-state.js';

/** True if the job is the next job of its schedule. */
export function isNext({ marks }: StoredJob): boolean {
  return (marks & MARK.next) !== 0;
}

/** Call it when a job with marks has been claimed: its schedule owes a job now, unless it is serial. */
export function started(queue: QueueState, job: StoredJob, claimed: ClaimedJob): void {
  const schedule = scheduleOf(queue, job);
  if (schedule === undefined || schedule.serial) return;
  owe(queue, schedule, job);
  claimed.debt = { ...schedule.record(), now: queue.wall() };
}

/** Call it when a job with marks has ended. */
export function runEnded(queue: QueueState, job: StoredJob): void {
  const schedule = scheduleOf(queue, job);
  if (schedule !== undefined) owe(queue, schedule, job);
}

function owe(queue: QueueState, schedule: StoredSchedule, job: StoredJob): void {
  giveUp(schedule, job);
  schedule.version += 1;
  // A paused schedule had left its job to run.
  if (schedule.state === 'running') queue.schedules.set(schedule, 'owing');
}

/** Lets the next job be an ordinary job. */
export function giveUp(schedule: StoredSchedule, job: StoredJob): void {
  schedule.nextJobId = undefined;
  job.marks &= ~MARK.next;
}

function scheduleOf({ schedules }: QueueState, job: StoredJob): StoredSchedule | undefined {
  return isNext(job) ? schedules.get(job.extras?.scheduleId ?? '') : undefined;
}
