// The interface of a renewer. A renewer renews sessions, so that their owners keep their jobs and locks, and sweeps for their queues.
// LoopRenewer runs on the owner's event loop, ThreadRenewer in a thread that user code cannot block. SessionOwners call them.
// A renewer never runs user code and never decides that a lock is good: it reports what the store replied, and when the call was sent.
import type { Outcome } from '../job/outcome.js';
import type { Notice, SessionRef, Store, SweepReply } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { SessionMemory } from './session-memory.js';

/** Where sessions are renewed: on the event loop of their owner, or in the lock thread. */
export interface Renewers {
  onLoop(): Renewer;
  /** One renewer for each entry file of the thread. Without an entry file, the package's own is used. */
  inThread(entryFile: string | undefined): Renewer;
}

export interface Renewer {
  /** Renews the session from now on, the first time at once or within `renewMs`. */
  keep(kept: RenewedSession): void;
  /** The session's shared memory got another block of slots. */
  grow(sessionId: string, block: SharedArrayBuffer): void;
  /** Ends a run that takes too long, if its owner cannot do so because its event loop is blocked. */
  limit(sessionId: string, limit: RunLimit): void;
  /** The run has ended, or its owner has ended it. */
  unlimit(sessionId: string, token: string): void;
  /** The session has jobs that were claimed ahead: gives them back if the event loop of their owner is blocked. */
  watchAhead(sessionId: string): void;
  /** Takes locks out of the session, so that they expire at once although the session is renewed. */
  detach(sessionId: string, locks: DetachedLocks): void;
  /** Stops renewing and sweeping for the session. With `handBackAtExit` its locks are still handed back when the process exits. */
  release(sessionId: string, handBackAtExit: boolean): Promise<void>;
}

/** Locks that their owner has given up and cannot release, because it does not reach the store. As plain data. */
export interface DetachedLocks {
  held: LockRef[];
  /** Numbers of claims whose reply the owner has not got: all locks that they granted. */
  claims: number[];
}

export interface LockRef {
  jobId: string;
  token: string;
}

/** The time limit of a run, as plain data. */
export interface RunLimit {
  /** When the renewer ends the run: later than the owner would, in ms from now. */
  inMs: number;
  fence: number;
  reason: string;
  /** How the run ends then. */
  outcome: Outcome;
}

/** Everything that a renewer needs to know about a session, as plain data. */
export interface SessionPlan extends SessionRef {
  durationMs: number;
  /** 0: the session is not renewed (skipLockRenewal). */
  renewMs: number;
  /** 0: this worker does not sweep (skipStalledCheck). */
  sweepMs: number;
  /** While the session holds locks, the store must confirm every `graceMs` that the session is not under suspicion. 0: no check needed. */
  graceMs: number;
  /** Renewal stops when the event loop has been blocked for this many ms. 0: no ceiling. */
  maxBlockedMs: number;
  /** Of workers: whether the stack of a block is taken. */
  blockedStack?: boolean;
}

/** What the lock thread saw while the event loop was blocked. */
export interface BlockSeen {
  /** The fences of the locks that the session held. */
  fences: number[];
  /** Where the event loop was; in parentheses, why that is not known. */
  stack: string;
}

export interface RenewedSession {
  plan: SessionPlan;
  memory: SessionMemory;
  /** The worker's own store, for renewal on its loop. */
  store: Store;
  /** How the thread reaches the same store. */
  descriptor?: StoreDescriptor;
  listener: RenewerListener;
}

/** Receives the renewer's reports, on the owner's own event loop. */
export interface RenewerListener {
  renewed(): void;
  /** Single locks were taken away, or their jobs were cancelled. */
  noticed(notices: Notice[]): void;
  /** The store has ended the session, and with it all its locks. */
  lost(): void;
  swept(reply: Omit<SweepReply, 'more'>): void;
  /** A probe found schedules that are owing. Clearing them may run user code, so that is the work of the owner. */
  undone(): void;
  /** A call failed and will be retried; renewal goes on. `renewing`: the call was a renewal. */
  failed(error: Error, renewing: boolean): void;
  /** Says where the session is renewed: in the lock thread (true) or on the worker's event loop (false). */
  threaded(byThread: boolean): void;
  /** The event loop was blocked; with `ceiling`, so long that renewal stopped. Reported when the loop is free again. */
  blocked(blockedMs: number, ceiling: boolean, seen?: BlockSeen): void;
}
