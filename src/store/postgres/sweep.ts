// Finds dead sessions and expired locks, and hands their jobs back. Any worker may call it. A sweep never waits for a lock: it leaves a
// row that another transaction holds to that transaction, or to the next sweep.
import type { SweepReply } from '../contract/index.js';
import type { Engine } from './driver/engine.js';
import { KEEPING_MS, type Server } from './driver/server.js';

/** Servers on which a reap was rehearsed (rehearse_reap). */
const rehearsed = new WeakSet<Server>();

/** The reply of the SQL function. `reaped`: how many sessions died, in whole or in part. `sent`: the sweep has written messages. */
type SweptRow = Omit<SweepReply, 'lostBy'> & { lostBy: (string | null)[] | null; reaped: number; sent?: boolean };

export async function sweep({ server, wake, relays }: Engine, queue: string, limit: number): Promise<SweepReply> {
  const { lostBy, reaped, sent, ...reply } = await sweepRow(server, queue, limit);
  if (sent === true) await relays.after(queue);
  if (reaped > 0) wake.signal(queue, 'both');
  else if (reply.stalled.length + reply.failed.length > 0) wake.signal(queue, 'jobs');
  return lostBy === null ? reply : { ...reply, lostBy };
}

async function sweepRow(server: Server, queue: string, limit: number): Promise<SweptRow> {
  const looks = await server.short('sweep_look', { queue }, KEEPING_MS);
  if (looks === undefined) return sweepWhole(server, queue, limit);
  const [number, anyEnded, anyLooked, renewed, upkeep] = looks[0] ?? [];
  let swept: SweptRow = { stalled: [], failed: [], reaped: 0, more: false, lostBy: null };
  if (anyEnded === true || anyLooked === true) {
    const found = { queue: number, limit, anyEnded, anyRenewed: renewed ?? false };
    const rows = await server.short('sweep_reap', found, KEEPING_MS);
    if (rows === undefined) return sweepWhole(server, queue, limit);
    const [reply, sent] = rows[0] ?? [];
    swept = { ...(JSON.parse(reply as string) as SweptRow), sent: sent === true };
  }
  const { reaped, stalled, failed, more } = swept;
  const nothing = !more && reaped + stalled.length + failed.length === 0;
  if (!nothing) return swept;
  if (upkeep === true) {
    await server.short('sweep_upkeep', { queue: number }, KEEPING_MS);
  } else if (!rehearsed.has(server)) {
    rehearsed.add(server);
    await server.short('rehearse_reap', {}, KEEPING_MS);
  }
  return swept;
}

async function sweepWhole(server: Server, queue: string, limit: number): Promise<SweptRow> {
  let sent = false;
  const onSent = (): void => void (sent = true);
  const swept = await server.callAndSend<SweptRow>('sweep', { name: queue, limit }, onSent, KEEPING_MS);
  return { ...swept, sent };
}
