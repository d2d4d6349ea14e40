// The verbs of the memory store that change a queue or its jobs from outside a run: pause, cap, write, change, remove, clear,
// requeue, forget.
import type { SettleStatus } from '../../job/outcome.js';
import { isLargeValue } from '../budget.js';
import type { Cap, Change, ChangeStatus, RemoveStatus, Selection, Write, WriteReply } from '../contract/index.js';
import { drop, FROM, putDelayed, putWaiting, reopen, take } from './moves.js';
import { RateLimit } from './rate-limit.js';
import { select } from './select.js';
import type { QueueState, StoredJob } from './state.js';

export function pause(queue: QueueState, paused: boolean): void {
  if (queue.paused === paused) return;
  queue.paused = paused;
  queue.log.tell(paused ? 'paused' : 'resumed');
}

export function cap(queue: QueueState, given: Cap | undefined): void {
  queue.cap = given === undefined ? undefined : { ...given };
  queue.wake.signal();
}

export function write(queue: QueueState, item: Write): WriteReply {
  const job = queue.jobs.get(item.jobId);
  const status = writeStatus(job, item.token);
  if (job === undefined || status !== 'done') return { status };
  switch (item.kind) {
    case 'data':
      job.data = item.data;
      return { status };
    case 'progress':
      job.progress = item.progress;
      if (isLargeValue(item.progress)) queue.log.tell('progress', job.id, { large: 1 });
      else queue.log.tell('progress', job.id, { data: item.progress }, item.progress.length);
      return { status };
    case 'log':
      job.logs ??= [];
      job.logs.push(item.row);
      return { status, count: keepNewest(job.logs, item.keep ?? Number.POSITIVE_INFINITY) };
    case 'clearLogs':
      return { status, count: keepNewest(job.logs ?? [], item.keep ?? 0) };
  }
}

function writeStatus(job: StoredJob | undefined, token: string | undefined): SettleStatus {
  if (job === undefined) return 'missing';
  return token === undefined || job.lock?.token === token ? 'done' : 'lost';
}

function keepNewest(rows: string[], keep: number): number {
  if (rows.length > keep) rows.splice(0, rows.length - keep);
  return rows.length;
}

export function change(queue: QueueState, item: Change, now: number): ChangeStatus {
  const job = queue.jobs.get(item.jobId);
  if (job === undefined) return 'missing';
  switch (item.kind) {
    case 'retry':
      if (job.state !== item.from) return 'state';
      sendToWaiting(queue, job);
      if (item.resetAttemptsMade) job.attemptsMade = 0;
      if (item.resetAttemptsStarted) job.attemptsStarted = 0;
      return 'done';
    case 'promote':
      if (job.state !== 'delayed') return 'state';
      sendToWaiting(queue, job);
      return 'done';
    case 'delay':
      if (job.state !== 'delayed') return 'state';
      take(queue, job);
      putDelayed(queue, job, item.delayMs, now);
      queue.log.tell('delayed', job.id, { delay: Math.ceil(job.at) });
      return 'done';
    case 'priority':
      changePriority(queue, job, item.priority, item.lifo);
      return 'done';
  }
}

/** A job that is not waiting stores the priority until it waits. */
function changePriority(queue: QueueState, job: StoredJob, priority: number, lifo: boolean): void {
  const waiting = job.state === 'waiting';
  if (waiting) take(queue, job);
  job.priority = priority;
  if (waiting) putWaiting(queue, job, lifo);
}

function sendToWaiting(queue: QueueState, job: StoredJob): void {
  const from = FROM[job.state];
  take(queue, job);
  if (job.finishedOn !== undefined) reopen(job);
  putWaiting(queue, job, false);
  queue.log.tell('waiting', job.id, from);
}

export function remove(queue: QueueState, jobId: string): RemoveStatus {
  const job = queue.jobs.get(jobId);
  if (job === undefined) return 'missing';
  if (job.lock !== undefined) return 'locked';
  queue.log.tell('removed', jobId, FROM[job.state]);
  drop(queue, job);
  return 'done';
}

export function clear(queue: QueueState, selection: Selection, now: number): string[] {
  const jobs = select(queue, selection, now);
  for (const job of jobs) drop(queue, job);
  const count = jobs.length + (selection.removed ?? 0);
  if (jobs.length > 0 || selection.limit === 0) queue.log.tell('cleaned', undefined, { count });
  return jobs.map(({ id }) => id);
}

export function requeue(queue: QueueState, selection: Selection, now: number): number {
  const states = selection.states.filter((state) => state !== 'waiting');
  const jobs = select(queue, { ...selection, states }, now);
  for (const job of jobs) sendToWaiting(queue, job);
  return jobs.length;
}

export function forget(queue: QueueState): void {
  queue.log.trim(0);
  queue.rate = new RateLimit();
  queue.paused = false;
  queue.cap = undefined;
  queue.lastId = 0;
}
