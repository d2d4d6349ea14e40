// Takes locks out of a session that is still renewed: their owner has given them up, and its event loop does not reach the store. They expire
// at once, and the next sweep hands their jobs on. The renewer's own connection to the store carries it. The owner repeats its request for as
// long as it does not reach the store, so a failure here is not retried.
import type { DetachedLocks, LockRef } from '../session/renewer.js';
import { batchOf } from '../store/capabilities.js';
import { tokenOf } from '../job/lock.js';
import type { SessionRef, Store } from '../store/contract/index.js';

export async function detachLocks(store: Store, session: SessionRef, { held, claims }: DetachedLocks): Promise<void> {
  const locks = claims.length > 0 ? [...held, ...(await grantedTo(claims, store, session))] : held;
  const extensions = locks.map(({ jobId, token }) => ({ jobId, token, durationMs: 0, alone: true as const }));
  const batch = batchOf(store.capabilities);
  for (let first = 0; first < extensions.length; first += batch) {
    await store.extend(session.queue, extensions.slice(first, first + batch));
  }
}

async function grantedTo(claims: number[], store: Store, { queue, id }: SessionRef): Promise<LockRef[]> {
  const owned = await store.locks(queue, { session: id });
  return owned.filter(({ seq }) => claims.includes(seq));
}

/**
 * Gives back jobs that were claimed ahead and have not begun: they wait again in their old order, and nothing is counted. The owner cannot
 * begin them any more. It gives them back once more when its event loop is free, so a failure here is not retried.
 */
export async function returnJobs(store: Store, { queue, id }: SessionRef, fences: number[]): Promise<void> {
  const wanted = new Set(fences);
  const owned = await store.locks(queue, { session: id });
  const ahead = owned.filter(({ fence }) => wanted.has(fence)).toSorted((one, other) => other.fence - one.fence);
  const batch = batchOf(store.capabilities);
  // The store puts each job to the very front, so the last one goes first.
  for (let first = 0; first < ahead.length; first += batch) {
    const some = ahead.slice(first, first + batch);
    await store.settle(
      queue,
      some.map(({ jobId, fence }) => ({ kind: 'return', jobId, token: tokenOf(id, fence) })),
    );
  }
}
