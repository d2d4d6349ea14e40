// Maps the job types that users know to the lists of a store. 'wait' is another name of waiting. Jobs of a paused queue are waiting, as in
// BullMQ 6, so 'paused' is always empty. So is 'repeat', because schedules are no jobs.
import type { JobType } from '../job/state.js';
import { invalidOption } from '../runtime/check.js';
import type { ListName, QueueStatus } from '../store/contract/index.js';

const ALL: readonly JobType[] = ['active', 'completed', 'delayed', 'failed', 'prioritized', 'waiting', 'waiting-children'];
const KNOWN: ReadonlySet<string> = new Set([...ALL, 'wait', 'paused', 'repeat']);

/** Returns the checked types. Without any, all types. */
export function checkTypes(types: JobType | readonly JobType[] | undefined): JobType[] {
  const asked = types === undefined ? [] : typeof types === 'string' ? [types] : types;
  if (!Array.isArray(asked)) throw invalidOption('types', types, 'a job type or a list of them');
  for (const type of asked as unknown[]) {
    if (typeof type !== 'string' || !KNOWN.has(type)) throw invalidOption('types', type, `one of ${[...KNOWN].join(', ')}`);
  }
  return [...new Set<JobType>(asked.length === 0 ? ALL : (asked as JobType[]))];
}

/** Returns each list once, also when a type was given under two names. */
export function listsOf(types: readonly JobType[]): ListName[] {
  const lists = types.map(listOf).filter((list) => list !== undefined);
  return [...new Set(lists)];
}

export function countOf(type: JobType, { counts }: QueueStatus): number {
  const list = listOf(type);
  return list === undefined ? 0 : counts[list];
}

function listOf(type: JobType): ListName | undefined {
  if (type === 'wait') return 'waiting';
  return type === 'paused' || type === 'repeat' ? undefined : type;
}
