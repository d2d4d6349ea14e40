// Opens, renews and closes sessions. Session owners and the renewer call it through the store. A renewal must never revive a session that
// was reaped.
import { tokenOf } from '../../job/lock.js';
import {
  CRASH_GRACE_MS,
  type NewSession,
  type Notice,
  type Renewal,
  type RenewReply,
  type SessionEnd,
  type SessionRef,
} from '../contract/index.js';
import type { Engine } from './driver/engine.js';
import { KEEPING_MS, type Server } from './driver/server.js';

export function openSession(engine: Engine, session: NewSession): Promise<void> {
  const { queue, id, owner, durationMs, maxStalls, slots, graceMs = CRASH_GRACE_MS } = session;
  const { host, pid, name, instance } = owner;
  return engine.vouch(async ({ presence, vouched }) => {
    await engine.server.call('open_session', {
      name: queue,
      id,
      host,
      pid,
      owner: name,
      instance,
      duration: durationMs,
      maxStalls,
      slots,
      grace: graceMs,
      presence,
      vouched,
    });
  });
}

type NoticeRow = [number: number, jobId: string, fence: number, reason: string, kind: Notice['kind']];
/** Null: the session was reaped or closed. */
type StoredNotices = NoticeRow[] | null;

export async function renew({ server, wake }: Engine, renewals: Renewal[]): Promise<RenewReply[]> {
  const rows = await (renewals.length === 1 ? renewOne(server, renewals[0] as Renewal) : renewMany(server, renewals));
  // Slots that a session gives up leave jobs for other sessions.
  for (const { queue, slots } of renewals) if (slots !== undefined) wake.signal(queue, 'jobs');
  return renewals.map(({ id }, index) => {
    const row = rows[index] ?? null;
    if (row === null) return { alive: false, notices: [] };
    const notices = row.map(([number, jobId, fence, reason, kind]): Notice => {
      return { number, kind, jobId, token: tokenOf(id, fence), fence, reason };
    });
    return { alive: true, notices };
  });
}

async function renewOne(server: Server, { queue, id, acked, slots }: Renewal): Promise<StoredNotices[]> {
  return [await server.call<StoredNotices>('renew_one', { name: queue, id, acked, slots }, KEEPING_MS)];
}

function renewMany(server: Server, renewals: Renewal[]): Promise<StoredNotices[]> {
  const values = {
    names: renewals.map(({ queue }) => queue),
    ids: renewals.map(({ id }) => id),
    acked: renewals.map(({ acked }) => acked),
    slots: renewals.map(({ slots }) => slots ?? null),
  };
  return server.call<StoredNotices[]>('renew', values, KEEPING_MS);
}

export async function closeSessions(engine: Engine, sessions: SessionRef[], how: SessionEnd): Promise<void> {
  const values = { names: sessions.map(({ queue }) => queue), ids: sessions.map(({ id }) => id), charged: how === 'crashed' };
  const queues = [...new Set(sessions.map(({ queue }) => queue))];
  await engine.sending(queues, (calls) => calls.call('close_sessions', values));
  for (const queue of queues) engine.wake.signal(queue, 'both');
  for (const { id } of sessions) engine.unanswered.delete(id);
}
