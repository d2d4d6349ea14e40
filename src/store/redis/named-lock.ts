// Named locks: acquire and let go. Each function writes the arguments of a Lua script and reads its reply; Redis decides on ownership.
import type { LetGoStatus, LockGrant, LockRequest, NamedLockRef } from '../contract/index.js';
import type { Engine } from './driver/engine.js';

/** A reply of `acquire` in lua/named-locks.lua. */
type RawGrant = [status: 'g'] | [status: 'h', fence: string] | [status: 't', ahead: number, endsInMs: number | ''];

export async function acquire({ run }: Engine, queue: string, wishes: LockRequest[]): Promise<LockGrant[]> {
  const args = wishes.flatMap(({ name, token, session, keepPlaceMs }) => [name, token, session, keepPlaceMs]);
  return ((await run('acquire', queue, args)) as RawGrant[]).map(readGrant);
}

function readGrant(grant: RawGrant): LockGrant {
  if (grant[0] === 'g') return { status: 'gone' };
  if (grant[0] === 'h') return { status: 'held', fence: Number(grant[1]) };
  const [, ahead, endsInMs] = grant;
  return { status: 'taken', ahead, ...(endsInMs !== '' && { endsInMs }) };
}

export async function letGo({ run }: Engine, queue: string, locks: NamedLockRef[]): Promise<LetGoStatus[]> {
  const args = locks.flatMap(({ name, token }) => [name, token]);
  return ((await run('let-go', queue, args)) as number[]).map((reply) => (reply === 1 ? 'done' : 'missing'));
}
