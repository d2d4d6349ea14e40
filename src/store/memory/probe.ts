// The verbs `probe` and `checkSessions` of the memory store.
import type { ProbeReply, SessionCheck } from '../contract/index.js';
import type { QueueState } from './state/queue-state.js';

/** Returns the number of open sessions. It suspects no session, because all sessions live in this process and end with it. */
export function probe(queue: QueueState): ProbeReply {
  let sessions = 0;
  for (const session of queue.sessions.values()) if (session.open) sessions += 1;
  return queue.schedules.owing > 0 ? { sessions, undone: true } : { sessions };
}

export function check(queue: QueueState, id: string, now: number): SessionCheck {
  const session = queue.sessions.get(id);
  return { unsuspected: session?.isAlive(now) === true, noticed: session !== undefined && session.notices.length > 0 };
}
