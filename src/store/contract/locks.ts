// Locks of jobs, and named locks.
import type { SettleStatus } from '../../job/outcome.js';
import type { Owner } from './sessions.js';

export interface Locks {
  /**
   * Makes locks last at least `durationMs` from now. A timed lock then ends exactly there. A lock that lives as long as its
   * session keeps doing so and survives the session until there.
   */
  extend(queue: string, extensions: Extension[]): Promise<ExtendStatus[]>;
  /**
   * Takes locks away: the jobs go to the front of waiting in the given order, uncharged, and the sessions learn of it at their next renewal.
   * False: not active.
   */
  revoke(queue: string, jobIds: string[], reason: string): Promise<boolean[]>;
  /**
   * Takes named locks, which live as long as their session, or lines up for them. A lock that is free, or whose session has expired
   * (swept or not), goes to whoever has waited longest for it of those whose place is still kept; a wish behind others waits, even
   * when the lock is free. Whoever takes it from an expired session ends that session: a late renewal must not bring back a holder.
   * The same token again: the same answer once it holds, else the same place in line, kept from now on. A place that has lapsed is
   * lost; that of an expired session does not count until it is renewed.
   */
  acquire(queue: string, wishes: LockRequest[]): Promise<LockGrant[]>;
  /** Gives named locks back, or places in line that have not lapsed. False: that token neither held nor waited. */
  letGo(queue: string, locks: NamedLockRef[]): Promise<boolean[]>;
}

export interface NamedLockRef {
  name: string;
  /** Chosen by the caller, new for every acquisition, so that a wish can be repeated after a lost reply. */
  token: string;
}

export interface LockRequest extends NamedLockRef {
  session: string;
  /** How long its place in line is kept without being asked for again. 0: it does not wait, and leaves the line where it stood. */
  keepPlaceMs: number;
}

export interface LockGrant {
  /** taken: somebody else holds it, or comes first. gone: the session is dead, nothing was taken. */
  status: 'held' | 'taken' | 'gone';
  /** Of a held one. Grows with every acquisition of the queue, those of jobs included. */
  fence?: number;
  /** Of a taken one: how many stand in line before this wish. */
  ahead?: number;
  /** Of a taken one: when its holder is dead if nobody renews its session. Absent: nobody holds it, but others come first. */
  endsInMs?: number;
}

export interface Extension {
  jobId: string;
  token: string;
  durationMs: number;
}

/** finished: this very token has finished the job meanwhile, so nothing was lost. lost, missing: nothing was changed. */
export type ExtendStatus = SettleStatus | 'finished';

export interface LockInfo extends Holding {
  jobId: string;
}

export interface NamedLockInfo extends Holding {
  name: string;
  /** How many stand in line for it. */
  waiting: number;
}

export interface Holding {
  token: string;
  fence: number;
  /** The session that holds it. */
  session: string;
  owner: Owner;
  /** Store's epoch ms. */
  since: number;
  /** Until it is dead if nobody renews; negative when it is dead already and was not swept yet. */
  endsInMs: number;
}

export interface OwnedLock {
  jobId: string;
  token: string;
  fence: number;
  /** The seq of the claim. */
  seq: number;
}
