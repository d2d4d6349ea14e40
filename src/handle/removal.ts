// Removes a job from outside. A store keeps an active job. If the job's lock has expired, it has no owner and only waits to be swept.
import { idsByQueue, type JobRef, LINK_STATES, refKey } from '../job/family.js';
import { checkBoolean } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import type { Store } from '../store/contract/index.js';
import { readLinks } from './read-links.js';

export interface RemoveOptions {
  /** Default true: its children are removed too, with theirs, unless they have another parent. */
  removeChildren?: boolean;
}

const NAMES = new OptionNames<RemoveOptions>({ of: 'remove', known: { removeChildren: true } });

export function checkRemoveOptions(options: RemoveOptions): void {
  const { removeChildren = true } = NAMES.checked(options);
  checkBoolean('removeChildren', removeChildren);
}

const SWEPT_AT_ONCE = 100;
const READ_AT_ONCE = 500;

type Removal = 'done' | 'missing' | 'locked' | 'scheduled';

/**
 * Removes a job. An active job whose lock has expired is swept first, as any worker would, and then removed unless a worker was faster.
 * With its children, nothing is removed while one of them is locked.
 */
export async function removeJob(store: Store, queue: string, jobId: string, options: RemoveOptions = {}): Promise<Removal> {
  const children = options.removeChildren !== false && store.capabilities.families === true;
  if (children && (await isFamilyLocked(store, { queue, id: jobId }))) return 'locked';
  const remove = (): Promise<Removal> => removeOne(store, queue, jobId, children);
  const status = await remove();
  if (status !== 'locked') return status;
  // Negative: stores round down, so a lock with 0 ms left may still be alive.
  while (((await store.locks(queue, { jobIds: [jobId] }))[0]?.endsInMs ?? 0) < 0) {
    const { more } = await store.sweep(queue, SWEPT_AT_ONCE);
    const again = await remove();
    if (again !== 'locked' || !more) return again;
  }
  return 'locked';
}

/** True if a descendant of the job is locked. The job itself is left to the store. */
async function isFamilyLocked(store: Store, root: JobRef): Promise<boolean> {
  const seen = new Set<string>();
  const steps = [root];
  for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
    const links = await readLinks(store, step.queue, step.id, [...LINK_STATES]);
    const children = links.map(({ child }) => child).filter((child) => !seen.has(refKey(child)));
    for (const child of children) seen.add(refKey(child));
    for (const [queue, jobIds] of idsByQueue(children, READ_AT_ONCE)) {
      const locks = await store.locks(queue, { jobIds });
      if (locks.some((lock) => lock !== undefined && lock.endsInMs >= 0)) return true;
    }
    steps.push(...children);
  }
  return false;
}

async function removeOne(store: Store, queue: string, jobId: string, children: boolean): Promise<Removal> {
  const { changed, others } = await store.change(queue, [jobId], { kind: 'remove', ...(children && { children }) });
  if (changed.length > 0) return 'done';
  const status = others[0]?.status;
  return status === 'locked' || status === 'scheduled' ? status : 'missing';
}
