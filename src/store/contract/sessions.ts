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
   * Ends sessions and hands back all their locks at once, named locks too. With `charged` this counts as a stall (a process that crashes
   * but can still make this call; `lostBy` is `exit`), without it not (a shutdown). Sessions that are gone already are ignored.
   */
  closeSessions(sessions: SessionRef[], charged: boolean): Promise<void>;
}

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
  /** The highest revocation number that this session has seen; the store may forget those up to it. */
  acked: number;
}

export interface RenewReply {
  /** False: the session was swept or closed, which is final. */
  alive: boolean;
  /** Locks of this session that were taken away, above `acked`, ascending. */
  revoked: Revocation[];
}

export interface Revocation {
  number: number;
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
