// HOLD. A renewer renews sessions, so that what a worker has claimed or a holder has locked stays its own, and sweeps for its queue. There are
// two with one interface: LoopRenewer on the owner's event loop, ThreadRenewer in a thread that user code cannot block. SessionOwners call them;
// a renewer never runs user code and never decides that a lock is good: it only reports what the store answered and when it was asked.
import type { Revocation, SessionRef, Store, SweepReply } from '../store/contract/index.js';
import type { StoreDescriptor } from '../store/descriptor.js';
import type { SessionMemory } from './session-memory.js';

/** Where sessions are renewed: on the event loop of their owner, or in the lock thread. */
export interface Renewers {
  onLoop(): Renewer;
  /** One for each entry file of the thread; the package's own without one. */
  inThread(entryFile: string | undefined): Renewer;
}

export interface Renewer {
  /** Renews the session from now on, the first time at once or within `renewMs`. */
  keep(kept: RenewedSession): void;
  /** The session's memory got another block of slots. */
  grow(sessionId: string, block: SharedArrayBuffer): void;
  /** Stops renewing and sweeping for it. With `handBackAtExit` its locks are still handed back when the process exits. */
  release(sessionId: string, handBackAtExit: boolean): Promise<void>;
}

/** All that a renewer needs to know about a session, as plain data. */
export interface SessionPlan extends SessionRef {
  durationMs: number;
  /** 0: the session is not renewed (skipLockRenewal). */
  renewMs: number;
  /** 0: this worker does not sweep (skipStalledCheck). */
  sweepMs: number;
  /** Within what time it has to hear that nobody takes its owner for dead, while it holds locks; 0: it need not. */
  graceMs: number;
  /** 0: no ceiling. */
  maxBlockedMs: number;
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

/** Reports to the worker, on its own loop. */
export interface RenewerListener {
  renewed(): void;
  /** Single locks were taken away. */
  revoked(revocations: Revocation[]): void;
  /** The store has ended the session, and with it all its locks. */
  lost(): void;
  swept(reply: Omit<SweepReply, 'more'>): void;
  /** Something failed and is tried again; never the end of renewal. `renewing`: it was an attempt to renew. */
  failed(error: Error, renewing: boolean): void;
  /** A thread looks after this session, or (false) the worker's loop does. */
  threaded(byThread: boolean): void;
  /** The event loop was blocked; with `ceiling`, for so long that renewal was stopped. Told when it is free again. */
  blocked(blockedMs: number, ceiling: boolean): void;
}
