// Lists the running programs of a queue, read from their sessions. There is no second registry that could disagree with the locks.
import type { NamedLockInfo, SessionInfo } from '../store/contract/index.js';

export interface Instance {
  id: string;
  host: string;
  pid: number;
  /** Number of workers that take jobs. */
  workers: number;
  /** How many jobs the workers can run at once. */
  slots: number;
  /** Jobs that are running, or were taken by hand. */
  running: number;
  /** Start of the oldest session, in ms since the epoch on the store's clock. */
  since: number;
  /** The last renewal, in ms since the epoch on this host's clock. */
  lastSeen: number;
  leader: boolean;
}

/** Returns one entry per process and instance id, oldest first. Expired sessions, swept or not, are left out: their owners are dead. */
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
