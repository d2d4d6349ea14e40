// Locks of jobs, and named locks.
import type { SettleStatus } from '../../job/outcome.js';
import type { Owner } from './sessions.js';

export interface Locks {
  /**
   * Makes locks last at least `durationMs` from now. A timed lock then expires exactly at that time. A lock of a session still lasts as
   * long as its session, and survives the session until that time. `alone` makes it a timed lock.
   */
  extend(queue: string, extensions: Extension[]): Promise<ExtendStatus[]>;
  /**
   * Takes named locks, which last as long as their session, or puts the requests in line. A lock that is free, or whose session has
   * expired (swept or not), goes to the request that has waited longest and still has its place. A request behind others waits, even
   * when the lock is free. A grant that takes the lock from an expired session ends that session, because a late renewal must not
   * bring back the former holder.
   * A repetition with the same token returns the same grant if it holds the lock, else it keeps its place in line from now on. A place
   * that was not asked for within `keepPlaceMs` is lost. The place of an expired session does not count until the session is renewed.
   */
  acquire(queue: string, wishes: LockRequest[]): Promise<LockGrant[]>;
  /** Releases named locks, or gives up places in line. Returns `missing` if the token neither held the lock nor waited. */
  letGo(queue: string, locks: NamedLockRef[]): Promise<LetGoStatus[]>;
}

export interface NamedLockRef {
  name: string;
  /** The caller chooses a new one for every acquisition, so that it can repeat a request after a lost reply. */
  token: string;
}

export type LetGoStatus = 'done' | 'missing';

export interface LockRequest extends NamedLockRef {
  session: string;
  /** The place in line is lost if the request is not repeated within this time. 0: the request does not wait, and gives up its place. */
  keepPlaceMs: number;
}

export interface LockGrant {
  /** taken: another token holds it, or comes first. gone: the session is dead, and nothing was taken. */
  status: 'held' | 'taken' | 'gone';
  /** Set if held. Grows with every acquisition in the queue, those of jobs included. */
  fence?: number;
  /** Set if taken: the number of requests in line before this one. */
  ahead?: number;
  /** Set if taken: until the holder's session expires without a renewal. Absent if the lock is free, but other requests come first. */
  endsInMs?: number;
}

export interface Extension {
  jobId: string;
  token: string;
  /** 0: the lock has expired a millisecond later. */
  durationMs: number;
  /**
   * The lock leaves its session and becomes a timed lock: it expires `durationMs` from now, also when the session is renewed. Later
   * extensions only move its end. The session stays named as its owner.
   */
  alone?: true;
}

/** finished: the same token has finished the job meanwhile, so nothing was lost. lost, missing: nothing was changed. */
export type ExtendStatus = SettleStatus | 'finished';

/** The queries of `locks`, and the replies to them. */
export type LockQuery = { jobIds: string[] } | { names: string[] } | { session: string };
export type LockReply = (LockInfo | undefined)[] | (NamedLockInfo | undefined)[] | OwnedLock[];

export interface LockInfo extends Holding {
  jobId: string;
}

export interface NamedLockInfo extends Holding {
  name: string;
  /** The number of requests in line. */
  waiting: number;
}

export interface Holding {
  token: string;
  fence: number;
  /** The id of the session that holds it. */
  session: string;
  owner: Owner;
  /** Store's epoch ms. */
  since: number;
  /** Until the lock expires without a renewal; negative if it has expired and was not swept yet. */
  endsInMs: number;
}

export interface OwnedLock {
  jobId: string;
  token: string;
  fence: number;
  /** The seq of the claim. */
  seq: number;
}
