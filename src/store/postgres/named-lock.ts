// Named locks: acquire, release, and the queue of lock waiters. Lock clients call it through the store. A name must never have two living
// owners.
import type { LockGrant, LockRequest, NamedLockInfo, NamedLockRef } from '../contract/index.js';
import type { Server } from './server.js';

type GrantRow = [status: LockGrant['status'], fence?: number | null, ahead?: number | null, endsInMs?: number | null];

export async function acquire(server: Server, queue: string, wishes: LockRequest[]): Promise<LockGrant[]> {
  const rows = await server.call<GrantRow[]>('acquire', {
    name: queue,
    names: wishes.map(({ name }) => name),
    tokens: wishes.map(({ token }) => token),
    sessions: wishes.map(({ session }) => session),
    keeps: wishes.map(({ keepPlaceMs }) => keepPlaceMs),
  });
  return rows.map(([status, fence, ahead, endsInMs]) => {
    const grant: LockGrant = { status };
    if (typeof fence === 'number') grant.fence = fence;
    if (typeof ahead === 'number') grant.ahead = ahead;
    if (typeof endsInMs === 'number') grant.endsInMs = endsInMs;
    return grant;
  });
}

export function letGo(server: Server, queue: string, locks: NamedLockRef[]): Promise<boolean[]> {
  const values = { name: queue, names: locks.map(({ name }) => name), tokens: locks.map(({ token }) => token) };
  return server.call<boolean[]>('let_go', values);
}

export async function namedLocks(server: Server, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  const rows = await server.call<(NamedLockInfo | null)[]>('named_locks', { name: queue, names });
  return rows.map((row) => row ?? undefined);
}
