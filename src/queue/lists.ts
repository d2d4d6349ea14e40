// The job types that users know, and the lists that a store has: 'wait' is another name of waiting, the waiting jobs of a paused
// queue count as 'paused', and 'repeat' and 'waiting-children' are always empty in this version.
import type { JobType } from '../job/state.js';
import { invalidOption } from '../runtime/check.js';
import type { ListName, QueueStatus } from '../store/contract.js';

const ALL: readonly JobType[] = [
  'active',
  'completed',
  'delayed',
  'failed',
  'paused',
  'prioritized',
  'waiting',
  'waiting-children',
];
const KNOWN: ReadonlySet<string> = new Set([...ALL, 'wait', 'repeat']);

/** Without any, all. Asking for the waiting ones means those of a paused queue too, as in BullMQ. */
export function checkTypes(types: JobType | readonly JobType[] | undefined): JobType[] {
  const asked = types === undefined ? [] : typeof types === 'string' ? [types] : types;
  if (!Array.isArray(asked)) throw invalidOption('types', types, 'a job type or a list of them');
  for (const type of asked as unknown[]) {
    if (typeof type !== 'string' || !KNOWN.has(type)) throw invalidOption('types', type, `one of ${[...KNOWN].join(', ')}`);
  }
  const chosen = new Set<JobType>(asked.length === 0 ? ALL : (asked as JobType[]));
  if (chosen.has('waiting')) chosen.add('paused');
  return [...chosen];
}

export function listsOf(types: readonly JobType[], paused: boolean): ListName[] {
  const lists = new Set<ListName>();
  for (const type of types) {
    if (type === 'wait') lists.add('waiting');
    else if (type === 'paused') {
      if (paused) lists.add('waiting');
    } else if (type !== 'repeat' && type !== 'waiting-children') lists.add(type);
  }
  return [...lists];
}

export function countOf(type: JobType, { counts, paused }: QueueStatus): number {
  if (type === 'repeat' || type === 'waiting-children') return 0;
  if (type === 'waiting' || type === 'wait') return paused ? 0 : counts.waiting;
  if (type === 'paused') return paused ? counts.waiting : 0;
  return counts[type];
}
