// Sessions: what a worker or a lock client holds its locks with.

export interface Sessions {
  /**
   * Opens a session with a full duration from now. The id must never have been used; an id that is open is an error. After a lost
   * reply, open another under a new id: the first one holds nothing and expires by itself.
   */
  openSession(session: NewSession): Promise<void>;
  /**
   * A full duration from now for each session that was not reaped, even if it has expired; never revives a reaped one.
   * One round trip. Clears a suspicion (`probe`).
   */
  renew(renewals: Renewal[]): Promise<RenewReply[]>;
  /**
   * Ends sessions and hands back everything that they hold, named locks too, at once. `charged` says whether that counts as a stall
   * (a crash that could still speak: `lostBy` says `exit`) or not (a shutdown). A session that is gone already is fine.
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
  /** How often a job of this session may stall before it fails. */
  maxStalls: number;
  /** How many jobs it is willing to run at once; 0 for one that only holds locks. */
  slots: number;
  /** How long it lives on after a hint that its owner died. Default CRASH_GRACE_MS. */
  graceMs?: number;
}

/** Also of sessions that were opened before a store knew of graces. */
export const CRASH_GRACE_MS = 2000;

export interface Renewal extends SessionRef {
  /** What `slots` is now, if it has changed. */
  slots?: number;
  /** The highest revocation number that this session has seen; the store may forget those up to it. */
  acked: number;
}

export interface RenewReply {
  /** False: reaped or closed. It stays so for ever. */
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
