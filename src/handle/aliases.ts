// The names that callers give to the tokens of jobs which they take by hand (`worker.getNextJob('my-token')`). All handles of the process know
// them, so a job that was loaded again by its id can be moved under the same name.
import type { JobLock } from '../job/lock.js';
import type { JobContext } from './job-context.js';

/** A lock and the context that holds it. */
export interface Aliased {
  readonly lock: JobLock;
  readonly context: Pick<JobContext, 'ready' | 'settle' | 'extend'>;
}

/** By queue, job and name. A job can be taken again under the same name, and stores of one process may have jobs of the same id. */
const known = new Map<string, Aliased>();

export function setAlias(stored: string, jobId: string, alias: string, aliased: Aliased): void {
  known.set(keyOf(stored, jobId, alias), aliased);
}

export function aliasedLock(stored: string, jobId: string, alias: string): Aliased | undefined {
  return known.get(keyOf(stored, jobId, alias));
}

export function dropAlias(stored: string, jobId: string, alias: string, lock: JobLock): void {
  const key = keyOf(stored, jobId, alias);
  if (known.get(key)?.lock === lock) known.delete(key);
}

function keyOf(...parts: string[]): string {
  return parts.join('\n');
}
