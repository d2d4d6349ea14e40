// Sessions: open, renew, close, and the check for suspicion. A renewal must never revive an ended session (`renew` in lua/sessions.lua).
import {
  CRASH_GRACE_MS,
  type NewSession,
  type Notice,
  type Renewal,
  type RenewReply,
  type SessionCheck,
  type SessionEnd,
  type SessionRef,
} from '../contract/index.js';
import { tokenOf } from '../../job/lock.js';
import { freeText } from './record.js';
import type { Runner } from './driver/runner.js';
import type { Engine } from './driver/engine.js';

/** Sessions that one script renews or checks: this takes Redis about 1 ms. */
const SESSIONS_AT_ONCE = 200;

export async function openSession({ run, presence, registry }: Engine, session: NewSession): Promise<void> {
  const { queue, id, owner, durationMs, maxStalls, slots, graceMs = CRASH_GRACE_MS } = session;
  registry.write(queue);
  await run('open-session', queue, [
    id,
    freeText(owner.host),
    owner.pid,
    freeText(owner.name),
    durationMs,
    maxStalls,
    presence.current ?? '',
    freeText(owner.instance),
    slots,
    graceMs,
  ]);
  presence.vouchFor(queue, id);
}

/** Renews sessions in one round trip: the scripts of all queues are sent together. */
export async function renew({ run, presence }: Engine, renewals: Renewal[]): Promise<RenewReply[]> {
  const replies = renewals.map((): RenewReply => ({ alive: false, notices: [] }));
  const work = byQueue(renewals).map(([queue, indexes]) => renewPart(run, queue, indexes, renewals, presence.current, replies));
  await Promise.all(work);
  renewals.forEach(({ queue, id }, index) => {
    if (replies[index]?.alive === true) presence.vouchFor(queue, id);
    else presence.forget(queue, id);
  });
  return replies;
}

async function renewPart(
  run: Runner,
  queue: string,
  indexes: number[],
  renewals: Renewal[],
  presence: string | undefined,
  replies: RenewReply[],
): Promise<void> {
  const sessions = indexes.map((index) => renewals[index] as Renewal);
  const args = sessions.flatMap(({ id, acked, slots }) => [id, acked, slots ?? '']);
  const raw = (await run('renew', queue, [presence ?? '', ...args])) as (0 | string[])[];
  indexes.forEach((index, at) => {
    const notices = raw[at];
    const { id } = renewals[index] as Renewal;
    if (Array.isArray(notices)) replies[index] = { alive: true, notices: readNotices(id, notices) };
  });
}

/** Both kinds share one row of numbers, and each comes in order. */
function readNotices(session: string, texts: string[]): Notice[] {
  return texts.map((text) => readNotice(session, text)).sort((a, b) => a.number - b.number);
}

function readNotice(session: string, text: string): Notice {
  const [number, jobId = '', fence, reason = '', cancelled] = text.split('\0');
  const kind = cancelled === undefined ? 'revoked' : 'cancelled';
  return { number: Number(number), kind, jobId, token: tokenOf(session, Number(fence)), fence: Number(fence), reason };
}

export async function closeSessions({ run, relays, presence }: Engine, sessions: SessionRef[], how: SessionEnd): Promise<void> {
  await Promise.all(
    sessions.map(async ({ queue, id }) => {
      for (let left = 1; left === 1; ) {
        const reply = (await run('close-session', queue, [id, how === 'crashed' ? 1 : 0])) as number | [number, ...string[]];
        if (Array.isArray(reply)) await relays.after(queue, reply.slice(1) as string[]);
        left = Array.isArray(reply) ? reply[0] : reply;
      }
    }),
  );
  for (const { queue, id } of sessions) presence.forget(queue, id);
}

export async function checkSessions({ run }: Engine, sessions: SessionRef[]): Promise<SessionCheck[]> {
  const replies = sessions.map((): SessionCheck => ({ unsuspected: false, noticed: false }));
  const work = byQueue(sessions).map(async ([queue, indexes]) => {
    const ids = indexes.map((index) => (sessions[index] as SessionRef).id);
    const raw = (await run('check-sessions', queue, ids)) as number[];
    indexes.forEach((index, at) => {
      const bits = raw[at] ?? 0;
      replies[index] = { unsuspected: bits % 2 === 1, noticed: bits >= 2 };
    });
  });
  await Promise.all(work);
  return replies;
}

/** Returns the places of the sessions in the list, by queue, in parts for one script each. */
function byQueue(sessions: SessionRef[]): [queue: string, indexes: number[]][] {
  const parts: [string, number[]][] = [];
  const last = new Map<string, number[]>();
  sessions.forEach(({ queue }, index) => {
    let part = last.get(queue);
    if (part === undefined || part.length === SESSIONS_AT_ONCE) {
      last.set(queue, (part = []));
      parts.push([queue, part]);
    }
    part.push(index);
  });
  return parts;
}
