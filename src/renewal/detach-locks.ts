// Takes locks out of a session that is still renewed: their owner has given them up, and its event loop does not reach the store. They expire
// at once, and the next sweep hands their jobs on. The renewer's own connection to the store carries it. The owner repeats its request for as
// long as it does not reach the store, so a failure here is not retried.
import type { DetachedLocks, LockRef } from '../session/renewer.js';
import { batchOf } from '../store/capabilities.js';
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
