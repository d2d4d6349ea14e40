// The crash hint. A process that opens sessions holds an advisory lock on a direct connection for as long as it lives. The server drops
// the lock when the connection ends, within milliseconds of a kill. If a probe can take the lock, its owner is gone. A hint may only
// shorten a session to its grace, never end it.
import type { ProbeReply, SessionCheck, SessionRef } from '../contract/index.js';
import { KEEPING_MS } from './driver/server.js';
import type { Engine } from './driver/engine.js';

/** Timeout of a suspicion check: its caller repeats it soon, with a reply or without. */
const ASK_MS = 2_000;

type Probed = [sessions: number, dueInMs: number | null, suspectedNow: number, undone: boolean | null];

/** Checks which processes are gone. Without hints of its own, a process suspects no other. */
export async function probe({ server, hinted }: Engine, queue: string): Promise<ProbeReply> {
  const look = (): Promise<Probed> => server.call<Probed>('probe', { name: queue, hinted }, KEEPING_MS);
  let [sessions, dueInMs, suspectedNow, undone] = await look();
  // The suspicion is committed now: the second call sets when the suspected sessions end.
  if (suspectedNow > 0) [sessions, dueInMs, suspectedNow, undone] = await look();
  const reply: ProbeReply = dueInMs === null ? { sessions } : { sessions, dueInMs: Math.max(0, dueInMs) };
  if (undone === true) reply.undone = true;
  return reply;
}

export async function checkSessions({ server }: Engine, sessions: SessionRef[]): Promise<SessionCheck[]> {
  const [one] = sessions;
  if (one !== undefined && sessions.length === 1) {
    const rows = await server.askShort('unsuspected_alone', { queue: one.queue, id: one.id }, ASK_MS);
    if (rows !== undefined) return [{ unsuspected: rows[0]?.[0] === true, noticed: rows[0]?.[1] === true }];
  }
  const values = { names: sessions.map(({ queue }) => queue), ids: sessions.map(({ id }) => id), notices: true };
  const [replies, noticed] = await server.ask<[boolean[], boolean[]]>('unsuspected', values, ASK_MS);
  return replies.map((unsuspected, index) => ({ unsuspected, noticed: noticed[index] === true }));
}
