// Named locks: acquire, release, and the queue of lock waiters. Lock clients call it through the store. A name must never have two living
// owners.
import type { LetGoStatus, LockGrant, LockRequest, NamedLockRef } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

type GrantRow = [status: LockGrant['status'], fence?: number | null, ahead?: number | null, endsInMs?: number | null];

export async function acquire({ server }: Engine, queue: string, wishes: LockRequest[]): Promise<LockGrant[]> {
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

export async function letGo({ server, wake }: Engine, queue: string, locks: NamedLockRef[]): Promise<LetGoStatus[]> {
  const values = { name: queue, names: locks.map(({ name }) => name), tokens: locks.map(({ token }) => token) };
  const freed = await server.call<boolean[]>('let_go', values);
  if (freed.includes(true)) wake.signal(queue, 'locks');
  return freed.map((isFree) => (isFree ? 'done' : 'missing'));
}
