// The token and the fence of an acquisition. Every store makes them the same way, in the step that grants the lock.
import { HoldfastError } from '../errors.js';

/** Returns a unique token: a session id is never used twice, and a fence is never used twice within a queue. */
export function tokenOf(session: string, fence: number): string {
  return `${session}:${fence}`;
}

/**
 * Returns the fence of an acquisition. It grows with every acquisition of a queue, even if a failover or a restored backup lost the last
 * ones: no earlier fence can lie above the clock, as long as a queue claims fewer than a million jobs a second.
 */
export function nextFence(last: number, storeNowMs: number): number {
  return Math.max(last + 1, Math.floor(storeNowMs * 1000));
}

/** The state of a lock, as its holder can read it at any moment, even inside a synchronous loop. Reading it does no I/O. */
export interface JobLock {
  /**
   * True while the lock is certainly ours: no other session can have been let in yet. It turns false as soon as that is uncertain, also
   * while the store does not reply. The lock may still be ours then: the handler is not aborted, and its result is sent to the store. Once
   * false, it never turns true again, so that a handler gets no contradicting readings.
   */
  readonly held: boolean;
  readonly token: string;
  /** Pass the fence to every system that the handler writes to. That system must refuse a fence smaller than one it has seen. */
  readonly fence: number;
  /** When trust ends without a renewal, in ms since the epoch on this host's clock. */
  readonly expiresAt: number;
  /**
   * For how many ms `held` stays true if the store sends no more replies; 0 once it is false. Shorter than `expiresAt` where a server may
   * take a living process for dead (see crashGraceMs).
   */
  readonly remainingMs: number;
  /** Aborted when the lock is lost, with the reason. */
  readonly signal: AbortSignal;
  /** Throws LOCK_LOST unless the lock is certainly held (`held`). A handler that ends with that error uses up no attempt. */
  assert(): void;
}

const NOT_HELD = AbortSignal.abort(new Error('This handle holds no lock.'));

/** The lock of a job that this process does not hold. */
export const NO_LOCK: JobLock = lockNotHeld('', 0);

/** Returns a lock that is not held, with its token and fence. */
export function lockNotHeld(token: string, fence: number): JobLock {
  const assert = (): never => {
    const message = 'This handle holds no lock: take it with job.takeLock(), or use the job that the processor was called with.';
    throw new HoldfastError('LOCK_LOST', message);
  };
  return { held: false, token, fence, expiresAt: 0, remainingMs: 0, signal: NOT_HELD, assert };
}
