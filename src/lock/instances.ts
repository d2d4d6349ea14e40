// The running programs of a queue, read from their sessions: there is no other registry, so none that could disagree with who holds what.
import type { NamedLockInfo, SessionInfo } from '../store/contract/index.js';

export interface Instance {
  id: string;
  host: string;
  pid: number;
  /** Workers that take jobs. */
  workers: number;
  /** Jobs that they are willing to run at once. */
  slots: number;
  /** Jobs that are running, or were taken by hand. */
  running: number;
  /** In ms since the epoch, on the store's clock. */
  since: number;
  /** When it was last heard of, in ms since the epoch, on this host's clock. */
  lastSeen: number;
  leader: boolean;
}

/** One for each process and instance id, oldest first. Sessions that have expired, swept or not, belong to nobody alive. */
export function instancesOf(sessions: SessionInfo[], leadership: NamedLockInfo | undefined, wallMs: number): Instance[] {
  const instances = new Map<string, Instance>();
  for (const session of sessions.filter(({ expiresInMs }) => expiresInMs > 0)) {
    const { host, pid, instance: id } = session.owner;
    const key = JSON.stringify([id, host, pid]);
    const lastSeen = Math.round(wallMs - Math.max(0, session.durationMs - session.expiresInMs));
    const { since } = session;
    const known = instances.get(key) ?? { id, host, pid, workers: 0, slots: 0, running: 0, since, lastSeen, leader: false };
    known.workers += session.slots > 0 ? 1 : 0;
    known.slots += session.slots;
    known.running += session.locks;
    known.since = Math.min(known.since, since);
    known.lastSeen = Math.max(known.lastSeen, lastSeen);
    known.leader ||= session.id === leadership?.session;
    instances.set(key, known);
  }
  return [...instances.values()].sort((a, b) => a.since - b.since);
}
