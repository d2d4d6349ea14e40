// Named locks: acquire, let go, look. Each function writes the arguments of a Lua script and reads its reply; Redis decides on ownership.
import type { LockGrant, LockRequest, NamedLockInfo, NamedLockRef } from '../contract/index.js';
import { type RawOwner, readOwner } from './inspect.js';
import type { Runner } from './runner.js';

/** A reply of lua/acquire.lua. */
type RawGrant = [status: 'g'] | [status: 'h', fence: string] | [status: 't', ahead: number, endsInMs: number | ''];

export async function acquire(run: Runner, queue: string, wishes: LockRequest[]): Promise<LockGrant[]> {
  const args = wishes.flatMap(({ name, token, session, keepPlaceMs }) => [name, token, session, keepPlaceMs]);
  return ((await run('acquire', queue, args)) as RawGrant[]).map(readGrant);
}

function readGrant(grant: RawGrant): LockGrant {
  if (grant[0] === 'g') return { status: 'gone' };
  if (grant[0] === 'h') return { status: 'held', fence: Number(grant[1]) };
  const [, ahead, endsInMs] = grant;
  return { status: 'taken', ahead, ...(endsInMs !== '' && { endsInMs }) };
}

export async function letGo(run: Runner, queue: string, locks: NamedLockRef[]): Promise<boolean[]> {
  const args = locks.flatMap(({ name, token }) => [name, token]);
  return ((await run('let-go', queue, args)) as number[]).map((reply) => reply === 1);
}

type RawLock = [token: string, fence: string, session: string, since: string, endsInMs: number, waiting: number, ...RawOwner];

export async function look(run: Runner, queue: string, names: string[]): Promise<(NamedLockInfo | undefined)[]> {
  const replies = (await run('named-locks', queue, names)) as (RawLock | 0)[];
  return names.map((name, index) => {
    const reply = replies[index];
    if (!Array.isArray(reply)) return undefined;
    const [token, fence, session, since, endsInMs, waiting, ...raw] = reply;
    return { name, token, fence: Number(fence), session, owner: readOwner(raw), since: Number(since), endsInMs, waiting };
  });
}
