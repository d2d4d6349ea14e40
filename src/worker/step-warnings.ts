// Warnings about handlers: recorded steps that a handler no longer asks for, calls that it did not await, and suspensions that it caught.
import { show } from '../runtime/check.js';

/** The keys of the warnings that this process has given. Each comes once. */
const given = new Set<string>();
const MAX_GIVEN = 1000;

export function warnOfUnasked(queue: string, names: string[]): void {
  const fresh = names.filter((name) => !given.has(`${queue}:${name}`));
  if (fresh.length === 0 || given.size > MAX_GIVEN) return;
  for (const name of fresh) given.add(`${queue}:${name}`);
  const message = `A job of queue "${queue}" has completed with recorded steps that its handler no longer asks for: ${fresh.map(show).join(', ')}. Was a step renamed while jobs were under way? A renamed step runs again.`;
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_STEPS_UNASKED' });
}

/** A handler has ended before a call that it made: of `step`, `sleep` or `waitFor`, or a write such as `updateProgress`. */
export function warnOfForgotten(queue: string, jobId: string): void {
  const key = `${queue}: forgotten`;
  if (given.has(key)) return;
  given.add(key);
  const message = `The handler of job ${jobId} of queue "${queue}" ended before a call that it made (job.step, sleep, waitFor, updateData, updateProgress, log or clearLogs): is an await missing? What such a call does after the end of the run is refused. This warning comes once for each queue.`;
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_CALL_FORGOTTEN' });
}

/** A handler went on after `sleep` or `waitFor` had ended its run. */
export function warnOfCaught(queue: string, jobId: string, name: string): void {
  const key = `${queue}: caught ${name}`;
  if (given.has(key) || given.size > MAX_GIVEN) return;
  given.add(key);
  const message = `The handler of job ${jobId} of queue "${queue}" went on after the wait ${show(name)} had ended its run: it caught the DelayedError of job.sleep or job.waitFor. The job runs again when the wait is over, so what the handler did after the error, such as a refund, is done as well as what follows the wait. Throw the error again: if (error instanceof DelayedError) throw error. This warning comes once for each wait.`;
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_SUSPENSION_CAUGHT' });
}
