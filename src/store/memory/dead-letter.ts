// Dead letters of the memory store. All queues are in one place, so a letter arrives in the step that sends it.
import { jobOfLetter, letterId } from '../../job/dead-letter.js';
import type { Origin } from '../../job/origin.js';
import { MARK } from '../marks.js';
import { enter } from './state/enter.js';
import type { QueueState, StoredJob } from './state/queue-state.js';

/** Call it when a job has failed for good. `fence`: that of its run. */
export function sendLetter(queue: QueueState, job: StoredJob, fence: number, now: number): void {
  const deadLetter = (job.marks & MARK.letter) === 0 ? undefined : job.extras?.deadLetter;
  if (deadLetter === undefined) return;
  const { id, name, data, opts, timestamp, priority, key, group, attemptsMade, failedReason = '', finishedOn = 0 } = job;
  const origin: Origin = { queue: queue.name, id, failedReason, attemptsMade, failedOn: finishedOn, priority, deadLetter };
  if (key !== undefined) origin.lockKey = key;
  if (group !== undefined) origin.group = group;
  const letter = { name, data, opts, timestamp, priority: 0, delayMs: 0, lifo: false, origin };
  enter(queue.peer(deadLetter), letterId(origin, fence), letter, now);
}

/** Adds the job of a letter to the queue `to`. The caller removes the letter in the same step. */
export function sendBack(queue: QueueState, letter: StoredJob, origin: Origin, to: string, now: number): void {
  const target = queue.peer(to);
  const id = target.jobs.has(origin.id) ? letter.id : origin.id;
  enter(target, id, jobOfLetter(letter, id, origin), now);
}
