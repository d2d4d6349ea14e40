// The `timeout` of a job that other libraries know: a run that takes longer fails. The handler itself goes on, as it does there:
// nothing can stop a function from outside. Its lock is gone, so that nothing it writes to the job counts any more.
import { checkInteger, MAX_TIMER_MS } from '../runtime/check.js';
import { inTime } from '../runtime/within.js';

export function checkTimeout(timeout: unknown): void {
  if (timeout !== undefined) checkInteger('timeout', timeout, { max: MAX_TIMER_MS });
}

export function within<T>(ms: number, running: Promise<T>): Promise<T> {
  return inTime(ms, running, () => new Error(`Promise timed out after ${ms} milliseconds`));
}
