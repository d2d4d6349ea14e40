// Warns once if worker.close() takes long: a process that does not end should say why.
import { clearTimeout, setTimeout } from '../runtime/timers.js';
import type { LockTable } from '../session/lock-table.js';

const WARN_AFTER_MS = 5000;
const JOBS_NAMED = 10;

/** Returns a function that ends the wait. */
export function warnIfCloseWaits(name: string, table: LockTable): () => void {
  const timer = setTimeout(() => warn(name, table.jobIds()), WARN_AFTER_MS).unref();
  return () => clearTimeout(timer);
}

function warn(name: string, ids: string[]): void {
  const first = ids.slice(0, JOBS_NAMED).join(', ');
  const rest = ids.length > JOBS_NAMED ? ` and ${ids.length - JOBS_NAMED} more` : '';
  const what = ids.length > 0 ? `for the end of ${ids.length === 1 ? 'job' : 'jobs'} ${first}${rest}` : 'for the store';
  const message = `worker.close() of queue "${name}" still waits ${what}; worker.close(true) does not wait.`;
  process.emitWarning(message, { type: 'HoldfastWarning', code: 'HOLDFAST_CLOSE_WAITS' });
}
