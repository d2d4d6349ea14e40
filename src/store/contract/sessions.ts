// Sessions. A worker or a lock client holds its locks through a session, and renews that session instead of each lock.

export interface Sessions {
  /**
   * Opens a session with a full duration from now. The id must be new; an id that is open is an error. After a lost reply, the caller
   * opens another session under a new id: the first one holds nothing and expires.
   */
  openSession(session: NewSession): Promise<void>;
  /**
   * Gives each session a full duration from now, also one that has expired and was not swept yet. A session that was swept or closed
   * stays dead. One round trip. A renewal clears a suspicion (`probe`).
   */
  renew(renewals: Renewal[]): Promise<RenewReply[]>;
  /**
   * Ends sessions and hands back all their locks at once, named locks too. Sessions that are gone already are ignored.
   */
  closeSessions(sessions: SessionRef[], how: SessionEnd): Promise<void>;
}

/**
 * closed: the owner shut down; its jobs wait again, and no stall is counted. crashed: the owner's process dies, but could still make the
 * call; each job counts a stall, and its `lostBy` says `exit`.
 */
export type SessionEnd = 'closed' | 'crashed';

export const STALLED_REASON = 'job stalled more than allowable limit';

export interface SessionRef {
  queue: string;
  id: string;
}

export interface Owner {
  host: string;
  pid: number;
  name: string;
  /** The running program that this session belongs to: a process, unless its user named it otherwise. */
  instance: string;
}

export interface NewSession extends SessionRef {
  owner: Owner;
  durationMs: number;
  /** A job of this session fails when it stalls more often than this. */
  maxStalls: number;
  /** The number of jobs that its owner runs at once; 0 for a session that only holds locks. */
  slots: number;
  /** The time that the session has left after a hint that its process died. Default CRASH_GRACE_MS. */
  graceMs?: number;
}

/** The default grace, also for sessions that were opened by versions without `graceMs`. */
export const CRASH_GRACE_MS = 2000;

export interface Renewal extends SessionRef {
  /** The new number of slots, if it has changed. */
  slots?: number;
  /** The highest number of a notice that this session has seen; the store may forget notices up to it. */
  acked: number;
}

export interface RenewReply {
  /** False: the session was swept or closed, which is final. */
  alive: boolean;
  /** Changes to locks of this session from outside, with numbers above `acked`, ascending. */
  notices: Notice[];
}

export interface Notice {
  number: number;
  /** revoked: the lock was taken away. cancelled: the lock stays, and the run must end. */
  kind: 'revoked' | 'cancelled';
  jobId: string;
  token: string;
  fence: number;
  reason: string;
}

export interface SessionInfo extends SessionRef {
  owner: Owner;
  durationMs: number;
  /** Store's epoch ms. */
  since: number;
  renewals: number;
  expiresInMs: number;
  suspected: boolean;
  slots: number;
  /** Of jobs. */
  locks: number;
}
