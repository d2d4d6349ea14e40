// Cancels jobs from outside a run, in whatever process they run.
import { idsByQueue, type JobRef, refKey } from '../job/family.js';
import { checkBoolean, keepable, show } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import { HoldfastError } from '../errors.js';
import { batchOf } from '../store/capabilities.js';
import type { Store } from '../store/contract/index.js';
import { readLinks } from './read-links.js';

export interface CancelOptions {
  /** true: its children that have not ended are cancelled too, and theirs. Default false: they go on. */
  children?: boolean;
}

const NAMES = new OptionNames<CancelOptions>({ of: 'cancel', known: { children: true } });
/** The longest reason, in characters. Longer ones are cut. */
const MAX_REASON = 1000;

/** Returns false if the job has finished or does not exist. */
export async function cancelJob(
  store: Store,
  queue: string,
  id: string,
  reason: unknown,
  options: CancelOptions,
): Promise<boolean> {
  const { children = false } = NAMES.checked(options);
  const change = { kind: 'cancel', reason: cancelReason(reason) } as const;
  // Before the job itself: the end of a parent does not delete its links, but its removal does.
  const below = checkBoolean('children', children) ? await descendants(store, { queue, id }) : [];
  const { changed } = await store.change(queue, [id], change);
  for (const [childQueue, ids] of idsByQueue(below, batchOf(store.capabilities))) await store.change(childQueue, ids, change);
  return changed.length > 0;
}

/** Returns the text that a cancelled job fails with. */
export function cancelReason(reason: unknown): string {
  if (reason === undefined || reason === '') return 'cancelled';
  if (typeof reason === 'string') return `cancelled: ${keepable(reason, MAX_REASON)}`;
  const message = `The reason of a cancel must be a text, because it crosses processes, but it is ${show(reason)}.`;
  throw new HoldfastError('INVALID_OPTION', message, { option: 'reason' });
}

/** Returns the children of a job that have not ended, and theirs. */
async function descendants(store: Store, root: JobRef): Promise<JobRef[]> {
  const found = new Map<string, JobRef>();
  const left = [root];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    for (const { child } of await readLinks(store, next.queue, next.id, ['pending'])) {
      if (found.has(refKey(child))) continue;
      found.set(refKey(child), child);
      left.push(child);
    }
  }
  return [...found.values()];
}
