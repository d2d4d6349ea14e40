// The job option `timeout` of other libraries: a run that takes longer fails. The handler itself goes on, as it does there, because a
// function cannot be stopped from outside. Its lock is gone, so its later writes to the job do not count.
import { checkInteger, MAX_TIMER_MS } from '../runtime/check.js';
import { inTime } from '../runtime/within.js';

export function checkTimeout(timeout: unknown): void {
  if (timeout !== undefined) checkInteger('timeout', timeout, { max: MAX_TIMER_MS });
}

export function within<T>(ms: number, running: Promise<T>): Promise<T> {
  return inTime(ms, running, () => new Error(`Promise timed out after ${ms} milliseconds`));
}
