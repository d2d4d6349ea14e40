// Removes a job from outside. A store keeps an active job. If the job's lock has expired, it has no owner and only waits to be swept.
import { checkBoolean } from '../runtime/check.js';
import { OptionNames } from '../runtime/option-names.js';
import type { Store } from '../store/contract/index.js';

export interface RemoveOptions {
  /** Option of BullMQ. No job has children in this version, so it has no effect. */
  removeChildren?: boolean;
}

const NAMES = new OptionNames<RemoveOptions>({ of: 'remove', known: { removeChildren: true } });

export function checkRemoveOptions(options: RemoveOptions): void {
  const { removeChildren = false } = NAMES.checked(options);
  checkBoolean('removeChildren', removeChildren);
}

const SWEPT_AT_ONCE = 100;

type Removal = 'done' | 'missing' | 'locked' | 'scheduled';

/** Removes a job. An active job whose lock has expired is swept first, as any worker would, and then removed unless a worker was faster. */
export async function removeJob(store: Store, queue: string, jobId: string): Promise<Removal> {
  const status = await remove(store, queue, jobId);
  if (status !== 'locked') return status;
  // Negative: stores round down, so a lock with 0 ms left may still be alive.
  while (((await store.locks(queue, { jobIds: [jobId] }))[0]?.endsInMs ?? 0) < 0) {
    const { more } = await store.sweep(queue, SWEPT_AT_ONCE);
    const again = await remove(store, queue, jobId);
    if (again !== 'locked' || !more) return again;
  }
  return 'locked';
}

async function remove(store: Store, queue: string, jobId: string): Promise<Removal> {
  const { changed, others } = await store.change(queue, [jobId], { kind: 'remove' });
  if (changed.length > 0) return 'done';
  const status = others[0]?.status;
  return status === 'locked' || status === 'scheduled' ? status : 'missing';
}
